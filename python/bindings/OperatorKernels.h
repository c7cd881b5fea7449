// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What torch's dispatcher calls for a program's operator, without Python in between once the program is known.
#pragma once

#include <pybind11/pybind11.h>

namespace weft::python {

/// Adds `OperatorKernel` and `forget_operators` to the module.
void bindOperatorKernels(pybind11::module_ &m);

} // namespace weft::python
