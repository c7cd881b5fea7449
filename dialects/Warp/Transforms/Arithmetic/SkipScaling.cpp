// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-skip-scaling: sums are multiplied by what a running maximum's growth makes of them only where it has grown.
//
//   scf.for .. iter_args(%m, %sums) {                      scf.for .. iter_args(%m, %sums) {
//     %n = maximumf %m, %of_block                            %n = maximumf %m, %of_block
//     %f = math.exp2 (subf %m, %n)                           %f = math.exp2 (subf %m, %n)
//     %g = broadcast %f                              ─▶      %g = broadcast %f
//     %s = mulf %sums, %g                                    %some = warp.any (cmpf une, %f, 1.0)
//     ..                                                     %s = scf.if %some { mulf %sums, %g } else { %sums }
//   }                                                      }
//
// A factor is exactly 1 where a row's maximum stays. Of numbers in any order the largest of j blocks lies in the last
// with probability 1 / j: after a few blocks most warps leave most of their sums alone. Results are the same bits.
#include "compiler/Support/Remarks.h"
#include "dialects/Tile/IR/LoopAttributes.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Tensor/TensorProducts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPSKIPSCALING
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct SkipScaling : weft::warp::impl::WarpSkipScalingBase<SkipScaling> {
  void runOnOperation() override;
};

/// Registers of a thread from which on leaving them alone is worth the vote and the branch. Those take six instructions,
/// and part what else is in flight: of 32 registers the loop model says -1 to +3 % of the cycles.
constexpr int64_t fewestRegisters = 48;

/// Registers of sums from which on no branch is put among the products of one iteration: beside 128 of 255 no room is
/// left for what it keeps alive on both of its ways. Nor is it where masks or products of warpgroups are: machine code
/// loses more by the order of what the branch parts than it saves (by the loop model 1.12 times the cycles for blocks
/// across a diagonal on an A100, 1.08 for 8-bit heads of 96 on an H100).
constexpr int64_t mostRegisters = 128;
} // namespace

/// What comes around a loop as this value, or out of a loop or a branch as it; null of others.
static Value cameFrom(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && argument != loop.getInductionVar() ? loop.getTiedLoopYieldedValue(argument)->get() : Value();
  }
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto loop = value.getDefiningOp<scf::ForOp>())
    return loop.getYieldedValues()[number];
  if (auto branch = value.getDefiningOp<scf::IfOp>())
    return branch.thenYield().getOperand(number);
  return {};
}

/// What has a value's elements, each once where it repeats them along an axis; with `around`, what came to it through
/// loops, branches and from other lanes and warps too. Without, a warp has the elements of the same rows.
static Value elementsOf(Value value, bool around) {
  SmallPtrSet<Value, 8> seen;
  while (seen.insert(value).second) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<tile::BroadcastOp, tile::ExpandDimsOp>(op) || (around && isa_and_nonnull<ConvertLayoutOp>(op)))
      value = op->getOperand(0);
    else if (Value before = around ? cameFrom(value) : Value())
      value = before;
    else
      break;
  }
  return value;
}

/// Whether a number is computed from one that passes `is` by few products and choices alone.
static bool isMadeOf(Value value, llvm::function_ref<bool(Value)> is, unsigned most = 6) {
  if (is(value))
    return true;
  Operation *op = value.getDefiningOp();
  return most && isa_and_nonnull<arith::MulFOp, arith::SelectOp, tile::BroadcastOp, tile::ExpandDimsOp>(op) &&
         llvm::any_of(op->getOperands(), [&](Value operand) { return isMadeOf(operand, is, most - 1); });
}

/// Whether `value` is the larger of `before`, which a loop carries, and others, and what it carries on.
static bool isGrown(Value value, Value before) {
  Operation *op = value.getDefiningOp();
  return isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(op) && llvm::is_contained(op->getOperands(), before) &&
         cameFrom(before) == value;
}

/// Whether a difference is that of a running maximum before and behind an iteration.
static bool isGrowth(arith::SubFOp difference) {
  return isMadeOf(difference.getLhs(), [&](Value before) {
    return isa<BlockArgument>(before) && isMadeOf(difference.getRhs(), [&](Value now) { return isGrown(now, before); });
  });
}

/// Whether factors are powers of how much a running maximum has grown: 1 where it has not.
static bool arePowersOfGrowth(Value factors) {
  Operation *power = elementsOf(factors, /*around=*/true).getDefiningOp();
  if (!isa_and_nonnull<math::Exp2Op, math::ExpOp>(power))
    return false;
  Value exponent = power->getOperand(0);
  return isMadeOf(exponent, [](Value value) {
    auto difference = value.getDefiningOp<arith::SubFOp>();
    return difference && isGrowth(difference);
  });
}

/// Whether a loop has masks or products of warpgroups, whose order a branch among them would cost more than it saves.
static bool hasMasksOrWarpgroups(scf::ForOp loop) {
  auto isOne = [](Operation *op) {
    if (isa<WgmmaOp>(op))
      return true;
    auto type =
        isa<SpanSelectOp, arith::SelectOp>(op) ? dyn_cast<RankedTensorType>(op->getResult(0).getType()) : nullptr;
    return type && type.getRank() > 1;
  };
  return loop.walk([&](Operation *op) { return isOne(op) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

static bool hasTensorProducts(scf::ForOp loop) {
  return llvm::any_of(loop.getBody()->getOps<WgmmaOp>(), isInTensorMemory);
}

/// Whether a vote and a branch cost less than what they leave out. A sum takes its product along in one instruction, and
/// rounds once.
static bool isWorthAsking(arith::MulFOp product, Value factors) {
  if (llvm::any_of(product->getUsers(), llvm::IsaPred<arith::AddFOp, arith::SubFOp>))
    return false;
  auto loop = product->getParentOfType<scf::ForOp>();
  LayoutAttr layout = layoutAttrOf(product.getType());
  int64_t registers = layout ? layout.getLayout().size(InDim::Register) : 0;
  if (!loop || loop->hasAttr(tile::fewIterationsAttrName) || registers < fewestRegisters)
    return false;
  // Sums in tensor memory would be loaded and stored.
  if (hasTensorProducts(loop))
    return true;
  // Factors of the iteration before are there when the products end that are waited for.
  return isa<BlockArgument>(factors) || (registers < mostRegisters && !hasMasksOrWarpgroups(loop));
}

/// The operand of a product of sums that is its factors; none where it is not worth asking what they are.
static Value factorsOf(arith::MulFOp product) {
  for (Value operand : product->getOperands())
    if (isWorthAsking(product, operand) && arePowersOfGrowth(operand))
      return operand;
  return {};
}

/// What is not `number` where a factor is not 1: the factors, or sooner the exponents whose powers they are.
struct Told {
  Value by;
  double number;
};

static Told toldBy(Value factors) {
  factors = elementsOf(factors, /*around=*/false);
  Operation *power = factors.getDefiningOp();
  if (!isa_and_nonnull<math::Exp2Op, math::ExpOp>(power))
    return {factors, 1};
  Value exponent = power->getOperand(0);
  while (auto product = exponent.getDefiningOp<arith::MulFOp>()) {
    APFloat factor(0.0);
    if (!matchPattern(product.getRhs(), m_ConstantFloat(&factor)) || !factor.isFinite())
      break;
    exponent = product.getLhs();
  }
  return {exponent, 0};
}

/// The pure ops of an op's block that it is computed by, but for those that lanes and warps meet in.
static void addSources(Operation *op, llvm::SetVector<Operation *> &sources) {
  for (Value operand : op->getOperands())
    if (Operation *source = operand.getDefiningOp(); source && source->getBlock() == op->getBlock() && isPure(source) &&
                                                     !source->getNumRegions() && !source->hasAttr(scratchAttrName))
      if (sources.insert(source))
        addSources(source, sources);
}

/// Moves an op, and what it is computed by, to the first place in its block where it can be: the scores' powers, which
/// the products take next, are computed behind the branch then, beside these.
static void moveUp(Operation *op) {
  llvm::SetVector<Operation *> moved;
  addSources(op, moved);
  SmallVector<Operation *> inOrder = moved.takeVector();
  llvm::sort(inOrder, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  inOrder.push_back(op);
  for (Operation *each : inOrder) {
    Operation *last = nullptr;
    for (Value operand : each->getOperands())
      if (Operation *source = operand.getDefiningOp(); source && source->getBlock() == each->getBlock())
        last = !last || last->isBeforeInBlock(source) ? source : last;
    last ? each->moveAfter(last) : each->moveBefore(each->getBlock(), each->getBlock()->begin());
  }
}

/// Whether one of the warp's factors is another than 1, behind what tells it or where `b` stands.
static Value isOther(Value factors, OpBuilder b) {
  Told told = toldBy(factors);
  if (Operation *op = told.by.getDefiningOp(); op && op->getBlock() == b.getInsertionBlock())
    b.setInsertionPointAfter(op);
  auto type = cast<RankedTensorType>(told.by.getType());
  Location loc = told.by.getLoc();
  Value number = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, b.getFloatAttr(type.getElementType(), told.number)));
  Value other = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, told.by, number);
  return AnyOp::create(b, loc, b.getI1Type(), other);
}

/// The same of factors that a loop carries, which it carries too: by the time that products end the vote is over.
static Value isOtherCarried(BlockArgument factors) {
  auto loop = cast<scf::ForOp>(factors.getOwner()->getParentOp());
  IRRewriter rewriter(loop.getContext());
  Value next = isOther(loop.getTiedLoopYieldedValue(factors)->get(), OpBuilder(loop.getBody()->getTerminator()));
  Value first = isOther(loop.getTiedLoopInit(factors)->get(), OpBuilder(loop));
  auto carrying = loop.replaceWithAdditionalYields(
      rewriter, first, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return SmallVector<Value>{next}; });
  return cast<scf::ForOp>(carrying->getOperation()).getRegionIterArgs().back();
}

/// Puts a product under the condition that a factor of the warp's is another than 1.
static void skip(arith::MulFOp product) {
  Value factors = factorsOf(product);
  if (!factors)
    return;
  remarks::decided(remarks::scaledSums, product)
      << remark::reason("sums of {0} registers of a thread are multiplied where a maximum of the warp's rows has grown",
                        layoutAttrOf(product.getType()).getLayout().size(InDim::Register));
  const bool isLeft = factors == product.getLhs();
  moveUp(product);
  auto carried = dyn_cast<BlockArgument>(factors);
  Value other = carried ? isOtherCarried(carried) : isOther(factors, OpBuilder(product));
  Location loc = product.getLoc();
  OpBuilder b(product);
  auto branch = scf::IfOp::create(b, loc, TypeRange(product.getType()), other, /*withElseRegion=*/true);
  product.replaceAllUsesWith(branch.getResult(0));
  product->moveBefore(branch.thenBlock(), branch.thenBlock()->end());
  b.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(b, loc, product.getResult());
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, loc, isLeft ? product.getRhs() : product.getLhs());
}

void SkipScaling::runOnOperation() {
  SmallVector<arith::MulFOp> products;
  getOperation().walk([&](arith::MulFOp product) { products.push_back(product); });
  llvm::for_each(products, skip);
}
