// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See ProductsUnderWay.h. Until a product of a warpgroup is waited for, its sums and its operand a in registers are not
// to be touched, and what was written to them is seen behind a fence only (PTX ISA 9.7.15.7, "wgmma.fence" and
// "wgmma.wait_group"). In LLVM's IR they go through the wait and through the fence, so that nothing comes between; but
// where a loop's sums change places, registers are copied, and LLVM copies what goes into a piece of assembly before it:
//
//     wgmma a, ..                                      wgmma a, ..
//     b = mov a          // of a sum under way         wgmma.wait_group 0
//     wgmma.wait_group 0 // passes b through     ─▶    b = mov a
//                                                      wgmma.wait_group 0
//
// Here that is looked for in the whole kernel: whatever touches such a register stands behind a wait of its own, and a
// product of what was written behind its fence has another. Nothing else is changed.

#include "compiler/Target/NVPTX/Machine/ProductsUnderWay.h"
#include "compiler/Target/NVPTX/Machine/InlineAssembly.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/CodeGen/MachineFunctionPass.h"

using namespace llvm;

namespace weft {
namespace {

constexpr StringLiteral product = "wgmma.mma_async", wait = "wgmma.wait_group.sync.aligned ",
                        fence = "wgmma.fence.sync.aligned;";

class ProductsUnderWay : public MachineFunctionPass {
public:
  static char ID;
  explicit ProductsUnderWay(std::function<void(StringRef, int)> inserted)
      : MachineFunctionPass(ID), inserted(std::move(inserted)) {}
  StringRef getPassName() const override { return "Weft: products under way"; }
  bool runOnMachineFunction(MachineFunction &function) override;
  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesCFG();
    MachineFunctionPass::getAnalysisUsage(usage);
  }

private:
  std::function<void(StringRef, int)> inserted;
};

char ProductsUnderWay::ID = 0;

/// What is known where an instruction stands, on whatever way it was come to.
struct State {
  /// The registers of products under way, each with how many groups have been committed since at the least.
  DenseMap<Register, unsigned> underWay;
  /// The registers that were written since the last fence.
  DenseSet<Register> written;

  /// Adds what another way brings, and says whether that is anything new.
  bool join(const State &other);
  void commit(ArrayRef<Register> registers);
  void finish(unsigned pending);
};

/// A product's registers: those that it adds to, those that it only writes, and operands a.
struct Operands {
  SmallVector<Register> read, all;
};

} // namespace

bool State::join(const State &other) {
  bool isNew = false;
  for (auto [reg, younger] : other.underWay) {
    auto [found, inserted] = underWay.try_emplace(reg, younger);
    isNew |= inserted || younger < found->second;
    found->second = std::min(found->second, younger);
  }
  for (Register reg : other.written)
    isNew |= written.insert(reg).second;
  return isNew;
}

void State::commit(ArrayRef<Register> registers) {
  constexpr unsigned most = 8; // no wait tells more of them apart
  for (auto &[reg, younger] : underWay)
    younger = std::min(younger + 1, most);
  for (Register reg : registers)
    underWay[reg] = 0;
}

/// At most `pending` groups are under way from here on.
void State::finish(unsigned pending) {
  for (auto [reg, younger] : make_early_inc_range(underWay))
    if (younger >= pending)
      underWay.erase(reg);
}

static std::optional<unsigned> pendingOf(StringRef text) {
  unsigned pending;
  if (!text.consume_front(wait) || text.consumeInteger(10, pending))
    return std::nullopt;
  return pending;
}

/// The registers that "$0", "$1" and so on stand for.
static SmallVector<Register> numbered(const MachineInstr &assembly) {
  SmallVector<Register> registers;
  for (unsigned i = InlineAsm::MIOp_FirstOperand; i < assembly.getNumOperands() && assembly.getOperand(i).isImm();) {
    const InlineAsm::Flag flag(assembly.getOperand(i).getImm());
    registers.push_back(assembly.getOperand(i + 1).isReg() ? assembly.getOperand(i + 1).getReg() : Register());
    i += 1 + flag.getNumOperandRegisters();
  }
  return registers;
}

/// Adds the registers of "{$4, $5, ..}", which is taken off the text.
static void takeList(StringRef &text, ArrayRef<Register> registers, SmallVectorImpl<Register> &all) {
  auto [list, rest] = text.split('}');
  for (StringRef name : split(list.drop_front(), ", "))
    if (unsigned number; name.consume_front("$") && !name.getAsInteger(10, number))
      all.push_back(registers[number]);
  text = rest;
}

/// In "wgmma.mma_async.… {sums}, {a}, db, old, …" or "… {sums}, da, db, none, …".
static Operands operandsOf(const MachineInstr &assembly) {
  SmallVector<Register> registers = numbered(assembly);
  Operands operands;
  StringRef text = assemblyOf(assembly);
  for (size_t at; (at = text.find(product)) != StringRef::npos;) {
    text = text.drop_front(text.find('{', at));
    SmallVector<Register> sums, factors;
    takeList(text, registers, sums);
    text.consume_front(", ");
    if (text.starts_with("{"))
      takeList(text, registers, factors);
    bool adds = text.take_until([](char c) { return c == ';'; }).contains(" old,");
    append_range(operands.all, sums);
    append_range(operands.all, factors);
    append_range(operands.read, factors);
    if (adds)
      append_range(operands.read, sums);
  }
  return operands;
}

namespace {

/// Walks a block's instructions with what is known before each.
class Walk {
public:
  explicit Walk(bool inserts) : inserts(inserts) {}
  void run(MachineBasicBlock &block, State &state);
  int waits = 0, fences = 0; // that were inserted

private:
  void touch(MachineInstr &instruction, State &state);
  void multiply(MachineInstr &instruction, State &state);

  const bool inserts;
};

} // namespace

/// An instruction that is none of a product's. Whatever it touches is not under way behind it.
void Walk::touch(MachineInstr &instruction, State &state) {
  std::optional<unsigned> pending;
  SmallVector<Register> touched;
  for (const MachineOperand &operand : instruction.operands()) {
    if (!operand.isReg() || !operand.getReg().isVirtual())
      continue;
    if (operand.isDef())
      state.written.insert(operand.getReg());
    if (auto found = state.underWay.find(operand.getReg()); found != state.underWay.end()) {
      pending = std::min(found->second, pending.value_or(found->second));
      touched.push_back(operand.getReg());
    }
  }
  if (pending && inserts) {
    insertAssembly(*instruction.getParent(), instruction, wait + Twine(*pending) + ";");
    ++waits;
    state.finish(*pending);
  }
  for (Register reg : touched)
    state.underWay.erase(reg);
}

void Walk::multiply(MachineInstr &instruction, State &state) {
  Operands operands = operandsOf(instruction);
  bool hasFence = assemblyOf(instruction).contains(fence);
  if (!hasFence && any_of(operands.read, [&](Register reg) { return state.written.contains(reg); })) {
    hasFence = true;
    if (inserts) {
      insertAssembly(*instruction.getParent(), instruction, fence);
      ++fences;
    }
  }
  if (hasFence)
    state.written.clear();
  state.commit(operands.all);
}

void Walk::run(MachineBasicBlock &block, State &state) {
  for (MachineInstr &instruction : block) {
    StringRef text = assemblyOf(instruction);
    if (text.contains(product))
      multiply(instruction, state);
    else if (text == fence)
      state.written.clear();
    else if (std::optional<unsigned> pending = pendingOf(text))
      state.finish(*pending);
    else
      touch(instruction, state);
  }
}

bool ProductsUnderWay::runOnMachineFunction(MachineFunction &function) {
  if (!hasAssembly(function, product))
    return false;
  SmallVector<State> before(function.getNumBlockIDs());
  ReversePostOrderTraversal<MachineFunction *> order(&function);
  for (bool changed = true; changed;) {
    changed = false;
    for (MachineBasicBlock *block : order) {
      State state = before[block->getNumber()];
      Walk(/*inserts=*/false).run(*block, state);
      for (MachineBasicBlock *next : block->successors())
        changed |= before[next->getNumber()].join(state);
    }
  }
  Walk walk(/*inserts=*/true);
  for (MachineBasicBlock *block : order)
    walk.run(*block, before[block->getNumber()]);
  if (walk.waits)
    inserted(function.getName(), walk.waits);
  return walk.waits + walk.fences > 0;
}

MachineFunctionPass *createProductsUnderWay(std::function<void(StringRef, int)> inserted) {
  return new ProductsUnderWay(std::move(inserted));
}

} // namespace weft
