// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the layouts of a kernel cost: the instructions of a warp that they decide about, loops weighted by their trips.
#pragma once

#include "compiler/Conversion/TileToWarp/AssignLayouts.h"

namespace weft {

/// The unit of costs: a quarter of an instruction.
inline constexpr int64_t costOfInstruction = 4;

/// How often an op runs for each run of the kernel: constant loops as often as they turn, others several times.
int64_t tripsOf(mlir::Operation *op);

/// What a warp executes to have a tensor of `bytes` bytes an element in layout `to` that is there in `from`: nothing
/// where registers are renamed, shuffles and choices, or stores to and loads from shared memory with their barriers.
/// Outside of loops, the numbers of the lanes that shuffles read cost as well.
int64_t conversionCost(const warp::LinearLayout &from, const warp::LinearLayout &to, unsigned bytes,
                       bool inLoop = true);

/// The op that widened a float, or made one of an integer of 8 bits; null for another value.
mlir::Operation *wideningOf(mlir::Value value);
/// Whether a value that was widened travels to another layout as it was before, and is widened there: for less bytes, and
/// fewer registers where it stays. Operands of products, which stream through, do not where lanes there repeat elements too
/// often.
bool travelsNarrow(mlir::Value value, const warp::LinearLayout &from, const warp::LinearLayout &to);
/// Bytes an element with which a value travels to another layout.
unsigned travellingBytes(mlir::Value value, const warp::LinearLayout &from, const warp::LinearLayout &to);

/// What an access costs in a layout: its instructions, and more for each sector that gaps between what its lanes access
/// take.
int64_t accessCost(mlir::Operation *op, warp::LayoutAttr layout, const AxisAnalysis &axes, const TargetInfo &target,
                   KnownCosts &known);

/// What the values that `value` is needed in other layouts cost, once.
int64_t conversionsOf(mlir::Value value, const LayoutPlan &plan);

/// How many sectors of memory a warp's loads touch in all.
int64_t sectorsRead(mlir::func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes,
                    const TargetInfo &target);

/// What a plan costs in all: arithmetic on each register, accesses to memory, sums over lanes and warps, conversions.
/// Products are left out: their layouts are given.
int64_t costOf(mlir::func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes, const TargetInfo &target);

} // namespace weft
