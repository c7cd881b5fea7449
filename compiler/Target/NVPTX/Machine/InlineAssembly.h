// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Pieces of inline PTX in machine code.
#pragma once

#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/InlineAsm.h"

namespace weft {

/// The text of a piece; "" of any other instruction.
inline llvm::StringRef assemblyOf(const llvm::MachineInstr &instruction) {
  return instruction.isInlineAsm() ? instruction.getOperand(0).getSymbolName() : "";
}

/// Whether a block has a piece with such a text in it.
inline bool hasAssembly(const llvm::MachineBasicBlock &block, llvm::StringRef text) {
  return llvm::any_of(block, [&](const llvm::MachineInstr &each) { return assemblyOf(each).contains(text); });
}

inline bool hasAssembly(const llvm::MachineFunction &function, llvm::StringRef text) {
  return llvm::any_of(function, [&](const llvm::MachineBasicBlock &block) { return hasAssembly(block, text); });
}

/// Inserts a piece without operands, which nothing that accesses memory passes.
inline void insertAssembly(llvm::MachineBasicBlock &block, llvm::MachineBasicBlock::iterator before,
                           const llvm::Twine &text) {
  llvm::MachineFunction &function = *block.getParent();
  llvm::BuildMI(block, before, before == block.end() ? llvm::DebugLoc() : before->getDebugLoc(),
                function.getSubtarget().getInstrInfo()->get(llvm::TargetOpcode::INLINEASM))
      .addExternalSymbol(function.createExternalSymbolName(text.str()))
      .addImm(llvm::InlineAsm::Extra_HasSideEffects | llvm::InlineAsm::Extra_MayLoad | llvm::InlineAsm::Extra_MayStore);
}

} // namespace weft
