// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The passes a kernel needs. Counted loops arrive rotated, unrolled as the schedule wants and with their invariants
// outside; memory is not promoted, as nothing is on a stack. What is left: folding, common subexpressions, dead code,
// the shape of the flow. The back end itself splits constant offsets from addresses and strength-reduces them.

#include "compiler/Target/NVPTX/Optimise.h"
#include "compiler/Target/NVPTX/ConstantsLast.h"
#include "compiler/Target/NVPTX/Machine/WideProducts.h"
#include "compiler/Target/NVPTX/ScaleIndices.h"
#include "compiler/Target/NVPTX/ShareAddresses.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/AggressiveInstCombine/AggressiveInstCombine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Mem2Reg.h"

namespace weft {

/// How many matrix products a loop has: these leave few registers for anything else.
static size_t productsOf(const llvm::Loop &loop) {
  size_t count = 0;
  for (llvm::BasicBlock *block : loop.blocks())
    for (llvm::Instruction &instruction : *block) {
      auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      auto *code = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
      count +=
          code ? code->getAsmString().contains("mma")
               : call && llvm::isa<llvm::IntrinsicInst>(call) && call->getCalledFunction()->getName().contains(".mma.");
    }
  return count;
}

static bool hasProducts(const llvm::Loop &loop) { return productsOf(loop) > 0; }

/// Whether an address that a loop counts up from lies at a fixed distance from another one's: the two are one register
/// then.
static bool hasNeighbour(llvm::ArrayRef<llvm::Value *> starts, llvm::Value *start, llvm::ScalarEvolution &evolution) {
  const llvm::SCEV *own = evolution.getSCEV(start);
  return llvm::any_of(starts, [&](llvm::Value *other) {
    return other != start && llvm::isa<llvm::SCEVConstant>(evolution.getMinusSCEV(own, evolution.getSCEV(other)));
  });
}

/// How many registers the values take that a loop carries.
static unsigned registersCarried(llvm::Loop &loop) {
  constexpr unsigned ofRegister = 32, ofAddress = 64;
  unsigned total = 0;
  for (llvm::PHINode &phi : loop.getHeader()->phis()) {
    unsigned bits = phi.getType()->isPointerTy() ? ofAddress : phi.getType()->getPrimitiveSizeInBits().getFixedValue();
    total += llvm::divideCeil(bits, ofRegister);
  }
  return total;
}

/// Keeps the addresses whole that a loop counts up from. The back end's LoopStrengthReduce takes them apart otherwise and
/// adds what they share in each iteration, which saves registers before the loop alone. Where there are many, or
/// products, their registers count for more: then many that do not lie at fixed distances are, where there is room; and
/// fewer, where there is more, beside no more products than they are.
static void keepAddressesWhole(llvm::LoopInfo &loops, llvm::ScalarEvolution &evolution) {
  constexpr size_t few = 8, several = 12, many = 24;
  constexpr unsigned roomOfSeveral = 96, roomOfMany = 160; // registers
  for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
    llvm::BasicBlock *entering = loop->getLoopPredecessor();
    if (!entering)
      continue;
    llvm::SmallVector<llvm::PHINode *> addresses;
    llvm::SmallVector<llvm::Value *> starts;
    for (llvm::PHINode &phi : loop->getHeader()->phis())
      if (phi.getType()->isPointerTy()) {
        addresses.push_back(&phi);
        starts.push_back(phi.getIncomingValueForBlock(entering));
      }
    const size_t products = productsOf(*loop);
    const unsigned carried = registersCarried(*loop);
    const bool all = addresses.size() <= few && products == 0;
    llvm::BitVector apart(starts.size(), all);
    for (auto [i, start] : llvm::enumerate(starts))
      if (!all && !hasNeighbour(starts, start, evolution))
        apart.set(i);
    const bool areMany = apart.count() >= many,
               areSeveral = apart.count() >= several && products > 0 && products <= apart.count();
    if (!all && !((areMany && carried <= roomOfMany) || (areSeveral && carried <= roomOfSeveral)))
      continue;
    for (unsigned i : apart.set_bits()) {
      auto *whole = new llvm::FreezeInst(starts[i], "", entering->getTerminator()->getIterator());
      addresses[i]->setIncomingValueForBlock(entering, whole);
    }
  }
}

/// Comparisons outside of a loop that are used in it, in the order of the loop's instructions.
static llvm::SmallSetVector<llvm::CmpInst *, 4> comparisonsBefore(const llvm::Loop &loop) {
  llvm::SmallSetVector<llvm::CmpInst *, 4> found;
  for (llvm::BasicBlock *block : loop.blocks())
    for (llvm::Instruction &instruction : *block)
      for (llvm::Value *operand : instruction.operands())
        if (auto *compare = llvm::dyn_cast<llvm::CmpInst>(operand); compare && !loop.contains(compare))
          found.insert(compare);
  return found;
}

/// The back end computes comparisons again in each block that uses them, in loops too, where masks of loads and stores
/// are as they were. A frozen one it takes as it is. Only the innermost loops: they run most; and only of few: a warp has
/// seven predicates.
static void keepMasksBeforeLoops(llvm::LoopInfo &loops) {
  constexpr size_t few = 3;
  for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
    if (!loop->isInnermost() || hasProducts(*loop))
      continue;
    auto masks = comparisonsBefore(*loop);
    if (masks.size() > few)
      continue;
    for (llvm::CmpInst *mask : masks) {
      auto *kept = new llvm::FreezeInst(mask, "", std::next(mask->getIterator()));
      mask->replaceUsesWithIf(
          kept, [&](llvm::Use &use) { return loop->contains(llvm::cast<llvm::Instruction>(use.getUser())); });
    }
  }
}

static constexpr unsigned deviceMemory = 1; // NVPTX's number of its address space

using Addresses = llvm::MapVector<llvm::Instruction *, llvm::SmallVector<llvm::GetElementPtrInst *>>;

/// The addresses of device memory in a loop that add one index to another address, by the instruction that `partOf` finds
/// in each.
template <typename PartOf> static Addresses addressesIn(const llvm::Loop &loop, PartOf partOf) {
  Addresses found;
  for (llvm::BasicBlock *block : loop.blocks())
    for (llvm::Instruction &instruction : *block)
      if (auto *address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction);
          address && address->getNumIndices() == 1 && address->getPointerAddressSpace() == deviceMemory)
        if (llvm::Instruction *part = partOf(*address))
          found[part].push_back(address);
  return found;
}

/// (base + counted up) + row, of many rows that share the first sum, becomes (base + row) + counted up: the sums with
/// rows go before the loop.
static void takeRowsBefore(const llvm::Loop &loop, size_t many) {
  llvm::BasicBlock *before = loop.getLoopPreheader();
  if (!before)
    return;
  Addresses bySum = addressesIn(loop, [&](llvm::GetElementPtrInst &address) -> llvm::Instruction * {
    auto *sum = llvm::dyn_cast<llvm::GetElementPtrInst>(address.getPointerOperand());
    bool moves = sum && loop.contains(sum) && sum->getNumIndices() == 1 &&
                 loop.isLoopInvariant(sum->getPointerOperand()) && loop.isLoopInvariant(*address.idx_begin());
    return moves ? sum : nullptr;
  });
  for (auto &[sum, addresses] : bySum) {
    auto *counting = llvm::cast<llvm::GetElementPtrInst>(sum);
    if (addresses.size() < many)
      continue;
    for (llvm::GetElementPtrInst *address : addresses) {
      auto *row = llvm::GetElementPtrInst::Create(address->getSourceElementType(), counting->getPointerOperand(),
                                                  {*address->idx_begin()}, "", before->getTerminator()->getIterator());
      auto *whole = llvm::GetElementPtrInst::Create(counting->getSourceElementType(), row, {*counting->idx_begin()}, "",
                                                    address->getIterator());
      whole->setDebugLoc(address->getDebugLoc());
      address->replaceAllUsesWith(whole);
      address->eraseFromParent();
    }
  }
}

/// How many of some addresses, all known before a loop, do not lie at fixed distances from others.
static size_t rowsOf(llvm::ArrayRef<llvm::GetElementPtrInst *> addresses, llvm::ScalarEvolution &evolution) {
  llvm::SmallVector<const llvm::SCEV *> rows;
  for (llvm::GetElementPtrInst *address : addresses) {
    const llvm::SCEV *base = evolution.getSCEV(address->getPointerOperand());
    if (llvm::none_of(rows, [&](const llvm::SCEV *row) {
          return llvm::isa<llvm::SCEVConstant>(evolution.getMinusSCEV(base, row));
        }))
      rows.push_back(base);
  }
  return rows.size();
}

/// Adds what counts up, where many addresses share it, to each: the back end's LoopStrengthReduce counts each of them up
/// instead, and where they are many adds a part that they share to each as well.
static void addOneIndexToRows(llvm::LoopInfo &loops, llvm::ScalarEvolution &evolution) {
  constexpr size_t many = 8;
  for (llvm::Loop *loop : loops.getLoopsInPreorder()) {
    if (!loop->isInnermost())
      continue;
    takeRowsBefore(*loop, many);
    Addresses byIndex = addressesIn(*loop, [&](llvm::GetElementPtrInst &address) -> llvm::Instruction * {
      auto *index = llvm::dyn_cast<llvm::Instruction>(*address.idx_begin());
      bool counts = index && loop->contains(index) && !llvm::isa<llvm::PHINode>(index) &&
                    loop->isLoopInvariant(address.getPointerOperand());
      return counts ? index : nullptr;
    });
    for (auto &[index, addresses] : byIndex)
      if (rowsOf(addresses, evolution) >= many) {
        auto *whole = new llvm::FreezeInst(index, "", std::next(index->getIterator()));
        for (llvm::GetElementPtrInst *address : addresses)
          address->setOperand(1, whole);
      }
  }
}

/// Whether a block ends with a choice.
static bool branches(const llvm::BasicBlock &block) { return block.getTerminator()->getNumSuccessors() > 1; }

Flow optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  for (llvm::Function &function : module)
    addConstantsLast(function);
  llvm::FunctionPassManager passes;
  if (llvm::any_of(module, [](llvm::Function &function) {
        return !function.isDeclaration() && llvm::any_of(function.getEntryBlock(), llvm::IsaPred<llvm::AllocaInst>);
      }))
    passes.addPass(llvm::PromotePass());
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/false));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  // Counts of bits and the like that are written as shifts and masks are instructions.
  passes.addPass(llvm::AggressiveInstCombinePass());
  // A `while` tests at its end, too: one branch an iteration.
  llvm::LoopPassManager ofLoops;
  ofLoops.addPass(llvm::LoopRotatePass());
  ofLoops.addPass(llvm::LICMPass(llvm::LICMOptions()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(ofLoops), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  all.run(module, modules);
  Flow flow = Flow::Plain;
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    auto &found = functions.getResult<llvm::LoopAnalysis>(function);
    auto &evolution = functions.getResult<llvm::ScalarEvolutionAnalysis>(function);
    addOneIndexToRows(found, evolution);
    shareAddresses(function);
    scaleIndices(function, found);
    keepNumbersOfProducts(function);
    keepAddressesWhole(found, evolution);
    keepMasksBeforeLoops(found);
    if (!found.empty() || llvm::count_if(function, branches) > 1)
      flow = Flow::Any;
  }
  return flow;
}

} // namespace weft
