// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What was found about the cost of layouts in one kernel, whose plans have most of it in common.
#pragma once

#include "dialects/Warp/IR/WarpOps.h"
#include "llvm/ADT/DenseMap.h"
#include <tuple>

namespace weft {

/// How an op accesses memory in a layout: a warp's instructions, and the sectors that each of them touches.
struct Traffic {
  int64_t instructions, sectors;
  /// Sectors that the bytes of all instructions would fill.
  int64_t filled;
  /// Whether it is known how far apart elements lie.
  bool isKnown;
};

struct KnownCosts {
  /// Of conversions, by the layouts that they are between, and twice the bytes of an element, one more in a loop.
  llvm::DenseMap<std::tuple<warp::LayoutAttr, warp::LayoutAttr, unsigned>, int64_t> conversions;
  /// Of accesses in a layout.
  llvm::DenseMap<std::pair<mlir::Operation *, warp::LayoutAttr>, Traffic> traffic;
};

} // namespace weft
