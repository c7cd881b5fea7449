// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Integers as sums of products with numbers, so that what two share cancels.
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/APInt.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace weft::tile {

/// Values times numbers and a number, as integers of one width that wrap.
struct Sum {
  explicit Sum(unsigned width) : number(width, 0) {}
  llvm::DenseMap<mlir::Value, llvm::APInt> terms;
  llvm::APInt number;
  unsigned looked = 0; ///< through how many ops; a chain of x + x has more paths than can be walked

  void add(mlir::Value value, const llvm::APInt &factor);
  bool isNumber() const {
    return llvm::all_of(terms, [](const auto &term) { return term.second.isZero(); });
  }
};

} // namespace weft::tile
