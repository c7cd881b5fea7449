// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Launch/Starts.h"

#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::launch {
namespace {

/// "[0, 20, 7, ...]", the first eight.
std::string spelled(std::span<const int32_t> numbers) {
  constexpr size_t shown = 8;
  std::string text = "[";
  for (size_t i = 0; i < std::min(numbers.size(), shown); ++i)
    text += weft::format("{}{}", i ? ", " : "", numbers[i]);
  return text + (numbers.size() > shown ? ", ...]" : "]");
}

/// The numbers of a tensor of one axis, which is contiguous.
Result<std::vector<int32_t>> numbersOf(const Tensor &tensor, driver::Device &device, driver::StreamHandle stream) {
  std::vector<int32_t> numbers(static_cast<size_t>(tensor.shape[0]));
  if (!numbers.empty())
    if (Status status = device.copyOut(std::as_writable_bytes(std::span(numbers)), tensor.address, stream); !status)
      return std::unexpected(status.error());
  return numbers;
}

/// Whether numbers rise from 0 to `tokens`; two that are equal are a sequence without any.
bool rises(std::span<const int32_t> numbers, int64_t tokens) {
  return !numbers.empty() && numbers.front() == 0 && numbers.back() == tokens && std::ranges::is_sorted(numbers);
}

} // namespace

Status checkStarts(const library::Program &program, std::span<const Tensor> inputs, std::span<const int64_t> symbols,
                   driver::Device &device, driver::StreamHandle stream) {
  if (!device.properties().simulated)
    return {};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const library::NamedTensor &declared = program.inputs[i];
    if (declared.starts.empty())
      continue;
    Result<std::vector<int32_t>> numbers = numbersOf(inputs[i], device, stream);
    if (!numbers)
      return std::unexpected(numbers.error());
    for (const library::Expression &each : declared.starts) {
      Result<int64_t> tokens = each.evaluate(symbols);
      if (!tokens)
        return std::unexpected(tokens.error());
      if (!rises(*numbers, *tokens))
        return failure(StatusCode::InvalidArgument,
                       weft::format("argument '{}': expected numbers that rise from 0 to the number of tokens, {}, but "
                                    "got {}: give the token at which each sequence starts, and the end of the last",
                                    declared.name, equation(each, *tokens), spelled(*numbers)));
    }
  }
  return {};
}

} // namespace weft::launch
