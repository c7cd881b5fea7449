// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/Spinning.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace weft::simulator::machine {
namespace {

/// Visits without a change before a worker counts as spinning: of states that are compared, and of clocks.
constexpr uint64_t visitsOfStates = 4, visitsOfClocks = 8;
/// Time is moved on by 2^20 clocks, then by twice as many each time, up to 2^48, and all of that eight times: differences
/// of 32 bits pass a bound in each of them. Then it stands still, later than it has ever been.
constexpr uint64_t firstStep = 20, steps = 29, rounds = 8, lastStep = 52;

/// A hash of all that decides what a warp does next, but for memory that it shares.
uint64_t stateOf(const Warp &warp) {
  uint64_t hash = 0x9E3779B97F4A7C15u;
  auto add = [&](uint64_t value) { hash = (std::rotl(hash, 23) ^ value) * 0xBF58476D1CE4E5B9u; };
  auto addBytes = [&](const std::byte *bytes, size_t count) {
    for (uint64_t word; count >= sizeof word; bytes += sizeof word, count -= sizeof word) {
      std::memcpy(&word, bytes, sizeof word);
      add(word);
    }
  };
  add(uint64_t(warp.pc) << 32 | warp.starved);
  add(uint64_t(warp.mask) << 32 | warp.live);
  for (const Fragment &fragment : warp.fragments)
    add(uint64_t(fragment.pc) << 32 | fragment.mask);
  for (const Join &join : warp.joins)
    add(join.used ? join.arrived : 0);
  addBytes(warp.base[0], warp.kernel->registerBytes);
  addBytes(warp.local.data(), warp.local.size());
  addBytes(reinterpret_cast<const std::byte *>(warp.stackTop.data()), sizeof warp.stackTop);
  for (const std::vector<uint32_t> &saved : warp.calls)
    for (uint32_t word : saved)
      add(word);
  return hash;
}

/// Whether a warp's state came again since `changes`. Brent's cycle detection: it is compared with one that is kept
/// at every power of two, or, with `first`, with the first alone.
bool comesAgain(Warp &warp, uint64_t changes, bool first) {
  Recurrence &seen = warp.recurrence;
  if (seen.since != changes)
    seen = {.since = changes, .clockAt = seen.clockAt};
  if (seen.recurs)
    return true;
  const uint64_t state = stateOf(warp);
  if (seen.looks && state == seen.kept)
    return seen.recurs = true;
  ++seen.looks;
  if (seen.looks == 1 || (!first && std::has_single_bit(seen.looks)))
    seen.kept = state;
  return false;
}

template <typename Act> void eachWarp(const std::vector<std::unique_ptr<Cluster>> &resident, Act act) {
  for (const auto &cluster : resident)
    for (const auto &block : cluster->blocks)
      for (Warp &warp : block->warps)
        if (warp.live)
          act(warp);
}

} // namespace

bool SpinWatch::visited(const std::vector<std::unique_ptr<Cluster>> &resident, bool more) {
  const uint64_t changes = grid_.changes.load();
  if (changes != since_ || more) {
    since_ = changes;
    visits_ = 0;
    together_ = false;
    leave();
    return false;
  }
  if (++visits_ < visitsOfStates)
    return false;
  bool spins = true, waitsForTime = false;
  eachWarp(resident, [&](Warp &warp) {
    if (comesAgain(warp, changes, together_))
      return;
    const bool waits = warp.recurrence.clockAt == changes && grid_.stillAt.load() != changes;
    spins &= waits && visits_ >= visitsOfClocks;
    waitsForTime |= waits;
  });
  if (!spins)
    return false;
  if (!together_) {
    together_ = true;
    eachWarp(resident, [&](Warp &warp) {
      warp.recurrence = {.since = changes, .clockAt = warp.recurrence.clockAt};
      comesAgain(warp, changes, true);
    });
    return false;
  }
  joined_ = true;
  std::lock_guard lock(grid_.spinMutex);
  grid_.spinning[this] = {since_, waitsForTime};
  bool readsClocks = false;
  for (auto &[other, known] : grid_.spinning) {
    if (known.since != grid_.changes.load())
      return false;
    readsClocks |= known.readsClocks;
  }
  return grid_.spinning.size() >= grid_.working.load() && allSpin(readsClocks);
}

bool SpinWatch::allSpin(bool readsClocks) {
  if (!readsClocks)
    return true;
  if (grid_.movedAt != grid_.changes.load())
    grid_.moves = 0; // something happened since time was last moved
  const bool last = grid_.moves == steps * rounds;
  grid_.time += uint64_t{1} << (last ? lastStep : firstStep + grid_.moves % steps);
  grid_.moves += !last;
  grid_.movedAt = grid_.changes.fetch_add(1) + 1;
  if (last)
    grid_.stillAt = grid_.movedAt;
  return false;
}

void SpinWatch::leave() {
  if (!joined_)
    return;
  joined_ = false;
  std::lock_guard lock(grid_.spinMutex);
  grid_.spinning.erase(this);
}

uint64_t clockOf(Warp &warp) {
  const Grid &grid = *warp.block->grid;
  warp.recurrence.clockAt = grid.changes.load();
  if (grid.stillAt.load() == grid.changes.load())
    return grid.time;
  return grid.time + warp.block->turns * (uint64_t{1} << 16) + warp.worker->executed[warp.here()] * 4;
}

} // namespace weft::simulator::machine
