// Part of Weft. SPDX-License-Identifier: Apache-2.0
// bar and barrier: what their records keep.
#pragma once

#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/State/Warp.h"

namespace weft::simulator::machine {

/// Record::aux of a barrier instruction. op[0]: result of bar.red; op[1]: number; op[2]: count or noRef; op[3]:
/// predicate.
struct BarrierForm {
  bool waits = true;
  bool aligned = true;
  enum Reduction : uint8_t { None, Popc, And, Or } reduction = None;
  bool negated = false; ///< `!p`
};

/// What is known of an mbarrier that lanes wait for, for messages (MbarrierForms.cpp).
std::string mbarrierState(const Block &block, uint32_t offset);

void runBarrier(Warp &warp, const Record &record, uint32_t mask);

} // namespace weft::simulator::machine
