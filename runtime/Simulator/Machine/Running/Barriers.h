// Part of Weft. SPDX-License-Identifier: Apache-2.0
// bar and barrier: what their records keep.
#pragma once

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

/// A warp has lost lanes: barriers that waited for them may be complete.
void recheckBarriers(Block &block);

void runBarrier(Warp &warp, const Record &record, uint32_t mask);

} // namespace weft::simulator::machine
