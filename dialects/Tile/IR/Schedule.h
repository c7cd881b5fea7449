// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How many warps and stages a kernel has.
#pragma once

#include "dialects/Tile/IR/TileDialect.h"

namespace weft::tile {

/// What a kernel has that says nothing of its own. No attribute: a function without an op of the dialect may have none.
struct Schedule {
  int32_t warps = 4, stages = 3, cluster = 1;
  bool persistent = false;
};

/// The schedule of a kernel: its `tile.schedule`, or 4 warps, 3 stages, no clusters, a block for each program.
inline Schedule scheduleOf(mlir::Operation *kernel) {
  auto schedule = kernel->getAttrOfType<ScheduleAttr>(scheduleAttrName);
  return schedule ? Schedule{schedule.getWarps(), schedule.getStages(), schedule.getCluster(), schedule.getPersistent()}
                  : Schedule();
}

} // namespace weft::tile
