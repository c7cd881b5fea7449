// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-stage-values: what was computed goes through a tile of shared memory where that is how it gets where it is
// needed.
//
//   %s = tile.shift %x {axis, offset}         %t = warp.alloc
//   %r = tile.reshape %s                      warp.store_shared %x, %t             (once for all shifts of %x)
//   %y = warp.convert_layout %r        ─▶     %s = warp.load_shifted %t {axis, offset}
//   warp.mma %y, ...                          %y = tile.reshape %s
//                                             warp.dealloc %t
//
// A shift is read from the tile in the layout of whoever takes it, through changes of shape. Operands of fused
// multiply-adds, of which every lane needs whole rows, are read where they are used, so that they need not all be held. So are operands of
// products that are there the other way round in registers, behind a change of shape: `ldmatrix` turns them; and values
// that are operands in several layouts, once written for all, where that takes less than as many exchanges. And so are
// operands that a loop's products take from before it where those would fill a good part of a thread's registers (see
// OperandsOfLoops.h): `warp-reload-operands` then reads them where they are used. Vectors that such a loop repeats
// along rows (biases) are read where they are used, too. Barriers are inserted later.
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/MatrixAccess.h"
#include "dialects/Warp/Layout/ScratchLayout.h"
#include "dialects/Warp/Transforms/OperandsOfLoops.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "dialects/Warp/Transforms/SwizzledLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPSTAGEVALUES
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct StageValues : weft::warp::impl::WarpStageValuesBase<StageValues> {
  void runOnOperation() override;
};

/// A value's tile in shared memory.
class Tile {
public:
  Tile(Value value, unsigned contiguousAxis)
      : Tile(value,
             swizzledLayout(cast<RankedTensorType>(value.getType()).getShape(), contiguousAxis, bytesOf(value))) {}
  Tile(Value value, const LinearLayout &layout, int64_t margin = 0) : value(value), b(value.getContext()) {
    auto type = cast<RankedTensorType>(value.getType());
    shared = SharedType::get(b.getContext(), 1, type.getShape(), type.getElementType(),
                             LayoutAttr::get(b.getContext(), layout), margin);
    b.setInsertionPointAfterValue(value);
    memory = AllocOp::create(b, value.getLoc(), shared, IntegerAttr(), IntegerAttr());
    StoreSharedOp::create(b, value.getLoc(), value, memory);
  }
  /// To be called before an op that reads the tile is replaced.
  void readAt(Operation *op) {
    Operation *here = value.getParentBlock()->findAncestorOpInBlock(*op);
    if (!last || last->isBeforeInBlock(here))
      last = here;
  }
  /// The tile's life ends after its last reader, which must still be there.
  void end() {
    b.setInsertionPointAfter(last);
    DeallocOp::create(b, value.getLoc(), memory);
  }

  Value value;
  Value memory;
  SharedType shared;

  /// Of an element.
  static unsigned bytesOf(Value value) {
    return llvm::divideCeil(cast<RankedTensorType>(value.getType()).getElementTypeBitWidth(), 8);
  }

private:
  OpBuilder b;
  Operation *last = nullptr;
};
} // namespace

static LayoutAttr layoutAttr(const LinearLayout &layout, MLIRContext *context) {
  return LayoutAttr::get(context, layout);
}

static bool isProductOperand(OpOperand &use) { return isa<MmaOp>(use.getOwner()) && use.getOperandNumber() < 2; }

// --- shifts ---

/// The conversions of a shift's result behind changes of shape and of the axes' order; false when something else uses
/// it, too.
static bool conversionsBehind(Value value, SmallVectorImpl<ConvertLayoutOp> &conversions) {
  bool all = true;
  for (OpOperand &use : value.getUses()) {
    if (auto convert = dyn_cast<ConvertLayoutOp>(use.getOwner()))
      conversions.push_back(convert);
    else if (isa<tile::ReshapeOp, tile::PermuteOp>(use.getOwner()))
      all &= conversionsBehind(use.getOwner()->getResult(0), conversions);
    else
      all = false;
  }
  return all;
}

/// Reads the shifted tile in a layout of its shape.
static Value readShifted(OpBuilder &b, const Tile &from, tile::ShiftOp shift, const LinearLayout &layout) {
  auto type = cast<RankedTensorType>(shift.getType());
  auto wanted = RankedTensorType::get(type.getShape(), type.getElementType(), layoutAttr(layout, b.getContext()));
  return LoadShiftedOp::create(b, shift.getLoc(), wanted, from.memory, shift.getAxisAttr(), shift.getOffsetAttr());
}

static SmallVector<int32_t> inverseOf(ArrayRef<int32_t> order) {
  SmallVector<int32_t> inverse(order.size());
  for (auto [to, from] : llvm::enumerate(order))
    inverse[from] = to;
  return inverse;
}

/// The shifted tile in the layout that `convert` asks for, behind the same changes of shape and order.
static Value readFor(ConvertLayoutOp convert, Tile &from, tile::ShiftOp shift) {
  OpBuilder b(convert);
  SmallVector<Operation *> changes;
  LinearLayout layout = layoutAttrOf(convert.getType()).getLayout();
  for (Value at = convert.getSource(); at != shift.getResult(); at = changes.back()->getOperand(0)) {
    changes.push_back(at.getDefiningOp());
    if (auto permute = dyn_cast<tile::PermuteOp>(changes.back()))
      layout = layout.permute(inverseOf(permute.getOrder()));
    else
      layout = layout.reshape(cast<RankedTensorType>(changes.back()->getOperand(0).getType()).getShape());
  }
  Value read = readShifted(b, from, shift, layout);
  from.readAt(read.getDefiningOp());
  for (Operation *change : llvm::reverse(changes)) {
    auto type = cast<RankedTensorType>(change->getResult(0).getType());
    auto permute = dyn_cast<tile::PermuteOp>(change);
    layout = permute ? layout.permute(permute.getOrder()) : layout.reshape(type.getShape());
    type = RankedTensorType::get(type.getShape(), type.getElementType(), layoutAttr(layout, b.getContext()));
    read = permute ? tile::PermuteOp::create(b, change->getLoc(), type, read, permute.getOrder()).getResult()
                   : tile::ReshapeOp::create(b, change->getLoc(), type, read).getResult();
  }
  return read;
}

/// Erases ops that nothing uses any more, from `op` back to, but for, `end`.
static void eraseUnused(Operation *op, Operation *end) {
  while (op != end && op->use_empty()) {
    Operation *before = op->getOperand(0).getDefiningOp();
    op->erase();
    op = before;
  }
}

static void replaceShift(Tile &from, tile::ShiftOp shift) {
  SmallVector<ConvertLayoutOp> conversions;
  conversionsBehind(shift.getResult(), conversions);
  for (ConvertLayoutOp convert : conversions) {
    Value read = readFor(convert, from, shift);
    Operation *source = convert.getSource().getDefiningOp();
    convert.getResult().replaceAllUsesWith(read);
    convert->erase();
    eraseUnused(source, shift);
  }
  // Whoever else takes it reads it for itself, so that it is not held from one to the next.
  auto encoding = cast<LayoutAttr>(cast<RankedTensorType>(shift.getType()).getEncoding());
  for (OpOperand &use : llvm::make_early_inc_range(shift->getUses())) {
    OpBuilder b(use.getOwner());
    Value read = readShifted(b, from, shift, encoding.getLayout());
    from.readAt(read.getDefiningOp());
    use.set(read);
  }
  shift->erase();
}

/// Neighbours in memory are along the last axis that no shift moves along.
static unsigned unshiftedAxis(ArrayRef<tile::ShiftOp> shifts) {
  tile::ShiftOp first = shifts.front();
  unsigned rank = cast<RankedTensorType>(first.getType()).getRank();
  for (unsigned axis = rank; axis-- > 0;)
    if (llvm::none_of(shifts, [&](tile::ShiftOp shift) { return shift.getAxis() == axis; }))
      return axis;
  return rank - 1;
}

/// The lines of zeros that a tile needs on either side of its runs along the last axis but one, as all shifts are along
/// that: a power of two, of which threads find their places easily. 0 where some shift is along another axis, or so far
/// that there would be more zeros than elements.
static int64_t marginOf(ArrayRef<tile::ShiftOp> shifts) {
  auto type = cast<RankedTensorType>(shifts.front()->getResult(0).getType());
  int64_t run = type.getRank() - 2, most = 1;
  if (run < 0 || !type.getElementType().isIntOrFloat() || type.getElementTypeBitWidth() < 16)
    return 0;
  for (tile::ShiftOp shift : shifts) {
    if (shift.getAxis() != run)
      return 0;
    most = std::max<int64_t>(most, std::abs(shift.getOffsetAttr().getInt()));
  }
  const int64_t margin = llvm::PowerOf2Ceil(most);
  return 2 * margin <= type.getDimSize(run) ? margin : 0;
}

/// The tile that shifts of a value are read from.
static Tile tileOfShifts(ArrayRef<tile::ShiftOp> shifts) {
  Value source = shifts.front()->getOperand(0);
  int64_t margin = marginOf(shifts);
  if (!margin)
    return Tile(source, unshiftedAxis(shifts));
  LinearLayout rows(cast<RankedTensorType>(source.getType()).getShape());
  for (uint32_t bit = 1; bit < rows.numElements(); bit *= 2)
    rows.append(InDim::Offset, bit);
  return Tile(source, rows, margin);
}

static void stageShifts(func::FuncOp kernel) {
  llvm::MapVector<Value, SmallVector<tile::ShiftOp>> shifted;
  kernel.walk([&](tile::ShiftOp shift) {
    if (!shift->use_empty())
      shifted[shift.getSource()].push_back(shift);
  });
  for (auto &[key, shifts] : shifted) {
    // The key may be the result of a shift that has been replaced by now: the shifts' own operand is asked.
    Tile tile = tileOfShifts(shifts);
    for (tile::ShiftOp shift : shifts)
      replaceShift(tile, shift);
    tile.end();
  }
}

// --- operands of products ---

/// The value behind the transpositions before `convert`.
static Value rootOf(ConvertLayoutOp convert) {
  Value value = convert.getSource();
  while (auto permute = value.getDefiningOp<tile::PermuteOp>())
    value = permute.getSource();
  return value;
}
static const LinearLayout &layoutOf(Value value) { return layoutAttrOf(value.getType()).getLayout(); }

/// Whether an operand is there the other way round: its neighbours in registers are not along the products' inner axis.
static bool isTurned(ConvertLayoutOp convert) {
  if (!rootOf(convert).getDefiningOp<tile::ReshapeOp>())
    return false;
  unsigned own = contiguousAxis(layoutOf(convert.getSource())), wanted = contiguousAxis(layoutOf(convert.getResult()));
  return own != wanted;
}

static void stageOperand(Value value, ArrayRef<ConvertLayoutOp> conversions) {
  Tile tile(value, contiguousAxis(layoutOf(value)));
  for (ConvertLayoutOp convert : conversions) {
    OpBuilder b(convert);
    Value view = tile.memory;
    SmallVector<tile::PermuteOp> permutes;
    for (Value at = convert.getSource(); at != value; at = permutes.back().getSource())
      permutes.push_back(at.getDefiningOp<tile::PermuteOp>());
    for (tile::PermuteOp permute : llvm::reverse(permutes)) {
      auto from = cast<SharedType>(view.getType());
      LinearLayout layout = from.linear().permute(permute.getOrder());
      auto type =
          SharedType::get(b.getContext(), 1, layout.shape(), from.getElementType(), layoutAttr(layout, b.getContext()));
      view = PermuteSharedOp::create(b, permute.getLoc(), type, view, permute.getOrder());
    }
    Value read = LoadSharedOp::create(b, convert.getLoc(), convert.getType(), view);
    tile.readAt(read.getDefiningOp());
    Operation *source = convert.getSource().getDefiningOp();
    convert.getResult().replaceAllUsesWith(read);
    convert->erase();
    eraseUnused(source, value.getDefiningOp());
  }
  tile.end();
}

/// Wavefronts and instructions of a warp that reads registers from a tile, or writes them to it.
static uint64_t costOf(const LinearLayout &registers, const LinearLayout &tile, unsigned bytes, bool byMatrices) {
  SharedAccess access = accessOf(registers, tile, bytes);
  if (std::optional<MatrixAccess> matrices =
          byMatrices ? matrixAccess(access.offsets, 8 * bytes) : std::optional<MatrixAccess>())
    return wavefrontsOf(*matrices, access.offsets, bytes).needed + matrices->first.size();
  return wavefrontsOf(access, bytes).needed + instructionsOf(access, bytes);
}

/// How the result of a conversion lies in a tile of what is behind the transpositions before it.
static LinearLayout layoutInTile(ConvertLayoutOp convert) {
  LinearLayout layout = layoutOf(convert.getResult());
  for (auto permute = convert.getSource().getDefiningOp<tile::PermuteOp>(); permute;
       permute = permute.getSource().getDefiningOp<tile::PermuteOp>())
    layout = layout.permute(inverseOf(permute.getOrder()));
  return layout;
}

/// Whether one tile that a value is stored to once takes less than as many exchanges as its conversions are.
static bool isCheaperOnce(Value value, ArrayRef<ConvertLayoutOp> conversions) {
  const unsigned bytes = Tile::bytesOf(value);
  const LinearLayout &own = layoutOf(value);
  const LinearLayout tile = swizzledLayout(own.shape(), contiguousAxis(own), bytes);
  uint64_t once = costOf(own, tile, bytes, /*byMatrices=*/false), apart = 0;
  for (ConvertLayoutOp convert : conversions) {
    const LinearLayout &from = layoutOf(convert.getSource()), &to = layoutOf(convert.getResult());
    const LinearLayout scratch = scratchLayout(from, to, bytes);
    apart += costOf(from, scratch, bytes, /*byMatrices=*/false) + costOf(to, scratch, bytes, /*byMatrices=*/false);
    once += costOf(layoutInTile(convert), tile, bytes, /*byMatrices=*/true);
  }
  return once < apart;
}

/// The exchanges of values that are operands of products in several layouts, where one tile is cheaper for all.
static llvm::MapVector<Value, SmallVector<ConvertLayoutOp>> operandsTakenOften(func::FuncOp kernel) {
  llvm::MapVector<Value, SmallVector<ConvertLayoutOp>> found;
  kernel.walk([&](ConvertLayoutOp convert) {
    Value root = rootOf(convert);
    auto type = cast<RankedTensorType>(convert.getType());
    const bool isOfHalves = type.getElementType().isIntOrFloat() && type.getElementTypeBitWidth() == 16;
    if (type.getRank() == 2 && isOfHalves && convert->getBlock() == root.getParentBlock() && !convert->use_empty() &&
        llvm::all_of(convert->getUses(), isProductOperand) && scratchBytes(convert) > 0)
      found[root].push_back(convert);
  });
  found.remove_if([](auto &each) { return each.second.size() < 2 || !isCheaperOnce(each.first, each.second); });
  return found;
}

static void stageOperandsOfProducts(func::FuncOp kernel, const llvm::SetVector<Operation *> &full) {
  llvm::MapVector<Value, SmallVector<ConvertLayoutOp>> staged = operandsTakenOften(kernel);
  kernel.walk([&](ConvertLayoutOp convert) {
    auto type = cast<RankedTensorType>(convert.getType());
    if (type.getRank() != 2 || convert->use_empty() || !llvm::all_of(convert->getUses(), isProductOperand))
      return;
    bool heldByFull = llvm::any_of(convert->getUsers(), [&](Operation *user) {
      auto loop = user->getParentOfType<scf::ForOp>();
      return loop && !loop->isAncestor(convert) && full.contains(loop);
    });
    SmallVector<ConvertLayoutOp> &all = staged[rootOf(convert)];
    if ((heldByFull || isTurned(convert)) && !llvm::is_contained(all, convert))
      all.push_back(convert);
  });
  for (auto &[value, conversions] : staged)
    if (!conversions.empty())
      stageOperand(value, conversions);
}

// --- operands of fused multiply-adds ---

/// The conversion that hands whole rows or columns to the lanes of a product by fused multiply-adds, perhaps before
/// widening: a read of a few elements for each of them takes less than the shuffles. Null where it is none, few registers
/// are held (from before the product's loop, where they take a fourth of a thread's), or no element changes its lane.
static ConvertLayoutOp conversionOf(tile::DotOp dot, unsigned operand, const TargetInfo &target) {
  constexpr int64_t fewRegisters = 16;
  Value value = dot->getOperand(operand);
  if (auto widened = value.getDefiningOp<arith::ExtFOp>())
    value = widened.getIn();
  auto convert = value.getDefiningOp<ConvertLayoutOp>();
  bool isBeside = convert && convert->getBlock() == dot->getBlock();
  bool worthIt = convert && registersOf(value) >= (isBeside ? fewRegisters : target.registersPerThread / 4) &&
                 !layoutOf(value).registerPermutation(layoutOf(convert.getSource()));
  return worthIt ? convert : ConvertLayoutOp();
}

/// The layout of a tile that is written and read in the fewest instructions and wavefronts.
static LinearLayout cheapestTile(Value value, ArrayRef<std::pair<OpOperand *, ConvertLayoutOp>> uses) {
  unsigned bytes = Tile::bytesOf(value);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  ConvertLayoutOp first = uses.front().second;
  auto cost = [&](const LinearLayout &registers, const LinearLayout &tile) {
    SharedAccess access = accessOf(registers, tile, bytes);
    return wavefrontsOf(access, bytes).needed + instructionsOf(access, bytes);
  };
  std::optional<LinearLayout> best;
  uint64_t least = 0;
  for (const LinearLayout &tile : {swizzledLayout(shape, 1, bytes), swizzledLayout(shape, 0, bytes),
                                   scratchLayout(layoutOf(value), layoutOf(first.getResult()), bytes)}) {
    uint64_t total = cost(layoutOf(value), tile);
    for (auto [use, convert] : uses)
      total += cost(layoutOf(convert.getResult()), tile);
    if (!best || total < least) {
      best = tile;
      least = total;
    }
  }
  return *best;
}

/// Reads operands at each product that takes them, so that they need not be held from one to the next; those from before
/// a loop where they were converted, which `warp-reload-operands` may change.
static void stageFmaOperands(func::FuncOp kernel, const TargetInfo &target) {
  llvm::MapVector<Value, SmallVector<std::pair<OpOperand *, ConvertLayoutOp>>> staged;
  kernel.walk([&](tile::DotOp dot) {
    for (unsigned operand : {0, 1})
      if (ConvertLayoutOp convert = conversionOf(dot, operand, target))
        staged[convert.getSource()].emplace_back(&dot->getOpOperand(operand), convert);
  });
  for (auto &[value, uses] : staged) {
    Tile tile(value, cheapestTile(value, uses));
    for (auto [use, convert] : uses) {
      Operation *before = use->get().getDefiningOp(), *dot = use->getOwner();
      OpBuilder b(convert->getBlock() == dot->getBlock() ? dot : before);
      Value read = LoadSharedOp::create(b, convert.getLoc(), convert.getType(), tile.memory);
      if (isa<arith::ExtFOp>(before))
        read = arith::ExtFOp::create(b, before->getLoc(), use->get().getType(), read);
      use->set(read);
      tile.readAt(dot);
      eraseUnused(before, value.getDefiningOp());
    }
    tile.end();
  }
}

// --- vectors ---

/// A loaded vector that an operand repeats along rows, through ops that cost next to nothing; null where it does not.
static Value repeatedVector(Value value) {
  bool repeated = false;
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tile::BroadcastOp, tile::ExpandDimsOp, arith::ExtFOp>(op))
      break;
    repeated |= isa<tile::BroadcastOp>(op);
    value = op->getOperand(0);
  }
  auto type = dyn_cast<RankedTensorType>(value.getType());
  bool vector = repeated && type && type.getRank() == 1 && isa<FloatType>(type.getElementType());
  return vector && isa_and_nonnull<tile::LoadOp, ConvertLayoutOp>(value.getDefiningOp()) ? value : Value();
}

/// `value` computed anew from `read`, in place of what it was computed from.
static Value recomputed(OpBuilder &b, Value value, Value vector, Value read) {
  if (value == vector)
    return read;
  Operation *op = value.getDefiningOp();
  IRMapping mapping;
  mapping.map(op->getOperand(0), recomputed(b, op->getOperand(0), vector, read));
  return b.clone(*op, mapping)->getResult(0);
}

static void stageVectors(scf::ForOp loop) {
  llvm::MapVector<Value, SmallVector<OpOperand *>> uses;
  loop.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (Value vector = repeatedVector(operand.get());
          vector && !loop->isAncestor(operand.get().getParentBlock()->getParentOp()))
        uses[vector].push_back(&operand);
  });
  for (auto &[vector, operands] : uses) {
    Tile tile(vector, 0);
    for (OpOperand *operand : operands) {
      OpBuilder b(operand->getOwner());
      Value read = LoadSharedOp::create(b, vector.getLoc(), vector.getType(), tile.memory);
      tile.readAt(read.getDefiningOp());
      operand->set(recomputed(b, operand->get(), vector, read));
    }
    tile.end();
  }
}

void StageValues::runOnOperation() {
  const TargetInfo *target = nullptr;
  bool any = getOperation()
                 .walk([](Operation *op) {
                   return isa<tile::ShiftOp, MmaOp, tile::DotOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
                 })
                 .wasInterrupted();
  if (!any)
    return;
  target = TargetInfo::of(getOperation());
  if (!target)
    return signalPassFailure();
  stageShifts(getOperation());
  llvm::SetVector<Operation *> full;
  getOperation().walk([&](scf::ForOp loop) {
    if (takesManyOperands(loop, *target))
      full.insert(loop);
  });
  stageOperandsOfProducts(getOperation(), full);
  stageFmaOperands(getOperation(), *target);
  for (Operation *loop : full)
    stageVectors(cast<scf::ForOp>(loop));
}
