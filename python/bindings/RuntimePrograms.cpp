// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "python/bindings/RuntimePrograms.h"
#include "python/bindings/RuntimeArguments.h"

#include <pybind11/stl.h>

#include <unordered_map>

namespace py = pybind11;

namespace weft::python {
namespace {

constexpr int32_t unknownElement = -1;

[[noreturn]] void refuse(const std::string &name, const std::string &why) {
  throw Exception(WEFT_INVALID_ARGUMENT, "'" + name + "': " + why);
}

/// The element of a torch dtype. These live as long as torch, which is never unloaded.
int32_t elementOfTorch(py::handle dtype) {
  static std::unordered_map<PyObject *, int32_t> known;
  auto found = known.find(dtype.ptr());
  if (found != known.end())
    return found->second;
  static const std::unordered_map<std::string, int32_t> names{
      {"torch.bool", WEFT_I1},     {"torch.int8", WEFT_I8},      {"torch.int32", WEFT_I32},
      {"torch.int64", WEFT_I64},   {"torch.float16", WEFT_FP16}, {"torch.bfloat16", WEFT_BF16},
      {"torch.float32", WEFT_FP32}};
  auto named = names.find(py::str(dtype).cast<std::string>());
  return known[dtype.inc_ref().ptr()] = named == names.end() ? unknownElement : named->second;
}

/// The element of an array with the buffer protocol. bf16 travels as uint16.
int32_t elementOfBuffer(const Py_buffer &view) {
  const char *format = view.format;
  if (*format == '@' || *format == '=' || *format == '<')
    ++format;
  if (*format && format[1])
    return unknownElement;
  switch (*format) {
  case '?':
    return WEFT_I1;
  case 'b':
    return WEFT_I8;
  case 'i':
  case 'l':
  case 'q':
    return view.itemsize == 4 ? WEFT_I32 : WEFT_I64;
  case 'e':
    return WEFT_FP16;
  case 'H':
    return WEFT_BF16;
  case 'f':
    return WEFT_FP32;
  default:
    return unknownElement;
  }
}

void setRank(weft_tensor &tensor, size_t rank, const std::string &name) {
  if (rank > WEFT_MAX_RANK)
    refuse(name, "expected at most 8 axes, but got " + std::to_string(rank));
  tensor.rank = static_cast<int32_t>(rank);
}

/// Element, shape and strides of an array; its address comes later.
weft_tensor describe(py::handle array, const std::string &name) {
  weft_tensor tensor{};
  std::string elementName;
  if (py::hasattr(array, "data_ptr")) {
    py::object dtype = array.attr("dtype");
    tensor.element = elementOfTorch(dtype);
    elementName = tensor.element == unknownElement ? py::str(dtype).cast<std::string>() : "";
    py::tuple shape = array.attr("shape"), strides = array.attr("stride")();
    setRank(tensor, shape.size(), name);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      tensor.shape[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape.ptr(), axis));
      tensor.strides[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(strides.ptr(), axis));
    }
  } else if (PyObject_CheckBuffer(array.ptr())) {
    Py_buffer view;
    if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_STRIDES | PyBUF_FORMAT) != 0)
      throw py::error_already_set();
    std::unique_ptr<Py_buffer, void (*)(Py_buffer *)> held(&view, PyBuffer_Release);
    tensor.element = elementOfBuffer(view);
    elementName = tensor.element == unknownElement ? std::string("'") + view.format + "'" : "";
    setRank(tensor, view.ndim, name);
    for (int axis = 0; axis < view.ndim; ++axis) {
      bool whole = view.strides[axis] % view.itemsize == 0;
      if (!whole && view.shape[axis] > 1)
        refuse(name, "expected strides of whole elements");
      tensor.shape[axis] = view.shape[axis];
      tensor.strides[axis] = whole ? view.strides[axis] / view.itemsize : 0;
    }
  } else {
    refuse(name,
           std::string("expected a torch tensor or a NumPy array, but got '") + Py_TYPE(array.ptr())->tp_name + "'");
  }
  if (tensor.element == unknownElement)
    refuse(name, "expected bool, int8, int32, int64, float16, bfloat16 (in NumPy: uint16) or float32, but got " +
                     elementName);
  return tensor;
}

/// Memory of the device for one run.
std::optional<weft::Buffer> scratch(const weft::Device &device, uint64_t bytes, bool poison) {
  if (bytes == 0)
    return std::nullopt;
  weft::Buffer buffer(device, bytes);
  if (poison)
    buffer.fill(0xFF);
  return buffer;
}

class Program;

/// A run being made ready: the inputs are known, and so is what they need.
class Call {
public:
  Call(std::shared_ptr<const Program> program, const py::tuple &inputs);

  /// (element, shape) of each output.
  py::list outputs() const {
    py::list result;
    for (const weft_tensor &output : needed) {
      py::tuple shape(output.rank);
      for (int32_t axis = 0; axis < output.rank; ++axis)
        shape[axis] = output.shape[axis];
      result.append(py::make_tuple(weft_element_name(output.element), shape));
    }
    return result;
  }
  uint64_t workspaceBytes() const { return bytes; }

  /// Runs on outputs that the caller has made. Without an address of a workspace, memory is allocated for this run.
  void run(const py::tuple &outputs, std::optional<uintptr_t> workspace, std::optional<uintptr_t> stream, bool poison);

private:
  std::shared_ptr<const Program> program;
  py::tuple inputs;
  std::vector<weft_tensor> given, needed;
  uint64_t bytes = 0;
};

/// A program of a library on a device.
class Program : public std::enable_shared_from_this<Program> {
public:
  Program(const weft::Library &library, std::shared_ptr<Device> device, const std::string &name)
      : device(std::move(device)), program(library, this->device->device, name) {
    for (const weft_tensor_info &info : program.inputs())
      inputNames.push_back(info.name);
    for (const weft_tensor_info &info : program.outputs())
      outputNames.push_back(info.name);
  }

  std::shared_ptr<Call> prepare(const py::tuple &inputs) const {
    return std::make_shared<Call>(shared_from_this(), inputs);
  }

  std::shared_ptr<Device> device;
  weft::Program program;
  std::vector<std::string> inputNames, outputNames;
};

std::vector<weft_tensor> describeAll(const py::tuple &arrays, const std::vector<std::string> &names) {
  std::vector<weft_tensor> tensors;
  for (size_t i = 0; i < arrays.size(); ++i)
    tensors.push_back(describe(arrays[i], i < names.size() ? names[i] : std::to_string(i)));
  return tensors;
}

Call::Call(std::shared_ptr<const Program> program, const py::tuple &inputs)
    : program(std::move(program)), inputs(inputs), given(describeAll(inputs, this->program->inputNames)) {
  std::tie(needed, bytes) = this->program->program.require(given);
}

void Call::run(const py::tuple &outputs, std::optional<uintptr_t> workspace, std::optional<uintptr_t> stream,
               bool poison) {
  const Device &device = *program->device;
  std::vector<weft_tensor> results = describeAll(outputs, program->outputNames);
  py::tuple all(inputs.size() + outputs.size());
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = i < inputs.size() ? inputs[i] : outputs[i - inputs.size()];
  Arguments arguments(device.device.get(), device.simulated, device.cudaOrdinal, all,
                      std::vector<bool>(all.size(), true));
  for (size_t i = 0; i < all.size(); ++i)
    (i < given.size() ? given[i] : results[i - given.size()]).address = arguments.values()[i].as.address;
  weft_stream on = stream ? reinterpret_cast<weft_stream>(*stream) : arguments.torchStream();
  std::optional<weft::Buffer> own = workspace ? std::nullopt : scratch(device.device, bytes, poison);
  weft_address at = workspace ? *workspace : own ? own->address() : 0;
  {
    py::gil_scoped_release others;
    detail::call(weft_program_run, static_cast<const weft_program *>(program->program.get()), given.data(),
                 given.size(), results.data(), results.size(), at, bytes, on);
    if (own && !device.simulated)
      device.device.synchronize(on); // before the memory goes
  }
  arguments.finish(on);
}

/// Inputs or outputs as a list of dicts.
py::list factsOf(const std::vector<weft_tensor_info> &tensors) {
  py::list result;
  for (const weft_tensor_info &info : tensors) {
    py::list dims;
    for (int32_t axis = 0; axis < info.rank; ++axis)
      dims.append(info.dims[axis]);
    py::dict facts;
    facts["name"] = info.name;
    facts["type"] = weft_element_name(info.element);
    facts["dims"] = dims;
    facts["aligned"] = info.aligned != 0;
    result.append(facts);
  }
  return result;
}

} // namespace

Device::Device(const std::string &name) : device(name), simulated(device.properties().simulated), cudaOrdinal(-1) {
  if (!simulated)
    cudaOrdinal = std::stoi(device.name().substr(5));
}

void bindPrograms(py::module_ &m) {
  py::class_<Call, std::shared_ptr<Call>>(m, "Call")
      .def_property_readonly("outputs", &Call::outputs)
      .def_property_readonly("workspace_bytes", &Call::workspaceBytes)
      .def("run", &Call::run, py::arg("outputs"), py::arg("workspace") = py::none(), py::arg("stream") = py::none(),
           py::arg("poison") = false);
  py::class_<Program, std::shared_ptr<Program>>(m, "Program")
      .def(py::init<const weft::Library &, std::shared_ptr<Device>, const std::string &>(), py::arg("library"),
           py::arg("device"), py::arg("name"))
      .def_property_readonly("target", [](const Program &self) { return self.program.target(); })
      .def_property_readonly("inputs", [](const Program &self) { return factsOf(self.program.inputs()); })
      .def_property_readonly("outputs", [](const Program &self) { return factsOf(self.program.outputs()); })
      .def("prepare", &Program::prepare, py::arg("inputs"));
}

} // namespace weft::python
