// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Grid extents and sizes as a library stores them: integer expressions over a launch's arguments and a variant's
// constants, or over a program's symbols.
//
//   expression := term (('+' | '-') term)*
//   term       := factor (('*' | '/' | '%') factor)*
//   factor     := integer | name | '-' factor | '(' expression ')' | function '(' expression ',' expression ')'
//   function   := 'cdiv' | 'min' | 'max'
//
//   cdiv(N, 64) * H     at N = 100, H = 8:    2 * 8 = 16
//
// Division and remainder truncate towards zero; cdiv rounds up.
#pragma once

#include "runtime/Support/Status.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::library {

/// The number under which the value of a name will be given, or nothing where the name is not known.
using SlotLookup = std::function<std::optional<uint32_t>(std::string_view)>;

/// An expression, parsed once into steps on a small stack, to be evaluated many times.
class Expression {
public:
  Expression() = default;
  /// Parses at most 1,000 characters. InvalidArgument, with the column, on a syntax error or an unknown name.
  static Result<Expression> parse(std::string_view text, const SlotLookup &slotOf);

  /// The value, where the name of slot i is `values[i]`. InvalidArgument, with the column, on a division by zero or an
  /// overflow of 64 bits.
  Result<int64_t> evaluate(std::span<const int64_t> values) const;

  /// As it was spelled.
  const std::string &text() const { return spelling; }
  /// The slot, where the expression is a name and nothing else.
  std::optional<uint32_t> name() const;
  /// The value, where the expression is an integer and nothing else.
  std::optional<int64_t> integer() const;

private:
  friend class ExpressionParser;
  enum class Kind : uint8_t { Integer, Name, Add, Subtract, Multiply, Divide, Remainder, CeilDivide, Min, Max };
  struct Step {
    Kind kind;
    uint32_t column; ///< for messages
    int64_t operand; ///< the integer, or the name's slot
  };
  std::string spelling;
  std::vector<Step> steps;
};

/// Gives the value of a name, or nothing where the name is not known.
using NameLookup = std::function<std::optional<int64_t>(std::string_view)>;

/// Parses and evaluates at once, with the errors of both.
Result<int64_t> evaluateGrid(std::string_view expression, const NameLookup &lookup);

/// Checks syntax and names without values.
Status checkGrid(std::string_view expression, const std::function<bool(std::string_view)> &known);

} // namespace weft::library
