// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A CUDA driver whose device is host memory, for tests of the runtime on machines without a GPU. It has two devices,
// and is strict where the real driver trusts its caller: every call but the context's own needs a current context, and
// what is destroyed must exist. Its one kernel is vector addition, under any entry named 'add'; 'fault' fails when
// waited for; those named 'attend...' do nothing. While a stream is captured, nothing may be allocated, loaded or waited
// for, and all work is to be on that stream. It takes cubins of its architecture as PTX, unless FAKE_CUDA_REFUSES names
// the error that it has for all of them.
#include "runtime/Driver/CudaApi.h"

#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <mutex>
#include <set>
#include <string>

using namespace weft::driver::cuda;

namespace {

constexpr CUresult invalidContext = 201, launchFailed = 719, invalidHandle = 400, captureUnsupported = 900;

std::mutex guard;
std::set<void *> allocations, streams, events, modules;
int retained[2];
thread_local int pushed = 0;
bool faulted = false;
int waits = 0, loads = 0, binaryLoads = 0, allocated = 0, launches = 0;
CUstream captured = nullptr;

/// Whether work may be queued on a stream now.
bool mayQueue(CUstream stream) { return pushed && (!captured || stream == captured); }
/// Whether the driver may do what a capture forbids.
bool mayWork() { return pushed && !captured; }
CUresult refusal() { return pushed ? captureUnsupported : invalidContext; }

struct Parameters {
  const float *x, *y;
  float *z;
  int n;
};

CUresult create(std::set<void *> &kind, void **handle) {
  if (!pushed)
    return invalidContext;
  std::scoped_lock lock(guard);
  *handle = *kind.insert(std::malloc(8)).first;
  return success;
}

CUresult destroy(std::set<void *> &kind, void *handle) {
  if (!pushed)
    return invalidContext;
  std::scoped_lock lock(guard);
  if (!kind.erase(handle))
    return invalidHandle;
  std::free(handle);
  return success;
}

/// Whether machine code is for capability 8.6 or an earlier one of its major version.
bool takes(const Elf64_Ehdr &header) {
  unsigned architecture = header.e_ident[EI_ABIVERSION] == 7 ? header.e_flags & 0xff : header.e_flags >> 8 & 0xff;
  return architecture / 10 == 8 && architecture % 10 <= 6;
}

CUresult run(CUfunction function, unsigned blocks, unsigned threads, CUstream stream, void **pointers, void **extra) {
  if (!mayQueue(stream))
    return refusal();
  ++launches;
  std::string entry(reinterpret_cast<const char *>(function));
  if (entry == "attend")
    return success;
  if (entry == "fault") {
    faulted = true;
    return success;
  }
  if (extra)
    return errorInvalidValue;
  Parameters parameters;
  std::memcpy(&parameters.x, pointers[0], 8);
  std::memcpy(&parameters.y, pointers[1], 8);
  std::memcpy(&parameters.z, pointers[2], 8);
  std::memcpy(&parameters.n, pointers[3], 4);
  for (long i = 0; i < std::min<long>(parameters.n, long(blocks) * threads); ++i)
    parameters.z[i] = parameters.x[i] + parameters.y[i];
  return success;
}

} // namespace

extern "C" {

CUresult cuInit(unsigned) { return success; }
CUresult cuGetErrorName(CUresult result, const char **name) {
  *name = result == errorOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
          : result == launchFailed   ? "CUDA_ERROR_LAUNCH_FAILED"
                                     : nullptr;
  return *name ? success : errorInvalidValue;
}
CUresult cuGetErrorString(CUresult result, const char **text) {
  *text = result == errorOutOfMemory ? "out of memory"
          : result == launchFailed   ? "unspecified launch failure"
                                     : nullptr;
  return *text ? success : errorInvalidValue;
}
CUresult cuDeviceGetCount(int *count) { return *count = 2, success; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) { return *device = ordinal + 10, success; }
CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  std::string text = "Fake GPU " + std::to_string(device - 10);
  std::strncpy(name, text.c_str(), size);
  return success;
}
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  *value = attribute == attributeMajor                ? 8
           : attribute == attributeMinor              ? 6
           : attribute == attributeMultiprocessors    ? 4
           : attribute == attributeMaxThreadsPerBlock ? 1024
           : attribute == attributeMaxSharedOptIn     ? 101376
                                                      : -1;
  return success;
}
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice) { return *bytes = size_t(1) << 30, success; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  ++retained[device - 10];
  *context = reinterpret_cast<CUcontext>(uintptr_t(device));
  return success;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return --retained[device - 10] < 0 ? invalidContext : success;
}
CUresult cuCtxPushCurrent_v2(CUcontext) { return ++pushed, success; }
CUresult cuCtxPopCurrent_v2(CUcontext *) { return --pushed < 0 ? invalidContext : success; }

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  if (!mayWork())
    return refusal();
  ++allocated;
  if (bytes > size_t(1) << 30)
    return errorOutOfMemory;
  std::scoped_lock lock(guard);
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  allocations.insert(memory);
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return success;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  return captured ? captureUnsupported : destroy(allocations, reinterpret_cast<void *>(address));
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream) {
  return pushed ? (std::memcpy(reinterpret_cast<void *>(to), from, bytes), success) : invalidContext;
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream) {
  return pushed ? (std::memcpy(to, reinterpret_cast<void *>(from), bytes), success) : invalidContext;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  return pushed ? (std::memmove(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes), success)
                : invalidContext;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  return mayQueue(stream) ? (std::memset(reinterpret_cast<void *>(to), value, bytes), success) : refusal();
}

CUresult cuStreamCreate(CUstream *stream, unsigned) { return create(streams, reinterpret_cast<void **>(stream)); }
CUresult cuStreamDestroy_v2(CUstream stream) { return destroy(streams, stream); }
CUresult cuStreamSynchronize(CUstream stream) {
  std::scoped_lock lock(guard);
  ++waits;
  if (captured)
    return captureUnsupported;
  if (!pushed || (stream && !streams.contains(stream)))
    return invalidContext;
  return std::exchange(faulted, false) ? launchFailed : success;
}
CUresult cuEventCreate(CUevent *event, unsigned) { return create(events, reinterpret_cast<void **>(event)); }
CUresult cuEventDestroy_v2(CUevent event) { return destroy(events, event); }
CUresult cuEventRecord(CUevent, CUstream) { return pushed ? success : invalidContext; }
CUresult cuEventSynchronize(CUevent) { return ++waits, mayWork() ? success : refusal(); }
CUresult cuEventElapsedTime(float *milliseconds, CUevent, CUevent) { return *milliseconds = 1.5f, success; }

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options, void **values) {
  if (captured)
    return captureUnsupported;
  if (std::memcmp(image, ELFMAG, SELFMAG) == 0) {
    if (const char *refused = std::getenv("FAKE_CUDA_REFUSES"))
      return std::atoi(refused);
    if (!takes(*static_cast<const Elf64_Ehdr *>(image)))
      return errorNoBinaryForGpu;
    ++loads, ++binaryLoads;
    return create(modules, reinterpret_cast<void **>(module));
  }
  if (std::string_view(static_cast<const char *>(image)).contains(".version")) {
    ++loads;
    return create(modules, reinterpret_cast<void **>(module));
  }
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == jitErrorLogBuffer)
      std::strcpy(static_cast<char *>(values[i]), "ptxas fatal : Missing .version directive");
  return errorInvalidPtx;
}
CUresult cuModuleUnload(CUmodule module) { return destroy(modules, module); }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule, const char *name) {
  static const char *const entries[] = {"add", "fault"};
  for (const char *entry : entries)
    if (std::strcmp(name, entry) == 0)
      return *function = reinterpret_cast<CUfunction>(const_cast<char *>(entry)), success;
  static const char *const attend = "attend";
  if (std::string_view(name).starts_with(attend))
    return *function = reinterpret_cast<CUfunction>(const_cast<char *>(attend)), success;
  return errorNotFound;
}
CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction) {
  return *value = attribute == functionRegisters ? 26 : 0, success;
}
CUresult cuFuncSetAttribute(CUfunction, int attribute, int value) {
  return attribute == functionMaxDynamicShared && value <= 101376 ? success : errorInvalidValue;
}
CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned, unsigned, unsigned blockX, unsigned, unsigned,
                        unsigned, CUstream stream, void **pointers, void **extra) {
  return run(function, gridX, blockX, stream, pointers, extra);
}
CUresult cuLaunchKernelEx(const LaunchConfig *config, CUfunction function, void **pointers, void **extra) {
  bool cluster = config->attributeCount == 1 && config->attributes->id == launchAttributeCluster;
  return cluster && config->attributes->value.cluster.x == 2
             ? run(function, config->gridX, config->blockX, config->stream, pointers, extra)
             : errorInvalidValue;
}

/// What is still alive, for tests of ownership.
int fakeCudaLiveObjects() {
  std::scoped_lock lock(guard);
  return static_cast<int>(allocations.size() + streams.size() + events.size() + modules.size()) + retained[0] +
         retained[1];
}

/// How often the host has waited for the device.
int fakeCudaWaits() { return waits; }
/// How often it has allocated memory and launched a kernel.
int fakeCudaAllocations() { return allocated; }
int fakeCudaLaunches() { return launches; }

/// Captures what is queued on a stream, to which all else is refused; null ends it.
void fakeCudaCapture(void *stream) { captured = static_cast<CUstream>(stream); }

/// How many modules were loaded, and how many of them from machine code.
int fakeCudaLoads() { return loads; }
int fakeCudaBinaryLoads() { return binaryLoads; }

} // extern "C"
