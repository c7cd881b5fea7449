// Part of Weft. SPDX-License-Identifier: Apache-2.0
// As much of the CUDA runtime as the host code of CUB and Thrust calls, on a device that Python is: memory comes from
// `allocate` and kernels go to `launch`. One stream, in which everything is done when its call returns; memory of the
// device is memory of the host. What Python finds wrong it keeps and raises itself: Thrust would throw at an error, and
// nothing here could catch that.

#include <cstring>
#include <cuda_runtime_api.h>
#include <map>
#include <vector>

namespace {

using Launch = void (*)(const char *kernel, const unsigned *grid, const unsigned *block, void **args, size_t shared);
using Allocate = void *(*)(size_t bytes);
Launch launch;
Allocate allocate;

// An A100's, except for its number: with few multiprocessors, grids that depend on it leave a block much to do.
constexpr int Multiprocessors = 4, BlocksEach = 2, ComputeCapability = 80;

// The kernels' names by the host functions that stand for them. Filled before main, thus made when first asked for.
std::map<const void *, const char *> &kernels() {
  static std::map<const void *, const char *> names;
  return names;
}

// Of kernel<<<grid, block, shared, stream>>>, between the brackets and the call.
struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
std::vector<Configuration> configurations;

cudaError_t run(const void *function, dim3 grid, dim3 block, void **args, size_t shared) {
  const unsigned blocks[] = {grid.x, grid.y, grid.z}, threads[] = {block.x, block.y, block.z};
  launch(kernels().at(function), blocks, threads, args, shared);
  return cudaSuccess;
}

} // namespace

extern "C" {

void set_device(Launch given_launch, Allocate given_allocate) {
  launch = given_launch;
  allocate = given_allocate;
}

// What nvcc's code calls.

void **__cudaRegisterFatBinary(void *) {
  static void *handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
char __cudaInitModule(void **) { return 0; }
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int) {}
void __cudaRegisterFunction(void **, const char *function, char *, const char *name, int, uint3 *, uint3 *, dim3 *,
                            dim3 *, int *) {
  kernels()[function] = name;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  const Configuration &last = configurations.back();
  *grid = last.grid;
  *block = last.block;
  *shared = last.shared;
  *static_cast<cudaStream_t *>(stream) = last.stream;
  configurations.pop_back();
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void *>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t) {
  return run(kernel, grid, block, args, shared);
}

// What CUB and Thrust call.

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **args) {
  return run(function, config->gridDim, config->blockDim, args, config->dynamicSmemBytes);
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
  *pointer = allocate(bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void *) { return cudaSuccess; } // Python's, until the test ends
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
  case cudaDevAttrMultiProcessorCount:
    *value = Multiprocessors;
    return cudaSuccess;
  case cudaDevAttrMaxGridDimX:
    *value = 0x7fffffff;
    return cudaSuccess;
  default: // not answered by guess
    return cudaErrorNotSupported;
  }
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *) {
  *attributes = {};
  attributes->ptxVersion = attributes->binaryVersion = ComputeCapability;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *, int, size_t, unsigned) {
  *blocks = BlocksEach;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char *cudaGetErrorName(cudaError_t) { return "an error"; }
const char *cudaGetErrorString(cudaError_t) { return "an error"; }
}
