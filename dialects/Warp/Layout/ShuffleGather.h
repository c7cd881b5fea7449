// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Picking elements along an axis inside each warp, by shuffles.
#pragma once

#include "dialects/Warp/Layout/LinearLayout.h"

namespace weft::warp {

/// How each lane gets the elements that its indices name from lanes of its own warp: from the register and the lane that
/// are the xor of `ofRegister` of the result's register, of the steps of the set bits of lane and warp, and of those of
/// the index. The warps and blocks of these places are 0.
struct ShuffleGather {
  llvm::SmallVector<Place> ofRegister;
  llvm::SmallVector<Place, 5> laneSteps, warpSteps, indexSteps;

  /// The bits of the source's register that lanes, warps and indices move: each doubles the shuffles.
  uint32_t choosingBits() const;
};

/// How a gather along `axis` takes its elements, if none leaves its warp and shuffles take no longer than writing to and
/// reading from shared memory does. The layouts' shapes differ along `axis` alone.
std::optional<ShuffleGather> shuffleGather(const LinearLayout &source, const LinearLayout &result, unsigned axis,
                                           unsigned elementBytes);

} // namespace weft::warp
