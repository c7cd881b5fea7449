// Part of Weft. SPDX-License-Identifier: Apache-2.0
// {fmt}'s implementation is compiled here and nowhere else.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

#include "runtime/Support/Format.h"

std::string weft::formatArguments(fmt::string_view text, fmt::format_args arguments) {
  return fmt::vformat(text, arguments);
}
