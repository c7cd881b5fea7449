// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Planted bugs, each beside its corrected twin: `KIND__NAME_bug` and `KIND__NAME_fixed`. The line that the finding names
// ends in BUG and the name, where it is one of this file. planted.ptx is what nvcc makes of this file, see planted/__init__.py.
#include <cassert>
#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline_primitives.h>

#define PLANT(name)                                                                                                    \
  template <bool bug> __device__ __forceinline__ void name(int *x, int i);                                             \
  extern "C" __global__ void name##_bug(int *x) { name<true>(x, threadIdx.x); }                                        \
  extern "C" __global__ void name##_fixed(int *x) { name<false>(x, threadIdx.x); }                                     \
  template <bool bug> __device__ __forceinline__ void name(int *x, int i)

PLANT(out_of_bounds__stencil) {
  x[i] = x[i + (bug ? 193 : 192)]; // BUG out_of_bounds__stencil
}

PLANT(out_of_bounds__shared) {
  __shared__ int s[64];
  s[bug && i == 63 ? 64 : i] = x[i]; // BUG out_of_bounds__shared
  __syncthreads();
  x[i] = s[i / 2];
}

__device__ __noinline__ int sum_to(int n, bool ends) {
  volatile int own[8];
  own[n & 7] = n;
  return ends && n == 0 ? 0 : sum_to(n - 1, ends) + own[n & 7]; // BUG out_of_bounds__recursion
}

PLANT(out_of_bounds__recursion) {
  x[i] = sum_to(i, !bug);
}

PLANT(misaligned__pair) {
  const int2 pair = *reinterpret_cast<int2 *>(x + 2 * i + (bug ? 1 : 0)); // BUG misaligned__pair
  x[128 + i] = pair.x + pair.y;
}

PLANT(misaligned__shared_double) {
  __shared__ __align__(16) char s[1024];
  volatile double *own = reinterpret_cast<double *>(s + 8 * i + (bug ? 4 : 0));
  *own = i; // BUG misaligned__shared_double
}

PLANT(use_after_free__heap) {
  int *own = static_cast<int *>(malloc(16));
  own[0] = i;
  if (bug)
    free(own);
  x[i] = *reinterpret_cast<volatile int *>(own); // BUG use_after_free__heap
  if (!bug)
    free(own);
}

struct Holder {
  volatile int *kept;
};
__device__ __noinline__ void keep_own(Holder *to, int value) {
  volatile int own[4];
  own[value & 3] = value;
  to->kept = own;
}
__device__ __noinline__ void keep_given(Holder *to, int value, volatile int *own) {
  own[value & 3] = value;
  to->kept = own;
}

PLANT(use_after_free__frame) {
  Holder holder;
  volatile int own[4];
  if (bug)
    keep_own(&holder, i);
  else
    keep_given(&holder, i, own);
  x[i] = holder.kept[i & 3]; // BUG use_after_free__frame
}

PLANT(uninitialised__array) {
  int values[8];
  for (int j = 0; j < (bug ? 7 : 8); ++j)
    values[(j + x[0]) & 7] = i;
  x[64 + i] = values[i & 7]; // BUG uninitialised__array
}

PLANT(uninitialised__shared_sum) {
  __shared__ int sum;
  if (!bug && i == 0)
    sum = 0;
  __syncthreads();
  atomicAdd(&sum, x[i]);
  __syncthreads();
  x[i] = sum; // BUG uninitialised__shared_sum
}

PLANT(uninitialised__absent_lane) {
  if (bug && i % 32 >= 16)
    return;
  const int value = __shfl_down_sync(bug ? 0xffffu : 0xffffffffu, x[i], 8);
  x[i] = value; // BUG uninitialised__absent_lane
}

PLANT(shared_race__reverse) {
  __shared__ int s[64];
  reinterpret_cast<volatile int *>(s)[i] = 0;
  __syncthreads();
  s[i] = x[i];
  if (!bug)
    __syncthreads();
  x[i] = s[63 - i]; // BUG shared_race__reverse
}

PLANT(shared_race__lanes) {
  __shared__ int s[64];
  s[i] = x[i];
  if (!bug)
    __syncwarp();
  x[i] = s[i ^ 1]; // BUG shared_race__lanes
}

PLANT(global_race__neighbour) {
  x[i] = i;
  if (!bug)
    __syncthreads();
  x[64 + i] = x[63 - i]; // BUG global_race__neighbour
}

PLANT(global_race__last_block) {
  __shared__ bool last;
  x[64 + 64 * blockIdx.x + i] = i;
  if (!bug)
    __threadfence();
  __syncthreads();
  if (i == 0)
    last = atomicAdd(x, 1) == static_cast<int>(gridDim.x) - 1;
  __syncthreads();
  if (last) {
    __threadfence();
    for (unsigned b = 0; b < gridDim.x; ++b)
      x[192 + i] += reinterpret_cast<volatile int *>(x)[64 + 64 * b + i]; // BUG global_race__last_block
  }
}

PLANT(async_unwaited__early) {
  __shared__ int s[64];
  __pipeline_memcpy_async(&s[i], &x[i], 4);
  __pipeline_commit();
  if (!bug)
    __pipeline_wait_prior(0);
  x[64 + i] = s[i]; // BUG async_unwaited__early
  __pipeline_wait_prior(0);
}

PLANT(async_unwaited__stage) {
  __shared__ int s[2][64];
  for (int stage = 0; stage < 2; ++stage) {
    __pipeline_memcpy_async(&s[stage][i], &x[64 * stage + i], 4);
    __pipeline_commit();
  }
  __pipeline_wait_prior(bug ? 2 : 1);
  x[128 + i] = s[0][i]; // BUG async_unwaited__stage
  __pipeline_wait_prior(0);
}

PLANT(async_overwrite__destination) {
  __shared__ int s[64];
  __pipeline_memcpy_async(&s[i], &x[i], 4);
  __pipeline_commit();
  if (!bug)
    __pipeline_wait_prior(0);
  reinterpret_cast<volatile int *>(s)[i] = 0; // BUG async_overwrite__destination
  __pipeline_wait_prior(0);
}

PLANT(async_overwrite__source) {
  __shared__ int s[64];
  __pipeline_memcpy_async(&s[i], &x[i], 4);
  __pipeline_commit();
  if (!bug)
    __pipeline_wait_prior(0);
  reinterpret_cast<volatile int *>(x)[i] = 0; // BUG async_overwrite__source
  __pipeline_wait_prior(0);
  x[64 + i] = s[i];
}

PLANT(exit_with_async__forgotten) {
  __shared__ int s[64];
  __pipeline_memcpy_async(&s[i], &x[i], 4);
  __pipeline_commit();
  if (!bug)
    __pipeline_wait_prior(0);
}

PLANT(exit_with_async__some_threads) {
  __shared__ int s[64];
  __pipeline_memcpy_async(&s[i], &x[i], 4);
  __pipeline_commit();
  if (!bug || i < 32)
    __pipeline_wait_prior(0);
}

PLANT(mbarrier_misuse__early) {
  __shared__ __mbarrier_t bar;
  if (i == 0)
    __mbarrier_init(&bar, bug ? 32 : 64);
  __syncthreads();
  const __mbarrier_token_t token = __mbarrier_arrive(&bar);
  while (!__mbarrier_test_wait(&bar, token)) {
  }
}

PLANT(mbarrier_misuse__again) {
  __shared__ __mbarrier_t bar;
  for (int round = 0; round < 2; ++round) {
    if (i == 0) {
      if (!bug && round)
        __mbarrier_inval(&bar);
      __mbarrier_init(&bar, 64);
    }
    __syncthreads();
    const __mbarrier_token_t token = __mbarrier_arrive(&bar);
    while (!__mbarrier_test_wait(&bar, token)) {
    }
    __syncthreads();
  }
}

PLANT(deadlock__lock) {
  while (atomicCAS(x + 200, 200, 1) != (bug ? 200 : i == 0 ? 200 : 1)) {
  }
}

PLANT(deadlock__named_barriers) {
  if (i < 32)
    asm volatile("bar.sync 1;" ::: "memory");
  else
    asm volatile("bar.sync %0;" ::"r"(bug ? 2 : 1) : "memory");
}

PLANT(barrier_mismatch__count) {
  if (i < 32)
    __syncthreads();
  else if (bug)
    x[i] = __syncthreads_count(i & 1);
  else
    __syncthreads();
}

PLANT(barrier_mismatch__left_out) {
  x[i] = __shfl_sync(bug ? 0xfffffffeu : 0xffffffffu, x[i], 5);
}

PLANT(barrier_mismatch__ballot) {
  const unsigned mask = bug && i % 32 < 16 ? 0xffffu : 0xffffffffu;
  x[i] = __ballot_sync(mask, i & 1);
}

PLANT(divergent_aligned__odd) {
  if (!bug || (i & 1))
    __syncthreads();
  x[i] = i;
}

PLANT(divergent_aligned__loop) {
  for (int j = 0; j < (bug ? i : 40); ++j)
    __syncthreads();
  x[i] = i;
}

PLANT(trap__assertion) {
  assert(x[i] < (bug ? 60 : 100)); // BUG trap__assertion
}

PLANT(trap__explicit) {
  if (x[i] == (bug ? 9 : 999))
    __trap();
}
