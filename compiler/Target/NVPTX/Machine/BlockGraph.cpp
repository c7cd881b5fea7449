// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See BlockGraph.h.

#include "compiler/Target/NVPTX/Machine/BlockGraph.h"
#include "compiler/Target/NVPTX/Machine/InlineAssembly.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/CodeGen/MachineMemOperand.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/NVPTXAddrSpace.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace weft {

unsigned widthOf(Register reg, const MachineRegisterInfo &registers) {
  unsigned bits = registers.getTargetRegisterInfo()->getRegSizeInBits(*registers.getRegClass(reg)).getFixedValue();
  return bits == 1 ? 0 : divideCeil(bits, 32);
}

// --- liveness ---

static void visitRegisters(const MachineInstr &instruction, function_ref<void(Register, bool)> visit) {
  for (const MachineOperand &operand : instruction.operands())
    if (operand.isReg() && operand.getReg().isVirtual())
      visit(operand.getReg(), operand.isDef());
}

LiveOut::LiveOut(const MachineFunction &function) {
  unsigned count = function.getRegInfo().getNumVirtRegs(), blocks = function.getNumBlockIDs();
  SmallVector<BitVector> used(blocks, BitVector(count)), defined = used, in;
  for (const MachineBasicBlock &block : function)
    for (const MachineInstr &instruction : block) {
      BitVector &uses = used[block.getNumber()], &defs = defined[block.getNumber()];
      visitRegisters(instruction, [&](Register reg, bool isDef) {
        if (!isDef && !defs.test(reg.virtRegIndex()))
          uses.set(reg.virtRegIndex());
      });
      visitRegisters(instruction, [&](Register reg, bool isDef) {
        if (isDef)
          defs.set(reg.virtRegIndex());
      });
    }
  in = used;
  live.assign(blocks, BitVector(count));
  for (bool changed = true; changed;) {
    changed = false;
    for (const MachineBasicBlock *block : post_order(&function)) {
      unsigned number = block->getNumber();
      for (const MachineBasicBlock *next : block->successors())
        live[number] |= in[next->getNumber()];
      BitVector start = live[number];
      start.reset(defined[number]);
      start |= used[number];
      if (start != in[number]) {
        in[number] = start;
        changed = true;
      }
    }
  }
}

// --- what must stand before what ---

namespace {
/// What an instruction does to a memory: nothing passes what is `Everything`.
struct Access {
  enum Kind { None, Reads, Writes, Everything } kind = None;
  bool device = true, shared = true; // which memories it may meet
};

/// Finds what instructions stand behind, from a block's first to its last.
class GraphBuilder {
public:
  GraphBuilder(const MachineRegisterInfo &registers, const MCInstPrinter &printer)
      : registers(registers), printer(printer) {
    graph.liveIn.resize(registers.getNumVirtRegs());
  }
  void add(MachineInstr &instruction);
  BlockGraph finish(const BitVector &liveOut);

private:
  struct Memory {
    SmallVector<unsigned> reads;
    std::optional<unsigned> write;
  };
  /// What a register holds: its value, who has defined that, who has read it.
  struct Holding {
    unsigned value;
    std::optional<unsigned> definition;
    SmallVector<unsigned, 2> readers;
  };
  unsigned makeValue(Register reg);
  Holding &held(Register reg);
  void addUse(Node &node, unsigned place, Register reg);
  void addDefinition(Node &node, unsigned place, Register reg);
  void addMemory(Memory &memory, bool writes, Node &node, unsigned place);

  const MachineRegisterInfo &registers;
  const MCInstPrinter &printer;
  BlockGraph graph;
  DenseMap<unsigned, Holding> holdings;
  Memory device, shared;
};
} // namespace

/// A load or a store that a mask makes one of inline assembly, by its text: its memory is named in it.
static Access accessOfAssembly(StringRef text) {
  bool device = text.contains(".global"), shared = text.contains(".shared");
  if (device == shared)
    return {Access::Everything};
  for (StringRef space : {".global", ".shared"})
    for (StringRef type : {".b", ".v"}) {
      if (text.contains(("ld" + space + type).str()))
        return {Access::Reads, device, shared};
      if (text.contains(("st" + space + type).str()))
        return {Access::Writes, device, shared};
    }
  return {Access::Everything};
}

static bool holdsOneAccess(StringRef text) {
  return text.count("ld.") + text.count("st.") + text.count("atom.") + text.count("red.") == 1 && !text.contains("bar");
}

/// Whether an instruction exchanges registers between lanes. LLVM says of it that it accesses memory, so that no branch
/// comes before it; in a block all lanes run it wherever it stands.
static bool isShuffle(const MachineInstr &instruction, const MCInstPrinter &printer) {
  if (!instruction.isConvergent() || instruction.isInlineAsm() || !instruction.memoperands_empty())
    return false;
  MCInst opcode;
  opcode.setOpcode(instruction.getOpcode());
  const char *name = printer.getMnemonic(opcode).first;
  return name && StringRef(name).starts_with("shfl.sync");
}

static Access accessOf(const MachineInstr &instruction, const MCInstPrinter &printer) {
  if (instruction.isInlineAsm()) {
    StringRef text = assemblyOf(instruction);
    if (!instruction.hasUnmodeledSideEffects() && !instruction.mayLoadOrStore())
      return {};
    return holdsOneAccess(text) ? accessOfAssembly(text) : Access{Access::Everything};
  }
  if (isShuffle(instruction, printer))
    return {};
  if (instruction.hasUnmodeledSideEffects() || instruction.isCall() || instruction.isPosition() ||
      instruction.isDebugInstr())
    return {Access::Everything};
  if (!instruction.mayLoadOrStore())
    return {};
  if (instruction.isDereferenceableInvariantLoad())
    return {};
  if (instruction.hasOrderedMemoryRef() || (instruction.mayLoad() && instruction.mayStore()))
    return {Access::Everything};
  bool device = false, shared = false;
  for (const MachineMemOperand *operand : instruction.memoperands()) {
    shared |= operand->getAddrSpace() != NVPTXAS::ADDRESS_SPACE_GLOBAL;
    device |= operand->getAddrSpace() != NVPTXAS::ADDRESS_SPACE_SHARED;
  }
  return {instruction.mayStore() ? Access::Writes : Access::Reads, device, shared};
}

unsigned GraphBuilder::makeValue(Register reg) {
  graph.values.push_back({static_cast<unsigned char>(widthOf(reg, registers)), false, 0});
  return graph.values.size() - 1;
}

GraphBuilder::Holding &GraphBuilder::held(Register reg) {
  auto [found, isNew] = holdings.try_emplace(reg.virtRegIndex());
  if (isNew) {
    found->second.value = makeValue(reg);
    graph.atStart += graph.values.back().width;
    graph.liveIn.set(reg.virtRegIndex());
  }
  return found->second;
}

void GraphBuilder::addUse(Node &node, unsigned place, Register reg) {
  Holding &holding = held(reg);
  if (is_contained(node.uses, holding.value))
    return;
  node.uses.push_back(holding.value);
  ++graph.values[holding.value].readers;
  holding.readers.push_back(place);
  if (holding.definition)
    node.before.push_back(*holding.definition);
}

void GraphBuilder::addDefinition(Node &node, unsigned place, Register reg) {
  Holding &holding = holdings[reg.virtRegIndex()];
  if (holding.definition)
    node.before.push_back(*holding.definition);
  node.before.append(holding.readers.begin(), holding.readers.end());
  holding = {makeValue(reg), place, {}};
  node.defines.push_back(holding.value);
}

void GraphBuilder::addMemory(Memory &memory, bool writes, Node &node, unsigned place) {
  if (memory.write)
    node.before.push_back(*memory.write);
  if (!writes)
    return memory.reads.push_back(place);
  node.before.append(memory.reads.begin(), memory.reads.end());
  memory.reads.clear();
  memory.write = place;
}

void GraphBuilder::add(MachineInstr &instruction) {
  unsigned place = graph.nodes.size();
  Node node{&instruction, {}, {}, {}};
  bool physical = llvm::any_of(instruction.operands(), [](const MachineOperand &operand) {
    return operand.isReg() && operand.isDef() && operand.getReg().isPhysical();
  });
  for (bool definitions : {false, true})
    visitRegisters(instruction, [&](Register reg, bool isDef) {
      if (isDef == definitions)
        isDef ? addDefinition(node, place, reg) : addUse(node, place, reg);
    });
  Access access = physical ? Access{Access::Everything} : accessOf(instruction, printer);
  bool writes = access.kind != Access::Reads;
  if (access.kind != Access::None && access.device)
    addMemory(device, writes, node, place);
  if (access.kind != Access::None && access.shared)
    addMemory(shared, writes, node, place);
  llvm::sort(node.before);
  node.before.erase(llvm::unique(node.before), node.before.end());
  llvm::erase(node.before, place);
  graph.nodes.push_back(std::move(node));
}

BlockGraph GraphBuilder::finish(const BitVector &liveOut) {
  for (unsigned index : liveOut.set_bits()) {
    BlockValue &value = graph.values[held(Register::index2VirtReg(index)).value];
    value.liveOut = true;
    graph.atEnd += value.width;
  }
  return std::move(graph);
}

std::unique_ptr<MCInstPrinter> mnemonicsFor(const TargetMachine &machine) {
  return std::unique_ptr<MCInstPrinter>(
      machine.getTarget().createMCInstPrinter(machine.getTargetTriple(), /*SyntaxVariant=*/0, *machine.getMCAsmInfo(),
                                              *machine.getMCInstrInfo(), *machine.getMCRegisterInfo()));
}

BlockGraph graphOf(MachineBasicBlock &block, const BitVector &liveOut, const MCInstPrinter &printer) {
  GraphBuilder builder(block.getParent()->getRegInfo(), printer);
  for (MachineInstr &instruction : llvm::make_range(block.begin(), block.getFirstTerminator()))
    builder.add(instruction);
  return builder.finish(liveOut);
}

int mostLive(const MachineBasicBlock &block, const BitVector &liveOut) {
  const MachineRegisterInfo &registers = block.getParent()->getRegInfo();
  BitVector lives = liveOut;
  int count = 0;
  for (unsigned index : liveOut.set_bits())
    count += widthOf(Register::index2VirtReg(index), registers);
  int most = count;
  for (const MachineInstr &instruction : llvm::reverse(llvm::make_range(block.begin(), block.getFirstTerminator()))) {
    for (bool definitions : {true, false})
      visitRegisters(instruction, [&](Register reg, bool isDef) {
        unsigned index = reg.virtRegIndex();
        if (isDef != definitions || lives.test(index) != isDef)
          return;
        lives.flip(index);
        count += isDef ? -int(widthOf(reg, registers)) : int(widthOf(reg, registers));
      });
    most = std::max(most, count);
  }
  return most;
}

} // namespace weft
