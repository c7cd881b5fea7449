// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Warpgroups/LaggingProduct.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace weft::warp {

/// Whether an operand is a tile that nothing writes before the iteration after the next.
static bool staysForAnIteration(Value operand, scf::ForOp loop, const llvm::DenseSet<Value> &rings) {
  operand = tileViewed(operand);
  return isa<SharedType>(operand.getType()) && (rings.contains(operand) || loop.isDefinedOutsideOfLoop(operand));
}

WgmmaWaitOp waitOfLaggingProduct(scf::ForOp loop, const llvm::DenseSet<Value> &rings) {
  SmallVector<WgmmaOp> products;
  loop.walk([&](WgmmaOp product) { products.push_back(product); });
  if (products.size() != 1 || products.front()->getBlock() != loop.getBody())
    return {};
  WgmmaOp product = products.front();
  auto wait = dyn_cast_or_null<WgmmaWaitOp>(product->getNextNode());
  auto sums = dyn_cast<BlockArgument>(product.getAcc());
  if (!wait || wait.getValues().size() != 1 || wait.getValues().front() != product.getResult() ||
      !product.getResult().hasOneUse() || !sums || sums.getOwner() != loop.getBody() || sums.getArgNumber() == 0 ||
      !sums.hasOneUse())
    return {};
  Value done = wait.getResults().front();
  bool goesOn = done.hasOneUse() && loop.getYieldedValues()[sums.getArgNumber() - 1] == done;
  bool stays = staysForAnIteration(product.getA(), loop, rings) && staysForAnIteration(product.getB(), loop, rings);
  return goesOn && stays ? wait : WgmmaWaitOp();
}

void leaveUnderWay(WgmmaWaitOp wait) {
  auto loop = cast<scf::ForOp>(wait->getParentOp());
  Value started = wait.getValues().front(), done = wait.getResults().front();
  unsigned index = done.use_begin()->getOperandNumber();
  OpBuilder b(wait);
  WgmmaWaitOp::create(b, wait.getLoc(), SmallVector<Value>(), /*pending=*/1);
  done.replaceAllUsesWith(started);
  b.setInsertionPointAfter(loop);
  auto last = WgmmaWaitOp::create(b, wait.getLoc(), SmallVector<Value>{loop.getResult(index)}, /*pending=*/0);
  loop.getResult(index).replaceAllUsesExcept(last.getResults().front(), last);
  wait.erase();
}

} // namespace weft::warp
