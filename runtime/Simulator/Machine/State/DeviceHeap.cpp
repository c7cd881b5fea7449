// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/DeviceHeap.h"

#include <algorithm>

namespace weft::simulator::machine {

/// What a block takes of the heap: a small overrun lands in no other block.
static uint64_t roomFor(uint64_t size) { return (size + 15) / 16 * 16 + 32; }

Address DeviceHeap::allocate(uint64_t size) {
  std::lock_guard lock(mutex_);
  if (size == 0 || size > bytes)
    return 0;
  const uint64_t wanted = roomFor(size);
  for (bool again : {false, true}) {
    if (again)
      reuse();
    auto at = std::find_if(free_.begin(), free_.end(), [&](const auto &range) { return range.second >= wanted; });
    if (at == free_.end())
      continue;
    auto [address, room] = *at;
    free_.erase(at);
    if (room > wanted)
      free_[address + wanted] = room - wanted;
    used_[address] = size;
    return address;
  }
  return 0;
}

/// Freed blocks become free ones, neighbours joined.
void DeviceHeap::reuse() {
  for (auto &[address, size] : quarantine_)
    free_[address] = roomFor(size);
  quarantine_.clear();
  for (auto at = free_.begin(); at != free_.end();) {
    auto after = std::next(at);
    if (after != free_.end() && at->first + at->second == after->first) {
      at->second += after->second;
      free_.erase(after);
    } else {
      at = after;
    }
  }
}

DeviceHeap::State DeviceHeap::state() const {
  std::lock_guard lock(mutex_);
  return {free_, used_, quarantine_};
}

void DeviceHeap::restore(State state) {
  std::lock_guard lock(mutex_);
  free_ = std::move(state.free);
  used_ = std::move(state.used);
  quarantine_ = std::move(state.quarantine);
}

bool DeviceHeap::release(Address address) {
  std::lock_guard lock(mutex_);
  auto used = used_.find(address);
  if (used == used_.end())
    return false;
  quarantine_.insert(used_.extract(used));
  return true;
}

DeviceHeap::Range DeviceHeap::rangeAt(Address address, uint64_t size) const {
  std::lock_guard lock(mutex_);
  auto inside = [&](const std::map<Address, uint64_t> &ranges, uint64_t wanted) {
    auto after = ranges.upper_bound(address);
    return after != ranges.begin() && address - std::prev(after)->first + wanted <= std::prev(after)->second;
  };
  return inside(used_, size) ? Range::Live : inside(quarantine_, 1) ? Range::Freed : Range::Wild;
}

} // namespace weft::simulator::machine
