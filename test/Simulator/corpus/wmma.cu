// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Matrix products by wmma, of every type that sm_80 has.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// One warp a 16 x 16 tile; B is column-major.
extern "C" __global__ void gemm_wmma_f16(const half *a, const half *b, float *c, int n, int k) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.5f);
  const int row = blockIdx.y * 16, column = blockIdx.x * 16;
  for (int at = 0; at < k; at += 16) {
    wmma::load_matrix_sync(left, a + row * k + at, k);
    wmma::load_matrix_sync(right, b + column * k + at, k);
    wmma::mma_sync(sum, left, right, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i)
    sum.x[i] = sum.x[i] * 2.0f;
  wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}

// f16 accumulators, a 32 x 8 tile, from shared memory.
extern "C" __global__ void gemm_wmma_32x8(const half *a, const half *b, half *c, int k) {
  __shared__ half left_tile[32 * 16], right_tile[16 * 8];
  wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::col_major> left;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 32, 8, 16, half> sum;
  wmma::fill_fragment(sum, __float2half(0.0f));
  for (int at = 0; at < k; at += 16) {
    for (int i = threadIdx.x; i < 32 * 16; i += 32)
      left_tile[i] = a[at * 32 + i]; // A is column-major: 16 columns of 32
    for (int i = threadIdx.x; i < 16 * 8; i += 32)
      right_tile[i] = b[at * 8 + i];
    __syncwarp();
    wmma::load_matrix_sync(left, left_tile, 32);
    wmma::load_matrix_sync(right, right_tile, 8);
    wmma::mma_sync(sum, left, right, sum);
    __syncwarp();
  }
  wmma::store_matrix_sync(c, sum, 32, wmma::mem_col_major);
}

extern "C" __global__ void gemm_wmma_s8(const signed char *a, const signed char *b, int *c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::fill_fragment(sum, -7);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

extern "C" __global__ void gemm_wmma_tf32(const float *a, const float *b, float *c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
  wmma::load_matrix_sync(left, a, 8);
  wmma::load_matrix_sync(right, b, 16);
  for (int i = 0; i < left.num_elements; ++i)
    left.x[i] = wmma::__float_to_tf32(left.x[i]);
  for (int i = 0; i < right.num_elements; ++i)
    right.x[i] = wmma::__float_to_tf32(right.x[i]);
  wmma::fill_fragment(sum, 0.0f);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

extern "C" __global__ void gemm_wmma_f64(const double *a, const double *b, double *c) {
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
  wmma::load_matrix_sync(sum, c, 8, wmma::mem_row_major);
  wmma::load_matrix_sync(left, a, 4);
  wmma::load_matrix_sync(right, b, 4);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}
