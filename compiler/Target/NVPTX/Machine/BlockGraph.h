// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The instructions of a block of machine code, what each must stand behind, and the registers that they hold.
#pragma once

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/MC/MCInstPrinter.h"
#include <memory>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace weft {

/// Registers of 32 bits that a virtual register takes: predicates none, as they have registers of their own.
unsigned widthOf(llvm::Register reg, const llvm::MachineRegisterInfo &registers);

/// Virtual registers that live at the end of each block, by their indices.
class LiveOut {
public:
  explicit LiveOut(const llvm::MachineFunction &function);
  const llvm::BitVector &of(const llvm::MachineBasicBlock &block) const { return live[block.getNumber()]; }

private:
  llvm::SmallVector<llvm::BitVector> live;
};

/// What a register holds from one definition to the next: in a block, or from before it.
struct BlockValue {
  unsigned char width; // registers of 32 bits
  bool liveOut;        // whether it lives at the block's end
  unsigned readers;    // instructions of the block
};

/// An instruction of a block: the values that it defines and uses, and which instructions must stand before it, by
/// their places in the block.
struct Node {
  llvm::MachineInstr *instruction;
  llvm::SmallVector<unsigned, 4> defines, uses, before;
};

/// A block's instructions up to its first terminator.
struct BlockGraph {
  llvm::SmallVector<Node, 0> nodes;
  llvm::SmallVector<BlockValue, 0> values;
  int atStart = 0, atEnd = 0; // registers that live there
  llvm::BitVector liveIn;     // virtual registers that live at the start, by their indices
};

/// What an order of a block's instructions must keep: values, registers that are written again, memory. Loads pass one
/// another; accesses of device memory and of shared memory do; nothing passes a barrier.
/// `mnemonics` names instructions that LLVM's tables leave without one.
BlockGraph graphOf(llvm::MachineBasicBlock &block, const llvm::BitVector &liveOut,
                   const llvm::MCInstPrinter &mnemonics);

/// The most registers that live in a block as it is ordered, which takes no graph of it.
int mostLive(const llvm::MachineBasicBlock &block, const llvm::BitVector &liveOut);

/// What names a target's instructions.
std::unique_ptr<llvm::MCInstPrinter> mnemonicsFor(const llvm::TargetMachine &machine);

} // namespace weft
