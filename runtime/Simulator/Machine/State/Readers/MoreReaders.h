// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Readers of global memory beyond the two that a granule itself remembers.
//
// Granules that were read by the same warps in the same turn share a list, which never changes: one more reader before it
// makes another list, and the same reader before the same list the same one again.
#pragma once

#include "runtime/Simulator/Machine/State/GlobalShadow.h"

#include <deque>
#include <mutex>
#include <unordered_map>

namespace weft::simulator::machine {

/// A warp that read, at which clock (of lane 0: which lane read is not known), and the rest of the list.
struct MoreReader {
  Stamp stamp;
  AccessPlace place;
  uint32_t rest = 0;
};

/// The lists of one launch, by number; 0 is the empty one. Its functions may be called from several threads.
class MoreReaders {
public:
  /// As many readers as take 128 MiB; a list gets no longer once there are that many.
  static constexpr size_t most = size_t{1} << 21;

  void clear();
  /// The list with a reader before it. Its first readers that `isBefore` says are ordered before that one are left out.
  template <typename IsBefore> uint32_t with(uint32_t list, Stamp stamp, AccessPlace place, IsBefore isBefore) {
    const std::scoped_lock lock(mutex_);
    while (list && isBefore(readers_[list].stamp))
      list = readers_[list].rest;
    return add(list, stamp, place);
  }
  /// The first reader of a list of which `accept` holds; one without a stamp where there is none.
  template <typename Accept> MoreReader find(uint32_t list, Accept accept) const {
    const std::scoped_lock lock(mutex_);
    while (list && !accept(readers_[list]))
      list = readers_[list].rest;
    return list ? readers_[list] : MoreReader();
  }

private:
  struct Key {
    uint64_t stamp;
    uint32_t list, place;
    bool operator==(const Key &) const = default;
  };
  struct Hash {
    size_t operator()(const Key &key) const {
      return (key.stamp * 0x9E3779B97F4A7C15u ^ (uint64_t(key.list) << 32 | key.place)) * 0xC2B2AE3D27D4EB4Fu >> 16;
    }
  };
  uint32_t add(uint32_t list, Stamp stamp, AccessPlace place);

  mutable std::mutex mutex_;
  std::deque<MoreReader> readers_{1}; ///< by list
  std::unordered_map<Key, uint32_t, Hash> lists_;
};

} // namespace weft::simulator::machine
