// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Tensor/SumChains.h"

#include "dialects/Warp/Transforms/Tensor/TensorProducts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft::warp {

SumChains::SumChains(func::FuncOp kernel) {
  do {
    chains = {};
    follow(kernel);
  } while (findApart(kernel));
}

Value SumChains::leader(Value value) const {
  return Value::getFromOpaquePointer(chains.getLeaderValue(value.getAsOpaquePointer()));
}

void SumChains::join(Value from, Value to, SmallVectorImpl<Value> &open) {
  if (!contains(to))
    open.push_back(to);
  chains.unionSets(from.getAsOpaquePointer(), to.getAsOpaquePointer());
}

/// Whether a product adds to a value, behind branches and what scales it.
static bool leadsToProduct(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto product = dyn_cast<WgmmaOp>(user))
      return use.getOperandNumber() == 2;
    if (auto loop = dyn_cast<scf::ForOp>(user))
      return loop.getTiedLoopRegionIterArg(&use) && leadsToProduct(loop.getTiedLoopRegionIterArg(&use));
    if (isa<scf::YieldOp>(user) && isa<scf::IfOp>(user->getParentOp()))
      return leadsToProduct(user->getParentOp()->getResult(use.getOperandNumber()));
    return isa<arith::MulFOp>(user) && leadsToProduct(user->getResult(0));
  });
}

/// Whether neither side of a branch computes its result: sums go through it, or zeros stand for them.
static bool handsOn(scf::IfOp branch, unsigned index) {
  return llvm::all_of(branch->getRegions(), [&](Region &region) {
    Value yielded = region.front().getTerminator()->getOperand(index);
    Operation *op = yielded.getDefiningOp();
    return !op || matchPattern(op, m_Constant()) || isa<scf::ForOp, scf::IfOp, WgmmaOp, WgmmaWaitOp>(op);
  });
}

void SumChains::follow(func::FuncOp kernel) {
  SmallVector<Value> open;
  kernel.walk([&](WgmmaOp product) {
    if (!isInTensorMemory(product))
      return;
    chains.insert(product.getResult().getAsOpaquePointer());
    open.push_back(product.getResult());
  });
  while (!open.empty()) {
    Value value = open.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      const unsigned index = use.getOperandNumber();
      if (isa<WgmmaWaitOp, WgmmaFenceOp>(user))
        join(value, user->getResult(index), open);
      else if (auto product = dyn_cast<WgmmaOp>(user); product && product.getAcc() == value)
        join(value, product.getResult(), open);
      else if (auto scaled = dyn_cast<arith::MulFOp>(user)) {
        // What is scaled goes back to where it was.
        for (OpOperand &next : scaled->getUses())
          if (auto product = dyn_cast<WgmmaOp>(next.getOwner()); product && product.getAcc() == scaled.getResult())
            join(value, product.getResult(), open);
      } else if (!isa<scf::YieldOp>(user) || apart.contains(user->getParentOp()->getResult(index)))
        continue;
      else if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp())) {
        join(value, loop.getRegionIterArg(index), open);
        join(value, loop.getResult(index), open);
      } else if (auto branch = dyn_cast<scf::IfOp>(user->getParentOp());
                 branch && (leadsToProduct(branch.getResult(index)) || handsOn(branch, index)))
        join(value, branch.getResult(index), open);
    }
  }
  // A loop that goes on with sums goes on with their tile.
  kernel.walk([&](scf::ForOp loop) {
    for (auto [init, argument] : llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs()))
      if (contains(init) && contains(argument))
        chains.unionSets(init.getAsOpaquePointer(), argument.getAsOpaquePointer());
  });
}

bool SumChains::findApart(func::FuncOp kernel) {
  const size_t before = apart.size();
  kernel.walk([&](Operation *op) {
    if (!isa<scf::ForOp, scf::IfOp>(op))
      return;
    llvm::SmallDenseMap<Value, Value> first;
    for (Value result : op->getResults()) {
      if (!contains(result))
        continue;
      auto [known, isNew] = first.insert({leader(result), result});
      if (!isNew) {
        apart.insert(known->second);
        apart.insert(result);
      }
    }
  });
  return apart.size() != before;
}

bool SumChains::isUnderWay(Value value) const {
  llvm::SetVector<Value> from;
  from.insert(value);
  for (size_t at = 0; at < from.size(); ++at) {
    Value each = from[at];
    if (each.getDefiningOp<WgmmaOp>())
      return true;
    if (auto argument = dyn_cast<BlockArgument>(each)) {
      if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()))
        from.insert(loop.getTiedLoopYieldedValue(argument)->get());
    } else if (isa_and_nonnull<scf::ForOp, scf::IfOp>(each.getDefiningOp())) {
      for (Region &region : each.getDefiningOp()->getRegions())
        from.insert(region.front().getTerminator()->getOperand(cast<OpResult>(each).getResultNumber()));
    }
  }
  return false;
}

} // namespace weft::warp
