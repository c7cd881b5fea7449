// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A key says of each argument what tells kernels apart and nothing else: of an array its class, its element and whether
// it is aligned; of an integer its range, whether it is 1 and whether 16 divides it; of a constant its value. Where
// something else comes (an object that is compared by what is in it, a tensor that is more than its memory), there is no
// key, and the call goes the long way, which says what is wrong with it.
#include "python/bindings/CallKeys.h"
#include "python/bindings/RuntimeArguments.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <vector>

namespace py = pybind11;

namespace weft::python {

const TensorNames &tensorNames() {
  auto name = PyUnicode_InternFromString;
  static const TensorNames made{// for as long as the interpreter lives
                                name("data_ptr"),     name("dtype"),  name("shape"),   name("stride"),
                                name("get_device"),   name("device"), name("is_cuda"), name("is_cpu"),
                                name("is_nested"),    name("layout"), name("is_neg"),  name("element_size"),
                                name("requires_grad")};
  return made;
}

py::object attribute(py::handle object, PyObject *name) {
  py::object found = py::reinterpret_steal<py::object>(PyObject_GetAttr(object.ptr(), name));
  if (!found)
    throw py::error_already_set();
  return found;
}

py::object callMethod(py::handle object, PyObject *name) {
  py::object result = py::reinterpret_steal<py::object>(PyObject_CallMethodNoArgs(object.ptr(), name));
  if (!result)
    throw py::error_already_set();
  return result;
}

namespace {

/// Classes of arrays, known once their library is loaded. They live as long as the interpreter.
struct Classes {
  PyObject *tensor = nullptr, *parameter = nullptr, *strided = nullptr, *forwardLevel = nullptr, *array = nullptr;
  py::object forward; // torch.autograd.forward_ad's variables

  void find() {
    py::dict modules = py::module_::import("sys").attr("modules");
    if (!tensor && modules.contains("torch.nn")) {
      py::object torch = modules["torch"];
      parameter = py::object(torch.attr("nn").attr("Parameter")).release().ptr();
      strided = py::object(torch.attr("strided")).release().ptr();
      forward = py::module_::import("torch.autograd.forward_ad").attr("__dict__");
      forwardLevel = PyUnicode_InternFromString("_current_level");
      tensor = py::object(torch.attr("Tensor")).release().ptr();
    }
    if (!array && modules.contains("numpy"))
      array = py::object(modules["numpy"].attr("ndarray")).release().ptr();
  }
};

Classes &classes() {
  static auto *made = new Classes; // never destroyed: the interpreter may be gone by then
  return *made;
}

/// A key being made.
class Key {
public:
  Key() { bytes.reserve(256); }

  template <typename T> void add(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes.append(raw, sizeof(T));
  }
  void addText(std::string_view text) {
    add(uint32_t(text.size()));
    bytes.append(text);
  }
  void addVariable(const char *name) {
    const char *value = std::getenv(name);
    add(value ? '=' : '-');
    if (value)
      addText(value);
  }

  /// A constant, by value.
  bool addConstant(py::handle value) {
    if (value.is_none() || PyBool_Check(value.ptr())) {
      add(value.is_none() ? 'N' : value.ptr() == Py_True ? 'T' : 'F');
      return true;
    }
    if (PyLong_CheckExact(value.ptr())) {
      int overflow = 0;
      long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
      add('I');
      add(number);
      return overflow == 0;
    }
    if (PyFloat_CheckExact(value.ptr())) {
      add('R');
      add(PyFloat_AS_DOUBLE(value.ptr()));
      return true;
    }
    if (!PyUnicode_CheckExact(value.ptr()))
      return false;
    Py_ssize_t size = 0;
    const char *text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
    if (!text) {
      PyErr_Clear();
      return false;
    }
    add('S');
    addText({text, size_t(size)});
    return true;
  }

  /// What tells kernels apart of a value that they take when they run.
  bool addArgument(py::handle value) {
    PyObject *kind = reinterpret_cast<PyObject *>(Py_TYPE(value.ptr()));
    if (PyLong_CheckExact(value.ptr()))
      return addInteger(value);
    if (PyFloat_CheckExact(value.ptr()) || PyBool_Check(value.ptr()) || value.is_none()) {
      add(value.is_none() ? 'n' : PyBool_Check(value.ptr()) ? 'b' : 'f');
      return true;
    }
    Classes &known = classes();
    if (kind != known.tensor && kind != known.parameter && kind != known.array)
      known.find();
    if (known.tensor && (kind == known.tensor || kind == known.parameter))
      return addTensor(value);
    return kind == known.array && addArray(value);
  }

  std::string bytes;

private:
  bool addInteger(py::handle value) {
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    bool narrow = number >= INT32_MIN && number <= INT32_MAX;
    add('i');
    add(char((narrow ? 1 : 0) | (number == 1 ? 2 : 0) | (number >= 0 && number % 16 == 0 ? 4 : 0)));
    return overflow == 0;
  }

  bool addTensor(py::handle value) {
    const TensorNames &names = tensorNames();
    Classes &known = classes();
    PyObject *level = PyDict_GetItem(known.forward.ptr(), known.forwardLevel);
    if (!level || PyLong_AsLong(level) >= 0) // tensors may have tangents
      return false;
    bool onCuda = attribute(value, names.isCpu).ptr() != Py_True;
    if ((onCuda && attribute(value, names.isCuda).ptr() != Py_True) ||
        attribute(value, names.layout).ptr() != known.strided || attribute(value, names.isNested).ptr() != Py_False ||
        callMethod(value, names.isNeg).ptr() != Py_False)
      return false;
    add('t');
    add(attribute(value, names.dtype).ptr()); // of torch's own, which live as long as torch
    add(char(PyLong_AsUnsignedLongLong(callMethod(value, names.dataPtr).ptr()) % 16 == 0));
    add(onCuda ? int32_t(PyLong_AsLong(callMethod(value, names.getDevice).ptr())) : int32_t(-1));
    return true;
  }

  bool addArray(py::handle value) {
    Py_buffer view;
    std::optional<int32_t> element;
    try {
      element = getBuffer(value, view, PyBUF_STRIDES | PyBUF_FORMAT);
    } catch (const py::error_already_set &) {
      return false;
    }
    add('a');
    add(element.value_or(-1));
    addText(view.format ? view.format : "B");
    add(char(reinterpret_cast<uintptr_t>(view.buf) % 16 == 0));
    PyBuffer_Release(&view);
    return true;
  }
};

/// Whether variables, those of weft.compiler.reads.Reads, still have their values. `missing` is that of one that is not
/// there.
bool isUnchanged(py::handle globals, py::handle attributes, py::handle missing) {
  for (size_t i = 0; i < size_t(PyList_GET_SIZE(globals.ptr())); ++i) {
    PyObject *each = PyList_GET_ITEM(globals.ptr(), i), *namespaces = PyTuple_GET_ITEM(each, 0);
    if (!PyDict_Check(namespaces))
      return false;
    PyObject *value = PyDict_GetItem(namespaces, PyTuple_GET_ITEM(each, 1));
    if ((value ? value : missing.ptr()) != PyTuple_GET_ITEM(each, 2))
      return false;
  }
  for (size_t i = 0; i < size_t(PyList_GET_SIZE(attributes.ptr())); ++i) {
    PyObject *each = PyList_GET_ITEM(attributes.ptr(), i);
    py::object value =
        py::reinterpret_steal<py::object>(PyObject_GetAttr(PyTuple_GET_ITEM(each, 0), PyTuple_GET_ITEM(each, 1)));
    if (!value)
      PyErr_Clear();
    if ((value ? value.ptr() : missing.ptr()) != PyTuple_GET_ITEM(each, 2))
      return false;
  }
  return true;
}

/// The calls of one kernel that are known. Whoever keeps one says by a number what it means.
class KernelCalls {
public:
  KernelCalls(std::vector<std::pair<std::string, bool>> parameters, py::object missing)
      : parameters(std::move(parameters)), missing(std::move(missing)) {}

  /// Forgets all; what is kept from now on is of `generation`.
  void renew(int64_t next) {
    known.clear();
    generation = next;
  }

  void keep(int64_t of, const py::tuple &args, const py::dict &keywords, int64_t slot, std::vector<int64_t> runtime) {
    std::optional<std::string> key = keyOf(args, keywords);
    if (key && of == generation)
      known[*key] = {slot, std::move(runtime)};
  }

  /// (slot, the values that the kernel is launched with); None for a call that is not known, and where a variable that
  /// was read has changed. `globals` and `attributes` are those of weft.compiler.reads.Reads.
  py::object find(int64_t of, const py::tuple &args, const py::dict &keywords, const py::list &globals,
                  const py::list &attributes) const {
    std::optional<std::string> key = keyOf(args, keywords);
    if (!key || !isUnchanged(globals, attributes, missing) || of != generation)
      return py::none();
    auto found = known.find(*key);
    if (found == known.end())
      return py::none();
    py::tuple values(found->second.runtime.size());
    for (size_t i = 0; i < values.size(); ++i) {
      size_t parameter = found->second.runtime[i];
      PyObject *value = parameter < args.size()
                            ? PyTuple_GET_ITEM(args.ptr(), parameter)
                            : PyDict_GetItemString(keywords.ptr(), parameters[parameter].first.c_str());
      if (!value)
        return py::none(); // by default
      PyTuple_SET_ITEM(values.ptr(), i, Py_NewRef(value));
    }
    return py::make_tuple(found->second.slot, std::move(values));
  }

private:
  struct Kept {
    int64_t slot;
    std::vector<int64_t> runtime; ///< parameters
  };

  std::optional<std::string> keyOf(const py::tuple &args, const py::dict &keywords) const {
    if (args.size() > parameters.size())
      return std::nullopt;
    Key key;
    try {
      key.addVariable("WEFT_DEVICE");
      key.addVariable("WEFT_TARGET");
      for (size_t i = 0; i < args.size(); ++i) {
        py::handle value = PyTuple_GET_ITEM(args.ptr(), i);
        if (!(parameters[i].second ? key.addConstant(value) : key.addArgument(value)))
          return std::nullopt;
      }
      for (auto [name, value] : keywords)
        if (!addNamed(key, name, value))
          return std::nullopt;
    } catch (py::error_already_set &) { // a tensor without memory, say
      return std::nullopt;
    }
    return std::move(key.bytes);
  }

  bool addNamed(Key &key, py::handle name, py::handle value) const {
    Py_ssize_t size = 0;
    const char *text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
    if (!text)
      throw py::error_already_set();
    std::string_view spelled(text, size);
    key.add('=');
    key.addText(spelled);
    for (const auto &[parameter, isConstant] : parameters)
      if (parameter == spelled)
        return isConstant ? key.addConstant(value) : key.addArgument(value);
    return key.addConstant(value); // an option
  }

  std::vector<std::pair<std::string, bool>> parameters; ///< name, and whether it is a constant
  py::object missing;                                   ///< stands for a variable that is not there
  std::unordered_map<std::string, Kept> known;
  int64_t generation = -1;
};

/// What a guard compares: (value, globals, attributes, missing, otherwise).
PyObject *isSame(PyObject *expected, PyObject *found) {
  auto part = [&](Py_ssize_t number) { return PyTuple_GET_ITEM(expected, number); };
  try {
    if (found == part(0) && isUnchanged(part(1), part(2), part(3)))
      Py_RETURN_TRUE;
  } catch (py::error_already_set &failed) {
    failed.restore();
    return nullptr;
  }
  return PyObject_CallOneArg(part(4), found);
}

PyMethodDef isSameDefinition{"is_same", isSame, METH_O, nullptr};

} // namespace

void bindCallKeys(py::module_ &m) {
  py::class_<KernelCalls>(m, "KernelCalls")
      .def(py::init<std::vector<std::pair<std::string, bool>>, py::object>(), py::arg("parameters"), py::arg("missing"))
      .def("renew", &KernelCalls::renew, py::arg("generation"))
      .def("keep", &KernelCalls::keep, py::arg("generation"), py::arg("args"), py::arg("keywords"), py::arg("slot"),
           py::arg("runtime"))
      .def("find", &KernelCalls::find, py::arg("generation"), py::arg("args"), py::arg("keywords"), py::arg("globals"),
           py::arg("attributes"));
  m.def(
      "guard",
      [](py::object value, const py::list &globals, const py::list &attributes, py::object missing,
         py::object otherwise) {
        py::tuple expected = py::make_tuple(value, globals, attributes, missing, otherwise);
        return py::reinterpret_steal<py::object>(PyCFunction_New(&isSameDefinition, expected.ptr()));
      },
      py::arg("value"), py::arg("globals"), py::arg("attributes"), py::arg("missing"), py::arg("otherwise"));
}

} // namespace weft::python
