// Part of Weft. SPDX-License-Identifier: Apache-2.0
// From addresses to host memory: bounds, alignment, initialisation, races, and what an access costs. Of ld.global.f32
// where lane i reads element i of a buffer 'x' of 31 floats at 0x1000:
//
//   lanes 0 .. 30    go to the host's bytes of 'x': 124 bytes in 4 sectors of 32
//   lane 31          out-of-bounds: reads 4 bytes at 0x107c, 0 bytes past the end of 'x' (124 bytes at 0x1000)
#pragma once

#include "runtime/Simulator/Machine/Checks/Addresses.h"
#include "runtime/Simulator/Machine/Checks/Poison.h"
#include "runtime/Simulator/Machine/State/Cluster.h"

namespace weft::simulator::machine {

/// What is being done at the addresses.
enum class AccessKind : uint8_t { Read, Write, Atomic };

/// Where lanes' accesses go. Lanes that must not access, having been reported, are left out of `mask`.
struct Resolved {
  uint32_t mask = 0;
  uint32_t poison = 0;     ///< lanes that read what nothing wrote
  bool contiguous = false; ///< all lanes access memory one after another
  std::byte *at[laneCount];
};

/// The addresses of a record's lanes: op[operand] + Record::imm.
struct LaneAddresses {
  uint64_t at[laneCount];
  LaneAddresses(const Warp &warp, const Record &record, Ref base, bool wide);
};

/// `bytes` per lane at each address. Each reports what is wrong, counts what the access costs, and marks what it wrote.
/// `value(lane)` of resolveShared gives what a lane will write, for telling races from equal values.
Resolved resolveGlobal(Warp &warp, const Record &record, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                       AccessKind kind);
Resolved resolveShared(Warp &warp, const Record &record, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                       AccessKind kind);
Resolved resolveLocal(Warp &warp, const Record &record, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                      AccessKind kind);
Resolved resolveParam(Warp &warp, const Record &record, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                      AccessKind kind);
/// Lane by lane by window.
Resolved resolveGeneric(Warp &warp, const Record &record, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                        AccessKind kind);

/// Space-named dispatch for templates.
template <ptx::Space S>
Resolved resolve(Warp &warp, const Record &record, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                 AccessKind kind) {
  if constexpr (S == ptx::Space::Global)
    return resolveGlobal(warp, record, mask, addresses, bytes, kind);
  else if constexpr (S == ptx::Space::Shared)
    return resolveShared(warp, record, mask, addresses, bytes, kind);
  else if constexpr (S == ptx::Space::Local)
    return resolveLocal(warp, record, mask, addresses, bytes, kind);
  else if constexpr (S == ptx::Space::Param)
    return resolveParam(warp, record, mask, addresses, bytes, kind);
  else
    return resolveGeneric(warp, record, mask, addresses, bytes, kind);
}

/// One lane's shared access of `bytes` at byte `offset`, for the race detector; true where it reads what nothing wrote.
/// The byte may be another block's of the cluster, see Cluster.h.
bool shadowRead(Warp &warp, unsigned lane, uint32_t offset, unsigned bytes, bool atomic = false);
void shadowWrite(Warp &warp, unsigned lane, uint32_t offset, unsigned bytes, const std::byte *value,
                 bool atomic = false);

/// Which of the bytes that a lane reads at a resolved place nothing wrote: bit i for byte i.
uint32_t unwrittenBytes(Warp &warp, const std::byte *at, unsigned bytes);
/// What an atomic wrote, which resolveGlobal leaves unmarked, since it reads before it writes.
void markWritten(Warp &warp, const std::byte *at, unsigned bytes);
/// Marks the bytes of `unwritten` among those stored at a resolved place. False where all of them are unwritten and
/// reach memory that others read.
bool markUnwritten(Warp &warp, const std::byte *at, unsigned bytes, uint32_t unwritten);

/// After a store of `bytes` from `value`: called by stores to shared memory before they write, lane by lane.
inline bool tracksShared(const Warp &warp) {
  const Checks &checks = warp.block->grid->options.checks;
  return checks.races || checks.async || checks.uninitialised;
}

/// The key under which a strong access at a lane's address orders threads: a word's, since CUDA's headers make atomics
/// of bytes out of compare-and-swaps of words and of loads of halves.
inline uint64_t orderKey(const Warp &warp, uint64_t address, bool shared) {
  address &= ~uint64_t{3};
  const auto offset = uint32_t(address & windowOffsetMask);
  return shared ? sharedKey(*blockAt(warp, offset), offset & rankOffsetMask) : address;
}

} // namespace weft::simulator::machine
