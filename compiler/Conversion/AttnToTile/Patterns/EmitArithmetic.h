// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The arithmetic of patterns (dialects/Attn/Pattern) that writes tile IR.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/ScalarRegion.h"
#include "compiler/Conversion/AttnToTile/Kernel/StoredValues.h"

namespace weft {

struct Attend;
struct RowTile;

/// Integers are i32 scalars or tiles of them, truths i1; they broadcast. Constants fold.
struct EmitArithmetic {
  using Int = mlir::Value;
  using Bool = mlir::Value;

  KernelFrame &frame;
  /// What the op that carries the pattern has: tensors outside the kernel, and regions.
  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<mlir::Region *> masks;
  /// Where values captured by mask regions are stored.
  StoredValues *stored = nullptr;
  std::string heads = {}; ///< of the queries, as types spell it
  /// Of a pair's places those that all exist in the block that is asked about.
  WholePlaces whole = {};

  static EmitArithmetic of(KernelFrame &frame, const Attend &attend, StoredValues &stored);

  /// A table of a span at a tile's rows.
  struct HeldTable {
    int64_t operand;
    mlir::Value token, bounds; ///< [count] i32
  };
  llvm::SmallVector<HeldTable> held = {};
  /// Loads the tables of the spans in `pattern` at `rows` (of queries as the pattern has them), here, for all masks of
  /// these rows to come: within walks each block would load them again. `head` is a query head.
  void holdSpans(mlir::Attribute pattern, mlir::Value batch, mlir::Value head, const RowTile &rows);

  /// The numbers that are loaded, by operand and place.
  llvm::SmallDenseMap<std::pair<int64_t, int64_t>, mlir::Value> numbers{};

  Int constant(int64_t value) { return frame.b.i32(value); }
  Int add(Int a, Int b) { return frame.b.add(a, b); }
  Int sub(Int a, Int b) { return frame.b.sub(a, b); }
  Int mul(Int a, Int b) { return frame.b.mul(a, b); }
  /// One number where all positions of a block have the same.
  Int floorDiv(Int a, Int b);
  Int rem(Int a, Int b) { return frame.b.rem(a, b); }
  Int min(Int a, Int b) { return frame.b.min(a, b); }
  Int max(Int a, Int b) { return frame.b.max(a, b); }
  Bool lt(Int a, Int b) { return frame.b.compareInt(mlir::arith::CmpIPredicate::slt, a, b); }
  Bool le(Int a, Int b) { return frame.b.compareInt(mlir::arith::CmpIPredicate::sle, a, b); }
  Bool eq(Int a, Int b) { return frame.b.compareInt(mlir::arith::CmpIPredicate::eq, a, b); }
  /// Of rows' bounds, one subtraction and one comparison a pair.
  Bool isBetween(Int x, Int begin, Int end) {
    Int count = frame.b.max(frame.b.sub(end, begin), frame.b.i32(0));
    return frame.b.compareInt(mlir::arith::CmpIPredicate::ult, frame.b.sub(x, begin), count);
  }
  Bool both(Bool a, Bool b) { return frame.b.both(a, b); }
  Bool either(Bool a, Bool b) { return frame.b.either(a, b); }
  Bool negate(Bool a) { return frame.b.negate(a); }
  Bool truth(bool value) { return frame.b.i1(value); }
  Int select(Bool condition, Int yes, Int no) { return frame.b.select(condition, yes, no); }
  Bool selectBool(Bool condition, Bool yes, Bool no) { return frame.b.select(condition, yes, no); }
  std::optional<int64_t> isConstant(Int value) { return TileBuilder::constantOf(value); }
  Int xor32(Int a, Int b);
  Int mulLow32(Int a, Int b) { return frame.b.mul(a, b); }
  /// The upper half of the 64-bit product of two numbers taken as unsigned.
  Int mulHigh32(Int a, Int b);
  /// An element of operand `index`, 0 where `inside` is false. Operands of fewer axes are the same along the leading
  /// ones.
  Int operand(int64_t index, llvm::ArrayRef<Int> indices, Bool inside);
  /// The same at indices that are no less than 0; past an end the last element's.
  Int operand(int64_t index, llvm::ArrayRef<Int> indices) { return operand(index, indices, {}); }
  /// Element `place` of operand `index`, a list of numbers; loaded once, at the kernel's entry.
  Int number(int64_t index, int64_t place);
  /// The head of operand `index` [B, Hkv, ..] that query head `h` shares.
  Int tableHead(int64_t index, Int h);
  /// Whether `column` is among the first count[b, h, row] of index[b, h, row, :]; `row` is no less than 0.
  Bool listed(int64_t index, int64_t count, Int b, Int h, Int row, Int column);
  template <class Where> Bool maskRegion(int64_t index, const Where &at) {
    auto element = [&](mlir::Value tensor, mlir::ValueRange indices) {
      return loadElement(frame, stored->at(tensor), indices, {}, whole);
    };
    const bool moved[] = {false, false, at.isMovedN, at.isMovedM};
    return evaluateRegion(*masks[index], {at.b, at.h, at.n, at.m}, {frame, element, nullptr, nullptr, moved})[0];
  }
};

} // namespace weft
