// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The counter-based random numbers of `#attn.random_blocks`: Philox-2x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel
// random numbers: as easy as 1, 2, 3", 2011), over an arithmetic backend.
#pragma once

#include <cstdint>

namespace weft::attn {

/// The first word of Philox-2x32-10 at counter (`low`, `high`) under `key`; words are 32 bits, unsigned, in an Int.
template <class A> typename A::Int philox(A &a, typename A::Int low, typename A::Int high, uint32_t key) {
  auto word = [&](uint32_t bits) { return a.constant(static_cast<int32_t>(bits)); };
  auto multiplier = word(0xD256D193u);
  for (int round = 0; round < 10; ++round, key += 0x9E3779B9u) {
    auto mixed = a.xor32(a.xor32(a.mulHigh32(multiplier, low), word(key)), high);
    high = a.mulLow32(multiplier, low);
    low = mixed;
  }
  return low;
}

} // namespace weft::attn
