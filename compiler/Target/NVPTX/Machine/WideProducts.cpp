// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See WideProducts.h. LLVM makes one instruction of a product of two numbers that are widened to 64 bits, where both are
// widened in its block. A stride, which is the same in all iterations, is widened before a loop, and rows that several
// accesses have where the first of them is:
//
//   %s = cvt.s64.s32 %stride;                        loop:
//   loop:                                              %p = mul.wide.s32 %row, %stride;
//     %r = cvt.s64.s32 %row;                 ─▶        %a = mad.wide.s32 %other, %stride, %base;
//     %p = mul.lo.s64 %r, %s;
//     %a = mad.lo.s64 %o, %s, %base;
//
// A product of 64 bits is three instructions of the machine, and its factors are two registers each.

#include "compiler/Target/NVPTX/Machine/WideProducts.h"
#include "compiler/Target/NVPTX/Machine/AddressesInLoops.h"
#include "compiler/Target/NVPTX/Machine/OrderForRegisters.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstrBuilder.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace weft {
namespace {

class WideProducts : public MachineFunctionPass {
public:
  static char ID;
  WideProducts() : MachineFunctionPass(ID) {}
  StringRef getPassName() const override { return "Weft: products of widened numbers"; }
  bool runOnMachineFunction(MachineFunction &function) override;
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesCFG();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
};

char WideProducts::ID = 0;

class Narrowing {
public:
  explicit Narrowing(MachineFunction &function)
      : registers(function.getRegInfo()), instructions(*function.getSubtarget().getInstrInfo()),
        opcodes(opcodesByName(instructions)), product(opcodes.at("MULT64rr")), sum(opcodes.at("MAD_LO_S64rrr")),
        bySign(opcodes.at("CVT_s64_s32")), byZeros(opcodes.at("CVT_u64_u32")) {}
  /// Whether an instruction multiplies 64 bits, and may add to that.
  bool isProduct(const MachineInstr &instruction) const {
    return instruction.getOpcode() == product || instruction.getOpcode() == sum;
  }
  /// Whether it has made such a product one of 32 bits.
  bool narrow(MachineInstr &instruction);

private:
  MachineInstr *definition(Register reg) const {
    return reg.isVirtual() && registers.hasOneDef(reg) ? &*registers.def_instr_begin(reg) : nullptr;
  }
  MachineInstr *widening(const MachineOperand &factor, unsigned opcode) const;

  MachineRegisterInfo &registers;
  const TargetInstrInfo &instructions;
  const StringMap<unsigned> &opcodes;
  const unsigned product, sum, bySign, byZeros;
};

} // namespace

/// What widens a factor that way, of a number that is the same wherever the factor is.
MachineInstr *Narrowing::widening(const MachineOperand &factor, unsigned opcode) const {
  MachineInstr *widened = factor.isReg() ? definition(factor.getReg()) : nullptr;
  bool isOfNumber = widened && widened->getOpcode() == opcode && widened->getOperand(1).isReg();
  return isOfNumber && definition(widened->getOperand(1).getReg()) ? widened : nullptr;
}

bool Narrowing::narrow(MachineInstr &instruction) {
  const bool isSum = instruction.getOpcode() == sum;
  for (unsigned opcode : {bySign, byZeros}) {
    MachineInstr *factors[] = {widening(instruction.getOperand(1), opcode),
                               widening(instruction.getOperand(2), opcode)};
    if (!factors[0] || !factors[1])
      continue;
    StringRef name = opcode == bySign ? (isSum ? "MAD_WIDE_S32rrr" : "MUL_WIDEs32_rr")
                                      : (isSum ? "MAD_WIDE_U32rrr" : "MUL_WIDEu32_rr");
    auto wide = BuildMI(*instruction.getParent(), instruction, instruction.getDebugLoc(),
                        instructions.get(opcodes.at(name)), instruction.getOperand(0).getReg())
                    .addReg(factors[0]->getOperand(1).getReg())
                    .addReg(factors[1]->getOperand(1).getReg());
    if (isSum)
      wide.add(instruction.getOperand(3));
    instruction.eraseFromParent();
    for (MachineInstr *factor : ArrayRef(factors).take_front(factors[0] == factors[1] ? 1 : 2))
      if (registers.use_nodbg_empty(factor->getOperand(0).getReg()))
        factor->eraseFromParent();
    return true;
  }
  return false;
}

bool WideProducts::runOnMachineFunction(MachineFunction &function) {
  Narrowing narrowing(function);
  SmallVector<MachineInstr *> products; // what widens their factors may stand in any block
  for (MachineBasicBlock &block : function)
    for (MachineInstr &instruction : block)
      if (narrowing.isProduct(instruction))
        products.push_back(&instruction);
  bool changed = false;
  for (MachineInstr *each : products)
    changed |= narrowing.narrow(*each);
  if (changed)
    forgetLastReads(function);
  return changed;
}

MachineFunctionPass *createWideProducts() { return new WideProducts(); }

/// Keeps a factor that is widened from being one with the load of its number.
static void keepNumber(Value *factor, DenseMap<Value *, Value *> &kept) {
  auto *widened = cast<CastInst>(factor);
  Value *number = widened->getOperand(0);
  if (!isa<Argument, LoadInst>(number))
    return;
  auto [found, isNew] = kept.try_emplace(number);
  if (isNew) {
    auto *load = dyn_cast<LoadInst>(number);
    auto after =
        load ? std::next(load->getIterator()) : widened->getFunction()->getEntryBlock().getFirstNonPHIOrDbgOrAlloca();
    found->second = new FreezeInst(number, "", after);
  }
  widened->setOperand(0, found->second);
}

void keepNumbersOfProducts(Function &function) {
  DenseMap<Value *, Value *> kept;
  for (Instruction &instruction : instructions(function)) {
    Value *x, *y;
    if (!match(&instruction, m_Mul(m_Value(x), m_Value(y))) || !instruction.getType()->isIntegerTy(64))
      continue;
    const bool bySigns = isa<SExtInst>(x) && isa<SExtInst>(y), byZeros = isa<ZExtInst>(x) && isa<ZExtInst>(y);
    if (!bySigns && !byZeros)
      continue;
    keepNumber(x, kept);
    keepNumber(y, kept);
  }
}

} // namespace weft
