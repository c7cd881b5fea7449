// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Orders a kernel's machine code so that its values take fewer registers.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <functional>

namespace llvm {
class MachineFunction;
class MachineFunctionPass;
} // namespace llvm

namespace weft {

/// What ordering a block has done: registers that it held at most, before and after.
struct Reordered {
  int before, after;
};

/// What is reported, with the kernel's name.
struct RegisterReports {
  std::function<void(llvm::StringRef, Reordered)> reordered; // once for each block
  std::function<void(llvm::StringRef, int)> recomputed;      // how many values are computed again where they are used
};

/// Registers that a thread may have, and those of a multiprocessor, which holds all threads of a block.
struct RegisterLimits {
  int perThread, perProcessor;
};

/// The pass: where values do not fit in a thread's registers, cheap ones are computed again where they are used
/// (Rematerialise.h), and blocks are ordered anew.
llvm::MachineFunctionPass *createOrderForRegisters(RegisterLimits limits, RegisterReports reports);

/// Where a register was last read, it may be read again behind that: for passes that move or repeat instructions.
void forgetLastReads(llvm::MachineFunction &function);

} // namespace weft
