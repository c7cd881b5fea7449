// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Tensor/SumChains.h"

#include "dialects/Warp/Transforms/Tensor/TensorProducts.h"

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
      else if (!isa<scf::YieldOp>(user) || apart.contains(user->getParentOp()->getResult(index)))
        continue;
      else if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp())) {
        join(value, loop.getRegionIterArg(index), open);
        join(value, loop.getResult(index), open);
      } else if (auto branch = dyn_cast<scf::IfOp>(user->getParentOp()))
        join(value, branch.getResult(index), open);
    }
  }
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
  for (llvm::SmallDenseSet<Value> seen; seen.insert(value).second;) {
    if (value.getDefiningOp<WgmmaOp>())
      return true;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      value = loop ? loop.getTiedLoopYieldedValue(argument)->get() : value;
    } else if (auto loop = value.getDefiningOp<scf::ForOp>()) {
      value = loop.getYieldedValues()[cast<OpResult>(value).getResultNumber()];
    }
  }
  return false;
}

} // namespace weft::warp
