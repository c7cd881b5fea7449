// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Registers of one index tensor differ by numbers: kept apart from what threads differ in, these end up in the immediates of
// addresses.
#pragma once

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "mlir/IR/Matchers.h"

namespace weft {

/// A register's integer as a sum: of what the threads differ in, and of a number, in which registers differ.
struct WithNumber {
  mlir::Value base;
  llvm::APInt number;
  bool wraps = false; ///< whether nothing says that the sum does not, as signed numbers

  explicit WithNumber(mlir::Value value) : base(value), number(value.getType().getIntOrFloatBitWidth(), 0) {
    auto add = value.getDefiningOp<mlir::LLVM::AddOp>();
    if (!add || !mlir::matchPattern(add.getRhs(), mlir::m_ConstantInt(&number)))
      return;
    base = add.getLhs();
    wraps = !bitEnumContainsAll(add.getOverflowFlags(), mlir::LLVM::IntegerOverflowFlags::nsw);
  }
  /// A sum and a number, in its type.
  static mlir::Value plus(mlir::Value sum, const llvm::APInt &number, Emitter &e) {
    if (number.isZero())
      return sum;
    return mlir::LLVM::AddOp::create(e.b, e.loc, sum, e.constant(mlir::IntegerAttr::get(sum.getType(), number)));
  }
};

} // namespace weft
