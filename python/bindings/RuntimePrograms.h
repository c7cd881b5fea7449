// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Programs for Python: what of Runtime.cpp's module concerns them.
#pragma once

#include "runtime/CAPI/weft.hpp"

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>

namespace weft::python {

/// A device and what a launch asks of it each time.
struct Device {
  weft::Device device;
  bool simulated;
  int cudaOrdinal; ///< -1 on the simulator

  explicit Device(const std::string &name);
};

/// Runs a program on a tuple of torch tensors that kernels take as they are and that are on one CUDA device, or on none,
/// and gives the outputs; None for others.
using Runner = std::function<pybind11::object(const pybind11::tuple &)>;
/// That of a `Program`, which it keeps; -1 for no CUDA device.
Runner runnerOf(pybind11::handle program, int ordinal);

/// Adds `Program` and `Call` to the module.
void bindPrograms(pybind11::module_ &m);

} // namespace weft::python
