// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The arithmetic backend that computes on the host: what `contains` and `rowSegments` are in plain numbers.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <algorithm>
#include <cstdint>
#include <optional>

namespace weft::attn {

/// A tensor that a pattern names by number: integers, row by row.
struct HostOperand {
  llvm::ArrayRef<int32_t> values;
  llvm::SmallVector<int64_t, 4> shape;
};

/// The arithmetic backend on numbers.
///
/// A backend is what patterns are written over. It has types `Int` (index arithmetic) and `Bool` and the functions
/// below; one that emits code has values of its IR for both.
class HostArithmetic {
public:
  using Int = int64_t;
  using Bool = bool;
  /// What mask region `region` says of (b, h, n, m).
  using MaskFunction = llvm::function_ref<bool(int64_t region, Int b, Int h, Int n, Int m)>;

  HostArithmetic() = default;
  /// With the operands and mask regions that patterns name. Both must outlive this.
  /// Patterns' heads are `heads` query heads.
  HostArithmetic(llvm::ArrayRef<HostOperand> operands, MaskFunction mask, int64_t heads = 1)
      : operands(operands), mask(mask), heads(heads) {}

  Int constant(int64_t value) { return value; }
  /// The value where it is known while code is made; here always.
  std::optional<int64_t> isConstant(Int value) { return value; }

  Int add(Int x, Int y) { return x + y; }
  Int sub(Int x, Int y) { return x - y; }
  Int mul(Int x, Int y) { return x * y; }
  /// Rounded down; y > 0.
  Int floorDiv(Int x, Int y) { return x >= 0 ? x / y : -((-x + y - 1) / y); }
  /// x - y floorDiv(x, y); y > 0.
  Int rem(Int x, Int y) { return x - y * floorDiv(x, y); }
  Int min(Int x, Int y) { return std::min(x, y); }
  Int max(Int x, Int y) { return std::max(x, y); }

  /// On words of 32 bits, whatever an Int's upper bits: exclusive or, and both halves of the unsigned product.
  Int xor32(Int x, Int y) { return word(x) ^ word(y); }
  Int mulLow32(Int x, Int y) { return word(word(x) * word(y)); }
  Int mulHigh32(Int x, Int y) { return (word(x) * word(y)) >> 32; }

  Bool lt(Int x, Int y) { return x < y; }
  Bool le(Int x, Int y) { return x <= y; }
  Bool eq(Int x, Int y) { return x == y; }
  /// begin <= x < end, where end - begin and x - begin are small enough to be Ints.
  Bool isBetween(Int x, Int begin, Int end) { return begin <= x && x < end; }
  Bool both(Bool x, Bool y) { return x && y; }
  Bool either(Bool x, Bool y) { return x || y; }
  Bool negate(Bool x) { return !x; }
  Bool truth(bool x) { return x; }
  Int select(Bool which, Int x, Int y) { return which ? x : y; }
  Bool selectBool(Bool which, Bool x, Bool y) { return which ? x : y; }

  /// An element of pattern operand `index`; booleans come as 0 and 1. The operand's rank may be less than that of
  /// `indices`: leading ones are dropped. An axis of size 1 is read at 0. 0 where `valid` is false.
  Int operand(int64_t index, llvm::ArrayRef<Int> indices, Bool valid) {
    return valid ? element(operands[index], indices).value_or(0) : 0;
  }
  /// The same at any indices: 0 outside of the operand.
  Int operand(int64_t index, llvm::ArrayRef<Int> indices) { return operand(index, indices, true); }
  /// Element `place` of operand `index`, a list of numbers.
  Int number(int64_t index, int64_t place) { return operands[index].values[place]; }
  /// The head of operand `index` [B, Hkv, ..] that query head `h` shares.
  Int tableHead(int64_t index, Int h) {
    int64_t own = operands[index].shape.size() > 1 ? operands[index].shape[1] : 1;
    return own > 1 && own < heads ? floorDiv(h, heads / own) : h;
  }
  /// Whether `column` is among index[b, h, row, : count[b, h, row]] of the operands with these numbers.
  Bool listed(int64_t index, int64_t count, Int b, Int h, Int row, Int column) {
    int64_t entries = element(operands[count], {b, h, row}).value_or(0);
    for (int64_t k = 0; k < entries; ++k)
      if (element(operands[index], {b, h, row, k}) == column)
        return true;
    return false;
  }
  /// What mask `region` says at a Place.
  template <class Where> Bool maskRegion(int64_t region, const Where &at) {
    return mask(region, at.b, at.h, at.n, at.m);
  }

private:
  static uint64_t word(uint64_t x) { return x & 0xffffffffu; }

  /// The element at `indices`, or nothing outside the operand.
  static std::optional<int64_t> element(const HostOperand &operand, llvm::ArrayRef<Int> indices) {
    if (operand.shape.size() > indices.size())
      return std::nullopt;
    int64_t position = 0;
    for (auto [index, size] : llvm::zip(indices.take_back(operand.shape.size()), operand.shape)) {
      if (size != 1 && (index < 0 || index >= size))
        return std::nullopt;
      position = position * size + (size == 1 ? 0 : index);
    }
    return operand.values[position];
  }

  llvm::ArrayRef<HostOperand> operands;
  MaskFunction mask;
  int64_t heads = 1;
};

} // namespace weft::attn
