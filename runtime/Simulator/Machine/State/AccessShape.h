// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How the 32 addresses of an instruction lie: what that costs, and whether they lie so again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::simulator::machine {

/// What addresses have in common.
struct AddressPattern {
  uint64_t low = 0, high = 0; ///< the least and the greatest address
  uint64_t bits = 0;          ///< of any address
  bool contiguous = false;    ///< all 32 lanes access memory one after another
};

/// Bank passes that an access of `bytes` a lane takes: 4-byte accesses go together, 8-byte ones by half warps, 16-byte
/// ones by quarters; lanes that read one word share it.
struct Wavefronts {
  unsigned taken = 0, ideal = 0;
};

/// What the addresses of an instruction had in common when all lanes made it last. They mostly lie the same way again,
/// all moved by as many bytes: then nothing is to be found out anew.
class AccessShape {
public:
  /// Whether accesses of `bytes` at these addresses are those that were measured, moved by whole sectors. If so,
  /// `places` are where they go in host memory, where the first lane's place is `first`.
  bool fits(const uint64_t *addresses, unsigned bytes, uintptr_t first, std::byte **places) const;
  /// `pattern` is that of the addresses, which must be multiples of `bytes`, without their window.
  void measure(const uint64_t *addresses, unsigned bytes, const AddressPattern &pattern);
  /// Of accesses that fit, by the first lane's address without its window.
  AddressPattern pattern(uint64_t first) const { return {first + low_, first + high_, 0, contiguous_}; }

  /// What accesses that fit cost: counted by those who measure, in shared or in global memory.
  Wavefronts wavefronts;
  unsigned sectors = 0;

private:
  uint64_t apart_[32] = {};     ///< each address less the first
  uint64_t low_ = 0, high_ = 0; ///< likewise
  uint32_t inSector_ = 0;       ///< where in its sector the first address is
  unsigned bytes_ = 0;          ///< 0: nothing was measured
  bool contiguous_ = false;
};

} // namespace weft::simulator::machine
