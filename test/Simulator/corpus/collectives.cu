// Part of Weft. SPDX-License-Identifier: Apache-2.0
// CUB's block and warp collectives.
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

extern "C" __global__ void cub_block_reduce(const float *x, float *out) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  const float value = x[blockIdx.x * 128 + threadIdx.x];
  const float sum = Reduce(storage).Sum(value);
  __syncthreads();
  const float largest = Reduce(storage).Reduce(value, [](float a, float b) { return a > b ? a : b; });
  if (threadIdx.x == 0) {
    out[blockIdx.x * 2] = sum;
    out[blockIdx.x * 2 + 1] = largest;
  }
}

extern "C" __global__ void cub_block_scan(const int *x, int *exclusive, int *total) {
  using Scan = cub::BlockScan<int, 256>;
  __shared__ typename Scan::TempStorage storage;
  int items[2] = {x[threadIdx.x * 2], x[threadIdx.x * 2 + 1]}, sum;
  Scan(storage).ExclusiveSum(items, items, sum);
  exclusive[threadIdx.x * 2] = items[0];
  exclusive[threadIdx.x * 2 + 1] = items[1];
  if (threadIdx.x == 0)
    *total = sum;
}

extern "C" __global__ void cub_block_sort(unsigned *keys, int *values) {
  using Sort = cub::BlockRadixSort<unsigned, 128, 4, int>;
  __shared__ typename Sort::TempStorage storage;
  unsigned key[4];
  int value[4];
  for (int i = 0; i < 4; ++i) {
    key[i] = keys[threadIdx.x * 4 + i];
    value[i] = values[threadIdx.x * 4 + i];
  }
  Sort(storage).Sort(key, value);
  for (int i = 0; i < 4; ++i) {
    keys[threadIdx.x * 4 + i] = key[i];
    values[threadIdx.x * 4 + i] = value[i];
  }
}

extern "C" __global__ void cub_warp(const int *x, int *sums, int *scans) {
  using Reduce = cub::WarpReduce<int>;
  using Scan = cub::WarpScan<int, 16>;
  __shared__ typename Reduce::TempStorage reduce[4];
  __shared__ typename Scan::TempStorage scan[8];
  const int value = x[threadIdx.x];
  const int sum = Reduce(reduce[threadIdx.x / 32]).Sum(value);
  int inclusive;
  Scan(scan[threadIdx.x / 16]).InclusiveSum(value, inclusive);
  if (threadIdx.x % 32 == 0)
    sums[threadIdx.x / 32] = sum;
  scans[threadIdx.x] = inclusive;
}

extern "C" __global__ void cub_exchange(const int *x, int *y) {
  using Exchange = cub::BlockExchange<int, 64, 4>;
  __shared__ typename Exchange::TempStorage storage;
  int items[4];
  for (int i = 0; i < 4; ++i)
    items[i] = x[threadIdx.x + i * 64];
  Exchange(storage).StripedToBlocked(items, items);
  for (int i = 0; i < 4; ++i)
    y[threadIdx.x * 4 + i] = items[i] * 10 + i;
}
