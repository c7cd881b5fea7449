// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How far apart neighbours of a tensor of addresses lie. What is contiguous is a fact that vectors rely on; this is what
// layouts are chosen by: masks are left out, and runs are taken to begin where they are likely to.
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace weft {

class AxisAnalysis;

/// Along an axis: every aligned run of `run` neighbours, a power of two, counts up by `by`. Nothing is known where `run`
/// is 1.
struct AxisStep {
  int64_t by = 0, run = 1;
  bool operator==(const AxisStep &other) const { return by == other.by && run == other.run; }
};
using AxisSteps = llvm::SmallVector<AxisStep, 2>;

/// The steps of a tensor of pointers, in pointees, or of integers, along each axis.
///
///   %n = tile.make_range 0 .. 32            counts by 1 in runs of 32
///   %p = arith.divsi %n, 16                 by 0 in runs of 16
///   %t = tile.load %table + %p              by 0 in runs of 16
///   %t * 512 + %n % 16 * 8                  by 8 in runs of 16
AxisSteps stepsOf(mlir::Value value, const AxisAnalysis &axes);

} // namespace weft
