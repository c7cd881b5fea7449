// Part of Weft. SPDX-License-Identifier: Apache-2.0
// std::format for a standard library that has none yet (libstdc++ 12): the same format strings, checked when compiled,
// by {fmt}, whose weight stays in Format.cpp.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace weft {

/// What `format` calls once its arguments have lost their types.
std::string formatArguments(fmt::string_view text, fmt::format_args arguments);

/// `text` with each "{}" replaced by an argument. Call it as `weft::format`, so that a later std::format is no rival.
template <typename... Arguments> std::string format(fmt::format_string<Arguments...> text, Arguments &&...arguments) {
  return formatArguments(text, fmt::make_format_args(arguments...));
}

} // namespace weft
