// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Asynchronous copies: the primitives, cp.async by hand, cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

// Two stages by the primitives: y[i] = sum over tiles of tile[i] * (tile number + 1).
extern "C" __global__ void stages_primitives(const float *x, float *y, int tiles) {
  __shared__ float stage[2][128];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&stage[0][t], &x[t], 4);
  __pipeline_commit();
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles)
      __pipeline_memcpy_async(&stage[(tile + 1) % 2][t], &x[(tile + 1) * 128 + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += stage[tile % 2][127 - t] * (tile + 1);
    __syncthreads();
  }
  y[t] = sum;
}

// cp.async of 16 bytes with a source size that zero-fills the tail.
extern "C" __global__ void zero_fill(const int *x, int *y, int n) {
  __shared__ __align__(16) int tile[256];
  const int first = threadIdx.x * 4;
  const int left = n - first, bytes = left >= 4 ? 16 : left > 0 ? left * 4 : 0;
  const unsigned to = (unsigned)__cvta_generic_to_shared(&tile[first]);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(x + (bytes ? first : 0)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    y[i] = tile[255 - i];
}

// cooperative_groups::memcpy_async and wait.
extern "C" __global__ void copy_by_group(const short *x, short *y, int n) {
  __shared__ short tile[512];
  const cg::thread_block block = cg::this_thread_block();
  cg::memcpy_async(block, tile, x, sizeof(short) * n);
  cg::wait(block);
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    y[i] = tile[n - 1 - i];
}
