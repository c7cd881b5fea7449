// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What one instruction brings together of all lanes of a warp: truths by votes, integers and, where the target has it, the
// largest or smallest of floats by `redux.sync` (PTX ISA 9.7.13).
//
//   max of %x over 32 lanes     -->     nvvm.redux.sync fmax %x, -1
#pragma once

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace weft {

/// Whether all of a warp's lanes say so, or any does.
mlir::Value voteOfWarp(Emitter &e, mlir::NVVM::VoteSyncKind decision, mlir::Value truth);

/// How a reduction brings the lanes of a warp together, where an instruction does.
struct WholeWarp {
  mlir::NVVM::ReduxKind kind;
  bool propagatesNan = false; ///< of floats: whether one that is not a number decides

  /// Of one operand, by one operation of two of them; none for floats of more than 32 bits.
  static std::optional<WholeWarp> of(tile::ReduceOp op, const TargetInfo &target);

  /// Whether a lane may give what another one has given.
  bool isIdempotent() const { return kind != mlir::NVVM::ReduxKind::ADD && kind != mlir::NVVM::ReduxKind::XOR; }
  /// Of truths: whether all decide, or any; none where it is how many there are.
  std::optional<mlir::NVVM::VoteSyncKind> decision() const;
  /// Of truths: a vote of the whole warp, of which the lanes are looked at whose numbers differ in `bits` alone.
  mlir::Value overVotes(llvm::ArrayRef<unsigned> bits, mlir::Value truth, Emitter &e) const;
  /// Of numbers. The instruction takes 32 bits: integers of 64 bits are two or three.
  mlir::Value over(mlir::Value number, Emitter &e) const;

private:
  mlir::Value overWide(mlir::Value number, Emitter &e) const;
};

} // namespace weft
