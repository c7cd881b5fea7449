// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Patterns evaluated on the host, over NumPy arrays.

#include "python/bindings/Compiler.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <array>
#include <vector>

namespace py = pybind11;
using namespace weft::python;

namespace {

using Integers = py::array_t<int32_t, py::array::c_style | py::array::forcecast>;
using Truths = py::array_t<uint8_t, py::array::c_style | py::array::forcecast>;
using Sizes = std::array<int64_t, 4>; // batches, heads, queries, keys

/// The C interface's view of arrays, and what keeps them alive.
struct Instance {
  Instance(const char *pattern, const Sizes &sizes, const std::vector<Integers> &operands,
           const std::vector<Truths> &masks) {
    for (int64_t size : sizes)
      if (size < 0)
        throw py::value_error("expected sizes of at least 0");
    shapes.reserve(operands.size());
    for (const Integers &operand : operands) {
      shapes.emplace_back(operand.shape(), operand.shape() + operand.ndim());
      views.push_back({operand.data(), shapes.back().data(), shapes.back().size()});
    }
    for (const Truths &mask : masks) {
      if (mask.size() != sizes[0] * sizes[1] * sizes[2] * sizes[3])
        throw py::value_error("expected a mask of every pair");
      maskData.push_back(mask.data());
    }
    instance = {pattern,      sizes[0],     sizes[1],        sizes[2],       sizes[3],
                views.data(), views.size(), maskData.data(), maskData.size()};
  }

  weftc_pattern_instance instance;

private:
  std::vector<std::vector<int64_t>> shapes;
  std::vector<weftc_pattern_operand> views;
  std::vector<const uint8_t *> maskData;
};

void check(weftc_status status, char *error) {
  std::string message = take(error).cast<std::string>();
  if (status != WEFTC_OK)
    throw py::value_error(message);
}

} // namespace

void weft::python::bindPatterns(py::module_ &m) {
  m.def("pattern_matrix", [](Context &context, const char *pattern, const Sizes &sizes,
                             const std::vector<Integers> &operands, const std::vector<Truths> &masks) {
    Instance instance(pattern, sizes, operands, masks);
    py::array_t<uint8_t> matrix(std::vector<py::ssize_t>(sizes.begin(), sizes.end()));
    char *error = nullptr;
    check(weftc_pattern_matrix(context.pointer.get(), &instance.instance, matrix.mutable_data(), &error), error);
    return matrix;
  });
  m.def("pattern_summary", [](Context &context, const char *pattern, const Sizes &sizes, int64_t rows, int64_t columns,
                              const std::vector<Integers> &operands, const std::vector<Truths> &masks) {
    if (rows < 1 || columns < 1)
      throw py::value_error("expected blocks of at least 1");
    Instance instance(pattern, sizes, operands, masks);
    py::array_t<uint8_t> summary(
        std::vector<py::ssize_t>{sizes[0], sizes[1], (sizes[2] + rows - 1) / rows, (sizes[3] + columns - 1) / columns});
    char *error = nullptr;
    check(
        weftc_pattern_summary(context.pointer.get(), &instance.instance, rows, columns, summary.mutable_data(), &error),
        error);
    return summary;
  });
}
