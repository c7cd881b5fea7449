// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Computes cheap integers again where they are used, in kernels whose values do not fit in registers.
#pragma once

#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/MC/MCInstPrinter.h"

namespace weft {

/// Where more registers live in a block than a thread has, integers that other blocks have computed from what lives
/// there anyway are computed again in each block that uses them. Gives how many are; none, and the function is as it was,
/// where `isWorth` does not hold of what comes of it.
int rematerialise(llvm::MachineFunction &function, int registersPerThread, const llvm::MCInstPrinter &mnemonics,
                  llvm::function_ref<bool()> isWorth);

} // namespace weft
