// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Asynchronous copies and hand-overs by the CUDA headers' own cuda::pipeline and cuda::barrier.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>

#pragma nv_diag_suppress static_var_with_dynamic_init // barriers in shared memory, which init() makes

namespace cg = cooperative_groups;

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
