// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/Tensor/TensorMemory.h"

#include <algorithm>

namespace weft::simulator::machine {

TensorMemory::TensorMemory(size_t warps)
    : cells(tensorLanes * tensorColumns, 0xA5A5'A5A5u), regions(tensorGroups * tensorColumns), fences(warps) {}

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
