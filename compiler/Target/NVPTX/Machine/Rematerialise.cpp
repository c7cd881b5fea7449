// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Rematerialise.h. Invariants leave loops wherever they can, and with them the indices of everything that a loop
// reads and writes. What those take, the loop's values lack:
//
//   %a = or.b32 %row, 64                            loop:
//   loop:                                 -->         ...
//     ...                                             %a1 = or.b32 %row, 64
//     st.shared [%a], ..                              st.shared [%a1], ..
//
// An instruction in place of two that write a register to memory and read it back.

#include "compiler/Target/NVPTX/Machine/Rematerialise.h"
#include "compiler/Target/NVPTX/Machine/BlockGraph.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/CodeGen/MachineDominators.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/MC/MCInst.h"

using namespace llvm;

namespace weft {
namespace {

/// Instructions that a register may take in blocks of loops, and elsewhere, where those of a block share them.
constexpr unsigned mostInLoops = 1, mostElsewhere = 12;

/// A register that can be computed again in the blocks that use it.
struct Candidate {
  Register reg;
  int width;
  SmallVector<MachineInstr *> slice;            // what computes it from what lives in those blocks, in order
  SmallVector<Register, 4> leaves;              // what that is
  Register absent;                              // one of those, where it does not live in all of those blocks
  SmallSetVector<MachineBasicBlock *, 4> users; // blocks other than the definition's
  unsigned repeats = 0;                         // of the users, the loops around them, for each instruction
};

class Rematerialiser {
public:
  Rematerialiser(MachineFunction &function, int limit, const MCInstPrinter &mnemonics)
      : function(function), registers(function.getRegInfo()), limit(limit), mnemonics(mnemonics), dominators(function),
        loops(dominators) {}
  /// Gives how many registers it has computed again; none is left to be where that is 0.
  int round();
  /// Leaves the function as it was.
  void undo();
  /// Erases what is computed again wherever it is used.
  void eraseUnused();

private:
  bool isCheap(const MachineInstr &instruction) const;
  std::optional<Candidate> candidateOf(Register reg) const;
  bool addToSlice(Register reg, Candidate &candidate) const;
  bool takeAlone(Candidate &candidate) const;
  bool isLiveIn(Register reg, const MachineBasicBlock &block) const {
    return liveIn[block.getNumber()].test(reg.virtRegIndex());
  }
  bool helps(Register reg) const {
    return llvm::any_of(hot, [&](const MachineBasicBlock *block) {
      return pressure[block->getNumber()] > limit && isLiveIn(reg, *block);
    });
  }
  void accept(Candidate candidate);
  void applyIn(MachineBasicBlock &block);

  MachineFunction &function;
  MachineRegisterInfo &registers;
  int limit;
  const MCInstPrinter &mnemonics;
  MachineDominatorTree dominators;
  MachineLoopInfo loops;
  SmallVector<BitVector> liveIn;
  SmallVector<int> pressure;
  SmallVector<MachineBasicBlock *> hot;
  MapVector<Register, Candidate> accepted;
  struct Renamed {
    MachineInstr *instruction;
    Register before, after;
  };
  SmallVector<Renamed, 0> renamed;
  SmallVector<MachineInstr *, 0> clones;
  DenseSet<Register> kept; // what accepted candidates are computed from
};

} // namespace

/// Integer arithmetic that takes no more than an instruction or two.
bool Rematerialiser::isCheap(const MachineInstr &instruction) const {
  if (instruction.isInlineAsm() || instruction.isConvergent() || instruction.mayLoadOrStore() ||
      instruction.hasUnmodeledSideEffects() || instruction.isTerminator() || instruction.isPosition() ||
      instruction.isCall())
    return false;
  MCInst opcode;
  opcode.setOpcode(instruction.getOpcode());
  const char *name = mnemonics.getMnemonic(opcode).first;
  if (!name)
    return false;
  constexpr StringLiteral cheap[] = {"mov.b", "mov.u",     "add.s",    "sub.s",      "or.b",
                                     "and.b", "xor.b",     "shl.b",    "shr.u",      "shr.s",
                                     "bfe.u", "mul.wide.", "mul.lo.s", "mad.wide.s", "mad.lo.s"};
  return llvm::any_of(cheap, [&](StringRef prefix) { return StringRef(name).starts_with(prefix); });
}

/// Adds what computes `reg`, and what that is computed from, as far as it does not live in the candidate's blocks.
bool Rematerialiser::addToSlice(Register reg, Candidate &candidate) const {
  // What is written more than once, as a loop's own numbers are, is another value by then.
  if (!reg.isVirtual() || !registers.hasOneDef(reg))
    return false;
  if (reg != candidate.reg && llvm::all_of(candidate.users, [&](auto *block) { return isLiveIn(reg, *block); })) {
    candidate.leaves.push_back(reg);
    return !accepted.contains(reg);
  }
  MachineInstr *definition = registers.getOneDef(reg)->getParent();
  if (llvm::is_contained(candidate.slice, definition))
    return true;
  if (!isCheap(*definition) || definition->getNumExplicitDefs() != 1)
    return false;
  for (const MachineOperand &operand : definition->operands())
    if (operand.isReg() && !operand.isDef() && !addToSlice(operand.getReg(), candidate))
      return false;
  candidate.slice.push_back(definition);
  return candidate.slice.size() <= (candidate.repeats ? mostInLoops : mostElsewhere);
}

/// Makes a candidate's slice its definition, of whose operands at most one does not live in the candidate's blocks.
bool Rematerialiser::takeAlone(Candidate &candidate) const {
  MachineInstr *definition = registers.getOneDef(candidate.reg)->getParent();
  if (!isCheap(*definition) || definition->getNumExplicitDefs() != 1)
    return false;
  for (const MachineOperand &operand : definition->operands()) {
    if (!operand.isReg() || operand.isDef())
      continue;
    Register reg = operand.getReg();
    if (!reg.isVirtual() || !registers.hasOneDef(reg))
      return false;
    candidate.leaves.push_back(reg);
    if (llvm::all_of(candidate.users, [&](auto *block) { return isLiveIn(reg, *block); }))
      continue;
    if (candidate.absent && candidate.absent != reg)
      return false;
    candidate.absent = reg;
  }
  candidate.slice = {definition};
  return true;
}

std::optional<Candidate> Rematerialiser::candidateOf(Register reg) const {
  if (!registers.hasOneDef(reg))
    return std::nullopt;
  MachineBasicBlock *home = registers.getOneDef(reg)->getParent()->getParent();
  Candidate found{reg, int(widthOf(reg, registers)), {}, {}, {}, {}, 0};
  for (MachineInstr &user : registers.use_nodbg_instructions(reg)) {
    MachineBasicBlock *block = user.getParent();
    if (block == home)
      continue;
    if (!dominators.dominates(home, block))
      return std::nullopt;
    if (found.users.insert(block))
      found.repeats += loops.getLoopDepth(block);
  }
  if (found.width == 0 || found.users.empty())
    return std::nullopt;
  Candidate alone = found;
  if (!addToSlice(reg, found)) {
    if (!takeAlone(alone))
      return std::nullopt;
    found = std::move(alone);
  }
  found.repeats *= found.slice.size();
  return found;
}

void Rematerialiser::accept(Candidate candidate) {
  kept.insert_range(candidate.leaves);
  for (MachineBasicBlock &block : function)
    if (isLiveIn(candidate.reg, block))
      pressure[block.getNumber()] -= candidate.width;
  Register reg = candidate.reg;
  accepted.insert({reg, std::move(candidate)});
}

/// Computes what a block uses of the accepted registers again, each where it is used first.
void Rematerialiser::applyIn(MachineBasicBlock &block) {
  const TargetRegisterInfo &info = *registers.getTargetRegisterInfo();
  DenseMap<Register, Register> again;
  for (MachineInstr &instruction : llvm::make_early_inc_range(block)) {
    SmallVector<Register, 4> used;
    for (const MachineOperand &operand : instruction.operands())
      if (operand.isReg() && operand.isUse() && operand.getReg().isVirtual())
        used.push_back(operand.getReg());
    for (Register reg : used) {
      auto found = accepted.find(reg);
      if (found == accepted.end() || !found->second.users.contains(&block))
        continue;
      for (MachineInstr *part : found->second.slice) {
        Register made = part->getOperand(0).getReg();
        if (again.contains(made))
          continue;
        MachineInstr *clone = function.CloneMachineInstr(part);
        block.insert(instruction.getIterator(), clone);
        clones.push_back(clone);
        for (MachineOperand &operand : clone->operands())
          if (operand.isReg() && operand.isUse())
            if (auto found = again.find(operand.getReg()); found != again.end())
              operand.setReg(found->second);
        Register fresh = registers.cloneVirtualRegister(made);
        clone->substituteRegister(made, fresh, 0, info);
        again[made] = fresh;
      }
      instruction.substituteRegister(reg, again[reg], 0, info);
      renamed.push_back({&instruction, reg, again[reg]});
    }
  }
}

int Rematerialiser::round() {
  LiveOut liveOut(function);
  liveIn.clear();
  pressure.assign(function.getNumBlockIDs(), 0);
  hot.clear();
  accepted.clear();
  kept.clear();
  liveIn.assign(function.getNumBlockIDs(), BitVector(registers.getNumVirtRegs()));
  for (MachineBasicBlock &block : function) {
    BlockGraph graph = graphOf(block, liveOut.of(block), mnemonics);
    liveIn[block.getNumber()] = graph.liveIn;
    int most = mostLive(block, liveOut.of(block));
    pressure[block.getNumber()] = most;
    if (most > limit)
      hot.push_back(&block);
  }
  if (hot.empty())
    return 0;
  SmallVector<Candidate> candidates;
  for (unsigned index = 0; index < registers.getNumVirtRegs(); ++index)
    if (Register reg = Register::index2VirtReg(index); helps(reg))
      if (std::optional<Candidate> found = candidateOf(reg))
        candidates.push_back(std::move(*found));
  // Those first that loops compute least often again, and of such the widest.
  llvm::sort(candidates, [](const Candidate &a, const Candidate &b) {
    return std::tuple(a.repeats, -a.width, a.reg.id()) < std::tuple(b.repeats, -b.width, b.reg.id());
  });
  auto stillHelps = [&](const Candidate &candidate) {
    return !kept.contains(candidate.reg) && helps(candidate.reg) &&
           llvm::none_of(candidate.leaves, [&](Register leaf) { return accepted.contains(leaf); });
  };
  MapVector<Register, SmallVector<Candidate>> waiting; // for a value that does not live there
  for (Candidate &candidate : candidates)
    if (candidate.absent)
      waiting[candidate.absent].push_back(std::move(candidate));
    else if (stillHelps(candidate))
      accept(std::move(candidate));
  for (auto &[absent, together] : waiting) { // that value instead of several
    int saved = -int(widthOf(absent, registers));
    for (const Candidate &each : together)
      saved += stillHelps(each) ? each.width : 0;
    if (saved > 0)
      for (Candidate &each : together)
        if (stillHelps(each))
          accept(std::move(each));
  }
  for (MachineBasicBlock &block : function)
    applyIn(block);
  return accepted.size();
}

void Rematerialiser::undo() {
  for (auto [instruction, before, after] : llvm::reverse(renamed))
    instruction->substituteRegister(after, before, 0, *registers.getTargetRegisterInfo());
  for (MachineInstr *clone : llvm::reverse(clones))
    clone->eraseFromParent();
}

void Rematerialiser::eraseUnused() {
  for (auto [instruction, before, after] : renamed)
    if (registers.hasOneDef(before) && registers.use_nodbg_empty(before))
      registers.getOneDef(before)->getParent()->eraseFromParent();
}

int rematerialise(MachineFunction &function, int registersPerThread, const MCInstPrinter &mnemonics,
                  function_ref<bool()> isWorth) {
  constexpr int rounds = 4;
  int total = 0;
  Rematerialiser rematerialiser(function, registersPerThread, mnemonics);
  for (int i = 0; i < rounds; ++i) {
    int found = rematerialiser.round();
    total += found;
    if (!found)
      break;
  }
  if (total && !isWorth()) {
    rematerialiser.undo();
    return 0;
  }
  rematerialiser.eraseUnused();
  return total;
}

} // namespace weft
