// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/LoopCarried.h"

#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

/// The numbers of the carried values that reach an effect or a result that is used.
static llvm::SmallDenseSet<unsigned> neededCarried(scf::ForOp loop) {
  llvm::SetVector<Value> needed;
  auto needOperands = [&](Operation *op) {
    op->walk([&](Operation *inner) { needed.insert(inner->operand_begin(), inner->operand_end()); });
  };
  for (Operation &op : loop.getBody()->without_terminator())
    if (!isMemoryEffectFree(&op))
      needOperands(&op);
  for (auto [result, yielded] : llvm::zip(loop.getResults(), loop.getYieldedValues()))
    if (!result.use_empty())
      needed.insert(yielded);
  llvm::SmallDenseSet<unsigned> carried;
  for (size_t i = 0; i < needed.size(); ++i) {
    Value value = needed[i];
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && argument.getOwner() == loop.getBody() && argument != loop.getInductionVar()) {
      carried.insert(argument.getArgNumber() - 1);
      needed.insert(loop.getTiedLoopYieldedValue(argument)->get());
    } else if (Operation *op = value.getDefiningOp()) {
      if (Operation *here = loop.getBody()->findAncestorOpInBlock(*op))
        needOperands(here);
    }
  }
  for (auto [index, result] : llvm::enumerate(loop.getResults()))
    if (!result.use_empty())
      carried.insert(index);
  return carried;
}

void weft::warp::removeUnusedCarriedValues(scf::ForOp &loop) {
  llvm::SmallDenseSet<unsigned> needed = neededCarried(loop);
  if (needed.size() == loop.getNumRegionIterArgs())
    return;
  OpBuilder b(loop);
  SmallVector<Value> inits, yielded;
  for (unsigned index = 0; index < loop.getNumRegionIterArgs(); ++index)
    if (needed.contains(index)) {
      inits.push_back(loop.getInitArgs()[index]);
      yielded.push_back(loop.getYieldedValues()[index]);
    }
  auto smaller =
      scf::ForOp::create(b, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), inits);
  smaller->setAttrs(loop->getAttrs());
  Block *body = smaller.getBody(), *old = loop.getBody();
  body->clear();
  old->getTerminator()->setOperands(yielded);
  body->getOperations().splice(body->end(), old->getOperations());
  old->getArgument(0).replaceAllUsesWith(smaller.getInductionVar());
  unsigned next = 0;
  for (unsigned index = 0; index < loop.getNumRegionIterArgs(); ++index) {
    if (needed.contains(index)) {
      loop.getRegionIterArg(index).replaceAllUsesWith(smaller.getRegionIterArg(next));
      loop.getResult(index).replaceAllUsesWith(smaller.getResult(next++));
    } else {
      // Only ops that are dead from here on still use it.
      loop.getRegionIterArg(index).replaceAllUsesWith(loop.getInitArgs()[index]);
    }
  }
  eraseDeadOps(smaller);
  loop->erase();
  loop = smaller;
}

void weft::warp::removeUnusedOfConsumers(func::FuncOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) {
    if (!loop->getParentOfType<ProducerOp>())
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops)
    removeUnusedCarriedValues(loop);
  eraseDeadOps(kernel);
}

void weft::warp::eraseDeadOps(Operation *within) {
  within->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (op != within && isOpTriviallyDead(op))
      op->erase();
  });
}
