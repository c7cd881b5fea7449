// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How many warps and stages a kernel has.
#pragma once

#include "dialects/Tile/IR/TileDialect.h"

namespace weft::tile {

/// What a kernel has that says nothing of its own. No attribute: a function without an op of the dialect may have none.
struct Schedule {
  int32_t warps = 4, stages = 3, cluster = 1;
};

/// The schedule of a kernel: its `tile.schedule`, or 4 warps, 3 stages and no clusters.
inline Schedule scheduleOf(mlir::Operation *kernel) {
  auto schedule = kernel->getAttrOfType<ScheduleAttr>(scheduleAttrName);
  return schedule ? Schedule{schedule.getWarps(), schedule.getStages(), schedule.getCluster()} : Schedule();
}

} // namespace weft::tile
