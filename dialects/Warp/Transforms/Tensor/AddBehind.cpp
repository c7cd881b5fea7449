// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-add-behind: what a product in tensor memory starts from, where each row has one number, is added when threads have
// its sums.
//
//   %c = tile.broadcast %delta                       %d = warp.wgmma %a, %b, %zero
//   %d = warp.wgmma %a, %b, %c                       %e = warp.wgmma_wait %d
//   %e = warp.wgmma_wait %d              ─▶          ...
//   ...                                              %c = tile.broadcast %delta
//   use(%e)                                          %f = arith.addf %e, %c
//                                                    use(%f)
//
// Registers that products start from cost nothing. Tensor memory would have to be written first, and what wrote it met
// before the product; an addition is half an instruction for each sum.
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Tensor/TensorProducts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPADDBEHIND
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct AddBehind : weft::warp::impl::WarpAddBehindBase<AddBehind> {
  void runOnOperation() override;
};
} // namespace

/// The wait for a product's sums, which threads of its block alone compute with; null where others take them.
static WgmmaWaitOp waitOfComputed(WgmmaOp product) {
  Value sums = product.getResult();
  auto wait = sums.hasOneUse() ? dyn_cast<WgmmaWaitOp>(*sums.getUsers().begin()) : WgmmaWaitOp();
  if (!wait || wait.getValues().size() != 1 || wait->getBlock() != product->getBlock())
    return {};
  Value done = wait.getResults().front();
  bool isComputedWith = !done.use_empty() && llvm::all_of(done.getUsers(), [&](Operation *user) {
    return user->getBlock() == wait->getBlock() && !user->hasTrait<OpTrait::IsTerminator>() && !isa<WgmmaOp>(user);
  });
  return isComputedWith ? wait : WgmmaWaitOp();
}

static Operation *firstUser(Value value) {
  return *llvm::min_element(value.getUsers(),
                            [](Operation *one, Operation *other) { return one->isBeforeInBlock(other); });
}

/// Whether an op may be computed where `to` stands, behind it: what it reads of shared memory stays that long.
static bool mayGoTo(Operation *op, Operation *to) {
  if (op->getBlock() != to->getBlock() || !op->hasOneUse())
    return false;
  if (isMemoryEffectFree(op))
    return true;
  if (!isa<LoadSharedOp>(op))
    return false;
  for (Operation *between = op->getNextNode(); between != to; between = between->getNextNode())
    if (!isMemoryEffectFree(between) && !isa<LoadSharedOp, WgmmaOp, WgmmaWaitOp>(between))
      return false;
  return true;
}

/// Moves what a value is made of, and nothing else, to where `to` stands.
static void sink(Value value, Operation *to) {
  for (Operation *op = value.getDefiningOp(); op && mayGoTo(op, to);) {
    op->moveBefore(to);
    to = op;
    op = op->getNumOperands() == 1 ? op->getOperand(0).getDefiningOp() : nullptr;
  }
}

/// Whether a value is one number for each row: numbers of columns would take as many registers as the sums.
static bool isOfRows(tile::BroadcastOp start) {
  return cast<RankedTensorType>(start.getSource().getType()).getShape().back() == 1;
}

static void addBehind(WgmmaOp product, WgmmaWaitOp wait) {
  Value start = product.getAcc(), done = wait.getResults().front();
  OpBuilder b(product);
  product.getAccMutable().set(arith::ConstantOp::create(b, product.getLoc(), b.getZeroAttr(start.getType())));
  b.setInsertionPoint(firstUser(done));
  auto sum = arith::AddFOp::create(b, product.getLoc(), done, start);
  done.replaceAllUsesExcept(sum, sum);
  sink(start, sum);
}

void AddBehind::runOnOperation() {
  getOperation().walk([](WgmmaOp product) {
    auto start = product.getAcc().getDefiningOp<tile::BroadcastOp>();
    if (!start || !isInTensorMemory(product) || !getElementTypeOrSelf(start.getType()).isF32() || !isOfRows(start) ||
        !fitsBesideOthers(product))
      return;
    if (WgmmaWaitOp wait = waitOfComputed(product))
      addBehind(product, wait);
  });
}
