// Part of Weft. SPDX-License-Identifier: Apache-2.0
// weft._native._runtime: devices, PTX modules and libraries for Python, a thin layer over weft.h.
// python/weft/runtime/__init__.py documents it for those who call it.
#include "python/bindings/CallKeys.h"
#include "python/bindings/OperatorKernels.h"
#include "python/bindings/RuntimeArguments.h"
#include "python/bindings/RuntimeJax.h"
#include "python/bindings/RuntimePrograms.h"
#include "python/bindings/Text.h"

#include <pybind11/stl.h>

namespace py = pybind11;
using namespace weft::python;
using weft::detail::call;

namespace {

/// Raises `_runtime.Error` with the text and, as `status`, the name of the code.
void raise(const weft::Exception &failed, const py::object &type) {
  py::object error = type(text(failed.what()));
  error.attr("status") = weft_status_name(failed.status());
  PyErr_SetObject(type.ptr(), error.ptr());
}

py::dict propertiesOf(const Device &self) {
  weft_device_properties facts = self.device.properties();
  py::dict result;
  result["model"] = self.device.model();
  result["capability"] = py::make_tuple(facts.major, facts.minor);
  result["simulated"] = self.simulated;
  result["multiprocessors"] = facts.multiprocessors;
  result["max_threads_per_block"] = facts.max_threads_per_block;
  result["max_shared_bytes"] = facts.max_shared_bytes;
  result["memory_bytes"] = facts.memory_bytes;
  return result;
}

/// A grid or a block: an integer or up to three of them.
weft_extent extentOf(py::handle given, const char *what) {
  uint32_t extents[3] = {1, 1, 1};
  auto one = [&](py::handle value) {
    Py_ssize_t extent = PyNumber_AsSsize_t(value.ptr(), nullptr);
    if (extent == -1 && PyErr_Occurred())
      throw py::error_already_set();
    if (extent < 1 || extent > INT32_MAX)
      throw weft::Exception(WEFT_INVALID_ARGUMENT, std::string("expected a ") + what +
                                                       " of 1 to 2147483647 in each direction, but got " +
                                                       std::to_string(extent));
    return static_cast<uint32_t>(extent);
  };
  if (!PySequence_Check(given.ptr()))
    return {one(given), 1, 1};
  auto sequence = py::reinterpret_borrow<py::sequence>(given);
  if (sequence.size() < 1 || sequence.size() > 3)
    throw weft::Exception(WEFT_INVALID_ARGUMENT, std::string("expected a ") + what + " of 1 to 3 extents, but got " +
                                                     std::to_string(sequence.size()));
  for (size_t axis = 0; axis < sequence.size(); ++axis)
    extents[axis] = one(py::object(sequence[axis]));
  return {extents[0], extents[1], extents[2]};
}

weft_stream streamOf(const std::optional<uintptr_t> &given, const Arguments &arguments) {
  return given ? reinterpret_cast<weft_stream>(*given) : arguments.torchStream();
}

std::vector<Takes> takenBy(const std::vector<std::string> &types) {
  std::vector<Takes> takes;
  for (const std::string &type : types)
    takes.push_back(weft::python::takenBy(type));
  return takes;
}

/// One entry of PTX text on one device, ready to launch.
class Module {
public:
  Module(const std::string &ptx, const std::string &entry, uint32_t shared, std::shared_ptr<Device> device,
         const std::vector<std::string> &types)
      : device(std::move(device)), kernel(this->device->device, ptx, entry, shared, types), takes(takenBy(types)) {}

  void launch(py::handle grid, py::handle block, const py::tuple &args, std::optional<uintptr_t> stream,
              py::handle cluster) {
    weft_extent blocks = extentOf(grid, "grid"), threads = extentOf(block, "block"), group{1, 1, 1};
    if (!cluster.is_none())
      group = extentOf(cluster, "cluster");
    Arguments arguments(device->device.get(), device->simulated, device->cudaOrdinal, args, takes);
    weft_stream on = streamOf(stream, arguments);
    {
      py::gil_scoped_release others;
      call(weft_kernel_launch, kernel.get(), blocks, threads, static_cast<const weft_extent *>(&group),
           arguments.values().data(), arguments.values().size(), on);
    }
    arguments.finish(on);
  }

  py::dict attributes() const {
    weft_kernel_attributes facts = kernel.attributes();
    py::dict result;
    result["registers"] = facts.registers;
    result["local_bytes"] = facts.local_bytes;
    result["static_shared_bytes"] = facts.static_shared_bytes;
    return result;
  }

private:
  std::shared_ptr<Device> device;
  weft::Kernel kernel;
  std::vector<Takes> takes;
};

void launchFromLibrary(const weft::Library &library, Device &device, const std::string &name, py::handle grid,
                       const py::tuple &args, std::optional<uintptr_t> stream) {
  std::vector<Takes> takes;
  for (const auto &argument : library.arguments(name))
    takes.push_back(weft::python::takenBy(argument.second));
  Arguments arguments(device.device.get(), device.simulated, device.cudaOrdinal, args, takes);
  weft_extent blocks{};
  if (!grid.is_none())
    blocks = extentOf(grid, "grid");
  weft_stream on = streamOf(stream, arguments);
  {
    py::gil_scoped_release others;
    call(weft_library_launch, library.get(), device.device.get(), weft::detail::text(name),
         static_cast<const weft_extent *>(grid.is_none() ? nullptr : &blocks), arguments.values().data(),
         arguments.values().size(), on);
  }
  arguments.finish(on);
}

weft::Library makeLibrary(const std::string &name, const std::string &json,
                          const std::map<std::string, std::string> &files) {
  return weft::Library(name, json, {files.begin(), files.end()});
}

void writeLibrary(const std::string &path, const std::string &json, const std::map<std::string, std::string> &files) {
  std::vector<weft_file> parts;
  for (const auto &[name, bytes] : files)
    parts.push_back({weft::detail::text(name), bytes.data(), bytes.size()});
  call(weft_library_write, weft::detail::text(path), weft::detail::text(json),
       static_cast<const weft_file *>(parts.data()), parts.size());
}

std::string defaultDevice() {
  std::string name(weft_default_device(nullptr, 0), '\0');
  weft_default_device(name.data(), name.size() + 1);
  return name;
}

int cudaDeviceCount() {
  int count = 0;
  weft_cuda_device_count(&count, nullptr);
  return count;
}

void bindDevice(py::module_ &m) {
  py::class_<Device, std::shared_ptr<Device>>(m, "Device")
      .def(py::init<const std::string &>(), py::arg("name") = "")
      .def_property_readonly("name", [](const Device &self) { return self.device.name(); })
      .def_readonly("simulated", &Device::simulated)
      .def_property_readonly("properties", &propertiesOf)
      .def(
          "synchronize",
          [](const Device &self, uintptr_t stream) { self.device.synchronize(reinterpret_cast<weft_stream>(stream)); },
          py::arg("stream") = 0, py::call_guard<py::gil_scoped_release>())
      .def(
          "map",
          [](const Device &self, uintptr_t begin, size_t bytes) {
            weft_address address = 0;
            call(weft_buffer_map, self.device.get(), reinterpret_cast<void *>(begin), bytes, &address);
            return address;
          },
          py::arg("begin"), py::arg("bytes"))
      .def(
          "unmap",
          [](const Device &self, weft_address address) { call(weft_buffer_unmap, self.device.get(), address); },
          py::arg("address"));
}

/// Times what is queued on a device, by events, after a fill that takes the place of everything in the L2 cache.
class Timer {
public:
  Timer(std::shared_ptr<Device> device, size_t flushBytes)
      : device(std::move(device)), flushed(this->device->device, flushBytes), begin(this->device->device.get()),
        end(this->device->device.get()) {}

  /// Milliseconds between two points of the stream, around what `queue` queues on it.
  float measure(const py::function &queue, uintptr_t on) {
    auto stream = reinterpret_cast<weft_stream>(on);
    flushed.fill(0, stream);
    begin.record(stream);
    queue();
    end.record(stream);
    py::gil_scoped_release others;
    float milliseconds = 0;
    call(weft_event_elapsed, device->device.get(), begin.event, end.event, &milliseconds);
    return milliseconds;
  }

private:
  struct Event {
    weft_device *device;
    weft_event event = nullptr;
    explicit Event(weft_device *device) : device(device) { call(weft_event_create, device, &event); }
    Event(const Event &) = delete;
    ~Event() { weft_event_destroy(device, event, nullptr); }
    void record(weft_stream stream) { call(weft_event_record, device, event, stream); }
  };
  std::shared_ptr<Device> device;
  weft::Buffer flushed;
  Event begin, end;
};

void bindTimer(py::module_ &m) {
  py::class_<Timer>(m, "Timer")
      .def(py::init<std::shared_ptr<Device>, size_t>(), py::arg("device"), py::arg("flush_bytes"))
      .def("measure", &Timer::measure, py::arg("queue"), py::arg("stream") = 0);
}

void bindBuffer(py::module_ &m) {
  py::class_<weft::Buffer>(m, "Buffer")
      .def(py::init([](const Device &device, size_t bytes) { return weft::Buffer(device.device, bytes); }),
           py::arg("device"), py::arg("bytes"), py::keep_alive<1, 2>())
      .def_property_readonly("address", &weft::Buffer::address)
      .def_property_readonly("bytes", &weft::Buffer::bytes)
      .def(
          "write",
          [](weft::Buffer &self, const py::buffer &source) {
            py::buffer_info info = source.request();
            self.write(info.ptr, static_cast<size_t>(info.size * info.itemsize));
          },
          py::arg("source"))
      .def(
          "read",
          [](const weft::Buffer &self, const py::buffer &destination) {
            py::buffer_info info = destination.request(true);
            self.read(info.ptr, static_cast<size_t>(info.size * info.itemsize));
          },
          py::arg("destination"))
      .def("fill", [](weft::Buffer &self, uint8_t value) { self.fill(value); }, py::arg("value"));
}

void bindLibrary(py::module_ &m) {
  py::class_<weft::Library>(m, "Library")
      .def(py::init<const std::string &>(), py::arg("path"))
      .def_property_readonly("manifest", &weft::Library::manifest)
      .def_static("make", &makeLibrary, py::arg("name"), py::arg("kernels_json"), py::arg("files"))
      .def("arguments", &weft::Library::arguments, py::arg("kernel"))
      .def("ptx",
           [](const weft::Library &self, const std::string &kernel, size_t variant) {
             weft_variant_info info{};
             call(weft_library_get_variant, self.get(), self.find(kernel), variant, &info);
             return text(info.ptx);
           })
      .def("launch", &launchFromLibrary, py::arg("device"), py::arg("kernel"), py::arg("grid"), py::arg("args"),
           py::arg("stream") = py::none());
}

} // namespace

PYBIND11_MODULE(_runtime, m) {
  // lives as long as the interpreter, as the module does
  py::object base = py::module_::import("weft.errors").attr("Error");
  PyObject *error = PyErr_NewExceptionWithDoc(
      "weft.runtime.Error", "What the runtime refused; `status` names the kind of failure.", base.ptr(), nullptr);
  m.add_object("Error", error);
  static PyObject *errorType = error;
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown)
        std::rethrow_exception(thrown);
    } catch (const weft::Exception &failed) {
      raise(failed, py::reinterpret_borrow<py::object>(errorType));
    }
  });
  bindDevice(m);
  bindTimer(m);
  bindBuffer(m);
  py::class_<Module>(m, "Module")
      .def(py::init<const std::string &, const std::string &, uint32_t, std::shared_ptr<Device>,
                    const std::vector<std::string> &>(),
           py::arg("ptx"), py::arg("entry"), py::arg("shared"), py::arg("device"), py::arg("types"))
      .def("launch", &Module::launch, py::arg("grid"), py::arg("block"), py::arg("args"),
           py::arg("stream") = py::none(), py::arg("cluster") = py::none())
      .def_property_readonly("attributes", &Module::attributes);
  bindLibrary(m);
  bindPrograms(m);
  bindCallKeys(m);
  bindOperatorKernels(m);
  bindJax(m);
  m.def("write_library", &writeLibrary, py::arg("path"), py::arg("kernels_json"), py::arg("files"));
  m.def("default_device", &defaultDevice);
  m.def("cuda_device_count", &cudaDeviceCount);
  m.attr("version") = weft_version();
}
