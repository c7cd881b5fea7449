// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See RecomputeNumbers.h. Numbers that all threads of a block share are computed from its place in the grid and from
// parameters. LLVM computes each once, at the kernel's begin:
//
//   %start = shl %ctaid.x, 7;  %end = ...            %start = shl %ctaid.x, 7
//   loop to %start ..                        ─▶      loop to %start ..
//   loop to %end ..                                  %end = ...
//                                                    loop to %end ..
//
// A loop whose products fill all registers then spills those that later loops need. What is used within a loop is computed
// before it. Numbers in which threads differ, rows and the masks of what is stored, are computed again behind all loops.

#include "compiler/Target/NVPTX/Machine/RecomputeNumbers.h"
#include "compiler/Target/NVPTX/Machine/OrderForRegisters.h"
#include "llvm/ADT/DepthFirstIterator.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/CodeGen/MachineDominators.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/Function.h"

using namespace llvm;

namespace weft {
namespace {

/// Instructions that one number is computed by again at the most; a number of more stays.
constexpr size_t mostAgain = 16;

class RecomputeNumbers : public MachineFunctionPass {
public:
  static char ID;
  RecomputeNumbers() : MachineFunctionPass(ID) {}
  StringRef getPassName() const override { return "Weft: recompute numbers"; }
  bool runOnMachineFunction(MachineFunction &function) override;
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesCFG();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
};

char RecomputeNumbers::ID = 0;

/// What is computed again at one place, by what it stands for.
using Copies = DenseMap<Register, Register>;

class Recomputing {
public:
  explicit Recomputing(MachineFunction &function)
      : function(function), registers(function.getRegInfo()), instructions(*function.getSubtarget().getInstrInfo()) {}
  bool run();

private:
  void find(MachineBasicBlock &block);
  bool isNumber(const MachineInstr &instruction) const;
  bool isOfThread(const MachineInstr &instruction) const;
  bool isGiven(const MachineInstr &instruction) const;
  size_t lengthOf(Register number, const Copies &copies) const;
  Register again(Register number, MachineBasicBlock &block, MachineBasicBlock::iterator at, Copies &copies);

  MachineFunction &function;
  MachineRegisterInfo &registers;
  const TargetInstrInfo &instructions;
  DenseMap<Register, MachineInstr *> numbers; // and what computes them
  DenseSet<Register> ofThread;                // numbers in which threads differ
  DenseSet<Register> given;                   // parameters, which ptxas reads where it needs them
};
} // namespace

/// Whether an instruction reads a parameter.
bool Recomputing::isGiven(const MachineInstr &instruction) const {
  return instruction.mayLoad() && !instruction.mayStore() && instruction.getNumExplicitDefs() == 1 &&
         llvm::any_of(instruction.operands(), [](const MachineOperand &each) { return each.isSymbol(); });
}

/// Whether an instruction computes a number from others alone.
bool Recomputing::isNumber(const MachineInstr &instruction) const {
  if (instruction.getNumExplicitDefs() != 1 || instruction.isPHI() || instruction.isInlineAsm() ||
      instruction.isCall() || instruction.mayLoadOrStore() || instruction.isTerminator())
    return false;
  const MachineOperand &result = instruction.getOperand(0);
  if (!result.isReg() || !result.getReg().isVirtual() || !registers.hasOneDef(result.getReg()))
    return false;
  StringRef name = instructions.getName(instruction.getOpcode());
  bool ofGrid = name.contains_insensitive("sreg_ctaid"), ofBlock = name.contains_insensitive("sreg_tid");
  if (!ofGrid && !ofBlock && instruction.hasUnmodeledSideEffects())
    return false;
  bool any = ofGrid || ofBlock;
  for (const MachineOperand &operand : instruction.explicit_uses()) {
    if (!operand.isReg())
      continue;
    if (!numbers.contains(operand.getReg()) && !given.contains(operand.getReg()))
      return false;
    any = true;
  }
  return any;
}

/// Whether threads differ in such a number.
bool Recomputing::isOfThread(const MachineInstr &instruction) const {
  return StringRef(instructions.getName(instruction.getOpcode())).contains_insensitive("sreg_tid") ||
         llvm::any_of(instruction.explicit_uses(), [&](const MachineOperand &operand) {
           return operand.isReg() && ofThread.contains(operand.getReg());
         });
}

void Recomputing::find(MachineBasicBlock &block) {
  for (MachineInstr &instruction : block) {
    if (isGiven(instruction) && registers.hasOneDef(instruction.getOperand(0).getReg()))
      given.insert(instruction.getOperand(0).getReg());
    else if (isNumber(instruction)) {
      numbers[instruction.getOperand(0).getReg()] = &instruction;
      if (isOfThread(instruction))
        ofThread.insert(instruction.getOperand(0).getReg());
    }
  }
}

/// How many instructions compute a number where some have been computed again.
size_t Recomputing::lengthOf(Register number, const Copies &copies) const {
  SmallVector<Register> waiting{number};
  DenseSet<Register> seen;
  while (!waiting.empty() && seen.size() <= mostAgain) {
    Register next = waiting.pop_back_val();
    if (copies.contains(next) || !seen.insert(next).second)
      continue;
    for (const MachineOperand &operand : numbers.at(next)->explicit_uses())
      if (operand.isReg() && numbers.contains(operand.getReg()))
        waiting.push_back(operand.getReg());
  }
  return seen.size();
}

Register Recomputing::again(Register number, MachineBasicBlock &block, MachineBasicBlock::iterator at, Copies &copies) {
  if (Register known = copies.lookup(number))
    return known;
  MachineInstr *made = function.CloneMachineInstr(numbers.at(number));
  for (MachineOperand &operand : made->explicit_uses())
    if (operand.isReg() && numbers.contains(operand.getReg()))
      operand.setReg(again(operand.getReg(), block, at, copies));
  Register result = registers.createVirtualRegister(registers.getRegClass(number));
  made->getOperand(0).setReg(result);
  block.insert(at, made);
  return copies[number] = result;
}

bool Recomputing::run() {
  MachineDominatorTree dominators(function);
  MachineLoopInfo loops(dominators);
  for (MachineBasicBlock *block : ReversePostOrderTraversal<MachineFunction *>(&function))
    if (!loops.getLoopFor(block))
      find(*block);
  if (numbers.empty())
    return false;
  DenseMap<MachineBasicBlock *, Copies> beforeLoops;
  bool changed = false;
  for (MachineBasicBlock &block : function) {
    MachineLoop *loop = loops.getLoopFor(&block);
    const bool atEnd =
        llvm::none_of(llvm::depth_first(&block), [&](MachineBasicBlock *behind) { return loops.getLoopFor(behind); });
    MachineBasicBlock *place = loop ? loop->getOutermostLoop()->getLoopPreheader() : &block;
    if (!place)
      continue;
    Copies here;
    Copies &copies = loop ? beforeLoops[place] : here;
    for (MachineInstr &instruction : block)
      for (MachineOperand &operand : instruction.uses()) {
        if (!operand.isReg() || !numbers.contains(operand.getReg()) ||
            numbers.at(operand.getReg())->getParent() == place || (!atEnd && ofThread.contains(operand.getReg())) ||
            lengthOf(operand.getReg(), copies) > mostAgain)
          continue;
        auto at = loop || instruction.isTerminator() ? place->getFirstTerminator() : instruction.getIterator();
        operand.setReg(again(operand.getReg(), *place, at, copies));
        changed = true;
      }
  }
  // What nothing uses any more goes, from the last on.
  for (MachineBasicBlock &block : llvm::reverse(function))
    for (MachineInstr &instruction : llvm::make_early_inc_range(llvm::reverse(block))) {
      auto found = instruction.getNumOperands() == 0 || !instruction.getOperand(0).isReg()
                       ? numbers.end()
                       : numbers.find(instruction.getOperand(0).getReg());
      if (found != numbers.end() && found->second == &instruction && registers.use_empty(found->first))
        instruction.eraseFromParent();
    }
  return changed;
}

bool RecomputeNumbers::runOnMachineFunction(MachineFunction &function) {
  if (!function.getFunction().hasFnAttribute("nvvm.minctasm") || !Recomputing(function).run())
    return false;
  forgetLastReads(function);
  return true;
}

MachineFunctionPass *createRecomputeNumbers() { return new RecomputeNumbers(); }

} // namespace weft
