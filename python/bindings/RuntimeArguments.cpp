// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "python/bindings/RuntimeArguments.h"
#include "python/bindings/CallKeys.h"

#include <algorithm>
#include <cstring>

namespace py = pybind11;

namespace weft::python {
namespace {

[[noreturn]] void refuse(size_t index, const std::string &why) {
  throw Exception(WEFT_INVALID_ARGUMENT, "argument " + std::to_string(index) + ": " + why);
}

std::string typeName(py::handle object) { return Py_TYPE(object.ptr())->tp_name; }

/// A Python or NumPy number of 64 bits: unsigned where int64 does not have it.
weft_value integerOf(py::handle object, size_t index, Takes takes) {
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (overflow == 0 && value < 0 && takes == Takes::Unsigned)
    refuse(index, "expected 'u64' (0 to 18446744073709551615), but got " + std::to_string(value));
  if (overflow == 0)
    return weft_value_integer(value);
  unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(object.ptr()) : 0;
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    refuse(index, "expected an integer of 64 bits");
  }
  return weft_value_unsigned(large);
}

weft_value numberOf(py::handle object, size_t index, Takes takes) {
  if (PyLong_CheckExact(object.ptr()))
    return integerOf(object, index, takes);
  if (PyFloat_Check(object.ptr()))
    return weft_value_real(PyFloat_AS_DOUBLE(object.ptr()));
  if (PyBool_Check(object.ptr()) || typeName(object).starts_with("numpy.bool"))
    return weft_value_integer(PyObject_IsTrue(object.ptr()));
  if (PyIndex_Check(object.ptr())) {
    py::object integer = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
    if (!integer)
      throw py::error_already_set();
    return integerOf(integer, index, takes);
  }
  double real = PyFloat_AsDouble(object.ptr());
  if (real == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    refuse(index, "expected a number, but got '" + typeName(object) + "'");
  }
  return weft_value_real(real);
}

/// The bytes that an array of `shape` and `strides` (in bytes) spans around its first element.
struct Span {
  intptr_t low = 0, high = 0;
};
template <typename Shape, typename Strides> Span spanOf(size_t rank, Shape shape, Strides strides, intptr_t itemBytes) {
  Span span{0, itemBytes};
  for (size_t axis = 0; axis < rank; ++axis) {
    intptr_t extent = shape(axis);
    if (extent == 0)
      return {};
    intptr_t reach = (extent - 1) * strides(axis);
    (reach < 0 ? span.low : span.high) += reach;
  }
  return span;
}

} // namespace

Takes takenBy(std::string_view type) {
  return type.starts_with('*') ? Takes::Pointer : type == "u64" ? Takes::Unsigned : Takes::Number;
}

intptr_t elementBytes(int32_t element) {
  switch (element) {
  case WEFT_I1:
  case WEFT_I8:
  case WEFT_FP8E4NV:
  case WEFT_FP8E5:
    return 1;
  case WEFT_FP16:
  case WEFT_BF16:
    return 2;
  case WEFT_I64:
    return 8;
  default:
    return 4;
  }
}

Arguments::Arguments(weft_device *device, bool simulated, int cudaOrdinal, const py::tuple &given,
                     const std::vector<Takes> &takes)
    : device(device), simulated(simulated), ordinal(cudaOrdinal) {
  if (given.size() != takes.size())
    throw Exception(WEFT_INVALID_ARGUMENT,
                    "expected " + std::to_string(takes.size()) + " arguments, but got " + std::to_string(given.size()));
  converted.resize(given.size());
  try {
    for (size_t i = 0; i < given.size(); ++i) {
      if (takes[i] == Takes::Pointer)
        addPointer(given[i], i);
      else
        converted[i] = numberOf(given[i], i, takes[i]);
    }
    mergeRanges();
    lend();
  } catch (...) {
    release();
    throw;
  }
}

Arguments::Arguments(weft_device *device, bool simulated, int cudaOrdinal, const std::vector<Array> &arrays)
    : device(device), simulated(simulated), ordinal(cudaOrdinal) {
  converted.resize(arrays.size());
  try {
    for (size_t i = 0; i < arrays.size(); ++i)
      addArray(arrays[i], i);
    mergeRanges();
    lend();
  } catch (...) {
    release();
    throw;
  }
}

std::optional<int32_t> getBuffer(py::handle object, Py_buffer &view, int flags) {
  if (PyObject_GetBuffer(object.ptr(), &view, flags) == 0)
    return std::nullopt;
  py::error_already_set error;
  struct Kind {
    const char *name;
    int32_t element;
    const char *bits;
  };
  static constexpr Kind kinds[] = {
      {"bfloat16", WEFT_BF16, "u2"}, {"float8_e4m3fn", WEFT_FP8E4NV, "u1"}, {"float8_e5m2", WEFT_FP8E5, "u1"}};
  py::object type = py::getattr(object, "dtype", py::none());
  for (const Kind &kind : kinds) {
    if (type.is_none() || py::str(type).cast<std::string>() != kind.name)
      continue;
    if (PyObject_GetBuffer(object.attr("view")(kind.bits).ptr(), &view, flags) != 0)
      throw py::error_already_set();
    return kind.element;
  }
  throw error;
}

std::optional<uintptr_t> streamNamedBy(py::handle tensor) {
  static PyObject *const name = PyUnicode_InternFromString("weft_stream");
  if (!PyObject_HasAttr(tensor.ptr(), name))
    return std::nullopt;
  return attribute(tensor, name).cast<uintptr_t>();
}

Arguments::~Arguments() { release(); }

void Arguments::addPointer(py::handle object, size_t index) {
  if (object.is_none())
    converted[index] = weft_value_address(0);
  else if (PyLong_Check(object.ptr()))
    converted[index] = weft_value_address(object.cast<uint64_t>());
  else if (PyObject_CheckBuffer(object.ptr()))
    addBuffer(object, index);
  else if (PyObject_HasAttr(object.ptr(), tensorNames().dataPtr) &&
           PyObject_HasAttr(object.ptr(), tensorNames().elementSize))
    addTensor(object, index);
  else
    refuse(index, "expected an array, a tensor or an address, but got '" + typeName(object) + "'");
}

void Arguments::addTensor(py::handle tensor, size_t index) {
  const TensorNames &names = tensorNames();
  auto integer = [](const py::object &value) { return static_cast<intptr_t>(PyLong_AsSsize_t(value.ptr())); };
  uintptr_t pointer = PyLong_AsUnsignedLongLong(callMethod(tensor, names.dataPtr).ptr());
  if (attribute(tensor, names.isCuda).ptr() == Py_True) {
    useOnCuda(pointer, static_cast<int>(integer(callMethod(tensor, names.getDevice))), streamNamedBy(tensor), index);
    return;
  }
  if (attribute(tensor, names.isCpu).ptr() != Py_True)
    refuse(index, "expected a tensor on the CPU or a CUDA device, but got one on '" +
                      py::str(attribute(tensor, names.device).attr("type")).cast<std::string>() + "'");
  py::tuple shape = attribute(tensor, names.shape), strides = callMethod(tensor, names.stride);
  intptr_t itemBytes = integer(callMethod(tensor, names.elementSize));
  auto item = [](const py::tuple &sizes, size_t axis) {
    return static_cast<intptr_t>(PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes.ptr(), axis)));
  };
  Span span = spanOf(
      shape.size(), [&](size_t axis) { return item(shape, axis); },
      [&](size_t axis) { return item(strides, axis) * itemBytes; }, itemBytes);
  addHost(pointer, pointer + span.low, pointer + span.high, true, index);
}

void Arguments::useOnCuda(uintptr_t pointer, int where, std::optional<uintptr_t> named, size_t index) {
  if (where != ordinal)
    refuse(index, "expected a tensor on " + std::string(weft_device_name(device)) +
                      ", but got one on cuda:" + std::to_string(where));
  if (!knowsStream && named)
    stream = reinterpret_cast<weft_stream>(*named);
  else if (!knowsStream) {     // the current one, as a number
    static PyObject *current = // for as long as the interpreter lives
        py::object(py::module_::import("torch._C").attr("_cuda_getCurrentRawStream")).release().ptr();
    stream = reinterpret_cast<weft_stream>(py::handle(current)(ordinal).cast<uintptr_t>());
  }
  knowsStream = true;
  converted[index] = weft_value_address(pointer);
}

void Arguments::addArray(const Array &array, size_t index) {
  const weft_tensor &tensor = array.tensor;
  if (array.cudaOrdinal >= 0) {
    useOnCuda(array.pointer, array.cudaOrdinal, array.stream, index);
    return;
  }
  intptr_t itemBytes = elementBytes(tensor.element);
  Span span = spanOf(
      tensor.rank, [&](size_t axis) { return tensor.shape[axis]; },
      [&](size_t axis) { return tensor.strides[axis] * itemBytes; }, itemBytes);
  addHost(array.pointer, array.pointer + span.low, array.pointer + span.high, array.writable, index);
}

void Arguments::addBuffer(py::handle object, size_t index) {
  Py_buffer held;
  getBuffer(object, held, PyBUF_STRIDES);
  Py_buffer &view = buffers.emplace_back(held);
  auto pointer = reinterpret_cast<uintptr_t>(view.buf);
  Span span = spanOf(
      view.ndim, [&](size_t axis) { return view.shape[axis]; }, [&](size_t axis) { return view.strides[axis]; },
      view.itemsize);
  addHost(pointer, pointer + span.low, pointer + span.high, !view.readonly, index);
}

void Arguments::addHost(uintptr_t pointer, uintptr_t begin, uintptr_t end, bool writable, size_t index) {
  converted[index] = weft_value_address(0);
  if (begin == end)
    return; // an array without elements has no memory; no kernel may touch it
  uses.push_back({index, pointer});
  ranges.push_back({begin, end, writable});
}

void Arguments::mergeRanges() {
  std::ranges::sort(ranges, {}, &HostRange::begin);
  size_t kept = 0;
  for (size_t i = 1; i < ranges.size(); ++i) {
    HostRange &last = ranges[kept];
    if (ranges[i].begin < last.end) {
      last.end = std::max(last.end, ranges[i].end);
      last.writable |= ranges[i].writable;
    } else {
      ranges[++kept] = ranges[i];
    }
  }
  if (!ranges.empty())
    ranges.resize(kept + 1);
}

void Arguments::lend() {
  for (HostRange &range : ranges) {
    auto *data = reinterpret_cast<void *>(range.begin);
    size_t bytes = range.end - range.begin;
    if (simulated && range.writable) {
      detail::call(weft_buffer_map, device, data, bytes, &range.address);
    } else {
      detail::call(weft_buffer_alloc, device, bytes, &range.address);
      detail::call(weft_buffer_write, device, range.address, data, bytes, weft_stream(nullptr));
    }
  }
  for (const Use &use : uses) {
    auto range =
        std::ranges::find_if(ranges, [&](const HostRange &r) { return r.begin <= use.pointer && use.pointer < r.end; });
    converted[use.value].as.address = range->address + (use.pointer - range->begin);
  }
}

void Arguments::finish(weft_stream launchedOn) {
  for (const HostRange &range : ranges) {
    if (simulated && range.writable)
      continue;
    std::vector<char> back(range.end - range.begin);
    detail::call(weft_buffer_read, device, back.data(), range.address, back.size(), launchedOn);
    auto *host = reinterpret_cast<char *>(range.begin);
    if (range.writable)
      std::memcpy(host, back.data(), back.size());
    else if (std::memcmp(host, back.data(), back.size()) != 0)
      throw Exception(WEFT_INVALID_ARGUMENT,
                      "expected the kernel to leave a read-only array as it is, but it wrote to it");
  }
}

void Arguments::release() noexcept {
  for (const HostRange &range : ranges)
    if (range.address)
      (simulated && range.writable ? weft_buffer_unmap : weft_buffer_free)(device, range.address, nullptr);
  ranges.clear();
  for (Py_buffer &view : buffers)
    PyBuffer_Release(&view);
  buffers.clear();
}

} // namespace weft::python
