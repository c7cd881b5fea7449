// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Layouts that are worth a try where nothing that is loaded or stored says how a value lies.
#pragma once

#include "compiler/Conversion/TileToWarp/SearchLayouts.h"

namespace weft {

/// What is reduced in each layout, and what loads have it, with lanes beside the axis: a state that each step of a loop
/// multiplies by vectors and sums is not loaded, so that nothing says how it lies but this.
llvm::SmallVector<Preferred> movesOfReductions(mlir::func::FuncOp function, const LayoutPlan &plan, MayMove mayMove);

/// The loads of what is reduced, in each layout, with neighbouring rows in one warp, where sums are stored apart: they fill
/// sectors then.
llvm::SmallVector<Preferred> movesOfRows(mlir::func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes,
                                         MayMove mayMove);

/// A layout that gives registers the lowest bits along `axis`, then lanes, then warps, as many to each as they have. None
/// where it is so.
std::optional<warp::LinearLayout> withNeighboursInRegisters(unsigned axis, const warp::LinearLayout &layout);

/// The loads of what is scanned, in each layout, with neighbours along the axis in registers: which rows of a tile a thread
/// has changes no sector, and many steps of the scan.
llvm::SmallVector<Preferred> movesOfScans(mlir::func::FuncOp function, const LayoutPlan &plan, MayMove mayMove);

/// What is split, where lanes do not hold whole pairs: with pairs exchanged among them, and as the halves are stored.
llvm::SmallVector<Preferred> movesOfSplits(mlir::func::FuncOp function, const LayoutPlan &plan,
                                           const AxisAnalysis &axes, const TargetInfo &target, int warps);

} // namespace weft
