// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Matrix products: scalar tiles, dp4a, mma by hand.
#include <cuda_bf16.h>

// C[m, n] = A[m, k] B[k, n], m, n, k multiples of 16.
extern "C" __global__ void gemm_tiled(const float *a, const float *b, float *c, int n, int k) {
  __shared__ float left[16][16], right[16][17];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int at = 0; at < k; at += 16) {
    left[threadIdx.y][threadIdx.x] = a[row * k + at + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(at + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i)
      sum = fmaf(left[threadIdx.y][i], right[i][threadIdx.x], sum);
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// Bytes in words of four along k, both operands k-major.
extern "C" __global__ void gemm_dp4a(const int *a, const int *b, int *c, int n, int words) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  int sum = 0;
  for (int i = 0; i < words; ++i)
    sum = __dp4a(a[row * words + i], b[column * words + i], sum);
  c[row * n + column] = sum;
}

// mma.m16n8k16 on what ldmatrix reads: C[16, 8] = A[16, k] B[k, 8] of bf16, B row-major and read transposed.
extern "C" __global__ void gemm_mma_ldmatrix(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int k) {
  __shared__ __align__(16) __nv_bfloat16 left[16][24], right[16][8]; // rows of 48 bytes: no two of eight in one bank
  const int lane = threadIdx.x;
  float d[4] = {};
  for (int at = 0; at < k; at += 16) {
    for (int i = lane; i < 16 * 16; i += 32)
      left[i / 16][i % 16] = a[i / 16 * k + at + i % 16];
    for (int i = lane; i < 16 * 8; i += 32)
      right[i / 8][i % 8] = b[(at + i / 8) * 8 + i % 8];
    __syncwarp();
    unsigned fa[4], fb[2];
    const unsigned pa = (unsigned)__cvta_generic_to_shared(&left[lane % 16][lane / 16 * 8]);
    const unsigned pb = (unsigned)__cvta_generic_to_shared(&right[lane % 16][0]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                 : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(fb[0]), "=r"(fb[1]) : "r"(pb));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    __syncwarp();
  }
  const int row = lane / 4, column = lane % 4 * 2;
  c[row * 8 + column] = d[0];
  c[row * 8 + column + 1] = d[1];
  c[(row + 8) * 8 + column] = d[2];
  c[(row + 8) * 8 + column + 1] = d[3];
}

// mma.m16n8k32 of s8 and u8, straight from global memory by the fragment tables.
extern "C" __global__ void gemm_mma_s8(const signed char *a, const unsigned char *b, int *c) {
  const int group = threadIdx.x / 4, t = threadIdx.x % 4;
  const unsigned *rows = (const unsigned *)a, *columns = (const unsigned *)b; // 8 words a row of A, a column of B
  unsigned fa[4] = {rows[group * 8 + t], rows[(group + 8) * 8 + t], rows[group * 8 + t + 4],
                    rows[(group + 8) * 8 + t + 4]};
  unsigned fb[2] = {columns[group * 8 + t], columns[group * 8 + t + 4]};
  int d[4];
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%10, %10, %10, %10};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]), "r"(2147400000));
  for (int i = 0; i < 4; ++i)
    c[(group + i / 2 * 8) * 8 + t * 2 + i % 2] = d[i];
}
