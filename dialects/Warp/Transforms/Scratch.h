// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How much shared memory an op needs for itself while it exchanges data between lanes, and how rings lie in it.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"

namespace weft::warp {

/// Bytes of scratch memory of `op`: of a `warp.convert_layout` that is neither a permutation of registers nor a few
/// shuffles, a `tile.reduce` or `tile.scan` whose axis is spread over warps, a `tile.gather` that is not a few shuffles, a
/// `tile.histogram`; 0 for any other, and for one whose tensors have no layouts.
int64_t scratchBytes(mlir::Operation *op);

/// Fails, with an error at the op, where a kernel has a tensor without a layout.
llvm::LogicalResult expectLayouts(mlir::func::FuncOp kernel);

/// On a `warp.convert_layout` with scratch memory: what it writes there is read behind the barrier of the next exchange,
/// which follows it. Set by `warp-join-exchanges`.
inline constexpr llvm::StringLiteral joinedAttrName = "warp.joined";

/// How many partial results along `axis` the warps of a layout hold: 2 to the number of warp bits that move along it.
unsigned warpsAlongAxis(const LinearLayout &layout, unsigned axis);

/// How the partial results that warps have of a reduction meet in scratch memory: those of a warp one after another, of
/// each warp along the axis `stride` elements behind those of the one before. Each thread reads those that it wants; or,
/// `inTurn`, as many lanes as there are warps along the axis bring each result together, and write it behind them all:
/// two barriers more, and each partial result is read once, where every warp would read those of all others.
struct WarpReduction {
  unsigned partials = 1;
  int64_t results = 0;
  int64_t stride = 0;
  bool inTurn = false;

  /// From the start of an operand's scratch memory to the results behind its partial ones, and to the next operand's.
  int64_t partialBytes(unsigned elementBytes) const;
  int64_t bytes(unsigned elementBytes) const;
};
WarpReduction warpReduction(const LinearLayout &layout, unsigned axis);

/// How lanes whose numbers differ in some bits bring together what each has of some results, a power of two. A step
/// either exchanges all results, and both lanes have each; or, of the first `halved` bits, lanes exchange halves, and
/// each has half of them: an exchange and two selections for two results. What every lane shall have is read from the
/// lanes that have it then.
struct LaneReduction {
  unsigned halved = 0;
  int64_t instructions = 0;
};
/// The fewest instructions: of results of so many words, which `combining` instructions bring together.
LaneReduction laneReduction(unsigned results, unsigned bits, unsigned words, unsigned combining, bool wantsAll);

/// Bytes that a scan over warps needs for one operand: each of its registers in each thread.
int64_t scanBytes(mlir::Type tensor, unsigned warps);

/// Bytes that a value of an element type takes in shared memory.
unsigned elementBytes(mlir::Type element);

/// What tiles of a kernel begin at multiples of, in bytes: where a line of 32 banks starts, so that their swizzles mean
/// what they say; with products of warpgroups, where the patterns that these know start.
int64_t tileAlignment(mlir::Operation *kernel);

/// Bytes that `warp-begin-tensor-memory` will take in a kernel with products of tensor memory; 0 where it has.
int64_t bytesOfTensorSlots(mlir::func::FuncOp kernel);

/// Bytes from the tiles of a stage to those of the next, of rings that lie together: side by side, a tile of each.
int64_t ringPitch(llvm::ArrayRef<SharedType> rings, int64_t alignment);

/// The rings right before an allocation that lie among it as one, the last first.
llvm::SmallVector<AllocOp> ringsBefore(AllocOp alloc);

/// From where an allocation's first tile begins to where its last one ends, once it has its place.
std::pair<int64_t, int64_t> bytesFromFirstToLast(AllocOp alloc);

/// Bytes of shared memory that a kernel's tiles and exchanges take at the least, and how many it may take instead: with
/// which as many blocks are resident on a multiprocessor, or enough warps.
int64_t leastSharedBytes(mlir::func::FuncOp kernel);
int64_t mostSharedBytes(mlir::func::FuncOp kernel, int64_t least, const TargetInfo &target);
/// Gives each tile and each exchange of a kernel the place that `warp-allocate-shared` would.
void placeShared(mlir::func::FuncOp kernel, const TargetInfo &target);

} // namespace weft::warp
