// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Asynchronous copies: the primitives, cuda::pipeline, cuda::barrier, and cp.async by hand.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_pipeline.h>

#pragma nv_diag_suppress static_var_with_dynamic_init // barriers in shared memory, which init() makes

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

// A block-wide cuda::pipeline of two stages.
extern "C" __global__ void stages_pipeline(const int *x, int *y, int tiles) {
  __shared__ int buffer[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  const cg::thread_block block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  int next = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    for (; next < tiles && next < tile + 2; ++next) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, buffer[next % 2], x + next * 64, sizeof(int) * 64, pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    y[tile * 64 + threadIdx.x] = buffer[tile % 2][63 - threadIdx.x] + tile;
    pipeline.consumer_release();
  }
}

// Warps that produce and warps that consume, with a pair of barriers.
extern "C" __global__ void producer_consumer(const int *x, int *y, int rounds) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ int slot[32];
  __shared__ Barrier full, empty;
  if (threadIdx.x == 0) {
    init(&full, 64);
    init(&empty, 64);
  }
  __syncthreads();
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int round = 0; round < rounds; ++round) {
      empty.arrive_and_wait(); // the slot is free
      slot[lane] = x[round * 32 + lane] * 3;
      (void)full.arrive();
    }
  } else {
    for (int round = 0; round < rounds; ++round) {
      (void)empty.arrive();
      full.arrive_and_wait(); // the slot is written
      y[round * 32 + lane] = slot[31 - lane] + round;
    }
  }
}

// memcpy_async that completes on a barrier.
extern "C" __global__ void copy_by_barrier(const double *x, double *y) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ __align__(16) double tile[256];
  __shared__ Barrier barrier;
  const cg::thread_block block = cg::this_thread_block();
  if (threadIdx.x == 0)
    init(&barrier, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(block, tile, x + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof tile), barrier);
  barrier.arrive_and_wait();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    y[blockIdx.x * 256 + i] = tile[i ^ 1] * 0.5;
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
