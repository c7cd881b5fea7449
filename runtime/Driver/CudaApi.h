// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The part of the CUDA driver's C interface that the runtime calls, declared here so that neither building nor
// linking needs CUDA. Names, types and numbers are those of CUDA's driver API reference.
#pragma once

#include "runtime/Support/Status.h"

#include <cstddef>
#include <cstdint>

namespace weft::driver::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;

constexpr CUresult success = 0;
constexpr CUresult errorInvalidValue = 1;
constexpr CUresult errorOutOfMemory = 2;
constexpr CUresult errorInvalidImage = 200;
constexpr CUresult errorNoBinaryForGpu = 209;
constexpr CUresult errorInvalidPtx = 218;
constexpr CUresult errorUnsupportedPtxVersion = 222;
constexpr CUresult errorNotFound = 500;

// CUdevice_attribute
constexpr int attributeMaxThreadsPerBlock = 1;
constexpr int attributeMultiprocessors = 16;
constexpr int attributeMajor = 75;
constexpr int attributeMinor = 76;
constexpr int attributeMaxSharedOptIn = 97;
// CUfunction_attribute
constexpr int functionSharedBytes = 1;
constexpr int functionLocalBytes = 3;
constexpr int functionRegisters = 4;
constexpr int functionMaxDynamicShared = 8;
// CUjit_option
constexpr int jitErrorLogBuffer = 5;
constexpr int jitErrorLogBufferBytes = 6;
// CUtensorMapSwizzle, CUtensorMapL2promotion
constexpr int tensorMapSwizzleNone = 0, tensorMapSwizzle32 = 1, tensorMapSwizzle64 = 2, tensorMapSwizzle128 = 3;
constexpr int tensorMapPromotion128 = 2;

/// CUlaunchAttribute and CUlaunchConfig, as far as clusters need them.
constexpr int launchAttributeCluster = 4;
struct alignas(8) LaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72);
struct LaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  CUstream stream;
  LaunchAttribute *attributes;
  unsigned attributeCount;
};

/// Every entry point by name, member, return and parameters. The names are the ABI's own, versions included.
#define WEFT_CUDA_FUNCTIONS(F)                                                                                         \
  F(cuInit, init, (unsigned))                                                                                          \
  F(cuGetErrorName, errorName, (CUresult, const char **))                                                              \
  F(cuGetErrorString, errorString, (CUresult, const char **))                                                          \
  F(cuDeviceGetCount, deviceCount, (int *))                                                                            \
  F(cuDeviceGet, deviceGet, (CUdevice *, int))                                                                         \
  F(cuDeviceGetName, deviceName, (char *, int, CUdevice))                                                              \
  F(cuDeviceGetAttribute, deviceAttribute, (int *, int, CUdevice))                                                     \
  F(cuDeviceTotalMem_v2, deviceMemory, (size_t *, CUdevice))                                                           \
  F(cuDevicePrimaryCtxRetain, primaryRetain, (CUcontext *, CUdevice))                                                  \
  F(cuDevicePrimaryCtxRelease_v2, primaryRelease, (CUdevice))                                                          \
  F(cuCtxPushCurrent_v2, contextPush, (CUcontext))                                                                     \
  F(cuCtxPopCurrent_v2, contextPop, (CUcontext *))                                                                     \
  F(cuMemAlloc_v2, allocate, (CUdeviceptr *, size_t))                                                                  \
  F(cuMemFree_v2, free, (CUdeviceptr))                                                                                 \
  F(cuMemcpyHtoDAsync_v2, copyIn, (CUdeviceptr, const void *, size_t, CUstream))                                       \
  F(cuMemcpyDtoHAsync_v2, copyOut, (void *, CUdeviceptr, size_t, CUstream))                                            \
  F(cuMemcpyDtoDAsync_v2, copyWithin, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                    \
  F(cuMemsetD8Async, fill, (CUdeviceptr, unsigned char, size_t, CUstream))                                             \
  F(cuStreamCreate, streamCreate, (CUstream *, unsigned))                                                              \
  F(cuStreamDestroy_v2, streamDestroy, (CUstream))                                                                     \
  F(cuStreamSynchronize, streamSynchronize, (CUstream))                                                                \
  F(cuEventCreate, eventCreate, (CUevent *, unsigned))                                                                 \
  F(cuEventDestroy_v2, eventDestroy, (CUevent))                                                                        \
  F(cuEventRecord, eventRecord, (CUevent, CUstream))                                                                   \
  F(cuEventSynchronize, eventSynchronize, (CUevent))                                                                   \
  F(cuEventElapsedTime, eventElapsed, (float *, CUevent, CUevent))                                                     \
  F(cuModuleLoadDataEx, moduleLoad, (CUmodule *, const void *, unsigned, int *, void **))                              \
  F(cuModuleUnload, moduleUnload, (CUmodule))                                                                          \
  F(cuModuleGetFunction, moduleFunction, (CUfunction *, CUmodule, const char *))                                       \
  F(cuFuncGetAttribute, functionAttribute, (int *, int, CUfunction))                                                   \
  F(cuFuncSetAttribute, setFunctionAttribute, (CUfunction, int, int))                                                  \
  F(cuLaunchKernel, launch,                                                                                            \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **))

/// The loaded driver.
struct Api {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a name and a list of types, which have their parentheses
#define WEFT_CUDA_MEMBER(symbol, member, parameters) CUresult(*member) parameters = nullptr;
  WEFT_CUDA_FUNCTIONS(WEFT_CUDA_MEMBER)
#undef WEFT_CUDA_MEMBER
  /// Since CUDA 11.8; null with older drivers, which know no clusters.
  CUresult (*launchEx)(const LaunchConfig *, CUfunction, void **, void **) = nullptr;
  /// Since CUDA 12.0; null with older drivers, which know no tensor maps. The last four are interleave, swizzle, L2
  /// promotion and what fills elements out of bounds.
  CUresult (*encodeTiled)(void *map, int type, uint32_t rank, void *address, const uint64_t *sizes,
                          const uint64_t *strides, const uint32_t *box, const uint32_t *elementStrides, int, int, int,
                          int) = nullptr;
};

/// Loads libcuda.so.1, or what WEFT_LIBCUDA names, on first use and initialises it once for the process. NotFound
/// with the loader's words where there is none; DriverError where it does not initialise.
Result<const Api *> api();

/// Success, or what the driver says of `result`, prefixed by what was being done ("cannot allocate 16 bytes").
Status check(const Api &api, CUresult result, const std::string &doing);

} // namespace weft::driver::cuda
