// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Programs for Python: what of Runtime.cpp's module concerns them.
#pragma once

#include "runtime/CAPI/weft.hpp"

#include <pybind11/pybind11.h>

#include <memory>

namespace weft::python {

/// A device and what a launch asks of it each time.
struct Device {
  weft::Device device;
  bool simulated;
  int cudaOrdinal; ///< -1 on the simulator

  explicit Device(const std::string &name);
};

/// Adds `Program` and `Call` to the module.
void bindPrograms(pybind11::module_ &m);

} // namespace weft::python
