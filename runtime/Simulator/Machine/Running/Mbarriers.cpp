// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/Mbarriers.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {

std::string mbarrierState(const Block &block, uint32_t offset) {
  using namespace mbarrier;
  uint64_t object = 0;
  if (uint64_t(offset) + 8 <= block.shared.size())
    std::memcpy(&object, block.shared.data() + offset, 8);
  if ((object & markMask) != mark)
    return format("what is no mbarrier at byte {} of shared memory", offset);
  return format("the mbarrier at byte {} of shared memory, which is in phase {} and has {} of {} arrivals", offset,
                phase(object), expected(object) - pending(object), expected(object));
}

} // namespace weft::simulator::machine
