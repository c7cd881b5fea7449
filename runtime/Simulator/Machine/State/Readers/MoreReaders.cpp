// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/Readers/MoreReaders.h"

#include <bit>

namespace weft::simulator::machine {

void MoreReaders::clear() {
  const std::scoped_lock lock(mutex_);
  readers_.resize(1);
  lists_.clear();
}

uint32_t MoreReaders::add(uint32_t list, Stamp stamp, AccessPlace place) {
  if (list && readers_[list].stamp.sameWarp(stamp) && readers_[list].place.order == place.order)
    list = readers_[list].rest; // the later read of one warp stands for both
  if (readers_.size() >= most)
    return list;
  auto [found, isNew] =
      lists_.try_emplace(Key{stamp.bits, list, std::bit_cast<uint32_t>(place)}, uint32_t(readers_.size()));
  if (isNew)
    readers_.push_back({stamp, place, list});
  return found->second;
}

} // namespace weft::simulator::machine
