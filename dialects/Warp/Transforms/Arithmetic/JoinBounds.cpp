// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-join-bounds: a number between 0 and a bound is found by one comparison.
//
//   %a = cmpi sge, %x, 0                                %m = maxsi %n, 0
//   %b = cmpi slt, %x, (splat %n)              ─▶       %i = cmpi ult, %x, (splat %m)
//   %i = andi (andi %p, %a), %b                         %r = andi %p, %i
//
// Negative numbers are the largest without their signs. Masks of pictures and of what is shifted have both comparisons for
// each axis. LLVM joins them where it knows that the bound is not negative, which of a parameter nobody says.
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/LoopCarried.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPJOINBOUNDS
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct JoinBounds : weft::warp::impl::WarpJoinBoundsBase<JoinBounds> {
  void runOnOperation() override;
};

/// A part of a mask: that numbers are not negative, or less than a bound that all of them share.
struct Part {
  arith::CmpIOp compare;
  Value x, bound;                        ///< the bound a scalar; none where x >= 0
  SmallVector<Operation *, 2> reshaping; ///< what gives the comparison the mask's shape, from the mask on
};

/// The scalar that all elements of a tensor are.
Value scalarOf(Value tensor) {
  auto splat = tensor.getDefiningOp<tile::SplatOp>();
  return splat ? splat.getSource() : Value();
}

bool isAll(Value tensor, int64_t number) {
  Value scalar = scalarOf(tensor);
  APInt found;
  return matchPattern(scalar ? scalar : tensor, m_ConstantInt(&found)) && found.getSExtValue() == number;
}

std::optional<Part> partOf(Value mask) {
  using P = arith::CmpIPredicate;
  Part part;
  Operation *op = mask.getDefiningOp();
  for (; isa_and_nonnull<tile::BroadcastOp, tile::ExpandDimsOp, ConvertLayoutOp>(op);
       op = op->getOperand(0).getDefiningOp())
    part.reshaping.push_back(op);
  part.compare = dyn_cast_or_null<arith::CmpIOp>(op);
  if (!part.compare || !isa<RankedTensorType>(part.compare.getLhs().getType()))
    return std::nullopt;
  const P predicate = part.compare.getPredicate();
  Value small = part.compare.getLhs(), large = part.compare.getRhs();
  if (predicate == P::sgt || predicate == P::sge)
    std::swap(small, large);
  const bool isStrict = predicate == P::slt || predicate == P::sgt;
  if (!isStrict && predicate != P::sle && predicate != P::sge)
    return std::nullopt;
  if (isAll(small, isStrict ? -1 : 0))
    part.x = large;
  else if (part.bound = isStrict ? scalarOf(large) : Value(); part.bound)
    part.x = small;
  return part.x ? std::optional(part) : std::nullopt;
}

/// Whether a part says that numbers are not negative of which the other says that they are less than a bound, and both
/// are known to be equal for the same neighbours.
bool belongTogether(const Part &fromZero, const Part &below) {
  auto alike = [](Operation *a, Operation *b) {
    return a->getName() == b->getName() && a->getResultTypes() == b->getResultTypes() &&
           a->getAttrDictionary() == b->getAttrDictionary();
  };
  return !fromZero.bound && below.bound && fromZero.x == below.x &&
         fromZero.compare->getAttr(constancyAttrName) == below.compare->getAttr(constancyAttrName) &&
         fromZero.reshaping.size() == below.reshaping.size() &&
         llvm::all_of(llvm::zip_equal(fromZero.reshaping, below.reshaping),
                      [&](auto both) { return alike(std::get<0>(both), std::get<1>(both)); });
}

/// The mask that a part is together with one that says that the same numbers are not negative, before `node`.
Value joined(Part below, Operation *node) {
  OpBuilder b(node);
  Location loc = below.compare.getLoc();
  // Where the bound is made, so that loops do not make it again.
  b.setInsertionPointAfterValue(below.bound);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(below.bound.getType()));
  Value bound = arith::MaxSIOp::create(b, loc, below.bound, zero);
  Value bounds = tile::SplatOp::create(b, loc, below.x.getType(), bound);
  b.setInsertionPoint(node);
  auto compare = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, below.x, bounds);
  if (Attribute repeats = below.compare->getAttr(constancyAttrName))
    compare->setAttr(constancyAttrName, repeats);
  Value mask = compare;
  for (Operation *op : llvm::reverse(below.reshaping)) {
    Operation *again = b.clone(*op);
    again->setOperand(0, mask);
    mask = again->getResult(0);
  }
  return mask;
}

/// What is not an `arith.andi` of a tree of them that nothing else takes, from left to right.
void collectParts(arith::AndIOp node, SmallVectorImpl<OpOperand *> &parts) {
  for (OpOperand &operand : node->getOpOperands())
    if (auto inner = operand.get().getDefiningOp<arith::AndIOp>(); inner && inner->hasOneUse())
      collectParts(inner, parts);
    else
      parts.push_back(&operand);
}

/// Joins two parts of a mask, if two belong together: the second becomes both, and the first goes. What the mask is then;
/// null where nothing was joined.
Value joinTwo(arith::AndIOp root) {
  SmallVector<OpOperand *> uses;
  collectParts(root, uses);
  SmallVector<std::optional<Part>> parts;
  for (OpOperand *use : uses)
    parts.push_back(partOf(use->get()));
  for (size_t i = 0; i < uses.size(); ++i)
    for (size_t j = 0; j < uses.size(); ++j) {
      if (!parts[i] || !parts[j] || !belongTogether(*parts[i], *parts[j]))
        continue;
      uses[j]->set(joined(*parts[j], uses[j]->getOwner()));
      auto node = cast<arith::AndIOp>(uses[i]->getOwner());
      Value mask = root, other = node->getOperand(1 - uses[i]->getOperandNumber());
      if (node == root)
        mask = other;
      node.replaceAllUsesWith(other);
      node.erase();
      return mask;
    }
  return {};
}
} // namespace

void JoinBounds::runOnOperation() {
  SmallVector<Value> masks;
  getOperation().walk([&](arith::AndIOp node) {
    bool isInner = node->hasOneUse() && isa<arith::AndIOp>(*node->user_begin());
    if (isa<RankedTensorType>(node.getType()) && getElementTypeOrSelf(node.getType()).isInteger(1) && !isInner)
      masks.push_back(node);
  });
  bool changed = false;
  for (Value mask : masks)
    while (auto root = mask ? mask.getDefiningOp<arith::AndIOp>() : arith::AndIOp()) {
      mask = joinTwo(root);
      changed |= bool(mask);
    }
  if (changed) // the comparisons that were joined
    eraseDeadOps(getOperation());
}
