// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-stage-wgmma: operands of products of warpgroups go to shared memory, as their descriptors describe it.
//
//   %x = tile.load %p, %m, %zero              %s = warp.alloc
//   %t = tile.permute %x                      warp.async_copy %p masked %m to %s
//   %d = warp.wgmma %a, %t, %c         ─▶     warp.async_commit
//                                             warp.async_wait {pending = 0}
//                                             %t = warp.permute_shared %s
//                                             %d = warp.wgmma %a, %t, %c
//                                             warp.dealloc %s              (behind the wait for %d)
//
// A value has one tile, for all products that take it and whichever way round: descriptors turn it. What `cp.async`
// cannot copy, what something else reads too, and what was computed is stored by threads where it is defined. Operands a
// that lie in registers as the instructions take them stay there. Other products' operands that come from the same value
// are read from the tile.
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/WgmmaLayouts.h"
#include "dialects/Warp/Transforms/Copies/AsyncLoads.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/SwizzledLayout.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPSTAGEWGMMA
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct StageWgmma : weft::warp::impl::WarpStageWgmmaBase<StageWgmma> {
  void runOnOperation() override;
};

/// Who takes a value, directly or behind transpositions.
struct Readers {
  SmallVector<OpOperand *> products;        // operands of `warp.wgmma`
  SmallVector<ConvertLayoutOp> conversions; // to operands of other products
  bool others = false;
};
} // namespace

/// What an operand is a transposition of.
static Value rootOf(Value value) {
  while (auto permute = value.getDefiningOp<tile::PermuteOp>())
    value = permute.getSource();
  return value;
}

static bool isStagedOperand(OpOperand &use) {
  auto product = dyn_cast<WgmmaOp>(use.getOwner());
  if (!product || !isa<RankedTensorType>(use.get().getType()))
    return false;
  return use.getOperandNumber() == 1 || (use.getOperandNumber() == 0 && !product.takesRegisters());
}

static void collectReaders(Value value, Readers &readers) {
  for (OpOperand &use : value.getUses()) {
    if (isStagedOperand(use))
      readers.products.push_back(&use);
    else if (isa<tile::PermuteOp>(use.getOwner()))
      collectReaders(use.getOwner()->getResult(0), readers);
    else if (auto convert = dyn_cast<ConvertLayoutOp>(use.getOwner());
             convert && !convert->use_empty() &&
             llvm::all_of(convert->getUsers(), llvm::IsaPred<MmaOp, tile::RowDotOp>))
      readers.conversions.push_back(convert);
    else
      readers.others = true;
  }
}

/// Every value that is staged, in the order of its first product.
static SmallVector<Value> findRoots(func::FuncOp kernel) {
  llvm::SetVector<Value> roots;
  kernel.walk([&](WgmmaOp product) {
    for (OpOperand &operand : product->getOpOperands())
      if (isStagedOperand(operand))
        roots.insert(rootOf(operand.get()));
  });
  return roots.takeVector();
}

/// The tile seen through the transpositions between `root` and `value`.
static Value viewOf(OpBuilder &b, Value value, Value root, Value shared) {
  if (value == root)
    return shared;
  auto permute = value.getDefiningOp<tile::PermuteOp>();
  Value source = viewOf(b, permute.getSource(), root, shared);
  auto from = cast<SharedType>(source.getType());
  LinearLayout layout = from.linear().permute(permute.getOrder());
  auto type = SharedType::get(b.getContext(), 1, layout.shape(), from.getElementType(),
                              LayoutAttr::get(b.getContext(), layout));
  return PermuteSharedOp::create(b, permute.getLoc(), type, source, permute.getOrder());
}

/// The first or the last of some ops, seen from `block`, which all of them are in or under.
static Operation *outermost(Block *block, ArrayRef<Operation *> ops, bool first) {
  Operation *best = nullptr;
  for (Operation *op : ops) {
    Operation *here = block->findAncestorOpInBlock(*op);
    if (!best || here->isBeforeInBlock(best) == first)
      best = here;
  }
  return best;
}

/// Erases transpositions that nothing reads any more, from `op` back.
static void eraseUnused(Operation *op) {
  while (isa_and_nonnull<tile::PermuteOp>(op) && op->use_empty()) {
    Operation *before = op->getOperand(0).getDefiningOp();
    op->erase();
    op = before;
  }
}

/// The axis of `root` that is K of an operand.
static unsigned innerAxis(Value root, OpOperand &use) {
  unsigned axis = use.getOperandNumber() == 0 ? 1 : 0;
  for (Value value = use.get(); value != root;) {
    auto permute = value.getDefiningOp<tile::PermuteOp>();
    axis = permute.getOrder()[axis];
    value = permute.getSource();
  }
  return axis;
}

/// The most bytes of a line along `axis`: where lines lie along N and warpgroups split them, each begins with one.
static int64_t longestLine(Value root, unsigned axis, ArrayRef<OpOperand *> uses) {
  int64_t longest = wgmmaLongestLine;
  for (OpOperand *use : uses) {
    auto acc = cast<RankedTensorType>(cast<WgmmaOp>(use->getOwner()).getAcc().getType());
    std::optional<WarpgroupGrid> grid = wgmmaGridOf(layoutAttrOf(acc).getLayout());
    if (use->getOperandNumber() == 1 && innerAxis(root, *use) != axis && grid && grid->columns > 1) {
      int64_t bytes =
          acc.getDimSize(1) / grid->columns * getElementTypeOrSelf(root.getType()).getIntOrFloatBitWidth() / 8;
      longest = std::min(longest, bytes);
    }
  }
  return longest;
}

/// The axis along which a value's tile has its lines: its own where descriptors turn its elements and the lines are
/// whole; else K.
static unsigned axisOfLines(Value root, ArrayRef<OpOperand *> uses, const TargetInfo &target) {
  auto type = cast<RankedTensorType>(root.getType());
  Type sums = cast<RankedTensorType>(cast<WgmmaOp>(uses.front()->getOwner()).getAcc().getType()).getElementType();
  const targets::WarpgroupMma *family = target.warpgroupMmaFor(type.getElementType(), sums);
  unsigned own = neighbourAxis(layoutAttrOf(type).getLayout());
  bool isTaken = family && family->turned &&
                 wgmmaTileLayout(type.getShape(), own, type.getElementTypeBitWidth() / 8, longestLine(root, own, uses));
  return isTaken ? own : innerAxis(root, *uses.front());
}

/// The tile of a value, in lines along `axis`, empty, where the value is defined.
static AllocOp allocate(Value root, unsigned axis, ArrayRef<OpOperand *> uses) {
  auto type = cast<RankedTensorType>(root.getType());
  unsigned bytes = type.getElementTypeBitWidth() / 8;
  std::optional<LinearLayout> layout = wgmmaTileLayout(type.getShape(), axis, bytes, longestLine(root, axis, uses));
  assert(layout && "products of warpgroups are planned for operands of whole lines only");
  OpBuilder b(root.getContext());
  if (Operation *op = root.getDefiningOp())
    b.setInsertionPoint(op);
  else
    b.setInsertionPointToStart(root.getParentBlock());
  auto shared = SharedType::get(b.getContext(), 1, type.getShape(), type.getElementType(),
                                LayoutAttr::get(b.getContext(), *layout));
  return AllocOp::create(b, root.getLoc(), shared, IntegerAttr(), IntegerAttr());
}

/// Fills the tile: by asynchronous copies, for which `first` has to wait, or by stores.
static void fill(Value root, AllocOp alloc, bool async, Operation *first) {
  OpBuilder b(root.getContext());
  if (async) {
    b.setInsertionPointAfter(alloc);
    startCopy(b, root.getDefiningOp<tile::LoadOp>(), alloc);
    b.setInsertionPoint(first);
    if (auto wait = dyn_cast_or_null<AsyncWaitOp>(first->getPrevNode()); !wait || wait.getPending() != 0)
      AsyncWaitOp::create(b, root.getLoc(), b.getI32IntegerAttr(0));
    return;
  }
  if (root.getDefiningOp())
    b.setInsertionPointAfterValue(root);
  else
    b.setInsertionPointAfter(alloc);
  StoreSharedOp::create(b, root.getLoc(), root, alloc);
}

/// The op that waits for a product, which stands right behind it.
static Operation *waitOf(Operation *product) {
  Operation *next = product->getNextNode();
  return isa_and_nonnull<WgmmaWaitOp>(next) ? next : product;
}

static void stage(Value root, const TargetInfo &target) {
  Readers readers;
  collectReaders(root, readers);
  SmallVector<Operation *> firsts, lasts;
  for (OpOperand *use : readers.products) {
    firsts.push_back(use->getOwner());
    lasts.push_back(waitOf(use->getOwner()));
  }
  for (ConvertLayoutOp convert : readers.conversions) {
    firsts.push_back(convert);
    lasts.push_back(convert);
  }
  auto load = root.getDefiningOp<tile::LoadOp>();
  unsigned axis = axisOfLines(root, readers.products, target);
  bool isTurned = axis != neighbourAxis(layoutAttrOf(root.getType()).getLayout());
  StringRef hindrance = !load            ? "the operand is computed"
                        : readers.others ? "something else reads the tile of a product too"
                        : isTurned       ? "the tile's lines lie along another axis than memory's"
                                         : whyNotAsync(load, target);
  bool async = hindrance.empty();
  if (load && !async)
    remarks::missed(remarks::asyncCopy, load) << remark::reason(
        "{0}; threads load pieces of {1} bytes and store them to shared memory", hindrance, pieceBytes(load));

  Block *block = root.getParentBlock();
  AllocOp alloc = allocate(root, axis, readers.products);
  fill(root, alloc, async, outermost(block, firsts, /*first=*/true));
  OpBuilder b(root.getContext());
  b.setInsertionPointAfter(outermost(block, lasts, /*first=*/false));
  DeallocOp::create(b, root.getLoc(), alloc);
  for (OpOperand *use : readers.products) {
    b.setInsertionPoint(use->getOwner());
    Operation *source = use->get().getDefiningOp();
    use->set(viewOf(b, use->get(), root, alloc));
    eraseUnused(source);
  }
  for (ConvertLayoutOp convert : readers.conversions) {
    b.setInsertionPoint(convert);
    Value view = viewOf(b, convert.getSource(), root, alloc);
    Operation *source = convert.getSource().getDefiningOp();
    convert.getResult().replaceAllUsesWith(LoadSharedOp::create(b, convert.getLoc(), convert.getType(), view));
    convert->erase();
    eraseUnused(source);
  }
  if (async)
    load->erase();
}

void StageWgmma::runOnOperation() {
  SmallVector<Value> roots = findRoots(getOperation());
  if (roots.empty())
    return;
  const TargetInfo *target = TargetInfo::of(getOperation());
  if (!target)
    return signalPassFailure();
  for (Value root : roots)
    stage(root, *target);
}
