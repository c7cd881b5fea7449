// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How long a multiprocessor takes for a loop's iteration, unit by unit, by the numbers of its target: what a pass weighs
// where one unit's work could be another's.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weft::warp {

/// Whether special-function units compute an op: exponentials, logarithms, roots.
bool isSpecial(mlir::Operation *op);

/// Clocks of the matrix units for the products of warpgroups of an iteration, of all warps; 0 where their rate is not known.
double clocksOfProducts(mlir::scf::ForOp loop, const TargetInfo &target);

/// Clocks of the special-function units for what a block of `warps` warps has them compute in an iteration.
double clocksOfSpecials(mlir::scf::ForOp loop, int warps, const TargetInfo &target);

/// Clocks in which the instructions of an iteration of `warps` warps are issued: those of each element, and what stands
/// beside them.
double clocksOfIssue(mlir::scf::ForOp loop, int warps, const TargetInfo &target);

} // namespace weft::warp
