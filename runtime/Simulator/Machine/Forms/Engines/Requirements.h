// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Instructions that targets before some have not.
#pragma once

#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Support/Format.h"

#include <charconv>
#include <limits>

namespace weft::simulator::machine {

/// 90 of "sm_90a"; a target of another name has everything.
inline int targetNumber(Binding &b) {
  const std::string &target = b.decoder.program().target;
  int number = std::numeric_limits<int>::max();
  if (target.starts_with("sm_"))
    std::from_chars(target.data() + 3, target.data() + target.size(), number);
  return number;
}

/// Refuses an instruction on targets before `least`, as ptxas does.
inline void needsTarget(Binding &b, int least) {
  if (targetNumber(b) < least)
    b.unsupported(format("'{}' on '{}'", b.instruction.spelling(), b.decoder.program().target));
}

inline void needsHopper(Binding &b) { needsTarget(b, 90); }

} // namespace weft::simulator::machine
