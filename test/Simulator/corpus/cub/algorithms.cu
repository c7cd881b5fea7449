// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Device-wide algorithms of CUB and one of Thrust, as functions of pointers to device memory. Each takes the number of
// elements, `n`, last, and returns 0, or the error of a call that CUB made.

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/execution_policy.h>
#include <thrust/scan.h>

// x -> scale * x + shift. No arithmetic type: look-back keeps its values apart from the flags that publish them. And
// which comes first matters.
struct Affine {
  unsigned scale, shift;
};

namespace {

struct Negative {
  __host__ __device__ bool operator()(int x) const { return x < 0; }
};

struct Sum {
  __host__ __device__ int operator()(int a, int b) const { return a + b; }
};

struct Less {
  __host__ __device__ bool operator()(int a, int b) const { return a < b; }
};

struct Then {
  __host__ __device__ Affine operator()(Affine f, Affine g) const {
    return {g.scale * f.scale, g.scale * f.shift + g.shift};
  }
};

// CUB's two calls: one that asks for the size of the temporary storage, and one that runs.
template <class Algorithm> int run(Algorithm algorithm) {
  size_t bytes = 0;
  if (cudaError_t error = algorithm(nullptr, bytes))
    return error;
  void *storage = nullptr;
  if (cudaError_t error = cudaMalloc(&storage, bytes))
    return error;
  return algorithm(storage, bytes);
}

} // namespace

extern "C" {

int inclusive_sum(const int *x, int *sums, int n) {
  return run([=](void *s, size_t &b) { return cub::DeviceScan::InclusiveSum(s, b, x, sums, n); });
}

int exclusive_sum(const double *x, double *sums, int n) {
  return run([=](void *s, size_t &b) { return cub::DeviceScan::ExclusiveSum(s, b, x, sums, n); });
}

int inclusive_scan_of_maps(const Affine *maps, Affine *composed, int n) {
  return run([=](void *s, size_t &b) { return cub::DeviceScan::InclusiveScan(s, b, maps, composed, Then(), n); });
}

int inclusive_sum_by_key(const int *keys, const long long *x, long long *sums, int n) {
  return run([=](void *s, size_t &b) { return cub::DeviceScan::InclusiveSumByKey(s, b, keys, x, sums, n); });
}

int reduce_by_key(const int *keys, const int *x, int *unique, int *sums, int *runs, int n) {
  return run(
      [=](void *s, size_t &b) { return cub::DeviceReduce::ReduceByKey(s, b, keys, unique, x, sums, runs, Sum(), n); });
}

int radix_sort_keys(const unsigned *keys, unsigned *sorted, int n) {
  return run([=](void *s, size_t &b) { return cub::DeviceRadixSort::SortKeys(s, b, keys, sorted, n); });
}

int radix_sort_pairs(const float *keys, const int *x, float *sorted, int *permuted, int n) {
  return run([=](void *s, size_t &b) {
    return cub::DeviceRadixSort::SortPairsDescending(s, b, keys, sorted, x, permuted, n);
  });
}

int select_if(const int *x, int *selected, int *count, int n) {
  return run([=](void *s, size_t &b) { return cub::DeviceSelect::If(s, b, x, selected, count, n, Negative()); });
}

int unique(const int *x, int *selected, int *count, int n) {
  return run([=](void *s, size_t &b) { return cub::DeviceSelect::Unique(s, b, x, selected, count, n); });
}

int histogram(const unsigned char *x, int *counts, int n) {
  return run([=](void *s, size_t &b) { return cub::DeviceHistogram::HistogramEven(s, b, x, counts, 257, 0, 256, n); });
}

int run_length_encode(const int *x, int *unique, int *lengths, int *runs, int n) {
  return run([=](void *s, size_t &b) { return cub::DeviceRunLengthEncode::Encode(s, b, x, unique, lengths, runs, n); });
}

int segmented_sum(const int *x, const int *offsets, int *sums, int segments, int) {
  return run([=](void *s, size_t &b) {
    return cub::DeviceSegmentedReduce::Sum(s, b, x, sums, segments, offsets, offsets + 1);
  });
}

int segmented_radix_sort(const int *keys, const int *offsets, int *sorted, int segments, int n) {
  return run([=](void *s, size_t &b) {
    return cub::DeviceSegmentedRadixSort::SortKeys(s, b, keys, sorted, n, segments, offsets, offsets + 1);
  });
}

int merge_sort(int *keys, int n) {
  return run([=](void *s, size_t &b) { return cub::DeviceMergeSort::SortKeys(s, b, keys, n, Less()); });
}

int partition_if(const int *x, int *parts, int *count, int n) {
  return run([=](void *s, size_t &b) { return cub::DevicePartition::If(s, b, x, parts, count, n, Negative()); });
}

int thrust_exclusive_scan_by_key(const int *keys, const int *x, int *sums, int n) {
  thrust::exclusive_scan_by_key(thrust::device, keys, keys + n, x, sums);
  return 0;
}
}
