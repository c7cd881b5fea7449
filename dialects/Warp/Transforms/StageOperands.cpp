// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-stage-operands: an operand of a product that comes from device memory goes there through a swizzled tile in
// shared memory, without touching registers on its way where `cp.async` can copy it.
//
//   %x = tile.load %p, %m, %zero              %s = warp.alloc
//   %y = warp.convert_layout %x         ─▶    warp.async_copy %p masked %m to %s
//   %d = warp.mma %y, ...                     warp.async_commit
//                                             warp.async_wait {pending = 0}     (where %y was)
//                                             %y = warp.load_shared %s
//                                             warp.dealloc %s
//                                             %d = warp.mma %y, ...
//
// A vector of 4-byte or wider elements that a loop with products loads and then converts goes the same way, so that it
// is copied ahead with their operands; an index is left to what loads it ahead of what it addresses (warp-load-ahead).
//
// What is widened behind the conversion, 8-bit weights, is read as it is, where `ldmatrix` reads it from where it lies.
//
// A transposition between load and product becomes a `warp.permute_shared`: the tile is read the other way round, and
// no register moves. What changes its shape between them, as batches of matrices do, is loaded in the shape that it
// comes to have. Barriers are inserted later.
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/MatrixAccess.h"
#include "dialects/Warp/Layout/ScratchLayout.h"
#include "dialects/Warp/Transforms/Copies/AsyncLoads.h"
#include "dialects/Warp/Transforms/LoopSlice.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/SwizzledLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPSTAGEOPERANDS
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
/// A load all of whose uses are conversions: to operands of products, directly or behind transpositions, or of a
/// vector.
struct Staged {
  tile::LoadOp load;
  SmallVector<ConvertLayoutOp> conversions;
};

struct StageOperands : weft::warp::impl::WarpStageOperandsBase<StageOperands> {
  void runOnOperation() override;
};
} // namespace

static bool isProductOperand(OpOperand &use) {
  return isa<MmaOp, tile::DotOp, tile::RowDotOp>(use.getOwner()) && use.getOperandNumber() < 2;
}

/// Whether products alone take a value, as it is or widened.
static bool areProductOperands(Value value) {
  return llvm::all_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    return isa<arith::ExtFOp, arith::SIToFPOp, arith::UIToFPOp>(user) ? llvm::all_of(user->getUses(), isProductOperand)
                                                                      : isProductOperand(use);
  });
}

/// Collects the conversions behind `value`; false when something else uses it.
static bool collectConversions(Value value, SmallVectorImpl<ConvertLayoutOp> &conversions) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    if (auto convert = dyn_cast<ConvertLayoutOp>(use.getOwner())) {
      conversions.push_back(convert);
      return areProductOperands(convert.getResult());
    }
    auto permute = dyn_cast<tile::PermuteOp>(use.getOwner());
    return permute && collectConversions(permute.getResult(), conversions);
  });
}

static bool canCopyAsync(tile::LoadOp load, const TargetInfo &target) { return whyNotAsync(load, target).empty(); }

/// Whether a vector is worth a tile: a loop with products loads it anew in every iteration, and only to read it
/// otherwise. An index stays in registers, where it can be there an iteration before what it addresses.
static bool isVectorBesideProducts(tile::LoadOp load, const TargetInfo &target) {
  return isa<scf::ForOp>(load->getParentOp()) && llvm::any_of(*load->getBlock(), llvm::IsaPred<MmaOp, WgmmaOp>) &&
         canCopyAsync(load, target) && !addressesLoads(load) && llvm::all_of(load->getUsers(), [&](Operation *user) {
           return isa<ConvertLayoutOp>(user) && user->getBlock() == load->getBlock();
         });
}

/// Who reads a tile, directly or behind conversions and transpositions.
static void collectReaders(Value value, SmallVectorImpl<OpOperand *> &readers) {
  for (OpOperand &use : value.getUses())
    if (isa<ConvertLayoutOp, tile::PermuteOp>(use.getOwner()))
      collectReaders(use.getOwner()->getResult(0), readers);
    else
      readers.push_back(&use);
}

/// Says so of a tile that products take, and something else too, so that it stays in registers.
static void sayNotStaged(tile::LoadOp load) {
  SmallVector<OpOperand *> readers;
  collectReaders(load.getResult(), readers);
  auto isOperand = [](OpOperand *use) { return isProductOperand(*use); };
  auto other = llvm::find_if_not(readers, isOperand);
  if (other != readers.end() && llvm::any_of(readers, isOperand))
    remarks::missed(remarks::operandStaging, load)
        << remark::reason("the tile of a product is read by '{0}' too, so registers hold it on its way",
                          (*other)->getOwner()->getName().getStringRef());
}

/// A layout in which a thread has what it has in another, those neighbours along the contiguous axis first that share a
/// register of 32 bits: a conversion between the two moves nothing.
static LinearLayout wordsFirst(const LinearLayout &layout, unsigned axis, unsigned bits) {
  constexpr unsigned wordBits = 32;
  SmallVector<uint32_t> first, rest;
  for (uint32_t basis : layout.bases(InDim::Register)) {
    SmallVector<int64_t> at = layout.delinearize(basis);
    const bool isInWord =
        llvm::count_if(at, [](int64_t place) { return place != 0; }) == 1 && at[axis] > 0 && at[axis] * bits < wordBits;
    (isInWord ? first : rest).push_back(basis);
  }
  llvm::sort(first);
  LinearLayout result(layout.shape());
  for (uint32_t basis : llvm::concat<uint32_t>(first, rest))
    result.append(InDim::Register, basis);
  for (InDim dim : {InDim::Lane, InDim::Warp, InDim::Block})
    for (uint32_t basis : layout.bases(dim))
      result.append(dim, basis);
  return result;
}

/// The transpositions between a load and a conversion, from the conversion on.
static SmallVector<tile::PermuteOp, 1> permutesBefore(ConvertLayoutOp convert) {
  SmallVector<tile::PermuteOp, 1> permutes;
  for (auto permute = convert.getSource().getDefiningOp<tile::PermuteOp>(); permute;
       permute = permute.getSource().getDefiningOp<tile::PermuteOp>())
    permutes.push_back(permute);
  return permutes;
}

/// The layout in which the result of a conversion is read from the load's tile, seen through the transpositions.
static LinearLayout readLayout(ConvertLayoutOp convert, tile::LoadOp load) {
  auto type = convert.getType();
  const LinearLayout &layout = layoutAttrOf(type).getLayout();
  if (llvm::all_of(convert->getUses(), isProductOperand) || type.getRank() != 2)
    return layout;
  unsigned along = neighbourAxis(layoutAttrOf(load.getType()).getLayout());
  const SmallVector<tile::PermuteOp, 1> permutes = permutesBefore(convert);
  for (tile::PermuteOp permute : llvm::reverse(permutes))
    along = permute.getOrder()[0] == int32_t(along) ? 0 : 1;
  return wordsFirst(layout, along, type.getElementTypeBitWidth());
}

/// How the result of a conversion lies in the load's tile.
static LinearLayout layoutInTile(ConvertLayoutOp convert, tile::LoadOp load) {
  LinearLayout layout = readLayout(convert, load);
  for (tile::PermuteOp permute : permutesBefore(convert)) {
    SmallVector<int32_t> inverse(permute.getOrder().size());
    for (auto [to, from] : llvm::enumerate(permute.getOrder()))
      inverse[from] = to;
    layout = layout.permute(inverse);
  }
  return layout;
}

/// Whether what is widened on its way to products is read by `ldmatrix` from where copies put it: else, an exchange
/// that puts it where it is wanted reads wider pieces.
static bool areReadAsTheyLie(const Staged &staged) {
  tile::LoadOp load = staged.load;
  auto type = cast<RankedTensorType>(load.getType());
  unsigned bits = type.getElementTypeBitWidth();
  LinearLayout tile = swizzledLayout(type.getShape(), neighbourAxis(layoutAttrOf(type).getLayout()), bits / 8);
  return llvm::all_of(staged.conversions, [&](ConvertLayoutOp convert) {
    return llvm::all_of(convert->getUses(), isProductOperand) ||
           matrixAccess(accessOf(layoutInTile(convert, load), tile, bits / 8).offsets, bits);
  });
}

/// Whether the elements that a lane copies at once are neighbours along one axis, in a layout behind changes of shape.
static bool keepsPieces(const LinearLayout &layout, tile::LoadOp load) {
  const int64_t elements = pieceBytes(load) * 8 / tile::elementTypeOf(load.getType()).getIntOrFloatBitWidth();
  const unsigned axis = neighbourAxis(layout);
  ArrayRef<uint32_t> registers = layout.bases(InDim::Register);
  for (int64_t bit = 0; int64_t(1) << bit < elements; ++bit) {
    SmallVector<int64_t> wanted(layout.rank(), 0);
    wanted[axis] = int64_t(1) << bit;
    if (wanted[axis] >= layout.shape()[axis] || registers[bit] != layout.linearize(wanted))
      return false;
  }
  return true;
}

/// What takes a load alone, one after another: changes of shape and of the axes' order, up to a matrix that products
/// take. Empty where there is no change of shape.
static SmallVector<Operation *> changesOf(tile::LoadOp load) {
  SmallVector<Operation *> changes;
  Value value = load.getResult();
  while (value.hasOneUse() && isa<tile::ReshapeOp, tile::PermuteOp>(*value.user_begin())) {
    changes.push_back(*value.user_begin());
    value = changes.back()->getResult(0);
  }
  // Those of the axes' order behind the last change of shape are views of the tile.
  while (!changes.empty() && isa<tile::PermuteOp>(changes.back()))
    value = changes.pop_back_val()->getOperand(0);
  SmallVector<ConvertLayoutOp> conversions;
  const bool isOfProducts = cast<RankedTensorType>(value.getType()).getRank() == 2 && !value.use_empty() &&
                            keepsPieces(layoutAttrOf(value.getType()).getLayout(), load) &&
                            collectConversions(value, conversions);
  return isOfProducts ? changes : SmallVector<Operation *>();
}

/// `value` with the same changes as a load of it has.
static Value changed(OpBuilder &b, Value value, ArrayRef<Operation *> changes) {
  DenseElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)) && constant.isSplat()) {
    auto type = cast<RankedTensorType>(changes.back()->getResult(0).getType());
    return arith::ConstantOp::create(b, value.getLoc(),
                                     constant.resizeSplat(type.clone(tile::elementTypeOf(value.getType()))));
  }
  for (Operation *change : changes) {
    auto like = cast<RankedTensorType>(change->getResult(0).getType());
    auto type = RankedTensorType::get(like.getShape(), tile::elementTypeOf(value.getType()), like.getEncoding());
    auto permute = dyn_cast<tile::PermuteOp>(change);
    value = permute ? tile::PermuteOp::create(b, change->getLoc(), type, value, permute.getOrder()).getResult()
                    : tile::ReshapeOp::create(b, change->getLoc(), type, value).getResult();
  }
  return value;
}

/// Loads in the shape in which products take them: threads have what they had, and addresses, which cost nothing to
/// change, change their shape instead.
static void loadAsTaken(func::FuncOp kernel, const TargetInfo &target) {
  SmallVector<tile::LoadOp> loads;
  kernel.walk([&](tile::LoadOp load) {
    auto type = dyn_cast<RankedTensorType>(load.getType());
    if (type && type.getElementType().isIntOrFloat() && canCopyAsync(load, target))
      loads.push_back(load);
  });
  for (tile::LoadOp load : loads) {
    SmallVector<Operation *> changes = changesOf(load);
    if (changes.empty())
      continue;
    OpBuilder b(load);
    Operation *made = b.clone(*load);
    b.setInsertionPoint(made);
    for (OpOperand &operand : made->getOpOperands())
      operand.set(changed(b, operand.get(), changes));
    made->getResult(0).setType(changes.back()->getResult(0).getType());
    made->removeAttr(runsAttrName);
    made->removeAttr(constancyAttrName);
    changes.back()->getResult(0).replaceAllUsesWith(made->getResult(0));
    for (Operation *change : llvm::reverse(changes))
      change->erase();
    load->erase();
  }
}

static SmallVector<Staged> findStaged(func::FuncOp kernel, const TargetInfo &target) {
  SmallVector<Staged> found;
  kernel.walk([&](tile::LoadOp load) {
    auto type = dyn_cast<RankedTensorType>(load.getType());
    const bool isMatrix = type && type.getRank() == 2;
    Staged staged{load, {}};
    if (type && type.getRank() == 1 && type.getElementType().isIntOrFloat() && isVectorBesideProducts(load, target))
      for (Operation *user : load->getUsers())
        staged.conversions.push_back(cast<ConvertLayoutOp>(user));
    else if (isMatrix && !collectConversions(load.getResult(), staged.conversions))
      return sayNotStaged(load);
    else if (!isMatrix || !areReadAsTheyLie(staged))
      return;
    if (!staged.conversions.empty())
      found.push_back(std::move(staged));
  });
  return found;
}

/// The tile seen through the transpositions between the load and `value`.
static Value viewOf(OpBuilder &b, Value value, tile::LoadOp load, Value shared) {
  if (value == load.getResult())
    return shared;
  auto permute = value.getDefiningOp<tile::PermuteOp>();
  Value source = viewOf(b, permute.getSource(), load, shared);
  auto from = cast<SharedType>(source.getType());
  SmallVector<int64_t> shape;
  for (int32_t axis : permute.getOrder())
    shape.push_back(from.getShape()[axis]);
  auto layout = LayoutAttr::get(b.getContext(), from.getLayout().getLayout().permute(permute.getOrder()));
  return PermuteSharedOp::create(b, permute.getLoc(),
                                 SharedType::get(b.getContext(), 1, shape, from.getElementType(), layout), source,
                                 permute.getOrder());
}

/// The first of some ops, seen from `block`, which all of them are in or under; or the last.
static Operation *outermost(Block *block, ArrayRef<ConvertLayoutOp> ops, bool first) {
  Operation *best = nullptr;
  for (Operation *op : ops) {
    Operation *here = block->findAncestorOpInBlock(*op);
    if (!best || here->isBeforeInBlock(best) == first)
      best = here;
  }
  return best;
}

/// The bits of a line's coordinate that the lanes of a reader walk along, in their order.
static SmallVector<unsigned> lineBitsOf(const LinearLayout &reader, unsigned lineAxis) {
  SmallVector<unsigned> bits;
  for (uint32_t basis : reader.bases(InDim::Lane))
    if (int64_t line = reader.delinearize(basis)[lineAxis]; llvm::isPowerOf2_64(line))
      bits.push_back(llvm::Log2_64(line));
  return bits;
}

/// The layout of a tile: lines that a reader's lanes take together, where `ldmatrix` does not read them, are told apart
/// by the swizzle, if that leaves fewer conflicts in all.
static LinearLayout stagedLayout(const Staged &staged) {
  tile::LoadOp load = staged.load;
  auto type = cast<RankedTensorType>(load.getType());
  const LinearLayout &writer = layoutAttrOf(type).getLayout();
  unsigned axis = neighbourAxis(writer), bits = type.getElementTypeBitWidth(), bytes = bits / 8;
  LinearLayout best = swizzledLayout(type.getShape(), axis, bytes);
  SmallVector<LinearLayout, 1> readers;
  for (ConvertLayoutOp convert : staged.conversions)
    readers.push_back(layoutInTile(convert, load));
  auto conflicts = [&](const LinearLayout &tile) {
    unsigned count = 0;
    for (const LinearLayout &registers : llvm::concat<const LinearLayout>(readers, ArrayRef<LinearLayout>(writer))) {
      SharedAccess access = accessOf(registers, tile, bytes);
      Wavefronts needed = wavefrontsOf(access, bytes);
      bool byMatrices = matrixAccess(access.offsets, bits) || pairedAccess(access.offsets, bits);
      count += byMatrices ? 0 : needed.needed - needed.ideal;
    }
    return count;
  };
  unsigned fewest = type.getRank() == 2 ? conflicts(best) : 0;
  if (fewest == 0)
    return best;
  // Short lines share a line of banks: those that the writer's lanes take together come first then.
  const SmallVector<unsigned> written = lineBitsOf(writer, 1 - axis);
  for (const LinearLayout &reader : readers)
    for (unsigned shared = 0; shared <= std::min<size_t>(2, written.size()); ++shared) {
      SmallVector<unsigned> first(ArrayRef(written).take_front(shared));
      for (unsigned bit : lineBitsOf(reader, 1 - axis))
        if (!llvm::is_contained(first, bit))
          first.push_back(bit);
      for (unsigned piecesTogether : {1, 2, 4}) {
        LinearLayout other = swizzledLayout(type.getShape(), axis, bytes, first, piecesTogether);
        if (unsigned count = conflicts(other); count < fewest) {
          best = other;
          fewest = count;
        }
      }
    }
  return best;
}

static void stage(const Staged &staged, const TargetInfo &target) {
  tile::LoadOp load = staged.load;
  OpBuilder b(load);
  Location loc = load.getLoc();
  auto type = cast<RankedTensorType>(load.getType());
  LinearLayout layout = stagedLayout(staged);
  auto sharedType = SharedType::get(b.getContext(), 1, type.getShape(), type.getElementType(),
                                    LayoutAttr::get(b.getContext(), layout));
  Value shared = AllocOp::create(b, loc, sharedType, IntegerAttr(), IntegerAttr());
  StringRef hindrance = whyNotAsync(load, target);
  bool async = hindrance.empty();
  if (!async)
    remarks::missed(remarks::asyncCopy, load) << remark::reason(
        "{0}; threads load pieces of {1} bytes and store them to shared memory", hindrance, pieceBytes(load));
  if (async) {
    startCopy(b, load, shared);
  } else {
    b.setInsertionPointAfter(load);
    StoreSharedOp::create(b, loc, load.getResult(), shared);
  }
  Block *block = load->getBlock();
  if (async) {
    // Tiles that are first read inside of the same op, such as in branches of an `scf.if`, are awaited once.
    Operation *reader = outermost(block, staged.conversions, /*first=*/true);
    b.setInsertionPoint(reader);
    if (auto wait = dyn_cast_or_null<AsyncWaitOp>(reader->getPrevNode()); !wait || wait.getPending() != 0)
      AsyncWaitOp::create(b, loc, b.getI32IntegerAttr(0));
  }
  b.setInsertionPointAfter(outermost(block, staged.conversions, /*first=*/false));
  DeallocOp::create(b, loc, shared);
  for (ConvertLayoutOp convert : staged.conversions) {
    b.setInsertionPoint(convert);
    Value view = viewOf(b, convert.getSource(), load, shared);
    RankedTensorType type = convert.getType();
    auto read = RankedTensorType::get(type.getShape(), type.getElementType(),
                                      LayoutAttr::get(b.getContext(), readLayout(convert, load)));
    Value loaded = LoadSharedOp::create(b, convert.getLoc(), read, view);
    if (read != type)
      loaded = ConvertLayoutOp::create(b, convert.getLoc(), type, loaded);
    convert.getResult().replaceAllUsesWith(loaded);
    Operation *source = convert.getSource().getDefiningOp();
    convert->erase();
    while (isa<tile::PermuteOp>(source) && source->use_empty()) {
      Operation *before = source->getOperand(0).getDefiningOp();
      source->erase();
      source = before;
    }
  }
  if (async)
    load->erase();
}

void StageOperands::runOnOperation() {
  bool loads = getOperation().walk([](tile::LoadOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (!loads)
    return;
  const TargetInfo *target = TargetInfo::of(getOperation());
  if (!target)
    return signalPassFailure();
  loadAsTaken(getOperation(), *target);
  SmallVector<Staged> found = findStaged(getOperation(), *target);
  for (const Staged &staged : found)
    stage(staged, *target);
}
