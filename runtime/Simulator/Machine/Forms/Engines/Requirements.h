// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Instructions that targets before some have not.
#pragma once

#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Support/Format.h"

#include <cstdlib>

namespace weft::simulator::machine {

/// Refuses an instruction on targets before sm_90, as ptxas does.
inline void needsHopper(Binding &b) {
  const std::string &target = b.decoder.program().target;
  if (target.starts_with("sm_") && std::atoi(target.c_str() + 3) < 90)
    b.unsupported(format("'{}' on '{}'", b.instruction.spelling(), target));
}

} // namespace weft::simulator::machine
