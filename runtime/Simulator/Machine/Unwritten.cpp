// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Memory that nothing wrote, byte by byte.
#include "runtime/Simulator/Machine/Access.h"

#include <cstring>

namespace weft::simulator::machine {
namespace {

bool isIn(const auto &memory, const std::byte *at) {
  return !memory.empty() && at >= memory.data() && at < memory.data() + memory.size();
}

/// The marks of global memory, or null where it was born written.
uint8_t *globalMarks(const Warp &warp, const std::byte *at, unsigned bytes) {
  const auto address = reinterpret_cast<Address>(at);
  const Allocation *allocation = warp.block->grid->view->find(address, bytes);
  return allocation && allocation->written ? allocation->written->data() + (address - allocation->base) : nullptr;
}

bool isUnwritten(const Granule &granule) {
  return (granule.writeClock == 0 && !(granule.flags & Granule::Pending)) || (granule.flags & Granule::Poisoned);
}

} // namespace

uint32_t unwrittenBytes(Warp &warp, const std::byte *at, unsigned bytes) {
  uint32_t unwritten = 0;
  if (isIn(warp.block->shared, at)) {
    const auto offset = uint32_t(at - warp.block->shared.data());
    for (unsigned i = 0; i < bytes; ++i)
      unwritten |= uint32_t(isUnwritten(warp.block->shadow.at(offset + i))) << i;
    return unwritten;
  }
  const uint8_t *marks =
      isIn(warp.local, at) ? (warp.localWritten.empty() ? nullptr : &warp.localWritten[size_t(at - warp.local.data())])
                           : globalMarks(warp, at, bytes);
  for (unsigned i = 0; i < bytes && marks; ++i)
    unwritten |= uint32_t(!marks[i]) << i;
  return unwritten;
}

void markWritten(Warp &warp, const std::byte *at, unsigned bytes) {
  if (uint8_t *marks = globalMarks(warp, at, bytes))
    std::memset(marks, 1, bytes);
}

bool markUnwritten(Warp &warp, const std::byte *at, unsigned bytes, uint32_t unwritten) {
  if (isIn(warp.block->shared, at)) {
    if (!tracksShared(warp))
      return true;
    // A granule is marked where all that was stored of it is unwritten.
    SharedShadow &shadow = warp.block->shadow;
    const auto offset = uint32_t(at - warp.block->shared.data());
    for (unsigned i = 0, next; i < bytes; i = next) {
      Granule &granule = shadow.at(offset + i);
      bool all = true;
      for (next = i; next < bytes && &shadow.at(offset + next) == &granule; ++next)
        all &= (unwritten >> next & 1) != 0;
      if (all)
        granule.flags |= Granule::Poisoned;
    }
    return true;
  }
  const bool local = isIn(warp.local, at);
  uint8_t *marks = !local                      ? globalMarks(warp, at, bytes)
                   : warp.localWritten.empty() ? nullptr
                                               : &warp.localWritten[size_t(at - warp.local.data())];
  if (!local && unwritten == (1u << bytes) - 1)
    return false;
  for (unsigned i = 0; i < bytes && marks; ++i)
    if (unwritten >> i & 1)
      marks[i] = 0;
  return true;
}

void storeUnwritten(Warp &warp, unsigned lane, Ref ref, const std::byte *at, unsigned bytes, uint32_t unwritten) {
  const uint32_t origin = readNow(warp, originOf(warp, ref, lane));
  rememberOrigin(warp, at, bytes, unwritten, origin);
  if (!markUnwritten(warp, at, bytes, unwritten))
    report(warp, FindingKind::Uninitialised, lane, "writes to memory a value that nothing wrote",
           describeOrigin(warp, origin));
}

} // namespace weft::simulator::machine
