// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The Python classes of the `_compiler` module: the handles of weft-compiler.h, with owners for those that need
// destroying.
#pragma once

#include "compiler/CAPI/weft-compiler.h"

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

namespace weft::python {

/// A handle of the C interface as a class of its own, so that Python cannot pass one kind for another.
template <typename Pointer> struct Handle {
  Pointer pointer;
};
using Type = Handle<weftc_type>;
using Attribute = Handle<weftc_attribute>;
using Location = Handle<weftc_location>;
using Value = Handle<weftc_value>;
using Block = Handle<weftc_block>;
using Region = Handle<weftc_region *>;

struct Context {
  std::unique_ptr<weftc_context, decltype(&weftc_context_destroy)> pointer{weftc_context_create(),
                                                                           &weftc_context_destroy};
};

/// A module; Python keeps its context alive as long as it.
struct Module {
  Context *context;
  std::unique_ptr<weftc_module, decltype(&weftc_module_destroy)> pointer;
};

/// A text of the C interface as a Python string; frees it.
pybind11::str take(char *text);

/// The context's diagnostics since the last call, as a list of (severity, message, file, line, column).
pybind11::list takeDiagnostics(Context &context);

/// Adds pattern_matrix and pattern_summary.
void bindPatterns(pybind11::module_ &m);

/// Adds Module.compile.
void bindCompile(pybind11::class_<Module> &module);

} // namespace weft::python
