// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See WaitsBehindLoops.h. A loop whose product goes on into the next iteration leaves one under way, which is waited for
// behind the loop, where it is come to without the loop too, if that may have no iteration:
//
//     @none bra BEHIND                         @none bra BEHIND
//   LOOP:                                    LOOP:
//     wgmma; wgmma.wait_group 1                wgmma; wgmma.wait_group 1
//     @more bra LOOP                 ─▶        @more bra LOOP
//   BEHIND:                                    wgmma.wait_group 0
//     wgmma.wait_group 0                     BEHIND:
//
// Where the sums of an earlier product come there the other way, or those that it did not change, ptxas takes what set
// these for a write between the loop's product and its wait, and lets all products of the kernel run one after another
// (C7515). So the way out of the loop has a wait of its own, if sums of another product may come by the other way;
// the one behind goes where nothing is left for it.

#include "compiler/Target/NVPTX/Machine/WaitsBehindLoops.h"
#include "compiler/Target/NVPTX/Machine/InlineAssembly.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/CodeGen/MachineDominators.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineLoopInfo.h"

using namespace llvm;

namespace weft {
namespace {

constexpr const char *waitForAll = "wgmma.wait_group.sync.aligned 0;";

class WaitsBehindLoops : public MachineFunctionPass {
public:
  static char ID;
  WaitsBehindLoops() : MachineFunctionPass(ID) {}
  StringRef getPassName() const override { return "Weft: waits behind loops"; }
  bool runOnMachineFunction(MachineFunction &function) override;
};

char WaitsBehindLoops::ID = 0;

/// The registers, on some way to a place, of products that may be under way, and those that products wrote last.
struct Sums {
  DenseSet<Register> underWay, finished;

  bool join(const Sums &other) {
    const size_t before = underWay.size() + finished.size();
    underWay.insert_range(other.underWay);
    finished.insert_range(other.finished);
    return underWay.size() + finished.size() != before;
  }
  void follow(const MachineInstr &instruction);
};

/// What is so at the end of each block, by numbers.
using AtEnds = SmallVector<Sums>;
using Way = std::pair<MachineBasicBlock *, MachineBasicBlock *>;
} // namespace

void Sums::follow(const MachineInstr &instruction) {
  StringRef text = assemblyOf(instruction);
  const bool multiplies = text.contains("wgmma.mma_async");
  if (text.contains(waitForAll)) {
    finished.insert_range(underWay);
    underWay.clear();
  }
  if (text.starts_with("wgmma.") && !multiplies)
    return; // a wait or a fence, which sums go through
  for (const MachineOperand &operand : instruction.all_defs()) {
    underWay.erase(operand.getReg());
    finished.erase(operand.getReg());
    if (multiplies)
      underWay.insert(operand.getReg());
  }
}

static AtEnds sumsAtEnds(const MachineFunction &function) {
  AtEnds ends(function.getNumBlockIDs());
  for (bool changed = true; changed;) {
    changed = false;
    for (const MachineBasicBlock &block : function) {
      Sums sums;
      for (const MachineBasicBlock *before : block.predecessors())
        sums.join(ends[before->getNumber()]);
      for (const MachineInstr &instruction : block)
        sums.follow(instruction);
      changed |= ends[block.getNumber()].join(sums);
    }
  }
  return ends;
}

/// The ways out of loops on which a product is under way, to blocks where its sums may come from elsewhere as what
/// another product gave.
static SmallVector<Way> waysOut(MachineFunction &function, const AtEnds &ends) {
  MachineDominatorTree dominators(function);
  MachineLoopInfo loops(dominators);
  auto comesFromElsewhere = [&](const MachineBasicBlock &block, Register sum) {
    return any_of(block.predecessors(), [&](const MachineBasicBlock *before) {
      const Sums &sums = ends[before->getNumber()];
      return sums.finished.contains(sum) && !sums.underWay.contains(sum);
    });
  };
  SmallVector<Way> ways;
  for (MachineBasicBlock &block : function)
    for (MachineBasicBlock *before : block.predecessors()) {
      MachineLoop *loop = loops.getLoopFor(before);
      if (loop && !loop->contains(&block) &&
          any_of(ends[before->getNumber()].underWay, [&](Register sum) { return comesFromElsewhere(block, sum); }))
        ways.emplace_back(before, &block);
    }
  return ways;
}

/// Whether nothing is under way where a block begins, once these ways have waits.
static bool beginsFinished(MachineBasicBlock &block, ArrayRef<Way> ways, const AtEnds &ends) {
  return all_of(block.predecessors(), [&](MachineBasicBlock *before) {
    return ends[before->getNumber()].underWay.empty() || is_contained(ways, Way(before, &block));
  });
}

/// Whether what goes through a wait stays in its registers.
static bool keepsRegisters(const MachineInstr &wait) {
  return all_of(wait.all_defs(), [&](const MachineOperand &each) {
    return each.isTied() && wait.getOperand(wait.findTiedOperandIdx(each.getOperandNo())).getReg() == each.getReg();
  });
}

/// Takes away a block's wait for what was under way where it begins, of which there is nothing.
static void dropWait(MachineBasicBlock &block) {
  for (MachineInstr &instruction : block) {
    if (assemblyOf(instruction).contains("wgmma.mma_async"))
      return;
    if (assemblyOf(instruction) == waitForAll && keepsRegisters(instruction))
      return instruction.eraseFromParent();
  }
}

/// A block of its own between two.
static MachineBasicBlock &blockBetween(MachineBasicBlock &from, MachineBasicBlock &to) {
  MachineFunction &function = *from.getParent();
  const bool falls = from.isLayoutSuccessor(&to);
  MachineBasicBlock *between = function.CreateMachineBasicBlock();
  function.insert(falls ? to.getIterator() : function.end(), between);
  from.ReplaceUsesOfBlockWith(&to, between);
  between->addSuccessor(&to);
  if (!falls)
    function.getSubtarget().getInstrInfo()->insertUnconditionalBranch(*between, &to, DebugLoc());
  return *between;
}

bool WaitsBehindLoops::runOnMachineFunction(MachineFunction &function) {
  if (!hasAssembly(function, waitForAll))
    return false;
  AtEnds ends = sumsAtEnds(function);
  SmallVector<Way> ways = waysOut(function, ends);
  SetVector<MachineBasicBlock *> targets;
  for (auto [from, to] : ways)
    if (beginsFinished(*to, ways, ends))
      targets.insert(to);
  for (MachineBasicBlock *to : targets)
    dropWait(*to);
  for (auto [from, to] : ways) {
    MachineBasicBlock &block = from->succ_size() == 1 ? *from : blockBetween(*from, *to);
    insertAssembly(block, block.getFirstTerminator(), waitForAll);
  }
  return !ways.empty();
}

MachineFunctionPass *createWaitsBehindLoops() { return new WaitsBehindLoops(); }

} // namespace weft
