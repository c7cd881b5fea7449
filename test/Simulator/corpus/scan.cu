// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Prefix sums: in shared memory, by shuffles, and over a whole grid in one pass with look-back.

extern "C" __global__ void scan_double_buffer(const int *x, int *y, int n) {
  extern __shared__ int buffer[];
  const int i = threadIdx.x;
  int *from = buffer, *to = buffer + n;
  from[i] = x[blockIdx.x * n + i];
  __syncthreads();
  for (int distance = 1; distance < n; distance *= 2) {
    to[i] = from[i] + (i >= distance ? from[i - distance] : 0);
    __syncthreads();
    int *other = from;
    from = to;
    to = other;
  }
  y[blockIdx.x * n + i] = from[i];
}

__device__ int warp_scan(int value) {
  const int lane = threadIdx.x % 32;
  for (int distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= distance)
      value += other;
  }
  return value;
}

__device__ int block_scan(int value, int *warps) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int inclusive = warp_scan(value);
  if (lane == 31)
    warps[warp] = inclusive;
  __syncthreads();
  if (warp == 0)
    warps[lane] = warp_scan(lane < (int)blockDim.x / 32 ? warps[lane] : 0);
  __syncthreads();
  return inclusive + (warp > 0 ? warps[warp - 1] : 0);
}

extern "C" __global__ void scan_shuffle(const int *x, int *y, int n) {
  __shared__ int warps[32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int sum = block_scan(i < n ? x[i] : 0, warps);
  if (i < n)
    y[i] = sum;
}

// state[b]: bits 63:62 say whether the low word is nothing yet (0), block b's sum (1), or the sum up to b (2).
extern "C" __global__ void scan_look_back(const int *x, int *y, unsigned long long *state, unsigned *next, int n) {
  __shared__ int warps[32];
  __shared__ int block, before;
  if (threadIdx.x == 0)
    block = (int)atomicAdd(next, 1u); // blocks are numbered as they start, so that those before are running
  __syncthreads();
  const int i = block * (int)blockDim.x + threadIdx.x;
  const int inclusive = block_scan(i < n ? x[i] : 0, warps);
  if (threadIdx.x == blockDim.x - 1) {
    const unsigned long long own = (unsigned)inclusive;
    if (block > 0)
      atomicExch(&state[block], 1ull << 62 | own);
    int sum = 0;
    for (int other = block - 1; other >= 0; --other) {
      unsigned long long seen;
      do
        seen = atomicAdd(&state[other], 0ull);
      while (seen >> 62 == 0);
      sum += (int)(unsigned)seen;
      if (seen >> 62 == 2)
        break;
    }
    atomicExch(&state[block], 2ull << 62 | (unsigned)(sum + inclusive));
    before = sum;
  }
  __syncthreads();
  if (i < n)
    y[i] = before + inclusive;
}

// Keeps the positive elements in order: ballots and population counts.
extern "C" __global__ void compact_positive(const float *x, float *y, int *count) {
  __shared__ int warps[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float value = x[threadIdx.x];
  const unsigned kept = __ballot_sync(0xffffffffu, value > 0);
  if (lane == 0)
    warps[warp] = __popc(kept);
  __syncthreads();
  int at = __popc(kept & ((1u << lane) - 1));
  for (int w = 0; w < warp; ++w)
    at += warps[w];
  if (value > 0)
    y[at] = value;
  if (threadIdx.x == blockDim.x - 1)
    *count = at + (value > 0);
}
