// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/TileToWarp/Products/TF32Products.h"

#include "compiler/Conversion/TileToWarp/Products/PlanDots.h"
#include "compiler/Conversion/TileToWarp/Products/PlanWgmma.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/TF32.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/LoopCarried.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace weft {
namespace {

/// The same copy of another source.
Value copyOf(Value operand, Value source, Value other) {
  if (operand == source)
    return other;
  Operation *op = operand.getDefiningOp();
  OpBuilder b(op);
  Operation *copy = b.clone(*op);
  copy->setOperand(0, copyOf(op->getOperand(0), source, other));
  return copy->getResult(0);
}

/// A value of f32 as two numbers of TF32, which add up to it but for some 22 bits of its mantissa.
struct Parts {
  Value high, low;
};

Parts partsOf(Value value) {
  OpBuilder b(value.getContext());
  b.setInsertionPointAfterValue(value);
  Location loc = value.getLoc();
  Value high = warp::RoundTF32Op::create(b, loc, value);
  Value low = warp::RoundTF32Op::create(b, loc, arith::SubFOp::create(b, loc, value, high));
  return {high, low};
}

/// A product as three: the two with rests have a sum of their own, which is added to the large one's before that.
struct ThreeProducts {
  tile::DotOp whole; ///< until its three are taken
  tile::DotOp firstRests, rests, large;
};

/// Two sums, of which `rests` adds little. Beside the large products' much of the rests' would be lost, and where there
/// are infinities it has other ones or none, which must not meet those: any finite number will do there.
Value sumWithRests(OpBuilder &b, Location loc, Value large, Value rests) {
  constexpr float most = std::numeric_limits<float>::max();
  auto type = cast<ShapedType>(rests.getType());
  auto number = [&](float x) { return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, x)); };
  rests = arith::MaxNumFOp::create(b, loc, rests, number(-most));
  rests = arith::MinNumFOp::create(b, loc, rests, number(most));
  return arith::AddFOp::create(b, loc, large, rests);
}

ThreeProducts threeProducts(tile::DotOp dot, llvm::DenseMap<Value, Parts> &known) {
  std::array<Parts, 2> operands;
  for (unsigned index : {0, 1}) {
    Value operand = dot->getOperand(index), root = rootOf(operand);
    auto [found, isNew] = known.try_emplace(root);
    if (isNew)
      found->second = partsOf(root);
    operands[index] = {copyOf(operand, root, found->second.high), copyOf(operand, root, found->second.low)};
  }
  OpBuilder b(dot);
  Location loc = dot.getLoc();
  auto product = [&](Value x, Value y, Value sum) {
    return tile::DotOp::create(b, loc, dot.getType(), x, y, sum, tile::Precision::TF32);
  };
  auto [x, y] = operands;
  auto zero = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(cast<ShapedType>(dot.getType()), 0.0f));
  tile::DotOp first = product(x.low, y.high, zero), rests = product(x.high, y.low, first);
  return {dot, first, rests, product(x.high, y.high, sumWithRests(b, loc, dot.getAcc(), rests))};
}

/// A loop that goes on with the sum of a product carries the rests' beside it, and adds the two behind itself.
void carryRests(ThreeProducts three) {
  auto sum = three.large.getAcc().getDefiningOp<arith::AddFOp>();
  auto carried = dyn_cast<BlockArgument>(sum.getLhs());
  auto loop = carried ? dyn_cast<scf::ForOp>(carried.getOwner()->getParentOp()) : scf::ForOp();
  if (!loop || loop != three.large->getParentOp() || carried == loop.getInductionVar() || !carried.hasOneUse() ||
      !three.large->hasOneUse() || loop.getTiedLoopYieldedValue(carried)->get() != three.large.getResult())
    return;
  three.large.getAccMutable().assign(carried);
  IRRewriter b(loop.getContext());
  b.setInsertionPoint(loop);
  const unsigned place = carried.getArgNumber() - 1, count = loop.getNumResults();
  Value zero = b.clone(*three.firstRests.getAcc().getDefiningOp())->getResult(0);
  auto both = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      b, zero, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return SmallVector<Value>{three.rests.getResult()}; }));
  three.firstRests.getAccMutable().assign(both.getRegionIterArg(count));
  b.setInsertionPointAfter(both);
  Value large = both.getResult(place), whole = sumWithRests(b, three.large.getLoc(), large, both.getResult(count));
  large.replaceUsesWithIf(whole, [&](OpOperand &use) { return use.getOwner() != whole.getDefiningOp(); });
}

} // namespace

void splitTF32Products(func::FuncOp function, const TargetInfo &target, int warps) {
  if (target.warpgroups.families.size() == 0)
    return;
  SmallVector<ThreeProducts> split;
  llvm::DenseMap<Value, Parts> known;
  function.walk([&](tile::DotOp dot) {
    if (!tile::elementTypeOf(dot.getA().getType()).isF32() || dot.getPrecision() != tile::Precision::TF32x3 ||
        cast<ShapedType>(dot.getType()).getNumElements() > int64_t(warp::mostSumsWithRests) * warps * target.warpSize)
      return;
    split.push_back(threeProducts(dot, known));
    dot.replaceAllUsesWith(split.back().large.getResult());
  });
  if (split.empty())
    return;
  WgmmaPlans plans = planWgmma(function, chainedProducts(function), AxisAnalysis(function), target, warps);
  for (ThreeProducts &three : split) {
    if (!plans.taken.contains(three.large) || !plans.taken.contains(three.rests)) {
      three.large.replaceAllUsesWith(three.whole.getResult());
      continue;
    }
    three.whole.erase();
    carryRests(three);
  }
  warp::eraseDeadOps(function);
}

void roundTF32Products(func::FuncOp function, const TargetInfo &target, int warps) {
  SmallVector<tile::DotOp> products;
  function.walk([&](tile::DotOp dot) {
    if (tile::elementTypeOf(dot.getA().getType()).isF32())
      products.push_back(dot);
  });
  if (products.empty() || target.warpgroups.families.size() == 0)
    return;
  WgmmaPlans plans = planWgmma(function, chainedProducts(function), AxisAnalysis(function), target, warps);
  llvm::DenseMap<Value, Value> known;
  for (tile::DotOp dot : products) {
    if (!plans.taken.contains(dot))
      continue;
    for (unsigned index : {0, 1}) {
      OpOperand &operand = dot->getOpOperand(index);
      Value root = rootOf(operand.get());
      if (warp::isTF32(root))
        continue;
      Value &even = known[root];
      if (!even) {
        OpBuilder b(dot.getContext());
        b.setInsertionPointAfterValue(root);
        even = warp::RoundTF32Op::create(b, root.getLoc(), root);
      }
      // Both ways of one tile have one rounding, and transpositions of it are for this product alone.
      Value value = even;
      SmallVector<tile::PermuteOp> permutes;
      for (Value each = operand.get(); each != root; each = permutes.back().getSource())
        permutes.push_back(each.getDefiningOp<tile::PermuteOp>());
      OpBuilder b(dot);
      for (tile::PermuteOp permute : llvm::reverse(permutes))
        value = tile::PermuteOp::create(b, permute.getLoc(), permute.getType(), value, permute.getOrder());
      operand.set(value);
    }
  }
}

namespace {

/// What an operand of a product of single warps is a copy of: in another layout, or transposed.
Value sourceOf(Value operand) {
  while (Operation *op = operand.getDefiningOp())
    if (isa<warp::ConvertLayoutOp, tile::PermuteOp, tile::ReshapeOp>(op))
      operand = op->getOperand(0);
    else
      break;
  return operand;
}

/// The registers of a thread that hold different elements.
int64_t registersOf(Value value) {
  auto encoding = cast<warp::LayoutAttr>(cast<RankedTensorType>(value.getType()).getEncoding());
  const warp::LinearLayout &layout = encoding.getLayout();
  return layout.size(warp::InDim::Register) >> llvm::popcount(layout.freeBits()[warp::InDim::Register]);
}

} // namespace

void roundOperandsOnce(func::FuncOp function) {
  // ptxas makes three instructions of a rounding, and two where a matrix instruction alone reads it.
  constexpr int64_t apart = 3, beside = 2;
  llvm::MapVector<Value, SmallVector<OpOperand *>> products;
  function.walk([&](warp::MmaOp mma) {
    if (mma.getPrecision() != tile::Precision::TF32 || !tile::elementTypeOf(mma.getA().getType()).isF32())
      return;
    for (OpOperand &operand : mma->getOpOperands().take_front(2)) {
      Value source = sourceOf(operand.get());
      Operation *op = source.getDefiningOp();
      if (op && !isa<tile::LoadOp>(op) && !warp::isTF32(source))
        products[source].push_back(&operand);
    }
  });
  for (auto &[source, operands] : products) {
    int64_t rounded = 0;
    for (OpOperand *operand : operands)
      rounded += registersOf(operand->get());
    if (rounded * beside <= registersOf(source) * apart)
      continue;
    OpBuilder b(function.getContext());
    b.setInsertionPointAfterValue(source);
    Value even = warp::RoundTF32Op::create(b, source.getLoc(), source);
    for (OpOperand *operand : operands)
      operand->set(copyOf(operand->get(), source, even));
  }
}

} // namespace weft
