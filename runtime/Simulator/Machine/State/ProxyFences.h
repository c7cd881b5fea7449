// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Fences between proxies for global memory, of all blocks of a launch: what threads write there reaches bulk copies only
// behind a fence.proxy.async, and tensor maps that threads make only behind a release and an acquire of theirs.
#pragma once

#include "runtime/Simulator/Interface/Memory.h"
#include "runtime/Simulator/Machine/State/GlobalShadow.h"
#include "runtime/Simulator/Machine/State/Order.h"

#include <deque>
#include <mutex>

namespace weft::simulator::machine {

/// A fence as of a moment; those behind it are ordered after the clock of its warp.
struct GlobalFence {
  Moment moment = 0;
  uint32_t block = 0, warp = 0, clock = 0;
};

/// An acquire of a tensor map by a warp, and the write that it found there.
struct MapAcquire {
  Address map = 0;
  Stamp write;
  GlobalFence fence;
};

struct ProxyFences {
  /// Fences kept of each kind: one that is older than these matters to no program.
  static constexpr size_t kept = 4096;
  std::mutex mutex;
  std::deque<GlobalFence> async, mapReleases;
  std::deque<MapAcquire> mapAcquires;

  void clear() {
    async.clear();
    mapReleases.clear();
    mapAcquires.clear();
  }
};

} // namespace weft::simulator::machine
