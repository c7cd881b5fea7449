// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which layout suits an op by itself: a memory access by how it walks through memory, a product by how its operands are
// shared. Pure functions of shapes and facts; how layouts then spread to other ops is AssignLayouts' business.
#pragma once

#include "compiler/Analysis/AddressSteps.h"
#include "compiler/Analysis/AxisInfo.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Warp/Layout/LinearLayout.h"
#include "dialects/Warp/Layout/MmaLayouts.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallBitVector.h"
#include <array>

namespace weft {

/// The axes of a tensor from the one that walks through memory fastest to the slowest: by contiguity, ties towards the
/// last axis.
llvm::SmallVector<unsigned> fastestFirst(const AxisInfo &pointer);

/// A layout in which each lane holds `vector` neighbours along `order[0]` (powers of two), lanes follow along the axes
/// in `order`, then warps from the slowest axis on, and registers cover the rest. Lanes and warps that are left over
/// repeat the tensor. At most `lanesAlong` lanes follow the fastest axis before the others are walked. Warps follow axes
/// that are `summed` up (empty: none is) last: what several warps have parts of crosses shared memory.
warp::LinearLayout blockedLayout(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<unsigned> order, int64_t vector,
                                 int warps, unsigned lanesAlong = 32, const llvm::SmallBitVector &summed = {});

/// The blocked layout of a tensor that nothing is known about: row-major, one element a lane at a time.
warp::LinearLayout defaultLayout(llvm::ArrayRef<int64_t> shape, int warps);

/// One memory access of a tensor: what the pointer analysis knows about its pointers, and about its mask where it has
/// one.
struct Access {
  llvm::ArrayRef<int64_t> shape;
  AxisInfo pointer;
  std::optional<AxisInfo> mask;
  int64_t elementBytes;
  int64_t mostElements; // that one instruction can access
  /// How many elements of memory lie between neighbours along each axis, in which runs; empty where nothing is known.
  AxisSteps steps = {};
};

/// The layout with the fewest, widest and best coalesced accesses: up to `mostElements` a lane along the fastest axis. `summed` are the axes that are summed up (empty: none is): where the fastest one is, few lanes along it have
/// few to exchange.
warp::LinearLayout coalescedLayout(const Access &access, int warps, const TargetInfo &target,
                                   const llvm::SmallBitVector &summed = {});

/// How many elements one instruction of a lane can access at once in `layout`: every aligned group of that many
/// registers holds neighbours in memory, begins at a multiple of its own size, and has one mask. 1 when nothing can be
/// joined.
int64_t accessWidth(const warp::LinearLayout &layout, const Access &access);

/// The access of as many neighbours as fill a register, as if no mask kept them apart.
Access asWords(Access access);

/// How many bytes, from the beginning of the tensor along its fastest axis, one instruction of a whole warp covers
/// without a gap when each lane accesses `accessWidth` elements. At least `target.sectorBytes` means that no global
/// traffic is wasted.
int64_t bytesPerRun(const warp::LinearLayout &layout, const Access &access);

/// How many sectors of memory the first instruction of the first warp touches. Where strides are not known, what is not
/// contiguous lies far apart.
int64_t sectorsTouched(const warp::LinearLayout &layout, const Access &access, const TargetInfo &target);

/// How many registers hold different elements, where neighbours are `equal` (how many along each axis; empty: none), of each
/// `width` in a row one.
int64_t registersThatDiffer(const warp::LinearLayout &layout, llvm::ArrayRef<int64_t> equal, int64_t width = 1);

/// How many instructions of a lane access the tensor; of neighbours that are `equal` (how many along each axis; empty:
/// none) one does.
int64_t instructionsOf(const warp::LinearLayout &layout, const Access &access, llvm::ArrayRef<int64_t> equal);

/// The layout in which elements of 2 bytes are stored that lanes hold in full vectors along another axis than memory has
/// them: four lanes along the fastest axis and eight beside them, to which `ldmatrix.trans` delivers vectors. None where
/// that would not be so, or fill no sectors.
std::optional<warp::LinearLayout> turnedLayout(const warp::LinearLayout &from, const Access &access, int warps,
                                               const TargetInfo &target);

/// The layout of a load of a matrix whose elements threads store along the other axis than memory has them, along `fast`: a
/// lane holds blocks of full vectors both ways, and eight neighbouring lanes' stores meet all banks where lines of 128
/// bytes are swizzled. None where a warp would repeat elements.
std::optional<warp::LinearLayout> turnedBlocks(const Access &access, unsigned fast, int warps,
                                               const TargetInfo &target);

/// A layout whose lanes that hold the same share out their registers, but for the lowest `width`: what is stored from it
/// takes fewer instructions, which fill more of each sector.
warp::LinearLayout sharedOutLayout(const warp::LinearLayout &layout, int64_t width);

/// Splits `warps` over a product [M, N] whose instruction makes [m, n] at a time: all along M when `chained` (a row
/// then stays in one warp, and so can be the next product's operand without leaving registers), else so that the warps
/// read the fewest operand elements. `leastRows`, of several products whose rows lie one after another: how many warps have
/// rows of their own at the least.
warp::WarpGrid warpGrid(int64_t M, int64_t N, std::array<int32_t, 3> instruction, int warps, bool chained,
                        int64_t leastRows = 1);

/// The layout that a shift along `axis` gives, of elements of 2 bytes that it takes in `source`. It goes through a tile in
/// shared memory whose lines are along the last other axis: where neighbours in registers are along a line, `source`; else
/// that of a product's sums of this shape, whose words along a line are stored without bank conflicts, each once; for
/// lines shorter than those of a product, a thread has what it can of one.
warp::LinearLayout shiftedLayout(const warp::LinearLayout &source, unsigned axis);

/// Accumulator of a product by fused multiply-adds: each lane holds groups of four neighbours along N, lanes form an 8
/// × 4 grid of such groups, so that a lane's operands are read from shared memory 16 bytes at a time without bank
/// conflicts.
warp::LinearLayout fmaLayout(llvm::ArrayRef<int64_t> shape, int warps);
/// Operand 0 ([M, K]) or 1 ([K, N]) of a product by fused multiply-adds: each lane holds, for all of K, what its part
/// of the accumulator needs.
warp::LinearLayout fmaOperandLayout(const warp::LinearLayout &accumulator, unsigned operand, int64_t K);

} // namespace weft
