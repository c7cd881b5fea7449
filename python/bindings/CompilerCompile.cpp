// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Module.compile: from tile IR to PTX, without holding Python's lock.

#include "python/bindings/Compiler.h"

namespace py = pybind11;
using namespace weft::python;

/// (ptx, info as JSON text, None) on success, (None, None, what failed) otherwise; the context's diagnostics say where.
static py::tuple compile(Module &module, const std::string &options) {
  char *ptx = nullptr, *info = nullptr, *error = nullptr;
  weftc_status status;
  {
    py::gil_scoped_release unlocked;
    status = weftc_compile(module.pointer.get(), options.c_str(), &ptx, &info, &error);
  }
  if (status == WEFTC_OK)
    return py::make_tuple(take(ptx), take(info), py::none());
  return py::make_tuple(py::none(), py::none(), take(error));
}

void weft::python::bindCompile(py::class_<Module> &module) { module.def("compile", &compile); }
