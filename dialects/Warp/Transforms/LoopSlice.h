// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a loop would have to compute to read for an iteration before it comes to it.
#pragma once

#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace weft::warp {

/// What has to be computed ahead for some values of a loop.
struct Slice {
  llvm::DenseSet<mlir::Operation *> ops;     // of the loop's body
  llvm::SmallSetVector<unsigned, 4> carried; // numbers of loop-carried values
};

/// Adds to `slice` what an iteration computes `value` from; false when it does so by effects or control flow. `mayLoad`:
/// loads that are not volatile are none.
bool addWithin(mlir::Value value, mlir::scf::ForOp loop, bool mayLoad, Slice &slice);

/// Adds to `slice` what `value` is computed from inside the loop, in iterations before its own too; false when that
/// cannot be computed ahead.
bool addToSlice(mlir::Value value, mlir::scf::ForOp loop, bool mayLoad, Slice &slice);

/// The slice's ops in the order of the loop's body.
llvm::SmallVector<mlir::Operation *> inOrder(const Slice &slice, mlir::scf::ForOp loop);

/// Whether a loop has another one inside.
bool hasLoopInside(mlir::scf::ForOp loop);

/// Clones what a block computes a value from, behind what `mapping` has already, where nothing of it has an effect.
void cloneComputed(mlir::Value value, mlir::OpBuilder &b, mlir::IRMapping &mapping, mlir::Block *block);

/// Whether what a load reads is an index: the address or mask of another load or copy of its block is computed from it.
bool addressesLoads(tile::LoadOp load);

/// Whether a loop writes device memory, or waits for who does.
bool writesMemory(mlir::scf::ForOp loop);

/// Whether `access`, a load or copy, may read before what the iterations before its own do: nothing of the loop writes
/// there, and nothing acquires what others wrote. An atomic whose old value nobody reads acquires nothing that anybody
/// could learn.
bool mayReadAhead(mlir::Operation *access, mlir::scf::ForOp loop);

} // namespace weft::warp
