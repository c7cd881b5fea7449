// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Calls of functions that may call themselves. All others are inlined; of these there is one copy behind the kernel,
// and each call of it puts a frame on the stack of the lane:
//
//   local memory of a lane:  | the kernel's variables | frame | frame | what alloca gave | ...
//                                                     stackStart                    stackTop
//
// A frame holds parameters, results and variables, which the copy addresses from a register. The called function saves
// the registers that it writes, which the caller's share slots with, in Warp::calls.
#pragma once

#include "runtime/Simulator/Machine/State/Warp.h"

namespace weft::simulator::machine {

/// Bytes that move between the frames of a caller and of the function that it calls.
struct ParameterCopy {
  uint32_t caller = 0, callee = 0, bytes = 0;
};

/// Record::aux of a call. op[0]: where the caller's variables begin.
struct CallForm {
  uint32_t function = 0; ///< index into Kernel::called
  std::vector<ParameterCopy> arguments, results;
};

void runCall(Warp &warp, const Record &record, uint32_t mask);
void runReturn(Warp &warp, const Record &record, uint32_t mask);
/// op[0] = op[1] + Record::imm, 64 bits: the address of a variable of a frame.
void runFrameAddress(Warp &warp, const Record &record, uint32_t mask);
/// A function that was inlined begins, its variables not being written yet, and ends, after which they are nobody's:
/// bytes from Record::imm to Record::target of the frame at op[0], or of the kernel's variables.
void runEnterFrame(Warp &warp, const Record &record, uint32_t mask);
void runLeaveFrame(Warp &warp, const Record &record, uint32_t mask);

} // namespace weft::simulator::machine
