// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Handlers of XLA's foreign function interface that run a program of a library. XLA calls them from its own threads,
// without Python: arrays on a CPU are run on by the simulator, where they are; those on a GPU are queued for on XLA's
// stream, with memory in between from XLA's allocator.
//
// Which program runs is an attribute of the call: a text that the program was registered under. It is made of the
// library's digest, so that code which XLA kept on disk finds the same program in another process, or none.
#include "python/bindings/RuntimeJax.h"

#include "python/bindings/RuntimeArguments.h"
#include "python/bindings/XlaFfi.h"
#include "runtime/CAPI/weft.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

namespace py = pybind11;

namespace weft::python {
namespace {

/// A program that XLA may call, and what of it was opened on devices. Never taken back: compiled code may name it for
/// as long as the process lives.
struct Registered {
  const weft::Library &library; ///< kept by a reference to its Python object
  std::string name, simulator;  ///< the device that arrays on a CPU are run on

  struct Opened {
    weft::Device device;
    weft::Program program;
    Opened(const weft::Library &library, const std::string &device, const std::string &name)
        : device(device), program(library, this->device, name) {}
  };
  std::mutex guard = {};
  std::map<std::string, std::unique_ptr<Opened>> opened = {};

  const Opened &on(const std::string &device) {
    std::scoped_lock lock(guard);
    std::unique_ptr<Opened> &found = opened[device];
    if (!found)
      found = std::make_unique<Opened>(library, device, name);
    return *found;
  }
};

std::mutex registryGuard;
std::map<std::string, std::unique_ptr<Registered>, std::less<>> &registry() {
  static auto *made = new std::map<std::string, std::unique_ptr<Registered>, std::less<>>;
  return *made;
}

[[noreturn]] void refuse(const std::string &why) { throw Exception(WEFT_INVALID_ARGUMENT, why); }

Registered &programOf(const xla::CallFrame &frame) {
  for (int64_t i = 0; i < frame.attributes.size; ++i) {
    const xla::Text &name = *frame.attributes.names[i];
    if (frame.attributes.kinds[i] != xla::attributeText || std::string_view(name.data, name.size) != "program")
      continue;
    const auto &key = *static_cast<const xla::Text *>(frame.attributes.values[i]);
    std::scoped_lock lock(registryGuard);
    auto found = registry().find(std::string_view(key.data, key.size));
    if (found == registry().end())
      throw Exception(WEFT_NOT_FOUND,
                      "expected a program that weft.jax.wrap has registered in this process, but got '" +
                          std::string(key.data, key.size) + "': wrap it and trace the call again");
    return *found->second;
  }
  refuse("expected the attribute 'program', but the call has none");
}

/// By XLA's numbers of types.
weft_element elementOf(int type) {
  static const std::map<int, weft_element> known{{1, WEFT_I1},    {2, WEFT_I8},     {4, WEFT_I32},
                                                 {5, WEFT_I64},   {10, WEFT_FP16},  {11, WEFT_FP32},
                                                 {16, WEFT_BF16}, {19, WEFT_FP8E5}, {20, WEFT_FP8E4NV}};
  auto found = known.find(type);
  if (found == known.end())
    refuse("expected elements of bool, int8, int32, int64, float16, bfloat16, float32, float8_e4m3fn or float8_e5m2, "
           "but got XLA's type " +
           std::to_string(type));
  return found->second;
}

/// The arrays, at the addresses where the host or the device has them.
std::vector<weft_tensor> tensorsOf(const xla::Buffers &buffers) {
  std::vector<weft_tensor> tensors;
  for (int64_t i = 0; i < buffers.size; ++i) {
    const xla::Buffer &buffer = *buffers.items[i];
    if (buffers.kinds[i] != xla::kindBuffer || buffer.rank > WEFT_MAX_RANK)
      refuse("expected arrays of at most 8 axes");
    auto address = reinterpret_cast<weft_address>(buffer.data);
    tensors.push_back(
        weft_tensor_contiguous(address, elementOf(buffer.type), static_cast<int32_t>(buffer.rank), buffer.dims));
  }
  return tensors;
}

size_t bytesOf(const weft_tensor &tensor) {
  size_t bytes = elementBytes(tensor.element);
  for (int32_t axis = 0; axis < tensor.rank; ++axis)
    bytes *= tensor.shape[axis];
  return bytes;
}

/// XLA made room for what the program was said to give when it was traced.
void checkResults(const std::vector<weft_tensor> &needed, const std::vector<weft_tensor> &given) {
  bool same = needed.size() == given.size();
  for (size_t i = 0; same && i < needed.size(); ++i)
    same = needed[i].element == given[i].element && needed[i].rank == given[i].rank &&
           std::equal(needed[i].shape, needed[i].shape + needed[i].rank, given[i].shape);
  if (!same)
    refuse("expected room for results of the shapes that the program gives, but got room for others");
}

/// Host memory that the simulated device uses in place for the length of a call.
class Mapped {
public:
  Mapped(const weft::Device &device, std::span<std::vector<weft_tensor>> lists) : device(device.get()) {
    try {
      for (std::vector<weft_tensor> &tensors : lists)
        for (weft_tensor &tensor : tensors)
          map(tensor);
    } catch (...) {
      release();
      throw;
    }
  }
  Mapped(const Mapped &) = delete;
  ~Mapped() { release(); }

private:
  void map(weft_tensor &tensor) {
    auto *data = reinterpret_cast<void *>(tensor.address);
    tensor.address = 0;
    size_t bytes = bytesOf(tensor);
    if (bytes == 0)
      return;
    detail::call(weft_buffer_map, device, data, bytes, &tensor.address);
    addresses.push_back(tensor.address);
  }
  void release() {
    for (weft_address address : addresses)
      weft_buffer_unmap(device, address, nullptr);
  }
  weft_device *device;
  std::vector<weft_address> addresses;
};

void runOnHost(const xla::CallFrame &frame) {
  Registered &registered = programOf(frame);
  const Registered::Opened &on = registered.on(registered.simulator);
  std::vector<weft_tensor> lists[]{tensorsOf(frame.arguments), tensorsOf(frame.results)};
  auto [needed, bytes] = on.program.require(lists[0]);
  checkResults(needed, lists[1]);
  Mapped mapped(on.device, lists);
  std::optional<weft::Buffer> workspace;
  if (bytes)
    workspace.emplace(on.device, bytes);
  on.program.run(lists[0], lists[1], workspace ? &*workspace : nullptr);
}

/// What XLA itself says of a failure is kept by it: a text of ours stands beside.
void expect(xla::Error *failed, const char *what) {
  if (failed)
    throw Exception(WEFT_DRIVER_ERROR, std::string("XLA gave no ") + what);
}

weft_stream streamOf(const xla::CallFrame &frame) {
  xla::StreamGetArgs args{sizeof(args), nullptr, frame.context, nullptr};
  expect(frame.api->streamGet(&args), "stream");
  return args.stream;
}

int ordinalOf(const xla::CallFrame &frame) {
  if (frame.api->structSize < offsetof(xla::Api, ordinalGet) + sizeof(frame.api->ordinalGet))
    throw Exception(WEFT_UNSUPPORTED, "expected a JAX whose handlers are told their device (0.7 or newer): update JAX");
  xla::OrdinalGetArgs args{sizeof(args), nullptr, frame.context, 0};
  expect(frame.api->ordinalGet(&args), "number of a device");
  return args.ordinal;
}

/// Memory of XLA's on the device, in the order of its stream.
struct Scratch {
  const xla::CallFrame &frame;
  size_t bytes;
  void *data = nullptr;
  Scratch(const xla::CallFrame &frame, size_t bytes) : frame(frame), bytes(bytes) {
    if (!bytes)
      return;
    xla::AllocateArgs args{sizeof(args), nullptr, frame.context, bytes, 256, nullptr};
    expect(frame.api->allocate(&args), "memory");
    data = args.data;
  }
  Scratch(const Scratch &) = delete;
  ~Scratch() {
    xla::FreeArgs args{sizeof(args), nullptr, frame.context, bytes, data};
    if (data)
      (void)frame.api->free(&args);
  }
};

void runOnCuda(const xla::CallFrame &frame) {
  const Registered::Opened &on = programOf(frame).on("cuda:" + std::to_string(ordinalOf(frame)));
  std::vector<weft_tensor> inputs = tensorsOf(frame.arguments), outputs = tensorsOf(frame.results);
  auto [needed, bytes] = on.program.require(inputs);
  checkResults(needed, outputs);
  Scratch workspace(frame, bytes ? bytes + 256 : 0);
  auto address = (reinterpret_cast<weft_address>(workspace.data) + 255) / 256 * 256;
  detail::call(weft_program_run, static_cast<const weft_program *>(on.program.get()),
               static_cast<const weft_tensor *>(inputs.data()), inputs.size(),
               static_cast<const weft_tensor *>(outputs.data()), outputs.size(), address, bytes, streamOf(frame));
}

int codeOf(weft_status status) {
  switch (status) {
  case WEFT_INVALID_ARGUMENT:
    return xla::errorInvalidArgument;
  case WEFT_NOT_FOUND:
    return xla::errorNotFound;
  case WEFT_WRONG_TARGET:
  case WEFT_UNSUPPORTED:
    return xla::errorPrecondition;
  case WEFT_OUT_OF_MEMORY:
    return xla::errorExhausted;
  default:
    return xla::errorInternal;
  }
}

/// Whether XLA only asks for which version the handler was written; answers it.
bool answersMetadata(const xla::CallFrame &frame) {
  if (!frame.extensions || frame.extensions->type != xla::extensionMetadata)
    return false;
  xla::Metadata &metadata = *reinterpret_cast<xla::MetadataExtension *>(frame.extensions)->metadata;
  metadata.version.major = xla::versionMajor;
  metadata.version.minor = xla::versionMinor;
  metadata.traits = 0;
  return true;
}

template <void (*run)(const xla::CallFrame &)> xla::Error *handle(xla::CallFrame *frame) noexcept {
  if (answersMetadata(*frame))
    return nullptr;
  auto failed = [&](int code, const char *text) {
    xla::ErrorCreateArgs args{sizeof(args), nullptr, text, code};
    return frame->api->errorCreate(&args);
  };
  try {
    run(*frame);
    return nullptr;
  } catch (const Exception &error) {
    return failed(codeOf(error.status()), error.what());
  } catch (const std::exception &error) {
    return failed(xla::errorInternal, error.what());
  }
}

} // namespace

void bindJax(py::module_ &m) {
  m.def(
      "jax_register",
      [](const std::string &key, const py::object &library, const std::string &name, const std::string &simulator) {
        std::scoped_lock lock(registryGuard);
        if (registry().contains(key))
          return;
        const auto &held = library.cast<const weft::Library &>();
        library.inc_ref(); // for as long as the process lives
        registry().emplace(key, new Registered{held, name, simulator});
      },
      py::arg("key"), py::arg("library"), py::arg("name"), py::arg("simulator"));
  m.attr("jax_handler_cpu") = py::capsule(reinterpret_cast<const void *>(&handle<runOnHost>));
  m.attr("jax_handler_cuda") = py::capsule(reinterpret_cast<const void *>(&handle<runOnCuda>));
}

} // namespace weft::python
