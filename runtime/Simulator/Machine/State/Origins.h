// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a finding about an unwritten value says besides where the value mattered: what left it unwritten, and which
// instruction read it first. An origin travels with the value, from register to register and through shared and local
// memory; nothing of this is touched while all values of a warp are written.
#pragma once

#include "runtime/Simulator/Machine/State/Program.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace weft::simulator::machine {

/// Why a value is unwritten.
struct Origin {
  static constexpr uint32_t nowhere = ~0u;
  enum Cause : uint8_t {
    Register, ///< no instruction wrote the register before it was read
    Guard,    ///< `pc` would have written it, and its predicate was false
    Shared,   ///< byte `place` of shared memory was never written
    Local,    ///< byte `place` of local memory
    Global,   ///< the byte of global memory at address `place`
    Tensor,   ///< cells of tensor memory from the address `place` on
    Lane,     ///< lane `place` of a shuffle, which takes no part in it
  } cause = Register;
  uint32_t pc = nowhere;
  uint32_t read = nowhere; ///< the record that read it first
  uint32_t name = 0;       ///< of a register: index into Kernel::maybeUninitialised
  uint64_t place = 0;
};

/// The origins of one block's values, by number from 1. Origins that differ in their places only are one.
class OriginTable {
public:
  void clear();
  uint32_t add(const Origin &origin);
  const Origin &operator[](uint32_t number) const { return origins_[number - 1]; }
  /// Origins of unwritten values that were stored, by the byte that they were stored at.
  std::unordered_map<const std::byte *, uint32_t> stored;

private:
  std::vector<Origin> origins_;
  std::map<std::tuple<Origin::Cause, uint32_t, uint32_t, uint32_t>, uint32_t> numbers_;
};

/// The origin of what a register holds in a lane; 0 for none.
uint32_t originOf(const Warp &warp, Ref ref, unsigned lane);
void setOrigin(Warp &warp, Ref ref, uint32_t lanes, uint32_t origin);
/// The same origin, read by the record that runs if nobody read it before.
uint32_t readNow(Warp &warp, uint32_t origin);
/// The same origin, read by the record that runs, whoever read it before.
uint32_t readHere(Warp &warp, uint32_t origin);
/// The number of an origin that the record which runs is the first to read.
uint32_t readFirst(Warp &warp, Origin::Cause cause, uint64_t place);
/// The origin of unwritten bytes at a resolved place of memory.
uint32_t originAt(Warp &warp, const std::byte *at, unsigned bytes, uint32_t unwritten);
/// Remembers the origin of an unwritten value stored there.
void rememberOrigin(Warp &warp, const std::byte *at, unsigned bytes, uint32_t unwritten, uint32_t origin);

/// "'%r9', which nothing wrote, was first read by 'add.u32' at line 12" or its like; empty for origin 0.
std::string describeOrigin(const Warp &warp, uint32_t origin);

} // namespace weft::simulator::machine
