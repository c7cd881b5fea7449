// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The CUDA driver as a `Device`: one page over the driver's C interface. Each call pushes the device's primary context
// and pops it again, so that the caller's own current context is as it was.
#include "runtime/Driver/Cuda.h"

#include "runtime/Driver/CudaApi.h"

#include "runtime/Support/EntryParameters.h"
#include "runtime/Support/Format.h"
#include "runtime/Support/Programs.h"
#include <algorithm>
#include <array>
#include <cstring>

namespace weft::driver {
namespace {

using namespace cuda;

/// A retained primary context. Modules and kernels share it with their device.
struct Context {
  const Api &api;
  CUdevice device = 0;
  CUcontext handle = nullptr;
  uint32_t multiprocessors = 1;
  explicit Context(const Api &api) : api(api) {}
  Context(const Context &) = delete;
  ~Context() {
    if (handle)
      api.primaryRelease(device);
  }
};

/// Makes a context current for a scope.
class Current {
public:
  explicit Current(const Context &context) : api(context.api) {
    status = check(api, api.contextPush(context.handle), "cannot make the device's context current");
  }
  Current(const Current &) = delete;
  ~Current() {
    CUcontext previous;
    if (status)
      api.contextPop(&previous);
  }
  /// Runs one driver call inside the scope.
  template <typename... Parameters, typename... Arguments>
  Status call(const std::string &doing, CUresult (*function)(Parameters...), Arguments... arguments) const {
    return status ? check(api, function(arguments...), doing) : status;
  }

private:
  const Api &api;
  Status status;
};

CUstream streamOf(StreamHandle stream) { return static_cast<CUstream>(stream); }
CUevent eventOf(EventHandle event) { return static_cast<CUevent>(event); }

/// The driver's 128 bytes of a tensor map. It asks for a current context, though the map says nothing of one.
Result<TensorMapBytes> encode(const Context &context, const TensorMapValues &values) {
  const Api &api = context.api;
  if (!api.encodeTiled)
    return failure(StatusCode::Unsupported, "this CUDA driver knows no tensor maps: it is older than 12.0");
  constexpr int noInterleave = 0, zeros = 0;
  alignas(64) TensorMapBytes bytes{};
  int swizzle = values.swizzle == 128  ? tensorMapSwizzle128
                : values.swizzle == 64 ? tensorMapSwizzle64
                : values.swizzle == 32 ? tensorMapSwizzle32
                                       : tensorMapSwizzleNone;
  const auto *type = std::ranges::find(tensorMapTypes, values.type, &TensorMapType::name);
  std::array<uint32_t, 5> steps{1, 1, 1, 1, 1};
  Status made = Current(context).call(
      "cannot make a tensor map of the kernel's arguments", api.encodeTiled, bytes.data(), type->number,
      uint32_t(values.box.size()), reinterpret_cast<void *>(values.address), values.sizes.data(), values.strides.data(),
      values.box.data(), steps.data(), noInterleave, swizzle, tensorMapPromotion128, zeros);
  return made.transform([&] { return TensorMapBytes(bytes); });
}

/// A module unloads itself with its last kernel.
struct LoadedModule {
  std::shared_ptr<Context> context;
  CUmodule handle = nullptr;
  AddedOfEntries added; // of its entries, as are the parameters
  std::map<std::string, EntryParameters, std::less<>> parameters;
  ~LoadedModule() {
    if (handle)
      (void)Current(*context).call("", context->api.moduleUnload, handle);
  }
};

class CudaKernel final : public Kernel {
public:
  CudaKernel(std::shared_ptr<LoadedModule> module, CUfunction function, EntryParameters declared, AddedParameters adds)
      : module(std::move(module)), function(function), declared(std::move(declared)), added(std::move(adds)),
        maps(added.maps, [this](const TensorMapValues &each) { return encode(*this->module->context, each); }) {}

  KernelAttributes attributes() const override {
    Current current(*module->context);
    auto read = [&](int attribute) {
      int value = 0;
      (void)current.call("", module->context->api.functionAttribute, &value, attribute, function);
      return static_cast<uint32_t>(value);
    };
    return {read(functionRegisters), read(functionLocalBytes), read(functionSharedBytes)};
  }

  Result<std::vector<std::byte>> complete(std::vector<std::byte> parameters) override {
    if (maps.lacksIn(parameters))
      return maps.complete(parameters);
    return parameters;
  }

  Status launch(const LaunchShape &shape, std::span<const std::byte> parameters, StreamHandle stream) override {
    if (maps.lacksIn(parameters))
      return maps.complete(parameters).and_then([&](const std::vector<std::byte> &all) {
        return launch(shape, all, stream);
      });
    if (!added.lacksPrograms(parameters))
      return launchComplete(shape, parameters, stream);
    const auto &[x, y, z] = shape.grid;
    return launchOver({x, y, z}, module->context->multiprocessors, *added.programs, parameters)
        .and_then([&](const ProgramsLaunch &blocks) {
          return launchComplete({{blocks.blocks, 1, 1}, shape.block, shape.cluster, shape.sharedBytes},
                                blocks.parameters, stream);
        });
  }

private:
  /// Where each parameter lies among the packed ones. InvalidArgument where these are of other sizes than the kernel's.
  Result<std::vector<void *>> pointersInto(std::span<const std::byte> parameters) const {
    constexpr size_t mostPadding = 64; // behind the last one
    size_t needed = declared.empty() ? 0 : declared.back().offset + declared.back().bytes;
    if (parameters.size() < needed || parameters.size() >= needed + mostPadding)
      return failure(
          StatusCode::InvalidArgument,
          weft::format("expected the {} bytes of the kernel's parameters, but got {}", needed, parameters.size()));
    std::vector<void *> pointers;
    pointers.reserve(declared.size());
    for (const EntryParameter &each : declared)
      pointers.push_back(const_cast<std::byte *>(parameters.data() + each.offset));
    return pointers;
  }

  Status launchComplete(const LaunchShape &shape, std::span<const std::byte> parameters, StreamHandle stream) {
    const Api &api = module->context->api;
    Result<std::vector<void *>> pointers = pointersInto(parameters);
    if (!pointers)
      return std::unexpected(pointers.error());
    Current current(*module->context);
    void **noExtra = nullptr;
    const auto &[grid, block, cluster, shared] = shape;
    if (cluster == Extent3{})
      return current.call("cannot launch the kernel", api.launch, function, grid.x, grid.y, grid.z, block.x, block.y,
                          block.z, shared, streamOf(stream), pointers->data(), noExtra);
    if (!api.launchEx)
      return failure(StatusCode::Unsupported, "this CUDA driver knows no clusters: it is older than 11.8");
    LaunchAttribute attribute{};
    attribute.id = launchAttributeCluster;
    attribute.value.cluster = {cluster.x, cluster.y, cluster.z};
    LaunchConfig config{grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, streamOf(stream), &attribute, 1};
    return current.call("cannot launch the kernel", api.launchEx, &config, function, pointers->data(), noExtra);
  }

  std::shared_ptr<LoadedModule> module;
  CUfunction function;
  EntryParameters declared;
  AddedParameters added;
  TensorMapParameters maps;
};

class CudaModule final : public Module {
public:
  explicit CudaModule(std::shared_ptr<LoadedModule> loaded) : loaded(std::move(loaded)) {}

  Result<std::shared_ptr<Kernel>> kernel(const std::string &entry, uint32_t sharedBytes) override {
    const Api &api = loaded->context->api;
    Current current(*loaded->context);
    CUfunction function = nullptr;
    Status status = current.call(weft::format("cannot find the entry '{}'", entry), api.moduleFunction, &function,
                                 loaded->handle, entry.c_str());
    // Up to 48 KiB need no leave; more needs it said before the first launch.
    if (status && sharedBytes > 48 * 1024)
      status =
          current.call(weft::format("cannot give '{}' {} bytes of shared memory", entry, sharedBytes),
                       api.setFunctionAttribute, function, functionMaxDynamicShared, static_cast<int>(sharedBytes));
    if (!status)
      return std::unexpected(status.error());
    auto added = loaded->added.find(entry);
    auto parameters = loaded->parameters.find(entry);
    if (parameters == loaded->parameters.end())
      return failure(StatusCode::Corrupt,
                     weft::format("expected the parameters of '{}' as PTX declares them, but found none", entry));
    return std::make_shared<CudaKernel>(loaded, function, parameters->second,
                                        added == loaded->added.end() ? AddedParameters() : added->second);
  }

private:
  std::shared_ptr<LoadedModule> loaded;
};

class CudaDevice final : public Device {
public:
  CudaDevice(std::shared_ptr<Context> context, int ordinal, DeviceProperties properties)
      : context(std::move(context)), api(this->context->api), ordinal(ordinal), facts(std::move(properties)) {}

  const DeviceProperties &properties() const override { return facts; }
  std::string name() const override { return weft::format("cuda:{}", ordinal); }

  Result<Address> allocate(size_t bytes) override {
    CUdeviceptr address = 0;
    return call(weft::format("cannot allocate {} bytes on {}", bytes, name()), api.allocate, &address,
                std::max<size_t>(bytes, 1))
        .transform([&] { return static_cast<Address>(address); });
  }
  Status free(Address address) override {
    return call(weft::format("cannot free address {:#x}", address), api.free, CUdeviceptr(address));
  }
  Status copyIn(Address destination, std::span<const std::byte> source, StreamHandle stream) override {
    return call(weft::format("cannot copy {} bytes to the device", source.size()), api.copyIn, CUdeviceptr(destination),
                static_cast<const void *>(source.data()), source.size(), streamOf(stream))
        .and_then([&] { return synchronize(stream); });
  }
  Status copyOut(std::span<std::byte> destination, Address source, StreamHandle stream) override {
    return call(weft::format("cannot copy {} bytes to the host", destination.size()), api.copyOut,
                static_cast<void *>(destination.data()), CUdeviceptr(source), destination.size(), streamOf(stream))
        .and_then([&] { return synchronize(stream); });
  }
  Status copyWithin(Address destination, Address source, size_t bytes, StreamHandle stream) override {
    return call(weft::format("cannot copy {} bytes within the device", bytes), api.copyWithin, CUdeviceptr(destination),
                CUdeviceptr(source), bytes, streamOf(stream));
  }
  Status fill(Address destination, uint8_t value, size_t bytes, StreamHandle stream) override {
    return call(weft::format("cannot fill {} bytes", bytes), api.fill, CUdeviceptr(destination), value, bytes,
                streamOf(stream));
  }

  Result<Address> mapHost(void *, size_t) override {
    return failure(StatusCode::Unsupported, weft::format("host memory cannot be used in place on {}", name()));
  }
  Status unmapHost(Address) override {
    return failure(StatusCode::Unsupported, weft::format("host memory cannot be used in place on {}", name()));
  }

  Result<StreamHandle> createStream() override {
    constexpr unsigned nonBlocking = 1;
    CUstream stream = nullptr;
    return call("cannot create a stream", api.streamCreate, &stream, nonBlocking).transform([&] {
      return static_cast<StreamHandle>(stream);
    });
  }
  Status destroyStream(StreamHandle stream) override {
    return call("cannot destroy the stream", api.streamDestroy, streamOf(stream));
  }
  Status synchronize(StreamHandle stream) override {
    return call("the stream ended in an error", api.streamSynchronize, streamOf(stream));
  }
  Result<EventHandle> createEvent() override {
    CUevent event = nullptr;
    return call("cannot create an event", api.eventCreate, &event, 0u).transform([&] {
      return static_cast<EventHandle>(event);
    });
  }
  Status destroyEvent(EventHandle event) override {
    return call("cannot destroy the event", api.eventDestroy, eventOf(event));
  }
  Status recordEvent(EventHandle event, StreamHandle stream) override {
    return call("cannot record the event", api.eventRecord, eventOf(event), streamOf(stream));
  }
  Result<float> elapsedMilliseconds(EventHandle begin, EventHandle end) override {
    float milliseconds = 0;
    return call("cannot wait for the event", api.eventSynchronize, eventOf(end))
        .and_then([&] {
          return call("cannot take the time between the events", api.eventElapsed, &milliseconds, eventOf(begin),
                      eventOf(end));
        })
        .transform([&] { return milliseconds; });
  }

  Result<std::shared_ptr<Module>> loadModule(const std::string &ptx) override {
    return load("the PTX does not load", ptx.c_str(), ptx);
  }
  Result<std::shared_ptr<Module>> loadBinary(std::string_view cubin, std::string_view ptx) override {
    return load("the cubin does not load", cubin.data(), ptx);
  }

private:
  /// An image says itself where it ends: PTX by a null character, a cubin by its headers.
  Result<std::shared_ptr<Module>> load(const std::string &doing, const void *image, std::string_view ptx) {
    auto added = addedParametersOf(ptx);
    if (!added)
      return std::unexpected(added.error());
    std::array<char, 8192> log{};
    int options[] = {jitErrorLogBuffer, jitErrorLogBufferBytes};
    void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
    auto loaded = std::make_shared<LoadedModule>(context);
    Status status = call(doing, api.moduleLoad, &loaded->handle, image, 2u, options, values);
    if (!status)
      return failure(status.error().code, log[0] ? status.error().message + "\n" + log.data() : status.error().message);
    loaded->added = std::move(*added);
    loaded->parameters = entryParametersOf(ptx);
    return std::make_shared<CudaModule>(std::move(loaded));
  }

  template <typename... Parameters, typename... Arguments>
  Status call(const std::string &doing, CUresult (*function)(Parameters...), Arguments... arguments) const {
    return Current(*context).call(doing, function, arguments...);
  }

  std::shared_ptr<Context> context;
  const Api &api;
  int ordinal;
  DeviceProperties facts;
};

Result<DeviceProperties> readProperties(const Api &api, CUdevice device) {
  DeviceProperties properties;
  std::array<char, 256> name{};
  size_t memory = 0;
  Status status = check(api, api.deviceName(name.data(), name.size() - 1, device), "cannot read the device's name");
  if (status)
    status = check(api, api.deviceMemory(&memory, device), "cannot read the device's memory size");
  auto read = [&](int attribute) {
    int value = 0;
    if (status)
      status = check(api, api.deviceAttribute(&value, attribute, device), "cannot read the device's properties");
    return value;
  };
  properties.name = name.data();
  properties.memoryBytes = memory;
  properties.major = read(attributeMajor);
  properties.minor = read(attributeMinor);
  properties.multiprocessors = read(attributeMultiprocessors);
  properties.maxThreadsPerBlock = read(attributeMaxThreadsPerBlock);
  properties.maxSharedBytes = read(attributeMaxSharedOptIn);
  return status.transform([&] { return properties; });
}

} // namespace

Result<int> cudaDeviceCount() {
  return api().and_then([](const Api *api) {
    int count = 0;
    return check(*api, api->deviceCount(&count), "cannot count the CUDA devices").transform([&] { return count; });
  });
}

Result<std::shared_ptr<Device>> openCuda(int ordinal) {
  Result<int> count = cudaDeviceCount();
  if (!count)
    return std::unexpected(count.error());
  if (ordinal >= *count)
    return failure(StatusCode::NotFound, weft::format("no device 'cuda:{}': there are {}", ordinal, *count));
  const Api &driver = **api();
  CUdevice device = 0;
  Status status = check(driver, driver.deviceGet(&device, ordinal), weft::format("cannot open cuda:{}", ordinal));
  if (!status)
    return std::unexpected(status.error());
  return readProperties(driver, device).and_then([&](DeviceProperties properties) -> Result<std::shared_ptr<Device>> {
    auto context = std::make_shared<Context>(driver);
    context->device = device;
    context->multiprocessors = properties.multiprocessors;
    Status retained = check(driver, driver.primaryRetain(&context->handle, device),
                            weft::format("cannot make a context on cuda:{}", ordinal));
    if (!retained)
      return std::unexpected(retained.error());
    return std::make_shared<CudaDevice>(std::move(context), ordinal, std::move(properties));
  });
}

} // namespace weft::driver
