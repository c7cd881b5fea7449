// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/Tensor/TensorMemory.h"

#include <algorithm>

namespace weft::simulator::machine {

TensorMemory::TensorMemory(size_t warps)
    : cells(tensorLanes * tensorColumns, 0xA5A5'A5A5u), regions(tensorGroups * tensorColumns), fences(warps) {}

TensorMemory::Written *TensorMemory::unsettledIn(const TensorRange &range) {
  auto found = std::ranges::find(unsettled, range, &Written::range);
  return found == unsettled.end() ? nullptr : &*found;
}

void TensorMemory::settle(const TensorRange &range) {
  std::erase_if(unsettled, [&](const Written &written) {
    if (!written.range.overlaps(range))
      return false;
    eachRegion(written.range, [&](TensorRegion &region, uint32_t, uint32_t) {
      region.write = written.write;
      region.reads[0] = region.reads[1] = {};
    });
    return true;
  });
}

const TensorAllocation *TensorMemory::allocationOf(const TensorRange &range) const {
  for (const TensorAllocation &each : allocations)
    if (range.column >= each.column && range.column + range.columns <= each.column + each.columns)
      return &each;
  return nullptr;
}

std::optional<uint32_t> TensorMemory::place(uint32_t columns, uint64_t which, const TensorMemory *other) const {
  auto isFree = [columns](const TensorMemory &memory, uint32_t at) {
    return std::ranges::none_of(memory.allocations, [&](const TensorAllocation &each) {
      return at < each.column + each.columns && each.column < at + columns;
    });
  };
  std::vector<uint32_t> free;
  for (uint32_t at = 0; at < tensorColumns; at += columns)
    if (isFree(*this, at) && (!other || isFree(*other, at)))
      free.push_back(at);
  if (free.empty())
    return std::nullopt;
  return free[size_t(which % free.size())];
}

} // namespace weft::simulator::machine
