// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See ShareAddresses.h. Kernels add a row's place first, and a lane's column to that:
//
//   %a = getelementptr %x, %row0                     %s = getelementptr %x, %column
//   %b = getelementptr %a, %column                   %b = getelementptr %s, %row0
//   %c = getelementptr %x, %row1             ─▶      %d = getelementptr %s, %row1
//   %d = getelementptr %c, %column
//
// A row times the bytes of an element and a pointer are one multiplication with addition. Numbers are left where they
// are: they are of the instruction that accesses memory.

#include "compiler/Target/NVPTX/ShareAddresses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace weft {
namespace {

constexpr unsigned deviceSpace = 1; // NVPTX's number of its address space

/// The index of an address that adds one to a pointer to device memory, if it is no number; null otherwise.
Value *indexOf(GetElementPtrInst &address) {
  bool isSum = address.getNumIndices() == 1 && address.getPointerAddressSpace() == deviceSpace;
  return isSum && !isa<Constant>(*address.idx_begin()) ? address.idx_begin()->get() : nullptr;
}

/// The sum that an address alone adds an index to, in its block; null where there is none.
GetElementPtrInst *ownSum(GetElementPtrInst &address) {
  auto *sum = dyn_cast<GetElementPtrInst>(address.getPointerOperand());
  bool isOwn = sum && sum->hasOneUse() && sum->getParent() == address.getParent() && indexOf(*sum);
  return isOwn && indexOf(*sum) != indexOf(address) ? sum : nullptr;
}

/// Whether an address serves its block alone: those that loops count up from, or add to, have a shape that is chosen for
/// them.
bool servesItsBlock(const GetElementPtrInst &address) {
  return all_of(address.users(), [&](const User *user) {
    return !isa<PHINode, GetElementPtrInst>(user) && cast<Instruction>(user)->getParent() == address.getParent();
  });
}

void shareIn(BasicBlock &block) {
  using Shared = std::tuple<Value *, Value *, Type *>; // a pointer, and an index of elements
  MapVector<Shared, SmallVector<GetElementPtrInst *>> found;
  for (Instruction &instruction : block)
    if (auto *address = dyn_cast<GetElementPtrInst>(&instruction);
        address && indexOf(*address) && servesItsBlock(*address))
      if (GetElementPtrInst *sum = ownSum(*address))
        found[{sum->getPointerOperand(), indexOf(*address), address->getSourceElementType()}].push_back(address);
  for (auto &[shared, addresses] : found) {
    if (addresses.size() < 2)
      continue;
    auto [pointer, index, element] = shared;
    Value *both = GetElementPtrInst::Create(element, pointer, {index}, "", addresses.front()->getIterator());
    for (GetElementPtrInst *address : addresses) {
      auto *sum = cast<GetElementPtrInst>(address->getPointerOperand());
      auto *whole =
          GetElementPtrInst::Create(sum->getSourceElementType(), both, {*sum->idx_begin()}, "", address->getIterator());
      whole->setDebugLoc(address->getDebugLoc());
      address->replaceAllUsesWith(whole);
      address->eraseFromParent();
      sum->eraseFromParent();
    }
  }
}

} // namespace

void shareAddresses(Function &function) {
  for (BasicBlock &block : function)
    shareIn(block);
}

} // namespace weft
