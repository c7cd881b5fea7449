// Part of Weft. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

namespace weft::python {

/// Bytes as a Python string. What is no UTF-8, as in a message that quotes a damaged file, is replaced, not refused: an
/// error must reach the user whatever it is about.
inline pybind11::str text(std::string_view bytes) {
  return pybind11::reinterpret_steal<pybind11::str>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

} // namespace weft::python
