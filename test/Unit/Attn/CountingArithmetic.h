// Part of Weft. SPDX-License-Identifier: Apache-2.0
// An arithmetic backend as one that emits code is: only what follows from constants is known, and every other operation
// counts. Its results are those of the host.
#pragma once

#include "dialects/Attn/Pattern/HostArithmetic.h"
#include <cstdlib>
#include <optional>
#include <vector>

namespace weft::attn::test {

class CountingArithmetic {
public:
  struct Int {
    int64_t value;
    bool known;
  };
  struct Bool {
    bool value, known;
  };

  /// A number that code would hold in a register.
  static Int unknown(int64_t value) { return {value, false}; }
  /// How many operations have been made.
  int operations = 0;

  Int constant(int64_t value) { return {value, true}; }
  std::optional<int64_t> isConstant(Int x) { return x.known ? std::optional(x.value) : std::nullopt; }

  Int add(Int x, Int y) {
    if (isNumber(x, 0) || isNumber(y, 0))
      return isNumber(x, 0) ? y : x;
    return made(x, y, host.add(x.value, y.value));
  }
  Int sub(Int x, Int y) { return isNumber(y, 0) ? x : made(x, y, host.sub(x.value, y.value)); }
  Int mul(Int x, Int y) { return made(x, y, host.mul(x.value, y.value)); }
  Int floorDiv(Int x, Int y) { return isNumber(y, 1) ? x : made(x, y, host.floorDiv(x.value, y.value)); }
  Int rem(Int x, Int y) { return made(x, y, host.rem(x.value, y.value)); }
  Int min(Int x, Int y) { return made(x, y, host.min(x.value, y.value)); }
  Int max(Int x, Int y) { return made(x, y, host.max(x.value, y.value)); }
  Int xor32(Int x, Int y) { return made(x, y, host.xor32(x.value, y.value)); }
  Int mulLow32(Int x, Int y) { return made(x, y, host.mulLow32(x.value, y.value)); }
  Int mulHigh32(Int x, Int y) { return made(x, y, host.mulHigh32(x.value, y.value)); }
  Bool lt(Int x, Int y) { return asked(x, y, x.value < y.value); }
  Bool le(Int x, Int y) { return asked(x, y, x.value <= y.value); }
  Bool eq(Int x, Int y) { return asked(x, y, x.value == y.value); }
  Bool isBetween(Int x, Int begin, Int end) { return both(le(begin, x), lt(x, end)); }
  Bool both(Bool x, Bool y) {
    if (x.known || y.known)
      return x.known ? (x.value ? y : x) : (y.value ? x : y);
    ++operations;
    return {x.value && y.value, false};
  }
  Bool either(Bool x, Bool y) { return negate(both(negate(x), negate(y))); }
  Bool negate(Bool x) { return {!x.value, x.known}; } // folds into the comparison
  Bool truth(bool x) { return {x, true}; }
  Int select(Bool which, Int x, Int y) {
    if (which.known)
      return which.value ? x : y;
    ++operations;
    return {which.value ? x.value : y.value, false};
  }
  Bool selectBool(Bool which, Bool x, Bool y) {
    if (which.known)
      return which.value ? x : y;
    ++operations;
    return {which.value ? x.value : y.value, false};
  }
  // The patterns tested with this have no code. Tables: a number that nothing is known of.
  Int operand(int64_t index, llvm::ArrayRef<Int>, Bool) {
    ++operations;
    return unknown(64 * index);
  }
  /// Where sections lie, as code reads it.
  std::vector<std::vector<int64_t>> places;
  Int number(int64_t index, int64_t place) { return unknown(places[index][place]); }
  Int tableHead(int64_t, Int h) { return h; }
  Bool listed(int64_t, int64_t, Int, Int, Int, Int, Bool) { std::abort(); }
  template <class Where> Bool maskRegion(int64_t, const Where &) { std::abort(); }

private:
  static bool isNumber(Int x, int64_t value) { return x.known && x.value == value; }
  Int made(Int x, Int y, int64_t value) {
    bool known = x.known && y.known;
    operations += !known;
    return {value, known};
  }
  Bool asked(Int x, Int y, bool value) {
    bool known = x.known && y.known;
    operations += !known;
    return {value, known};
  }

  HostArithmetic host;
};

} // namespace weft::attn::test
