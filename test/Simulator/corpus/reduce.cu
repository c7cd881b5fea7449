// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Reductions: shared trees, shuffles, atomics, the last block of a grid, cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

extern "C" __global__ void sum_tree(const float *x, float *sums, int n) {
  __shared__ float partial[256];
  float total = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    total += x[i];
  partial[threadIdx.x] = total;
  __syncthreads();
  for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
    if (threadIdx.x < width)
      partial[threadIdx.x] += partial[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0)
    sums[blockIdx.x] = partial[0];
}

__device__ __forceinline__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_down_sync(0xffffffffu, value, offset);
  return value;
}

extern "C" __global__ void row_sum_shuffle(const float *x, float *sums, int columns) {
  __shared__ float warps[32];
  const float *row = x + (size_t)blockIdx.x * columns;
  float total = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    total += row[i];
  total = warp_sum(total);
  if (threadIdx.x % 32 == 0)
    warps[threadIdx.x / 32] = total;
  __syncthreads();
  if (threadIdx.x < 32) {
    total = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0.0f;
    total = warp_sum(total);
    if (threadIdx.x == 0)
      sums[blockIdx.x] = total;
  }
}

extern "C" __global__ void extremes_atomic(const int *x, int *low, int *high, unsigned long long *sum, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  atomicMin(low, x[i]);
  atomicMax(high, x[i]);
  atomicAdd(sum, (unsigned long long)(long long)x[i]);
}

// The block that finishes last adds up what the others left.
extern "C" __global__ void sum_last_block(const float *x, float *partial, unsigned *ticket, float *total, int n) {
  __shared__ float warps[32];
  __shared__ bool last;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = warp_sum(i < n ? x[i] : 0.0f);
  if (threadIdx.x % 32 == 0)
    warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0;
    for (unsigned w = 0; w < blockDim.x / 32; ++w)
      sum += warps[w];
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float sum = 0;
    for (unsigned b = 0; b < gridDim.x; ++b)
      sum += ((volatile float *)partial)[b];
    *total = sum;
  }
}

extern "C" __global__ void tile_reduce(const int *x, int *sums, int *ranks) {
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int sum = cg::reduce(tile, x[i], cg::plus<int>());
  const int largest = cg::reduce(tile, x[i], cg::greater<int>());
  if (tile.thread_rank() == 0) {
    sums[2 * (i / 8)] = sum;
    sums[2 * (i / 8) + 1] = largest;
  }
  ranks[i] = tile.meta_group_rank() * 100 + tile.thread_rank();
  block.sync();
}

// __reduce_*_sync on part of a warp.
extern "C" __global__ void redux_part(const unsigned *x, unsigned *out) {
  const unsigned value = x[threadIdx.x], mask = 0x0ff0f00fu;
  if (mask >> (threadIdx.x % 32) & 1) {
    out[threadIdx.x * 4] = __reduce_add_sync(mask, value);
    out[threadIdx.x * 4 + 1] = __reduce_max_sync(mask, value);
    out[threadIdx.x * 4 + 2] = __reduce_xor_sync(mask, value);
    out[threadIdx.x * 4 + 3] = (unsigned)__reduce_min_sync(mask, (int)value);
  }
}
