// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See AddressesInLoops.h. LLVM's LoopStrengthReduce gives addresses that count up together one base, and keeps what sets
// each apart with the constant by which the loop is ahead:
//
//   %a = mad.wide.s32 %i, 2, 128;                    %a = mul.wide.s32 %i, 2;
//   loop:                                            loop:
//     ..                                               %ahead = add.s64 %base, 128;
//     %address = add.s64 %base, %a;         ─▶         %address = add.s64 %ahead, %a;
//
// ptxas makes the sum of a base and such a product one instruction, and keeps 32 bits of it across the loop; that of a base
// and a sum is two, of 64 bits.

#include "compiler/Target/NVPTX/Machine/AddressesInLoops.h"
#include "compiler/Target/NVPTX/Machine/OrderForRegisters.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/CodeGen/MachineDominators.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineLoopInfo.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"

using namespace llvm;

namespace weft {
namespace {

class AddressesInLoops : public MachineFunctionPass {
public:
  static char ID;
  AddressesInLoops() : MachineFunctionPass(ID) {}
  StringRef getPassName() const override { return "Weft: addresses in loops"; }
  bool runOnMachineFunction(MachineFunction &function) override;
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesCFG();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
};

char AddressesInLoops::ID = 0;

/// So many addresses take less with one addition more.
constexpr size_t fewestSums = 3;

/// An addition in a loop, and the product outside that it adds.
struct Sum {
  MachineInstr *addition, *product;
};

class Joining {
public:
  explicit Joining(MachineFunction &function)
      : registers(function.getRegInfo()), instructions(*function.getSubtarget().getInstrInfo()), dominators(function),
        loops(dominators), opcodes(opcodesByName(instructions)) {}
  bool run(MachineBasicBlock &block);

private:
  /// The name of the product that `product`, if it is one to which something is added, is without that.
  std::optional<StringRef> nameWithout(const MachineInstr &product) const {
    return StringSwitch<std::optional<StringRef>>(instructions.getName(product.getOpcode()))
        .Case("MAD_WIDE_S32rii", "MUL_WIDEs32_ri")
        .Case("MAD_WIDE_U32rii", "MUL_WIDEu32_ri")
        .Default(std::nullopt);
  }
  MachineInstr *productOutside(const MachineOperand &operand, const MachineLoop &loop) const;
  Register productAlone(MachineInstr &product);
  void join(Register base, int64_t ahead, ArrayRef<Sum> sums);

  MachineRegisterInfo &registers;
  const TargetInstrInfo &instructions;
  MachineDominatorTree dominators;
  MachineLoopInfo loops;
  const StringMap<unsigned> &opcodes;
  DenseMap<Register, Register> alone; // of each product, the product without what is added
};

/// What computes an operand, if that is a product of 32 bits and a number, to which another is added, before the loop.
MachineInstr *Joining::productOutside(const MachineOperand &operand, const MachineLoop &loop) const {
  if (!operand.isReg() || !operand.getReg().isVirtual() || !registers.hasOneDef(operand.getReg()))
    return nullptr;
  MachineInstr *product = &*registers.def_instr_begin(operand.getReg());
  return !loop.contains(product) && nameWithout(*product) && product->getOperand(3).isImm() ? product : nullptr;
}

/// The product without what is added to it.
Register Joining::productAlone(MachineInstr &product) {
  auto [found, isNew] = alone.try_emplace(product.getOperand(0).getReg());
  if (isNew) {
    found->second = registers.createVirtualRegister(registers.getRegClass(product.getOperand(0).getReg()));
    BuildMI(*product.getParent(), product, product.getDebugLoc(), instructions.get(opcodes.at(*nameWithout(product))),
            found->second)
        .add(product.getOperand(1))
        .add(product.getOperand(2));
  }
  return found->second;
}

void Joining::join(Register base, int64_t ahead, ArrayRef<Sum> sums) {
  MachineInstr &first = *sums.front().addition;
  Register sum = registers.createVirtualRegister(registers.getRegClass(base));
  BuildMI(*first.getParent(), first, first.getDebugLoc(), instructions.get(opcodes.at("ADD64ri")), sum)
      .addReg(base)
      .addImm(ahead);
  for (auto [addition, product] : sums) {
    addition->getOperand(1).setReg(sum);
    addition->getOperand(2).setReg(productAlone(*product));
    if (registers.use_nodbg_empty(product->getOperand(0).getReg()))
      product->eraseFromParent();
  }
}

bool Joining::run(MachineBasicBlock &block) {
  const MachineLoop *loop = loops.getLoopFor(&block);
  if (!loop)
    return false;
  MapVector<std::pair<Register, int64_t>, SmallVector<Sum>> found;
  bool changed = false;
  auto joinWhere = [&](function_ref<bool(Register)> isWanted) {
    for (auto &[shared, sums] : found)
      if (isWanted(shared.first) && sums.size() >= fewestSums) {
        join(shared.first, shared.second, sums);
        changed = true;
      }
    found.remove_if([&](const auto &each) { return isWanted(each.first.first); });
  };
  for (MachineInstr &instruction : make_early_inc_range(block)) {
    bool adds = instructions.getName(instruction.getOpcode()) == "ADD64rr" &&
                registers.hasOneDef(instruction.getOperand(0).getReg());
    for (unsigned operand : {1u, 2u})
      if (MachineInstr *product = adds ? productOutside(instruction.getOperand(operand), *loop) : nullptr) {
        Register base = instruction.getOperand(3 - operand).getReg();
        found[{base, product->getOperand(3).getImm()}].push_back({&instruction, product});
        break;
      }
    for (const MachineOperand &result : instruction.all_defs())
      joinWhere([&](Register base) { return base == result.getReg(); });
  }
  joinWhere([](Register) { return true; });
  return changed;
}
} // namespace

const StringMap<unsigned> &opcodesByName(const TargetInstrInfo &instructions) {
  static const StringMap<unsigned> opcodes = [&] {
    StringMap<unsigned> found;
    for (unsigned opcode = 0; opcode < instructions.getNumOpcodes(); ++opcode)
      found.try_emplace(instructions.getName(opcode), opcode);
    return found;
  }();
  return opcodes;
}

bool AddressesInLoops::runOnMachineFunction(MachineFunction &function) {
  Joining joining(function);
  bool changed = false;
  for (MachineBasicBlock &block : function)
    changed |= joining.run(block);
  if (changed)
    forgetLastReads(function);
  return changed;
}

MachineFunctionPass *createAddressesInLoops() { return new AddressesInLoops(); }

} // namespace weft
