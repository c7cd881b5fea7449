// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The tensors that a program is called with, and what their shapes say.
#pragma once

#include "runtime/Driver/Driver.h"
#include "runtime/Library/Program.h"

#include <array>
#include <span>

namespace weft::launch {

/// A tensor in a device's memory. The C interface's `weft_tensor`.
struct Tensor {
  driver::Address address = 0;
  library::Element element = library::Element::FP32;
  int32_t rank = 0;
  std::array<int64_t, library::maxRank> shape{}, strides{}; ///< strides in elements
};

/// "64*R = 128", or the integer alone where the expression is one.
std::string equation(const library::Expression &expression, int64_t value);

/// Fresh and contiguous, of these sizes, at address 0.
Result<Tensor> contiguousTensor(const library::TensorType &type, std::span<const int64_t> symbols);

/// Bytes that a contiguous tensor of this shape takes.
uint64_t bytesOf(const Tensor &tensor);
/// Whether a tensor has no element.
bool isEmpty(const Tensor &tensor);

/// Checks the inputs of a program and gives the values of its symbols, by slot. Each symbol is bound by the first input
/// that has it as a size, and every other size is checked. InvalidArgument names the argument, what was expected and
/// what came: another element or rank, a size that does not fit, a last axis whose stride is not 1, memory that is not
/// as aligned as promised, rows that lie 2^31 elements apart (kernels count rows in 32 bits). With `shapesOnly` neither
/// addresses nor strides are looked at.
Result<std::vector<int64_t>> bindSymbols(const library::Program &program, std::span<const Tensor> inputs,
                                         bool shapesOnly);

/// Checks an output that the caller has allocated against what it must be; besides what is asked of inputs, its
/// elements must not overlap each other.
Status checkOutput(const library::NamedTensor &declared, const Tensor &expected, const Tensor &given);

/// Bytes of a device's memory, from the first to behind the last.
struct Span {
  driver::Address begin = 0, end = 0;
  bool meets(const Span &other) const { return begin < other.end && other.begin < end; }
};
/// From a tensor's lowest element to behind its highest; of an empty one nothing.
Span spanOf(const Tensor &tensor);
/// Whether two tensors certainly share memory: both begin at one place, or their spans meet and hold nothing else than
/// their elements. Of slices that lie between each other's rows nothing is known.
bool overlap(const Tensor &left, const Tensor &right);

/// A tensor as runs of contiguous bytes: how many, how long, and where each begins.
struct ByteRuns {
  uint64_t count = 1, bytes = 0;
  std::vector<std::pair<uint64_t, int64_t>> axes; ///< extents and strides in bytes of what is outside a run
};
ByteRuns runsOf(const Tensor &tensor);

/// Fills every element with zero bytes, in the order of `stream`.
Status zero(driver::Device &device, const Tensor &tensor, driver::StreamHandle stream);

} // namespace weft::launch
