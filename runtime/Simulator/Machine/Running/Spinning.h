// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Launches in which every warp waits or spins, and nothing that they wait for can happen any more.
#pragma once

#include "runtime/Simulator/Machine/State/Warp.h"

#include <memory>
#include <vector>

namespace weft::simulator::machine {

/// Finds workers whose warps do nothing but spin, each in a state that comes again and again while memory stays as it
/// is. A warp by itself comes to a state again soon; all of them together need not, where turns are of random lengths.
/// So each is watched by itself, twice: what came again may since have gone on, to wait for the next. Once all have come
/// to a state again, each has to come again to the one that it is in then, to which a warp that goes on never returns.
///
/// A clock goes on while warps spin, so that loops that read one are in a new state each round. Where nothing else is
/// left to happen, time is therefore moved on by more than such a loop may wait for, and at last it stands still.
class SpinWatch {
public:
  explicit SpinWatch(Grid &grid) : grid_(grid) {}
  ~SpinWatch() { leave(); }
  SpinWatch(const SpinWatch &) = delete;
  SpinWatch &operator=(const SpinWatch &) = delete;

  /// After a visit to the worker's blocks, of which `more` may start: whether every worker is known to spin for ever.
  bool visited(const std::vector<std::unique_ptr<Cluster>> &resident, bool more);

private:
  void leave();
  /// What is left to do once every worker spins: to move time on, or to say so.
  bool allSpin(bool readsClocks);

  Grid &grid_;
  uint64_t since_ = ~uint64_t{0}, visits_ = 0;
  bool together_ = false; ///< all warps came to a state again, and are watched from there
  bool joined_ = false;
};

/// What clocks of a warp show. They count records, so that runs repeat.
uint64_t clockOf(Warp &warp);

} // namespace weft::simulator::machine
