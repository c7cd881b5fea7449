// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-defer-reduction: a loop that adds up rows, total = total · a + sum(x), need not bring the lanes of a row
// together in every iteration. Each lane adds up its own part and scales it as the whole would be; what crosses lanes,
// and warps, is done once, after the loop.
//
//   %t = scf.for iter_args(%s = %zero) {               %p = scf.for iter_args(%s = %zero) {     tensor<64x4xf32>
//     %r = tile.reduce add %x   (across lanes)           %q = tile.reshape %x                   tensor<64x8x4x2xf32>
//     %m = arith.mulf %s, %a                     -->     %r = tile.reduce add, add %q           (in registers)
//     scf.yield %m + %r         tensor<64xf32>           scf.yield %s · (%a broadcast) + %r     tensor<64x4xf32>
//   }                                                  }
//                                                      %t = tile.reduce add %p                  (across lanes)
//
// A total that the loop starts from belongs to the first lane of each row; one that another such loop has left is taken
// over in parts. Reductions whose axis lies within each thread gain nothing and are left alone.
//
// The other way round, a tile that a loop adds up and that is reduced after the loop is reduced within each thread
// first, so that the loop carries a register for as many elements of an axis as a thread has:
//
//   %t = scf.for iter_args(%s = %zero) {               %p = scf.for iter_args(%s = %zero) {     tensor<4x128xf32>
//     scf.yield %s + %x         tensor<16x128xf32>       %r = tile.reduce add (%x reshaped)
//   }                                          -->       scf.yield %s + %r
//   %r = tile.reduce add %t                            }
//                                                      %r = tile.reduce add %p
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPDEFERREDUCTION
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
/// A sum over rows that a loop carries.
struct CarriedSum {
  scf::ForOp loop;
  unsigned index; // of the carried value
  arith::AddFOp sum;
  arith::MulFOp scaling; // of the carried value; null where it is not scaled
  tile::ReduceOp reduce;
};

/// How an axis is cut so that some of the pieces lie within a thread.
struct Cut {
  SmallVector<int64_t, 6> sizes;    // the axis as several, the highest bits first
  SmallVector<bool, 6> inRegisters; // of each
  int64_t parts = 1;                // the product of the others: how many threads hold parts of one row
};

struct DeferReduction : weft::warp::impl::WarpDeferReductionBase<DeferReduction> {
  void runOnOperation() override;
};
} // namespace

// --- what can be deferred ---

static bool isAddition(tile::ReduceOp reduce) {
  Block &body = reduce.getCombiner().front();
  auto add = dyn_cast<arith::AddFOp>(body.front());
  return reduce.getSources().size() == 1 && add && add->getNextNode() == body.getTerminator() &&
         body.getTerminator()->getOperand(0) == add.getResult() && add.getLhs() != add.getRhs() &&
         isa<BlockArgument>(add.getLhs()) && isa<BlockArgument>(add.getRhs());
}

/// The other operand of a product or sum of two.
static Value otherOperand(Operation *op, Value one) { return op->getOperand(op->getOperand(0) == one ? 1 : 0); }

static std::optional<CarriedSum> carriedSum(scf::ForOp loop, unsigned index) {
  BlockArgument carried = loop.getRegionIterArg(index);
  CarriedSum found{loop, index, loop.getYieldedValues()[index].getDefiningOp<arith::AddFOp>(), {}, {}};
  if (!found.sum || !found.sum->hasOneUse() || !carried.hasOneUse() || found.sum.getLhs() == found.sum.getRhs() ||
      found.sum->getBlock() != loop.getBody())
    return std::nullopt;
  Operation *user = *carried.user_begin();
  Value term = carried;
  if (auto scaling = dyn_cast<arith::MulFOp>(user);
      scaling && scaling->hasOneUse() && scaling->getBlock() == loop.getBody()) {
    found.scaling = scaling;
    term = scaling.getResult();
    user = *scaling->user_begin();
  }
  if (user != found.sum.getOperation())
    return std::nullopt;
  found.reduce = otherOperand(found.sum, term).getDefiningOp<tile::ReduceOp>();
  if (!found.reduce || !found.reduce->hasOneUse() || found.reduce->getBlock() != loop.getBody() ||
      !isAddition(found.reduce))
    return std::nullopt;
  return found;
}

/// A sum that the loop carries element by element, of which only the sum along an axis is asked for after the loop.
static std::optional<CarriedSum> sumReducedAfter(scf::ForOp loop, unsigned index) {
  OpResult result = loop->getResult(index);
  BlockArgument carried = loop.getRegionIterArg(index);
  CarriedSum found{loop, index, loop.getYieldedValues()[index].getDefiningOp<arith::AddFOp>(), {}, {}};
  if (!result.hasOneUse() || !carried.hasOneUse() || !found.sum || !found.sum->hasOneUse() ||
      *carried.user_begin() != found.sum.getOperation() || found.sum->getBlock() != loop.getBody())
    return std::nullopt;
  found.reduce = dyn_cast<tile::ReduceOp>(*result.user_begin());
  if (!found.reduce || !isAddition(found.reduce))
    return std::nullopt;
  return found;
}

/// None where threads do not share the axis' elements bit by bit, or share none of them.
static std::optional<Cut> cutOf(const LinearLayout &layout, unsigned axis) {
  int64_t size = layout.shape()[axis];
  uint64_t shared = 0, own = 0;
  for (InDim dim : {InDim::Register, InDim::Lane, InDim::Warp, InDim::Block})
    for (uint32_t basis : layout.bases(dim)) {
      SmallVector<int64_t, 4> at = layout.delinearize(basis);
      int64_t along = std::exchange(at[axis], 0);
      if (!along)
        continue;
      if (!llvm::isPowerOf2_64(along) || llvm::any_of(at, [](int64_t coordinate) { return coordinate != 0; }))
        return std::nullopt;
      (dim == InDim::Register ? own : shared) |= along;
    }
  if (!shared || (shared & own) || static_cast<int64_t>(shared | own) != size - 1)
    return std::nullopt;
  Cut cut;
  for (int64_t bit = size / 2; bit != 0; bit /= 2) {
    bool inRegisters = own & bit;
    cut.parts *= inRegisters ? 1 : 2;
    if (cut.sizes.empty() || cut.inRegisters.back() != inRegisters) {
      cut.sizes.push_back(1);
      cut.inRegisters.push_back(inRegisters);
    }
    cut.sizes.back() *= 2;
  }
  return cut;
}

// --- rewriting ---

static RankedTensorType typeIn(ArrayRef<int64_t> shape, Type element, const LinearLayout &layout) {
  return RankedTensorType::get(shape, element, LayoutAttr::get(element.getContext(), layout));
}

static const LinearLayout &layoutOf(Value value) {
  return cast<LayoutAttr>(cast<RankedTensorType>(value.getType()).getEncoding()).getLayout();
}

static Value reshape(OpBuilder &b, Location loc, Value value, ArrayRef<int64_t> shape) {
  Type element = tile::elementTypeOf(value.getType());
  return tile::ReshapeOp::create(b, loc, typeIn(shape, element, layoutOf(value).reshape(shape)), value);
}

/// The sum of `value` along an axis, by the combiner of `like`.
static Value reduce(OpBuilder &b, tile::ReduceOp like, Value value, unsigned axis) {
  LinearLayout layout = layoutOf(value).dropAxis(axis);
  Type type = typeIn(layout.shape(), tile::elementTypeOf(value.getType()), layout);
  auto made = tile::ReduceOp::create(b, like.getLoc(), TypeRange(type), ValueRange(value), b.getI32IntegerAttr(axis));
  IRMapping mapping;
  like.getCombiner().cloneInto(&made.getCombiner(), mapping);
  return made.getResults()[0];
}

/// A value of each row, in each of its parts.
static Value repeated(OpBuilder &b, Location loc, Value rows, unsigned axis, RankedTensorType partial) {
  LinearLayout layout = cast<LayoutAttr>(partial.getEncoding()).getLayout().squeezeAxis(axis);
  Type element = tile::elementTypeOf(rows.getType());
  Value column =
      tile::ExpandDimsOp::create(b, loc, typeIn(layout.shape(), element, layout), rows, b.getI32IntegerAttr(axis));
  return tile::BroadcastOp::create(b, loc, RankedTensorType::get(partial.getShape(), element, partial.getEncoding()),
                                   column);
}

static Value zeros(OpBuilder &b, Location loc, RankedTensorType type) {
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, b.getZeroAttr(type.getElementType())));
}

/// What each part starts from, so that the parts of a row add up to `initial`.
static Value startOfParts(OpBuilder &b, Value initial, unsigned axis, RankedTensorType partial) {
  Location loc = initial.getLoc();
  if (matchPattern(initial, m_AnyZeroFloat()))
    return zeros(b, loc, partial);
  if (auto before = initial.getDefiningOp<tile::ReduceOp>())
    if (isAddition(before) && before.getAxis() == axis && before.getSources()[0].getType() == partial)
      return before.getSources()[0];
  // Whether a part is its row's first.
  Type index = b.getI32Type();
  LinearLayout layout = cast<LayoutAttr>(partial.getEncoding()).getLayout();
  LinearLayout along = layout.dropAxis(1 - axis), line = layout.squeezeAxis(1 - axis);
  Value number = tile::MakeRangeOp::create(b, loc, typeIn(along.shape(), index, along), b.getI32IntegerAttr(0),
                                           b.getI32IntegerAttr(partial.getDimSize(axis)));
  number = tile::ExpandDimsOp::create(b, loc, typeIn(line.shape(), index, line), number, b.getI32IntegerAttr(1 - axis));
  auto indices = RankedTensorType::get(partial.getShape(), index, partial.getEncoding());
  number = tile::BroadcastOp::create(b, loc, indices, number);
  Value none = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(indices, Attribute(b.getI32IntegerAttr(0))));
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, none);
  return arith::SelectOp::create(b, loc, isFirst, repeated(b, loc, initial, axis, partial), zeros(b, loc, partial));
}

/// `x` summed as far as each thread can by itself: the axis becomes one of as many parts as `cut` has.
static Value sumWithinThreads(OpBuilder &b, Value x, tile::ReduceOp like, const Cut &cut) {
  unsigned axis = like.getAxis();
  ArrayRef<int64_t> shape = tile::shapeOf(x.getType());
  SmallVector<int64_t, 8> pieces(shape.take_front(axis));
  pieces.append(cut.sizes);
  llvm::append_range(pieces, shape.drop_front(axis + 1));
  Value sum = reshape(b, like.getLoc(), x, pieces);
  for (unsigned piece = cut.sizes.size(); piece-- > 0;)
    if (cut.inRegisters[piece])
      sum = reduce(b, like, sum, axis + piece);
  SmallVector<int64_t, 4> partial(shape);
  partial[axis] = cut.parts;
  return reshape(b, like.getLoc(), sum, partial);
}

static void defer(CarriedSum found, const Cut &cut) {
  scf::ForOp loop = found.loop;
  tile::ReduceOp like = found.reduce;
  unsigned axis = like.getAxis(), index = found.index;
  BlockArgument carried = loop.getRegionIterArg(index);

  OpBuilder b(found.sum);
  Value part = sumWithinThreads(b, like.getSources()[0], like, cut);
  auto type = cast<RankedTensorType>(part.getType());
  carried.setType(type);
  Value before = carried;
  if (found.scaling) {
    Value factor = repeated(b, found.scaling.getLoc(), otherOperand(found.scaling, carried), axis, type);
    before = arith::MulFOp::create(b, found.scaling.getLoc(), carried, factor, found.scaling.getFastmath());
  }
  Value sum = arith::AddFOp::create(b, found.sum.getLoc(), before, part, found.sum.getFastmath());
  loop.getBody()->getTerminator()->setOperand(index, sum);

  b.setInsertionPoint(loop);
  loop.getInitArgsMutable()[index].set(startOfParts(b, loop.getInitArgs()[index], axis, type));
  OpResult result = loop->getResult(index);
  result.setType(type);
  b.setInsertionPointAfter(loop);
  Value total = reduce(b, like, result, axis);
  result.replaceAllUsesExcept(total, total.getDefiningOp());

  for (Operation *old : {found.sum.getOperation(), found.scaling.getOperation(), like.getOperation()})
    if (old)
      old->erase();
}

/// Sums each thread's elements before they are added to what the loop carries.
static void narrow(CarriedSum found, const Cut &cut) {
  scf::ForOp loop = found.loop;
  BlockArgument carried = loop.getRegionIterArg(found.index);
  OpBuilder b(found.sum);
  Value part = sumWithinThreads(b, otherOperand(found.sum, carried), found.reduce, cut);
  carried.setType(part.getType());
  Value sum = arith::AddFOp::create(b, found.sum.getLoc(), carried, part, found.sum.getFastmath());
  loop.getBody()->getTerminator()->setOperand(found.index, sum);
  found.sum->erase();

  b.setInsertionPoint(loop);
  OpOperand &init = loop.getInitArgsMutable()[found.index];
  init.set(matchPattern(init.get(), m_AnyZeroFloat()) ? zeros(b, loop.getLoc(), cast<RankedTensorType>(part.getType()))
                                                      : sumWithinThreads(b, init.get(), found.reduce, cut));
  OpResult result = loop->getResult(found.index);
  result.setType(part.getType());
  b.setInsertionPoint(found.reduce);
  found.reduce->replaceAllUsesWith(ValueRange(reduce(b, found.reduce, result, found.reduce.getAxis())));
  found.reduce->erase();
}

/// The cut of the tile that a sum reduces, if there is one.
static std::optional<Cut> cutOf(CarriedSum found) {
  auto source = cast<RankedTensorType>(found.reduce.getSources()[0].getType());
  if (source.getRank() != 2 || !source.getEncoding())
    return std::nullopt;
  return cutOf(layoutOf(found.reduce.getSources()[0]), found.reduce.getAxis());
}

void DeferReduction::runOnOperation() {
  SmallVector<scf::ForOp> loops;
  getOperation().walk<WalkOrder::PreOrder>([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops)
    for (unsigned index = 0; index < loop.getNumRegionIterArgs(); ++index) {
      if (std::optional<CarriedSum> found = carriedSum(loop, index)) {
        if (std::optional<Cut> cut = cutOf(*found))
          defer(*found, *cut);
      } else if (std::optional<CarriedSum> found = sumReducedAfter(loop, index)) {
        if (std::optional<Cut> cut = cutOf(*found); cut && llvm::is_contained(cut->inRegisters, true))
          narrow(*found, *cut);
      }
    }
  // Totals that another loop has taken over in parts.
  getOperation().walk<WalkOrder::PostOrder, ReverseIterator>([](tile::ReduceOp reduce) {
    if (reduce->use_empty())
      reduce.erase();
  });
}
