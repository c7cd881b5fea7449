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

/// wgmma, which sm_90a alone has.
inline void needsWarpgroups(Binding &b) {
  needsHopper(b);
  if (const int number = targetNumber(b); number >= 100 && number != std::numeric_limits<int>::max())
    b.unsupported(format("'{}' on '{}'", b.instruction.spelling(), b.decoder.program().target));
}

/// Whether the target has tcgen05: sm_100, sm_101, sm_103 and sm_110 by their names with 'a' or 'f' (PTX ISA 9.7.16).
inline bool hasTensorMemory(Binding &b) {
  const int number = targetNumber(b);
  const std::string &target = b.decoder.program().target;
  const bool family = number == 100 || number == 101 || number == 103 || number == 110;
  return number == std::numeric_limits<int>::max() || (family && (target.ends_with('a') || target.ends_with('f')));
}
inline void needsTensorMemory(Binding &b) {
  if (!hasTensorMemory(b))
    b.unsupported(format("'{}' on '{}'", b.instruction.spelling(), b.decoder.program().target));
}

/// Refuses reductions of f32 over a warp but on sm_100 and sm_103 by their names with 'a' or 'f', as ptxas does.
inline void needsFloatReductions(Binding &b) {
  const int number = targetNumber(b);
  if (!hasTensorMemory(b) || number == 101 || number == 110)
    b.unsupported(format("'{}' on '{}'", b.instruction.spelling(), b.decoder.program().target));
}

} // namespace weft::simulator::machine
