// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "python/bindings/RuntimePrograms.h"
#include "python/bindings/CallKeys.h"
#include "python/bindings/RuntimeArguments.h"
#include "python/bindings/TorchTensors.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <span>
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
      {"torch.bool", WEFT_I1},          {"torch.int8", WEFT_I8},
      {"torch.int32", WEFT_I32},        {"torch.int64", WEFT_I64},
      {"torch.float16", WEFT_FP16},     {"torch.bfloat16", WEFT_BF16},
      {"torch.float32", WEFT_FP32},     {"torch.float8_e4m3fn", WEFT_FP8E4NV},
      {"torch.float8_e5m2", WEFT_FP8E5}};
  auto named = names.find(py::str(dtype).cast<std::string>());
  return known[dtype.inc_ref().ptr()] = named == names.end() ? unknownElement : named->second;
}

bool isFp8(int32_t element) { return element == WEFT_FP8E4NV || element == WEFT_FP8E5; }

/// The element of an array with the buffer protocol. bf16 travels as uint16, and 8-bit floats, where they are `wanted`,
/// as uint8.
int32_t elementOfBuffer(const Py_buffer &view, int32_t wanted) {
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
  case 'B':
    return isFp8(wanted) ? wanted : unknownElement;
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

Array describeTorch(py::handle tensor, const std::string &name) {
  Array array;
  py::object dtype = attribute(tensor, tensorNames().dtype);
  array.tensor.element = elementOfTorch(dtype);
  if (array.tensor.element == unknownElement)
    refuse(name, "expected elements of bool, int8, int32, int64, float16, bfloat16, float32, float8_e4m3fn or "
                 "float8_e5m2, but got " +
                     py::str(dtype).cast<std::string>());
  py::tuple shape = attribute(tensor, tensorNames().shape), strides = callMethod(tensor, tensorNames().stride);
  setRank(array.tensor, shape.size(), name);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    array.tensor.shape[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape.ptr(), axis));
    array.tensor.strides[axis] = PyLong_AsLongLong(PyTuple_GET_ITEM(strides.ptr(), axis));
  }
  array.pointer = PyLong_AsUnsignedLongLong(callMethod(tensor, tensorNames().dataPtr).ptr());
  array.cudaOrdinal = static_cast<int>(PyLong_AsLong(callMethod(tensor, tensorNames().getDevice).ptr()));
  bool onCuda = attribute(tensor, tensorNames().isCuda).ptr() == Py_True;
  if (onCuda)
    array.stream = streamNamedBy(tensor);
  if (onCuda != (array.cudaOrdinal >= 0) || (!onCuda && attribute(tensor, tensorNames().isCpu).ptr() != Py_True))
    refuse(name, "expected a tensor on the CPU or a CUDA device, but got one on '" +
                     py::str(attribute(tensor, tensorNames().device)).cast<std::string>() + "'");
  return array;
}

Array describeBuffer(py::handle object, const std::string &name, int32_t wanted) {
  Array array;
  auto view = std::make_unique<Py_buffer>();
  std::optional<int32_t> element = getBuffer(object, *view, PyBUF_STRIDES | PyBUF_FORMAT);
  array.view = std::shared_ptr<Py_buffer>(view.release(), [](Py_buffer *held) {
    PyBuffer_Release(held);
    delete held;
  });
  array.tensor.element = element ? *element : elementOfBuffer(*array.view, wanted);
  if (array.tensor.element == unknownElement)
    refuse(name, std::string("expected elements of bool, int8, int32, int64, float16, uint16 (for bfloat16), float32") +
                     (isFp8(wanted) ? ", uint8 (for 8-bit floats)" : "") + " or of ml_dtypes, but got the format '" +
                     array.view->format + "'");
  setRank(array.tensor, array.view->ndim, name);
  for (int axis = 0; axis < array.view->ndim; ++axis) {
    bool whole = array.view->strides[axis] % array.view->itemsize == 0;
    if (!whole && array.view->shape[axis] > 1)
      refuse(name, "expected strides of whole elements");
    array.tensor.shape[axis] = array.view->shape[axis];
    array.tensor.strides[axis] = whole ? array.view->strides[axis] / array.view->itemsize : 0;
  }
  array.pointer = reinterpret_cast<uintptr_t>(array.view->buf);
  array.writable = !array.view->readonly;
  return array;
}

/// Element, shape, strides and place of an array, of elements that are `wanted` where its type leaves that open.
Array describe(py::handle object, const std::string &name, int32_t wanted) {
  if (std::optional<Array> viewed = viewedTensor(object))
    return std::move(*viewed);
  if (PyObject_CheckBuffer(object.ptr()))
    return describeBuffer(object, name, wanted);
  if (PyObject_HasAttr(object.ptr(), tensorNames().dataPtr) && PyObject_HasAttr(object.ptr(), tensorNames().getDevice))
    return describeTorch(object, name);
  refuse(name,
         std::string("expected a torch tensor or a NumPy array, but got '") + Py_TYPE(object.ptr())->tp_name + "'");
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

py::tuple numbersOf(std::span<const int64_t> values) {
  py::tuple numbers(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    PyTuple_SET_ITEM(numbers.ptr(), i, PyLong_FromLongLong(values[i]));
  return numbers;
}

py::tuple shapeOf(const weft_tensor &tensor) { return numbersOf({tensor.shape, size_t(tensor.rank)}); }

class Program;

/// A run being made ready: the inputs are known, and so is what they need.
class Call {
public:
  Call(std::shared_ptr<const Program> program, const py::tuple &inputs);

  /// (element, shape) of each output.
  py::list outputs() const {
    py::list result;
    for (const weft_tensor &output : needed)
      result.append(py::make_tuple(weft_element_name(output.element), shapeOf(output)));
    return result;
  }
  const std::vector<weft_tensor> &required() const { return needed; }
  const Array &array(size_t input) const { return given[input]; }
  uint64_t workspaceBytes() const { return bytes; }
  /// The CUDA device of the first input that is on one, -1 where none is.
  int ordinal() const {
    auto first = std::ranges::find_if(given, [](const Array &array) { return array.cudaOrdinal >= 0; });
    return first == given.end() ? -1 : first->cudaOrdinal;
  }
  /// The number of the plan that the run takes, among the program's variants.
  size_t variant() const;

  /// Runs on outputs that the caller has made. Without an address of a workspace, memory is allocated for this run.
  void run(const py::tuple &outputs, std::optional<uintptr_t> workspace, std::optional<uintptr_t> stream, bool poison);

private:
  std::shared_ptr<const Program> program;
  py::tuple inputs;
  std::vector<Array> given;
  std::vector<weft_tensor> needed;
  uint64_t bytes = 0;
};

/// A program of a library on a device.
class Program : public std::enable_shared_from_this<Program> {
public:
  Program(const weft::Library &library, std::shared_ptr<Device> device, const std::string &name)
      : device(std::move(device)), program(library, this->device->device, name), wanted(program.inputs()),
        made(program.outputs()) {
    for (const weft_tensor_info &info : wanted)
      inputNames.push_back(info.name);
    for (const weft_tensor_info &info : made)
      outputNames.push_back(info.name);
  }

  std::shared_ptr<Call> prepare(const py::tuple &inputs) const {
    return std::make_shared<Call>(shared_from_this(), inputs);
  }

  /// Runs on torch tensors that kernels take as they are, and gives the outputs, fresh; None for others, which have to
  /// be made so first, and for those that are on another CUDA device than that of `ordinal`, where one is given: the
  /// first tensor on any says which, and -1 is none.
  py::object run(const py::tuple &inputs, std::optional<int> ordinal) const;

  /// The outputs, at address 0, and the bytes of workspace of a run on inputs of these elements and shapes. Those of the
  /// last run are known again.
  const std::pair<std::vector<weft_tensor>, uint64_t> &require(std::vector<weft_tensor> inputs) const {
    if (!last || !std::ranges::equal(inputs, *last, isAlike)) {
      needed = program.require(inputs);
      last = std::move(inputs);
    }
    return needed;
  }

  std::shared_ptr<Device> device;
  weft::Program program;
  std::vector<weft_tensor_info> wanted, made; ///< what inputs are to be, and outputs are
  std::vector<std::string> inputNames, outputNames;
  bool launches = true; ///< whether runs queue anything: benchmarks of all else turn it off

private:
  static bool isAlike(const weft_tensor &a, const weft_tensor &b) {
    return a.element == b.element && std::ranges::equal(std::span(a.shape, a.rank), std::span(b.shape, b.rank));
  }

  mutable std::optional<std::vector<weft_tensor>> last; ///< inputs; the interpreter's lock guards these two
  mutable std::pair<std::vector<weft_tensor>, uint64_t> needed;
};

std::vector<Array> describeAll(const py::tuple &arrays, const std::vector<std::string> &names,
                               const std::vector<weft_tensor_info> &infos) {
  std::vector<Array> described;
  described.reserve(arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    bool known = i < infos.size();
    described.push_back(describe(PyTuple_GET_ITEM(arrays.ptr(), i), known ? names[i] : std::to_string(i),
                                 known ? infos[i].element : unknownElement));
  }
  return described;
}

std::vector<weft_tensor> tensorsOf(std::span<const Array> arrays) {
  std::vector<weft_tensor> tensors;
  tensors.reserve(arrays.size());
  for (const Array &array : arrays)
    tensors.push_back(array.tensor);
  return tensors;
}

Call::Call(std::shared_ptr<const Program> program, const py::tuple &inputs)
    : program(std::move(program)), inputs(inputs),
      given(describeAll(inputs, this->program->inputNames, this->program->wanted)) {
  std::tie(needed, bytes) = this->program->require(tensorsOf(given));
}

size_t Call::variant() const { return program->program.choose(tensorsOf(given)); }

void Call::run(const py::tuple &outputs, std::optional<uintptr_t> workspace, std::optional<uintptr_t> stream,
               bool poison) {
  if (!program->launches)
    return;
  const Device &device = *program->device;
  std::vector<Array> all = describeAll(outputs, program->outputNames, program->made);
  all.insert(all.begin(), given.begin(), given.end());
  Arguments arguments(device.device.get(), device.simulated, device.cudaOrdinal, all);
  std::vector<weft_tensor> tensors = tensorsOf(all);
  for (size_t i = 0; i < tensors.size(); ++i)
    tensors[i].address = arguments.values()[i].as.address;
  weft_stream on = stream ? reinterpret_cast<weft_stream>(*stream) : arguments.torchStream();
  std::optional<weft::Buffer> own = workspace ? std::nullopt : scratch(device.device, bytes, poison);
  weft_address at = workspace ? *workspace : own ? own->address() : 0;
  {
    py::gil_scoped_release others;
    detail::call(weft_program_run, static_cast<const weft_program *>(program->program.get()),
                 static_cast<const weft_tensor *>(tensors.data()), given.size(),
                 static_cast<const weft_tensor *>(tensors.data() + given.size()), tensors.size() - given.size(), at,
                 bytes, on);
    if (own && !device.simulated)
      device.device.synchronize(on); // before the memory goes
  }
  arguments.finish(on);
}

/// Whether kernels take an array as it is: contiguous along its last axis and, where they count on it, aligned.
bool isAsDescribed(const Array &array, const weft_tensor_info &wanted) {
  const weft_tensor &tensor = array.tensor;
  int32_t last = tensor.rank - 1;
  if (last >= 0 && tensor.strides[last] != 1 && tensor.shape[last] != 1)
    return false;
  if (!wanted.aligned)
    return true;
  int64_t bytes = elementBytes(tensor.element);
  bool aligned = array.pointer % 16 == 0;
  for (int32_t axis = 0; axis < last; ++axis)
    aligned &= tensor.shape[axis] <= 1 || tensor.strides[axis] * bytes % 16 == 0;
  return aligned;
}

/// Torch, as what makes outputs calls it.
struct OutputsOfTorch {
  py::object empty = py::module_::import("torch").attr("empty"), emptyOnHost;
  py::object dtypes[WEFT_FP8E5 + 1];
  py::object names = py::make_tuple("dtype", "device");

  static const OutputsOfTorch &loaded() {
    static auto *made = new OutputsOfTorch; // never destroyed: the interpreter may be gone by then
    return *made;
  }
  py::object make(py::tuple shape, int32_t element, py::handle device) const {
    PyObject *arguments[] = {nullptr, shape.ptr(), dtypes[element].ptr(), device.ptr()};
    PyObject *found = PyObject_Vectorcall(empty.ptr(), arguments + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, names.ptr());
    if (!found)
      throw py::error_already_set();
    return py::reinterpret_steal<py::object>(found);
  }
  /// An output, as the runtime describes it, beside an input at that place.
  py::object make(const weft_tensor &tensor, bool onHost, py::handle device) const {
    if (!onHost || !emptyOnHost)
      return make(shapeOf(tensor), tensor.element, device);
    py::tuple shape = shapeOf(tensor), strides = numbersOf({tensor.strides, size_t(tensor.rank)});
    PyObject *arguments[] = {nullptr, shape.ptr(), strides.ptr(), dtypes[tensor.element].ptr()};
    PyObject *found =
        PyObject_Vectorcall(emptyOnHost.ptr(), arguments + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    if (!found)
      throw py::error_already_set();
    return py::reinterpret_steal<py::object>(found);
  }

private:
  OutputsOfTorch() {
    // What compiled graphs allocate by, in a third of the time of torch.empty. Not every torch has it.
    py::object compiled = py::getattr(py::module_::import("torch._C"), "_dynamo", py::none());
    compiled = compiled.is_none() ? compiled : py::getattr(compiled, "guards", py::none());
    emptyOnHost = compiled.is_none() ? py::object() : py::getattr(compiled, "_empty_strided_cpu", py::object());
    const std::pair<int32_t, const char *> types[] = {
        {WEFT_I1, "bool"},          {WEFT_I8, "int8"},       {WEFT_I32, "int32"},    {WEFT_I64, "int64"},
        {WEFT_FP16, "float16"},     {WEFT_BF16, "bfloat16"}, {WEFT_FP32, "float32"}, {WEFT_FP8E4NV, "float8_e4m3fn"},
        {WEFT_FP8E5, "float8_e5m2"}};
    for (auto [element, name] : types)
      dtypes[element] = py::module_::import("torch").attr(name);
  }
};

py::object Program::run(const py::tuple &inputs, std::optional<int> ordinal) const {
  if (inputs.size() != wanted.size() || inputs.empty())
    return py::none();
  for (py::handle input : inputs)
    if (PyObject_CheckBuffer(input.ptr()))
      return py::none();
  Call call(shared_from_this(), inputs);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (call.array(i).stream || !isAsDescribed(call.array(i), wanted[i])) // of another library, or to be copied first
      return py::none();
  if (ordinal && *ordinal != call.ordinal())
    return py::none();
  const OutputsOfTorch &torch = OutputsOfTorch::loaded();
  bool onHost = call.array(0).cudaOrdinal < 0;
  py::object where = onHost ? py::object(py::str("cpu")) : attribute(inputs[0], tensorNames().device), workspace;
  py::tuple outputs(call.required().size());
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = torch.make(call.required()[i], onHost, where);
  std::optional<uintptr_t> address;
  if (call.workspaceBytes() && !onHost) { // from torch's memory, in the stream's order
    workspace = torch.make(py::make_tuple(call.workspaceBytes() + 256), WEFT_I8, where);
    address = (PyLong_AsUnsignedLongLong(callMethod(workspace, tensorNames().dataPtr).ptr()) + 255) / 256 * 256;
  }
  call.run(outputs, address, std::nullopt, false);
  return outputs;
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
      .def_property_readonly("variant", &Call::variant)
      .def("run", &Call::run, py::arg("outputs"), py::arg("workspace") = py::none(), py::arg("stream") = py::none(),
           py::arg("poison") = false);
  py::class_<Program, std::shared_ptr<Program>>(m, "Program")
      .def(py::init<const weft::Library &, std::shared_ptr<Device>, const std::string &>(), py::arg("library"),
           py::arg("device"), py::arg("name"))
      .def_property_readonly("target", [](const Program &self) { return self.program.target(); })
      .def_property_readonly("inputs", [](const Program &self) { return factsOf(self.program.inputs()); })
      .def_property_readonly("outputs", [](const Program &self) { return factsOf(self.program.outputs()); })
      .def("load", [](const Program &self) { self.program.load(); })
      .def("prepare", &Program::prepare, py::arg("inputs"))
      .def("run", &Program::run, py::arg("inputs"), py::arg("ordinal") = py::none())
      .def_readwrite("launches", &Program::launches);
}

Runner runnerOf(py::handle program, int ordinal) {
  auto kept = program.cast<std::shared_ptr<Program>>();
  return [kept = std::move(kept), ordinal](const py::tuple &inputs) { return kept->run(inputs, ordinal); };
}

} // namespace weft::python
