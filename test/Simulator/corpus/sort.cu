// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Sorts and histograms.

extern "C" __global__ void bitonic_sort(unsigned *keys, int n) {
  extern __shared__ unsigned shared_keys[];
  const unsigned t = threadIdx.x;
  shared_keys[t] = keys[blockIdx.x * n + t];
  for (unsigned size = 2; size <= (unsigned)n; size *= 2)
    for (unsigned stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const unsigned other = t ^ stride;
      if (other > t) {
        const unsigned a = shared_keys[t], b = shared_keys[other];
        if ((a > b) == ((t & size) == 0)) {
          shared_keys[t] = b;
          shared_keys[other] = a;
        }
      }
    }
  __syncthreads();
  keys[blockIdx.x * n + t] = shared_keys[t];
}

// Each element counts those before it.
extern "C" __global__ void rank_sort(const float *x, float *y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int rank = 0;
  for (int j = 0; j < n; ++j)
    rank += x[j] < x[i] || (x[j] == x[i] && j < i);
  y[rank] = x[i];
}

// One radix pass a bit, within a block.
extern "C" __global__ void radix_sort_bits(unsigned *keys, int bits) {
  __shared__ unsigned values[256];
  __shared__ unsigned zeros[8];
  const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32;
  unsigned key = keys[t];
  for (int bit = 0; bit < bits; ++bit) {
    const bool one = key >> bit & 1;
    const unsigned ballot = __ballot_sync(~0u, !one);
    if (lane == 0)
      zeros[warp] = __popc(ballot);
    __syncthreads();
    unsigned before = 0, total = 0;
    for (unsigned w = 0; w < 8; ++w) {
      before += w < warp ? zeros[w] : 0;
      total += zeros[w];
    }
    before += __popc(ballot & ((1u << lane) - 1));
    values[one ? total + t - before : before] = key;
    __syncthreads();
    key = values[t];
  }
  keys[t] = key;
}

extern "C" __global__ void histogram_shared(const unsigned char *x, unsigned *counts, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (local[i])
      atomicAdd(&counts[i], local[i]);
}

// Lanes with one key elect a leader that adds for them all.
extern "C" __global__ void histogram_match(const int *keys, unsigned *counts, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned active = __ballot_sync(0xffffffffu, i < n);
  if (i >= n)
    return;
  const unsigned same = __match_any_sync(active, keys[i]);
  if (__ffs(same) - 1 == (int)(threadIdx.x % 32))
    atomicAdd(&counts[keys[i]], (unsigned)__popc(same));
}
