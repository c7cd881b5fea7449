// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Control and synchronisation: branches, locks, grid barriers, named barriers, votes, printf.
#include <cstdio>

extern "C" __global__ void many_cases(const int *x, int *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int v = x[i];
  switch (v % 9) {
  case 0:
    v = v * 3 + 1;
    break;
  case 1:
    v ^= 0x55;
    break;
  case 2:
    v = -v;
  case 3:
    v += 100;
    break;
  case 4:
    v = v << (v & 7);
    break;
  case 5:
    v = v / 7;
    break;
  case 6:
    v = ~v;
    break;
  case 7:
    while (v > 10)
      v = v / 2 + v % 3;
    break;
  default:
    v = 0;
  }
  y[i] = v;
}

// Every thread of a warp wants the lock: the loop lets the holder go on.
extern "C" __global__ void spin_lock(int *lock, int *count, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    bool done = false;
    while (!done) {
      if (atomicCAS(lock, 0, 1) == 0) {
        __threadfence();
        *(volatile int *)count = *(volatile int *)count + 1;
        __threadfence();
        atomicExch(lock, 0);
        done = true;
      }
    }
  }
}

// All blocks are resident; each step reads what the block before it wrote.
extern "C" __global__ void grid_barrier(int *values, unsigned *arrived, int steps) {
  for (int step = 0; step < steps; ++step) {
    const int from = (blockIdx.x + gridDim.x - 1) % gridDim.x;
    const int *old = values + step % 2 * gridDim.x;
    int *now = values + (step + 1) % 2 * gridDim.x;
    if (threadIdx.x == 0)
      now[blockIdx.x] = *(volatile const int *)&old[from] + 1;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(arrived, 1u);
      while (atomicAdd(arrived, 0u) < gridDim.x * (step + 1)) {
      }
      __threadfence();
    }
    __syncthreads();
  }
}

// Half of the block hands over to the other half by a named barrier: arrive on one side, sync on the other.
extern "C" __global__ void named_barriers(const int *x, int *y) {
  __shared__ int stage[64];
  const int t = threadIdx.x;
  if (t < 64) {
    stage[t] = x[t] * 2;
    asm volatile("bar.arrive 1, 128;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 128;" ::: "memory");
    y[t - 64] = stage[(t - 64) ^ 5];
  }
}

extern "C" __global__ void count_votes(const int *x, int *counts, unsigned *masks) {
  const int value = x[threadIdx.x];
  const int positive = __syncthreads_count(value > 0), every = __syncthreads_and(value > -100),
            some = __syncthreads_or(value == 7);
  const int all = __all_sync(~0u, value > -50), any = __any_sync(~0u, value > 95),
            same = __all_sync(~0u, value > 0) || !__any_sync(~0u, value > 0);
  unsigned active = 0;
  if (value % 2)
    active = __activemask();
  if (threadIdx.x == 0)
    counts[0] = positive, counts[1] = every, counts[2] = some;
  masks[threadIdx.x * 2] = all | any << 1 | same << 2;
  masks[threadIdx.x * 2 + 1] = active != 0; // which lanes are together is not defined
}

extern "C" __global__ void print_lines(int value) {
  if (threadIdx.x < 2)
    printf("thread %d of block %d: %5.2f %s %llx|%-6.3s|%3c|%hhu\n", threadIdx.x, blockIdx.x, value * 0.5, "done",
           0x123456789abull + value, "field", 'c', value + 256);
}
