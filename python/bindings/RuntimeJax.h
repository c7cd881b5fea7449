// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Programs as functions that XLA calls: what of Runtime.cpp's module `weft.jax` needs.
#pragma once

#include <pybind11/pybind11.h>

namespace weft::python {

/// Adds `jax_register`, and the handlers as the capsules `jax_handler_cpu` and `jax_handler_cuda`.
void bindJax(pybind11::module_ &m);

} // namespace weft::python
