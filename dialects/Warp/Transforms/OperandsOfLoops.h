// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What products in a loop take from before it, and how many registers live in it.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weft::warp {

/// 32-bit registers of a thread that hold a value; 0 for what has no layout.
int64_t registersOf(mlir::Value value);

/// The same of an operand of products.
int64_t registersAsOperand(mlir::Value value);

/// Whether an op is a product whose two operands come from registers.
inline bool isProductOfRegisters(mlir::Operation *op) { return llvm::isa<MmaOp, tile::DotOp>(op); }

/// Operands of products in a loop that are computed before it, each once.
llvm::SmallVector<mlir::Value> operandsFromBefore(mlir::scf::ForOp loop);

/// Registers of a thread that hold those operands.
int64_t registersHeldBy(mlir::scf::ForOp loop);

/// Whether a loop has many products (a dozen), which do not need their operands all at once, and those from before it
/// would take more than a third of a thread's registers.
bool takesManyOperands(mlir::scf::ForOp loop, const TargetInfo &target);

/// Which indices take registers: all elements, as while it is open how their accesses are made, or one for each access
/// that is addressed by it.
enum class Indices : uint8_t { All, OfAccesses };

/// The most registers that live at once in a loop: what it carries, what it takes from before it, and from each op on
/// what is used later.
int64_t mostAlive(mlir::scf::ForOp loop, Indices indices = Indices::All);

/// Registers of a thread in a loop with products of warpgroups, at the least.
struct ProductRegisters {
  int64_t carried = 0;  ///< what goes round the loop, but for addresses
  int64_t fromZero = 0; ///< sums of products that are not added to what goes round
  int64_t operands = 0; ///< of products that take theirs from registers

  /// With those for addresses, masks and what is computed on the way.
  int64_t atOnce() const { return carried + fromZero + beside; }
  /// Where products run an iteration later, both iterations' sums from zero live, or what becomes of them.
  int64_t late() const { return atOnce() + fromZero; }

private:
  static constexpr int64_t beside = 40;
};
ProductRegisters registersOfProducts(mlir::scf::ForOp loop);

/// Elements of a thread that a load does not know to be equal to others of it; the load has a layout.
int64_t registersThatDiffer(tile::LoadOp load);

/// Registers of a load's value and of the addresses of its pieces, if it is made an iteration ahead.
int64_t registersAhead(tile::LoadOp load);

} // namespace weft::warp
