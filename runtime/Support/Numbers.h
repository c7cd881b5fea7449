// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Numbers that are all of a text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace weft {

/// The decimal integer that a text is; none where it is anything else or out of the type's range.
template <typename T> std::optional<T> numberOf(std::string_view text) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(value)
                                                                                   : std::nullopt;
}

} // namespace weft
