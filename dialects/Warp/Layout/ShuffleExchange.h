// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Converting between two layouts inside each warp, by shuffles.
#pragma once

#include "dialects/Warp/Layout/LinearLayout.h"

namespace weft::warp {

/// How each lane gets its elements from lanes of its own warp. A result register r takes, in thread t (its lane, with
/// the warp's number above), the source register `registerOf[r]` ^ (the xor of `registerSteps[i]` over the set bits i of
/// t) of lane `laneOf[r]` ^ (the xor of `laneSteps[i]` over the same bits). The threads that want different registers are
/// told apart by single bits: the nonzero `registerSteps` are linearly independent.
struct ShuffleExchange {
  llvm::SmallVector<uint32_t> registerOf, laneOf;
  llvm::SmallVector<uint32_t, 8> registerSteps, laneSteps;

  /// The thread bits with a nonzero register step.
  llvm::SmallVector<unsigned, 5> choosingBits() const;
  /// Whether a lane finds what it gets from lane 0 in itself: no shuffle, but a choice among its registers.
  bool isOwnLane() const;
};

/// The exchange from `source` to `result`, if no element leaves its warp and shuffles take no longer than writing to
/// and reading from shared memory does. Of lanes that hold the same, each takes from itself. Where all warps hold the
/// same, each may want other elements.
std::optional<ShuffleExchange> shuffleExchange(const LinearLayout &source, const LinearLayout &result,
                                               unsigned elementBytes);

} // namespace weft::warp
