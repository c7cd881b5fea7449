// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A CUDA driver whose one GPU is the simulator: PTX that is loaded through the driver's entry points runs. For tests,
// on machines without a GPU, of all that runs on one. Its clock is the host's, so that its times mean nothing. It is as
// strict as NVIDIA's driver was seen to be (R580, an H200): calls need a current context, tensor maps too, and parameters
// come by a pointer to each; a packed buffer would have to be laid out as ptxas lays out constant memory.
//
// WEFT_STANDIN_TARGET  the compute capability that it answers with, sm_80 unless given
// WEFT_STANDIN_WRONG   an entry whose results come back with a bit flipped
// WEFT_STANDIN_ABORT   an entry that ends the process when it is launched
#include "runtime/Driver/CudaApi.h"
#include "runtime/Driver/Driver.h"
#include "runtime/Simulator/Interface/LaunchMaps.h"
#include "runtime/Simulator/Interface/Simulator.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

using namespace weft;
using namespace weft::driver;
using namespace weft::driver::cuda;

namespace {

constexpr CUresult launchFailed = 719, invalidHandle = 400, noDevice = 100, invalidContext = 201;

std::mutex guard;
std::string said; ///< what the last failure said
std::map<CUmodule, std::shared_ptr<Module>> modules;
std::map<CUfunction, std::shared_ptr<Kernel>> kernels;
std::map<CUfunction, std::string> names;
/// Modules as the simulator reads them, which say where parameters lie.
std::map<CUmodule, std::shared_ptr<const simulator::Module>> parsed;
std::map<CUfunction, std::vector<simulator::ParameterInfo>> declared;
thread_local int pushed = 0;
std::map<CUevent, std::chrono::steady_clock::time_point> events;
bool spoiled = false;

std::string setting(const char *name, const char *otherwise) {
  const char *given = std::getenv(name);
  return given ? given : otherwise;
}

Device *device() {
  static Result<std::shared_ptr<Device>> opened = openDevice("simulator:" + setting("WEFT_STANDIN_TARGET", "sm_80"));
  return opened ? opened->get() : nullptr;
}

template <typename T> CUresult finish(const Result<T> &result) {
  if (result)
    return success;
  std::scoped_lock lock(guard);
  said = result.error().message;
  return launchFailed;
}

/// What was made, under a handle that is its address.
template <typename Handle, typename T>
Handle keep(std::map<Handle, std::shared_ptr<T>> &kind, const std::shared_ptr<T> &made) {
  std::scoped_lock lock(guard);
  auto handle = reinterpret_cast<Handle>(made.get());
  kind[handle] = made;
  return handle;
}

template <typename Handle, typename T>
std::shared_ptr<T> find(const std::map<Handle, std::shared_ptr<T>> &kind, Handle handle) {
  std::scoped_lock lock(guard);
  auto found = kind.find(handle);
  return found == kind.end() ? nullptr : found->second;
}

CUresult run(const LaunchShape &shape, CUfunction function, void **pointers, void **extra) {
  if (!pushed)
    return invalidContext;
  std::shared_ptr<Kernel> kernel = find(kernels, function);
  if (!kernel)
    return invalidHandle;
  if (extra)
    return errorInvalidValue;
  const std::string &name = names[function];
  if (name == setting("WEFT_STANDIN_ABORT", ""))
    std::abort();
  spoiled = name == setting("WEFT_STANDIN_WRONG", "");
  std::vector<std::byte> parameters;
  for (const simulator::ParameterInfo &each : declared[function]) {
    parameters.resize(each.offset + each.size);
    std::memcpy(parameters.data() + each.offset, *pointers++, each.size);
  }
  return finish(kernel->launch(shape, parameters, nullptr));
}

} // namespace

extern "C" {

CUresult cuInit(unsigned) { return device() ? success : noDevice; }
CUresult cuDriverGetVersion(int *version) { return *version = 12080, success; }
CUresult cuGetErrorName(CUresult, const char **name) { return *name = nullptr, errorInvalidValue; }
CUresult cuGetErrorString(CUresult result, const char **text) {
  *text = result == success ? "no error" : said.c_str();
  return success;
}
CUresult cuDeviceGetCount(int *count) { return *count = 1, success; }
CUresult cuDeviceGet(CUdevice *found, int ordinal) { return *found = ordinal, success; }
CUresult cuDeviceGetName(char *name, int size, CUdevice) {
  std::strncpy(name, "Stand-in GPU", size_t(size));
  return success;
}
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice) {
  const DeviceProperties &facts = device()->properties();
  *value = attribute == attributeMajor                ? facts.major
           : attribute == attributeMinor              ? facts.minor
           : attribute == attributeMultiprocessors    ? int(facts.multiprocessors)
           : attribute == attributeMaxThreadsPerBlock ? int(facts.maxThreadsPerBlock)
           : attribute == attributeMaxSharedOptIn     ? int(facts.maxSharedBytes)
                                                      : 0;
  return success;
}
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice) { return *bytes = device()->properties().memoryBytes, success; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  return *context = reinterpret_cast<CUcontext>(device()), success;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return success; }
CUresult cuCtxPushCurrent_v2(CUcontext) { return ++pushed, success; }
CUresult cuCtxPopCurrent_v2(CUcontext *) { return --pushed < 0 ? invalidContext : success; }

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  if (!pushed)
    return invalidContext;
  return finish(device()->allocate(bytes).transform([&](Address made) { *address = made; }));
}
CUresult cuMemFree_v2(CUdeviceptr address) { return finish(device()->free(address)); }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream) {
  if (!pushed)
    return invalidContext;
  return finish(device()->copyIn(to, {static_cast<const std::byte *>(from), bytes}, nullptr));
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream) {
  if (!pushed)
    return invalidContext;
  CUresult result = finish(device()->copyOut({static_cast<std::byte *>(to), bytes}, from, nullptr));
  if (spoiled && bytes)
    *static_cast<unsigned char *>(to) ^= 1;
  return result;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  if (!pushed)
    return invalidContext;
  return finish(device()->copyWithin(to, from, bytes, nullptr));
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream) {
  if (!pushed)
    return invalidContext;
  return finish(device()->fill(to, value, bytes, nullptr));
}

CUresult cuStreamCreate(CUstream *stream, unsigned) {
  return *stream = reinterpret_cast<CUstream>(std::malloc(1)), success;
}
CUresult cuStreamDestroy_v2(CUstream stream) { return std::free(stream), success; }
CUresult cuStreamSynchronize(CUstream) { return success; }
CUresult cuEventCreate(CUevent *event, unsigned) { return *event = reinterpret_cast<CUevent>(std::malloc(1)), success; }
CUresult cuEventDestroy_v2(CUevent event) { return std::free(event), success; }
CUresult cuEventRecord(CUevent event, CUstream) {
  std::scoped_lock lock(guard);
  return events[event] = std::chrono::steady_clock::now(), success;
}
CUresult cuEventSynchronize(CUevent) { return success; }
CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end) {
  std::scoped_lock lock(guard);
  *milliseconds = std::chrono::duration<float, std::milli>(events[end] - events[begin]).count();
  return success;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options, void **values) {
  if (!pushed)
    return invalidContext;
  if (std::memcmp(image, "\177ELF", 4) == 0)
    return errorNoBinaryForGpu; // the simulator runs no machine code: the PTX is loaded next
  Result<std::shared_ptr<Module>> loaded = device()->loadModule(static_cast<const char *>(image));
  if (loaded) {
    *module = keep(modules, *loaded);
    std::scoped_lock lock(guard);
    parsed[*module] = *simulator::Module::parse(static_cast<const char *>(image)); // as the device has read it
    return success;
  }
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == jitErrorLogBuffer)
      std::strncpy(static_cast<char *>(values[i]), loaded.error().message.c_str(), 200);
  return errorInvalidPtx;
}
CUresult cuModuleUnload(CUmodule module) {
  std::scoped_lock lock(guard);
  parsed.erase(module);
  return modules.erase(module) ? success : invalidHandle;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  std::shared_ptr<Module> loaded = find(modules, module);
  if (!loaded)
    return invalidHandle;
  Result<std::shared_ptr<Kernel>> kernel = loaded->kernel(name, 0);
  if (!kernel)
    return errorNotFound;
  *function = keep(kernels, *kernel);
  std::scoped_lock lock(guard);
  names[*function] = name;
  declared[*function] = parsed[module]->entry(name)->parameters;
  return success;
}
CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function) {
  std::shared_ptr<Kernel> kernel = find(kernels, function);
  if (!kernel)
    return invalidHandle;
  KernelAttributes facts = kernel->attributes();
  *value = attribute == functionSharedBytes  ? int(facts.staticSharedBytes)
           : attribute == functionLocalBytes ? int(facts.localBytes)
                                             : 0;
  return success;
}
CUresult cuFuncSetAttribute(CUfunction, int, int) { return success; }
CUresult cuTensorMapEncodeTiled(void *to, int type, uint32_t rank, void *address, const uint64_t *sizes,
                                const uint64_t *strides, const uint32_t *box, const uint32_t *, int, int swizzle, int,
                                int) {
  if (!pushed)
    return invalidContext;
  const auto *known = std::ranges::find(tensorMapTypes, type, &TensorMapType::number);
  if (known == tensorMapTypes.end())
    return errorInvalidValue;
  TensorMapValues values;
  values.type = known->name;
  values.swizzle = swizzle ? 16u << swizzle : 0;
  values.address = reinterpret_cast<uint64_t>(address);
  values.box.assign(box, box + rank);
  values.sizes.assign(sizes, sizes + rank);
  values.strides.assign(strides, strides + rank - 1);
  Result<TensorMapBytes> bytes = simulator::encodeValues(values);
  if (!bytes)
    return errorInvalidValue;
  std::memcpy(to, bytes->data(), bytes->size());
  return success;
}
CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                        unsigned blockY, unsigned blockZ, unsigned sharedBytes, CUstream, void **pointers,
                        void **extra) {
  return run({{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, {}, sharedBytes}, function, pointers, extra);
}
CUresult cuLaunchKernelEx(const LaunchConfig *config, CUfunction function, void **pointers, void **extra) {
  Extent3 cluster;
  for (unsigned i = 0; i < config->attributeCount; ++i)
    if (config->attributes[i].id == launchAttributeCluster)
      cluster = {config->attributes[i].value.cluster.x, config->attributes[i].value.cluster.y,
                 config->attributes[i].value.cluster.z};
  return run({{config->gridX, config->gridY, config->gridZ},
              {config->blockX, config->blockY, config->blockZ},
              cluster,
              config->sharedBytes},
             function, pointers, extra);
}

} // extern "C"
