// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Keys of calls: what of a call's arguments a compiled form depends on, as bytes. Two calls with equal keys become the
// same, as long as no variable that the code reads has changed.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace weft::python {

/// Names that are looked up for every tensor, as Python strings made once.
struct TensorNames {
  PyObject *dataPtr, *dtype, *shape, *stride, *getDevice, *device, *isCuda, *isCpu, *isNested, *layout, *isNeg,
      *elementSize, *requiresGrad;
};
const TensorNames &tensorNames();

/// An attribute of an object, or what a method without arguments gives. Throws Python's own errors.
pybind11::object attribute(pybind11::handle object, PyObject *name);
pybind11::object callMethod(pybind11::handle object, PyObject *name);

/// Adds `KernelCalls` to the module.
void bindCallKeys(pybind11::module_ &m);

} // namespace weft::python
