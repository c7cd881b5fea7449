// Part of Weft. SPDX-License-Identifier: Apache-2.0
// One thread acts for several that hold the same element, and hands them what it got.
#pragma once

#include "compiler/Conversion/WarpToLLVM/Emitter.h"

namespace weft {

/// Which bits of a thread's number may differ in the threads that hold the same element of a value of `type`.
uint32_t sharedThreadBits(mlir::Type type, Emitter &e);

/// To be emitted before the acting thread acts: a barrier where `handRound` will go through shared memory, so that what
/// was last handed round has been read. It also orders all that the block did before the act.
void beforeHandingRound(uint32_t threadBits, Emitter &e);

/// The values that the acting thread got, in every thread that differs from it in `threadBits` only: by shuffles, or
/// through shared memory and one barrier where the bits span warps.
Registers handRound(llvm::ArrayRef<mlir::Value> values, uint32_t threadBits, Emitter &e);

} // namespace weft
