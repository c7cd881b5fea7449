// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Orders a kernel's machine code so that its values take fewer registers.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <functional>

namespace llvm {
class MachineFunctionPass;
} // namespace llvm

namespace weft {

/// What ordering a block has done: registers that it held at most, before and after.
struct Reordered {
  int before, after;
};

/// What a report is called with: the kernel's name, once for each block.
using ReportReordered = std::function<void(llvm::StringRef, Reordered)>;

/// The pass: blocks whose values do not fit in a thread's registers are ordered anew.
llvm::MachineFunctionPass *createOrderForRegisters(int registersPerThread, ReportReordered report);

} // namespace weft
