// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Memory that nothing wrote, byte by byte.
#include "runtime/Simulator/Machine/Checks/Access.h"

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

/// The bit of a byte in its granule's `poisoned`.
uint16_t bitOf(const SharedShadow &shadow, uint32_t offset) {
  return uint16_t(1u << (offset & ((1u << shadow.shift()) - 1)));
}

bool isUnwritten(SharedShadow &shadow, uint32_t offset) {
  const Granule &granule = shadow.at(offset);
  return (granule.writeClock == 0 && !(granule.flags & Granule::Pending)) || (granule.poisoned & bitOf(shadow, offset));
}

/// The block of the cluster whose shared memory a byte is of, or null.
Block *holderOf(const Warp &warp, const std::byte *at) {
  if (isIn(warp.block->shared, at))
    return warp.block;
  for (const auto &block : warp.block->cluster->blocks)
    if (isIn(block->shared, at))
      return block.get();
  return nullptr;
}

} // namespace

uint32_t unwrittenBytes(Warp &warp, const std::byte *at, unsigned bytes) {
  uint32_t unwritten = 0;
  if (Block *holder = holderOf(warp, at)) {
    const auto offset = uint32_t(at - holder->shared.data());
    for (unsigned i = 0; i < bytes; ++i)
      unwritten |= uint32_t(isUnwritten(holder->shadow, offset + i)) << i;
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
  if (Block *holder = holderOf(warp, at)) {
    if (!tracksShared(warp))
      return true;
    SharedShadow &shadow = holder->shadow;
    const auto offset = uint32_t(at - holder->shared.data());
    for (unsigned i = 0; i < bytes; ++i)
      if (unwritten >> i & 1)
        shadow.at(offset + i).poisoned |= bitOf(shadow, offset + i);
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
