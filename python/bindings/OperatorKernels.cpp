// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A call of an operator goes through torch's dispatcher: first to the kernel for autograd, from there to that of the
// device. Both are functions of Python's, which find and run the program; once they have said which one it is, calls of
// plain tensors run it from here:
//
//   torch's dispatcher ─▶ differentiable(keys, x, y) ─ x or y requires a gradient, or a mode is on ─▶ Python's
//                                    │ no
//                                    ▼
//   torch's dispatcher ─▶          plain(x, y) ─── a device that is not known, a profiler is on ────▶ Python's
//                                    │ no
//                                    ▼
//                          the program runs; its outputs
#include "python/bindings/OperatorKernels.h"
#include "python/bindings/CallKeys.h"
#include "python/bindings/RuntimePrograms.h"

#include <cstdlib>
#include <string>
#include <vector>

namespace py = pybind11;

namespace weft::python {
namespace {

/// A number that another follows when what a call becomes may have changed: schedules were chosen.
int64_t generation = 0;

/// Questions to torch, as its functions of C.
struct TorchState {
  py::object profiles = py::module_::import("torch").attr("autograd").attr("_profiler_enabled");
  py::object differentiates = py::module_::import("torch").attr("is_grad_enabled");
  PyObject *bits = PyUnicode_InternFromString("raw_repr");

  static const TorchState &loaded() {
    static auto *made = new TorchState; // never destroyed: the interpreter may be gone by then
    return *made;
  }
};

bool isTrue(const py::object &question) {
  py::object answer = py::reinterpret_steal<py::object>(PyObject_CallNoArgs(question.ptr()));
  if (!answer)
    throw py::error_already_set();
  return answer.ptr() == Py_True;
}

std::string wantedDevice() {
  const char *wanted = std::getenv("WEFT_DEVICE");
  return wanted ? wanted : "";
}

/// A function of Python's that ends in C++, where failures are Python's exceptions.
template <py::object (*body)(PyObject *, PyObject *)> PyObject *guarded(PyObject *self, PyObject *arguments) {
  try {
    return body(self, arguments).release().ptr();
  } catch (py::error_already_set &failed) {
    failed.restore();
  } catch (...) {
    py::detail::try_translate_exceptions();
  }
  return nullptr;
}

class OperatorKernel {
public:
  explicit OperatorKernel(py::object python) : python(std::move(python)) {}

  /// Calls on tensors of this CUDA device, or on none, run the program until forgetOperators.
  void learn(py::handle program, int ordinal) {
    if (since != generation)
      known.clear();
    since = generation;
    std::string wanted = wantedDevice();
    std::erase_if(known, [&](const auto &each) { return each->ordinal == ordinal && each->wanted == wanted; });
    known.push_back(std::make_shared<Known>(ordinal, std::move(wanted), runnerOf(program, ordinal)));
  }

  /// The outputs: one tensor, or a tuple.
  py::object run(const py::tuple &tensors) const {
    if (known.empty() || since != generation || isTrue(TorchState::loaded().profiles))
      return called(python, tensors);
    const char *wanted = std::getenv("WEFT_DEVICE");
    for (size_t i = 0; i < known.size(); ++i) {
      std::shared_ptr<const Known> each = known[i]; // other threads may forget it while it runs
      if (each->wanted != (wanted ? wanted : ""))
        continue;
      py::object outputs = each->run(tensors);
      if (outputs.is_none())
        continue;
      bool one = PyTuple_GET_SIZE(outputs.ptr()) == 1;
      return one ? py::reinterpret_borrow<py::object>(PyTuple_GET_ITEM(outputs.ptr(), 0)) : outputs;
    }
    return called(python, tensors);
  }

  static py::object called(const py::object &function, const py::tuple &arguments) {
    py::object found = py::reinterpret_steal<py::object>(PyObject_CallObject(function.ptr(), arguments.ptr()));
    if (!found)
      throw py::error_already_set();
    return found;
  }

private:
  struct Known {
    int ordinal;
    std::string wanted; ///< WEFT_DEVICE
    Runner run;
  };

  py::object python;
  std::vector<std::shared_ptr<const Known>> known;
  int64_t since = -1;
};

/// The kernel for autograd, which is called with the call's dispatch keys before the tensors.
struct Differentiable {
  py::object python, isPlain;
  std::shared_ptr<OperatorKernel> kernel;
  std::vector<std::pair<uint64_t, bool>> keys = {}; ///< whether what these lead to is the kernel, by `isPlain`

  /// Whether nothing is left to torch between here and the kernel.
  bool leadsToKernel(py::handle given) {
    uint64_t bits = PyLong_AsUnsignedLongLong(callMethod(given, TorchState::loaded().bits).ptr());
    for (auto [known, plain] : keys)
      if (known == bits)
        return plain;
    keys.emplace_back(bits, isPlain(given).cast<bool>());
    return keys.back().second;
  }

  py::object run(const py::tuple &arguments) {
    py::handle given = PyTuple_GET_ITEM(arguments.ptr(), 0);
    py::object tensors = py::reinterpret_steal<py::object>(PyTuple_GetSlice(arguments.ptr(), 1, PY_SSIZE_T_MAX));
    if (leadsToKernel(given) && !requiresGradients(tensors))
      return kernel->run(tensors);
    return OperatorKernel::called(python, arguments);
  }

  static bool requiresGradients(py::handle tensors) {
    for (py::handle tensor : py::reinterpret_borrow<py::tuple>(tensors))
      if (attribute(tensor, tensorNames().requiresGrad).ptr() == Py_True)
        return isTrue(TorchState::loaded().differentiates);
    return false;
  }
};

/// What a function of C is made with, which it keeps.
template <typename T> T &heldBy(PyObject *capsule) { return *static_cast<T *>(PyCapsule_GetPointer(capsule, nullptr)); }
template <typename T> py::object function(PyMethodDef &definition, T held) {
  py::capsule capsule(new T(std::move(held)), [](void *made) { delete static_cast<T *>(made); });
  return py::reinterpret_steal<py::object>(PyCFunction_New(&definition, capsule.ptr()));
}

py::object runPlain(PyObject *self, PyObject *tensors) {
  return heldBy<std::shared_ptr<OperatorKernel>>(self)->run(py::reinterpret_borrow<py::tuple>(tensors));
}
py::object runDifferentiable(PyObject *self, PyObject *arguments) {
  return heldBy<Differentiable>(self).run(py::reinterpret_borrow<py::tuple>(arguments));
}

PyMethodDef plainDefinition{"plain", guarded<runPlain>, METH_VARARGS, nullptr};
PyMethodDef differentiableDefinition{"differentiable", guarded<runDifferentiable>, METH_VARARGS, nullptr};

} // namespace

void bindOperatorKernels(py::module_ &m) {
  py::class_<OperatorKernel, std::shared_ptr<OperatorKernel>>(m, "OperatorKernel")
      .def(py::init<py::object>(), py::arg("python"))
      .def("learn", &OperatorKernel::learn, py::arg("program"), py::arg("ordinal"))
      .def_property_readonly(
          "plain", [](const std::shared_ptr<OperatorKernel> &self) { return function(plainDefinition, self); })
      .def(
          "differentiable",
          [](const std::shared_ptr<OperatorKernel> &self, py::object python, py::object isPlain) {
            return function(differentiableDefinition, Differentiable{std::move(python), std::move(isPlain), self});
          },
          py::arg("python"), py::arg("is_plain"));
  m.def("forget_operators", [] { ++generation; });
}

} // namespace weft::python
