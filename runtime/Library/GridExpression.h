// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Grid extents as a library stores them: integer expressions over a launch's arguments and a variant's constants.
//
//   expression := term (('+' | '-') term)*        term := factor (('*' | '/' | '%') factor)*
//   factor := integer | name | '-' factor | '(' expression ')' | ('cdiv' | 'min' | 'max') '(' expression ',' expression
//   ')'
//
// Division and remainder truncate towards zero; cdiv rounds up.
#pragma once

#include "runtime/Support/Status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace weft::library {

/// Gives the value of a name, or nothing where the name is not known.
using NameLookup = std::function<std::optional<int64_t>(std::string_view)>;

/// Evaluates an expression of at most 1,000 characters. InvalidArgument, with the column, on a syntax error, an unknown
/// name, a division by zero or an overflow of 64 bits.
Result<int64_t> evaluateGrid(std::string_view expression, const NameLookup &lookup);

/// Checks syntax and names without values: succeeds exactly where some values of the names could.
Status checkGrid(std::string_view expression, const std::function<bool(std::string_view)> &known);

} // namespace weft::library
