// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Launch/Tensors.h"

#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::launch {
namespace {

using library::NamedTensor;
using library::Program;

constexpr int64_t unbound = -1;
constexpr int64_t maxRowReach = int64_t(1) << 31;
/// More than any device's memory holds, and far from where sums of products of these would overflow.
constexpr int64_t maxElements = int64_t(1) << 48;

std::unexpected<Error> refuse(std::string_view role, const NamedTensor &tensor, const std::string &why) {
  return failure(StatusCode::InvalidArgument, weft::format("{} '{}': {}", role, tensor.name, why));
}

std::string shapeText(const Tensor &tensor) {
  std::string text = "[";
  for (int32_t i = 0; i < tensor.rank; ++i)
    text += weft::format("{}{}", i ? ", " : "", tensor.shape[i]);
  return text + "]";
}

std::string dimsText(const library::TensorType &type) {
  std::string text = "[";
  for (size_t i = 0; i < type.dims.size(); ++i)
    text += (i ? ", " : "") + type.dims[i].text();
  return text + "]";
}

/// Element, rank and the range of sizes.
Status checkKind(std::string_view role, const NamedTensor &declared, const Tensor &given) {
  if (given.element != declared.type.element)
    return refuse(role, declared,
                  weft::format("expected elements of {}, but got {}: convert it, or compile the program for that",
                               library::elementName(declared.type.element), library::elementName(given.element)));
  if (given.rank < 0 || static_cast<size_t>(given.rank) > library::maxRank ||
      static_cast<size_t>(given.rank) != declared.type.dims.size())
    return refuse(
        role, declared,
        weft::format(
            "expected {} axes, {}, but got {}{}", declared.type.dims.size(), dimsText(declared.type), given.rank,
            0 <= given.rank && static_cast<size_t>(given.rank) <= library::maxRank ? ": " + shapeText(given) : ""));
  for (int32_t axis = 0; axis < given.rank; ++axis)
    if (given.shape[axis] < 0 || given.shape[axis] > INT32_MAX)
      return refuse(
          role, declared,
          weft::format("expected sizes of 0 to {}, but got {} on axis {}", INT32_MAX, given.shape[axis], axis));
  return {};
}

/// Address and strides.
Status checkMemory(std::string_view role, const NamedTensor &declared, const Tensor &given) {
  if (isEmpty(given))
    return {};
  uint32_t width = library::elementBytes(given.element), alignment = declared.aligned ? 16 : width;
  if (given.address == 0)
    return refuse(role, declared, "expected an address, but got 0");
  if (given.address % alignment)
    return refuse(role, declared,
                  weft::format("expected an address that is a multiple of {} bytes, but got {:#x}: pass a copy of it",
                               alignment, given.address));
  int32_t last = given.rank - 1;
  for (int32_t axis = 0; axis <= last; ++axis) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(given.shape[axis] - 1, given.strides[axis], &reach) || reach > maxElements ||
        reach < -maxElements)
      return refuse(
          role, declared,
          weft::format("expected an axis to reach over at most 2^48 elements, but the stride of axis {} is {}", axis,
                       given.strides[axis]));
  }
  if (given.rank && given.shape[last] > 1 && given.strides[last] != 1)
    return refuse(
        role, declared,
        weft::format("expected the last axis to be contiguous, but its stride is {} elements: pass a contiguous "
                     "copy of it",
                     given.strides[last]));
  for (int32_t axis = 0; axis < last && declared.aligned; ++axis)
    if (given.shape[axis] > 1 && given.strides[axis] * width % 16)
      return refuse(
          role, declared,
          weft::format("expected strides that are multiples of 16 bytes, but that of axis {} is {} bytes: pass a "
                       "copy of it that is padded, or compile the program for memory that is not aligned",
                       axis, given.strides[axis] * width));
  // An element's place is its row's and its column together.
  int64_t reach = given.rank > 1 ? (given.shape[last - 1] - 1) * given.strides[last - 1] : 0;
  if (given.rank > 1 && (reach + given.shape[last] > maxRowReach || reach <= -maxRowReach))
    return refuse(
        role, declared,
        weft::format("expected the {} rows of axis {} to lie within 2^31 elements, but their stride is {}: pass "
                     "a contiguous copy of it",
                     given.shape[last - 1], last - 1, given.strides[last - 1]));
  return {};
}

/// The first input that has a size by this name, and nothing else, for an axis: the one that binds it.
const NamedTensor &binderOf(const Program &program, uint32_t slot) {
  return *std::ranges::find_if(program.inputs, [&](const NamedTensor &input) {
    return std::ranges::any_of(input.type.dims, [&](const library::Expression &dim) { return dim.name() == slot; });
  });
}

/// Binds the sizes that are names, the first time each is met.
Status bindNames(const Program &program, size_t input, const Tensor &given, std::vector<int64_t> &symbols) {
  const NamedTensor &declared = program.inputs[input];
  for (int32_t axis = 0; axis < given.rank; ++axis) {
    std::optional<uint32_t> slot = declared.type.dims[axis].name();
    if (!slot)
      continue;
    if (symbols[*slot] == unbound)
      symbols[*slot] = given.shape[axis];
    else if (symbols[*slot] != given.shape[axis])
      return refuse("argument", declared,
                    weft::format("expected size {} = {} on axis {}, as in '{}', but got {}", program.symbols[*slot],
                                 symbols[*slot], axis, binderOf(program, *slot).name, given.shape[axis]));
  }
  return {};
}

/// Checks the sizes that are integers or computed.
Status checkComputed(const Program &program, size_t input, const Tensor &given, std::span<const int64_t> symbols) {
  const NamedTensor &declared = program.inputs[input];
  for (int32_t axis = 0; axis < given.rank; ++axis) {
    const library::Expression &dim = declared.type.dims[axis];
    if (dim.name())
      continue;
    Result<int64_t> size = dim.evaluate(symbols);
    if (!size)
      return refuse("argument", declared, size.error().message);
    if (*size != given.shape[axis])
      return refuse(
          "argument", declared,
          weft::format("expected size {} on axis {}, but got {}", equation(dim, *size), axis, given.shape[axis]));
  }
  return {};
}

/// Checks what the program asks of sizes beside that they are those of its types.
Status checkRequired(const Program &program, std::span<const int64_t> symbols) {
  for (const library::Requirement &required : program.required) {
    Result<int64_t> size = required.size.evaluate(symbols), least = required.atLeast.evaluate(symbols);
    if (!size || !least)
      return std::unexpected((size ? least : size).error());
    if (*size < *least)
      return failure(StatusCode::InvalidArgument,
                     weft::format("expected {}, but got {} for {}", required.what, equation(required.size, *size),
                                  equation(required.atLeast, *least)));
  }
  return {};
}

/// The axes with more than one element, those of the smallest stride first.
std::vector<std::pair<int64_t, int64_t>> sortedAxes(const Tensor &tensor) {
  std::vector<std::pair<int64_t, int64_t>> axes; // stride, extent
  for (int32_t axis = 0; axis < tensor.rank; ++axis)
    if (tensor.shape[axis] > 1)
      axes.emplace_back(std::abs(tensor.strides[axis]), tensor.shape[axis]);
  std::ranges::sort(axes);
  return axes;
}

} // namespace

std::string equation(const library::Expression &expression, int64_t value) {
  return expression.integer() ? expression.text() : weft::format("{} = {}", expression.text(), value);
}

Result<Tensor> contiguousTensor(const library::TensorType &type, std::span<const int64_t> symbols) {
  Tensor tensor;
  tensor.element = type.element;
  tensor.rank = static_cast<int32_t>(type.dims.size());
  int64_t elements = 1;
  for (int32_t axis = tensor.rank; axis--;) {
    Result<int64_t> size = type.dims[axis].evaluate(symbols);
    if (!size)
      return std::unexpected(size.error());
    if (*size < 0 || *size > INT32_MAX)
      return failure(StatusCode::InvalidArgument,
                     weft::format("expected sizes of 0 to {}, but {} is {}", INT32_MAX, type.dims[axis].text(), *size));
    tensor.shape[axis] = *size;
    tensor.strides[axis] = elements;
    if (__builtin_mul_overflow(elements, std::max<int64_t>(*size, 1), &elements) || elements > maxElements)
      return failure(StatusCode::InvalidArgument,
                     weft::format("a tensor of {} has more elements than memory could hold", dimsText(type)));
  }
  return tensor;
}

uint64_t bytesOf(const Tensor &tensor) {
  uint64_t bytes = library::elementBytes(tensor.element);
  for (int32_t axis = 0; axis < tensor.rank; ++axis)
    bytes *= tensor.shape[axis];
  return bytes;
}

bool isEmpty(const Tensor &tensor) {
  return std::any_of(tensor.shape.begin(), tensor.shape.begin() + tensor.rank, [](int64_t size) { return size == 0; });
}

Result<std::vector<int64_t>> bindSymbols(const Program &program, std::span<const Tensor> inputs, bool shapesOnly) {
  if (inputs.size() != program.inputs.size()) {
    std::string names;
    for (const NamedTensor &input : program.inputs)
      names += (names.empty() ? "" : ", ") + input.name;
    return failure(StatusCode::InvalidArgument,
                   weft::format("expected {} arguments ({}), but got {}", program.inputs.size(), names, inputs.size()));
  }
  std::vector<int64_t> symbols(program.symbols.size(), unbound);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Status status = checkKind("argument", program.inputs[i], inputs[i]);
    if (status)
      status = bindNames(program, i, inputs[i], symbols);
    if (status && !shapesOnly)
      status = checkMemory("argument", program.inputs[i], inputs[i]);
    if (!status)
      return std::unexpected(status.error());
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (Status status = checkComputed(program, i, inputs[i], symbols); !status)
      return std::unexpected(status.error());
  if (Status status = checkRequired(program, symbols); !status)
    return std::unexpected(status.error());
  return symbols;
}

Status checkOutput(const NamedTensor &declared, const Tensor &expected, const Tensor &given) {
  if (Status status = checkKind("output", declared, given); !status)
    return status;
  if (!std::equal(given.shape.begin(), given.shape.begin() + given.rank, expected.shape.begin()))
    return refuse("output", declared,
                  weft::format("expected shape {}, but got {}", shapeText(expected), shapeText(given)));
  if (Status status = checkMemory("output", declared, given); !status)
    return status;
  if (isEmpty(given))
    return {};
  int64_t span = 0, reach = 1; // elements that the axes so far span
  for (auto [stride, extent] : sortedAxes(given)) {
    if (stride < reach)
      return refuse(
          "output", declared,
          weft::format("expected elements that do not overlap, but axis sizes {} have a stride of {} elements: "
                       "give a tensor of its own",
                       shapeText(given), stride));
    if (__builtin_mul_overflow(stride, extent - 1, &span) || __builtin_add_overflow(reach, span, &reach))
      return refuse("output", declared, "expected elements that memory could hold");
  }
  return {};
}

Span spanOf(const Tensor &tensor) {
  if (isEmpty(tensor))
    return {tensor.address, tensor.address};
  int64_t width = library::elementBytes(tensor.element), below = 0, above = width;
  for (int32_t axis = 0; axis < tensor.rank; ++axis) {
    int64_t reach = (tensor.shape[axis] - 1) * tensor.strides[axis] * width;
    (reach < 0 ? below : above) += reach;
  }
  return {tensor.address + below, tensor.address + above};
}

/// Whether a tensor has as many elements as its span holds. Axes of stride 0 repeat them.
static bool isDense(const Tensor &tensor, const Span &span) {
  uint64_t bytes = library::elementBytes(tensor.element);
  for (int32_t axis = 0; axis < tensor.rank; ++axis)
    bytes *= tensor.strides[axis] ? tensor.shape[axis] : 1;
  return bytes == span.end - span.begin;
}

bool overlap(const Tensor &left, const Tensor &right) {
  Span one = spanOf(left), other = spanOf(right);
  if (!one.meets(other))
    return false;
  return left.address == right.address || (isDense(left, one) && isDense(right, other));
}

ByteRuns runsOf(const Tensor &tensor) {
  ByteRuns runs;
  int64_t width = library::elementBytes(tensor.element);
  runs.bytes = width;
  for (auto [stride, extent] : sortedAxes(tensor)) {
    if (runs.axes.empty() && static_cast<uint64_t>(stride * width) == runs.bytes) {
      runs.bytes *= extent;
    } else {
      runs.axes.emplace_back(extent, stride * width);
      runs.count *= extent;
    }
  }
  return runs;
}

Status zero(driver::Device &device, const Tensor &tensor, driver::StreamHandle stream) {
  if (isEmpty(tensor))
    return {};
  ByteRuns runs = runsOf(tensor);
  driver::Address lowest = spanOf(tensor).begin; // where strides are negative, below the address
  for (uint64_t run = 0; run < runs.count; ++run) {
    uint64_t rest = run;
    driver::Address at = lowest;
    for (auto [extent, stride] : runs.axes) {
      at += rest % extent * stride;
      rest /= extent;
    }
    if (Status status = device.fill(at, 0, runs.bytes, stream); !status)
      return status;
  }
  return {};
}

} // namespace weft::launch
