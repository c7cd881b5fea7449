// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Folds and canonicalization of pointers, loads, stores and assertions.
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weft::tile;

OpFoldResult AddPtrOp::fold(FoldAdaptor adaptor) {
  if (matchPattern(adaptor.getOffset(), m_Zero()))
    return getPtr();
  return {};
}

OpFoldResult PtrToIntOp::fold(FoldAdaptor) {
  auto inner = getSource().getDefiningOp<IntToPtrOp>();
  return inner && inner.getSource().getType() == getType() ? OpFoldResult(inner.getSource()) : OpFoldResult();
}

OpFoldResult IntToPtrOp::fold(FoldAdaptor) {
  auto inner = getSource().getDefiningOp<PtrToIntOp>();
  return inner && inner.getSource().getType() == getType() ? OpFoldResult(inner.getSource()) : OpFoldResult();
}

OpFoldResult PtrCastOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto inner = getSource().getDefiningOp<PtrCastOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return {};
}

namespace {
/// A pointer moved by one constant and then another is moved by their sum, unless that sum leaves the offset's type.
struct MergeOffsets : OpRewritePattern<AddPtrOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddPtrOp outer, PatternRewriter &rewriter) const override {
    auto inner = outer.getPtr().getDefiningOp<AddPtrOp>();
    APInt first, second;
    if (!inner || inner.getOffset().getType() != outer.getOffset().getType() ||
        !matchPattern(inner.getOffset(), m_ConstantInt(&first)) ||
        !matchPattern(outer.getOffset(), m_ConstantInt(&second)))
      return rewriter.notifyMatchFailure(outer, "not two constant offsets of one type");
    bool overflow = false;
    APInt sum = first.sadd_ov(second, overflow);
    if (overflow)
      return rewriter.notifyMatchFailure(outer, "the sum of the offsets overflows");
    Type type = outer.getOffset().getType();
    Attribute value = rewriter.getIntegerAttr(elementTypeOf(type), sum);
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      value = SplatElementsAttr::get(tensor, value);
    auto offset = arith::ConstantOp::create(rewriter, outer.getLoc(), cast<TypedAttr>(value));
    rewriter.replaceOpWithNewOp<AddPtrOp>(outer, outer.getType(), inner.getPtr(), offset);
    return success();
  }
};

/// A load whose mask is known: all true reads without a mask, all false is `other`.
struct FoldLoadMask : OpRewritePattern<LoadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LoadOp load, PatternRewriter &rewriter) const override {
    if (!load.getMask())
      return rewriter.notifyMatchFailure(load, "no mask");
    if (matchPattern(load.getMask(), m_One())) {
      rewriter.modifyOpInPlace(load, [&] {
        load.getOtherMutable().clear();
        load.getMaskMutable().clear();
      });
      return success();
    }
    if (!matchPattern(load.getMask(), m_Zero()) || !load.getOther() || load.getIsVolatile())
      return rewriter.notifyMatchFailure(load, "the mask is not constant, or there is no other value");
    rewriter.replaceOp(load, load.getOther());
    return success();
  }
};

/// Whether a mask is false wherever another is: the other, or that and more.
static bool isWithin(Value mask, Value other) {
  if (mask == other)
    return true;
  auto both = mask ? mask.getDefiningOp<arith::AndIOp>() : arith::AndIOp();
  return both && (isWithin(both.getLhs(), other) || isWithin(both.getRhs(), other));
}

/// Whether an op computes each element of its results from the same elements of its operands, in no case by a branch, and
/// no two elements in one word whose sums could carry.
static bool keepsElementsApart(Operation *op) {
  auto isOfSomeBytes = [](Type type) {
    Type element = elementTypeOf(type);
    return element.isInteger(1) || (element.isIntOrFloat() && element.getIntOrFloatBitWidth() > 8);
  };
  bool mayBranch =
      isa<arith::RemFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, math::SinOp, math::CosOp>(op);
  return op->hasTrait<OpTrait::Elementwise>() && isMemoryEffectFree(op) && !mayBranch &&
         llvm::all_of(op->getOperandTypes(), isOfSomeBytes) && llvm::all_of(op->getResultTypes(), isOfSomeBytes);
}

/// A load's other value that nobody sees: what is made of it, element by element, is stored under the load's mask.
struct DropUnseenOther : OpRewritePattern<LoadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LoadOp load, PatternRewriter &rewriter) const override {
    constexpr size_t most = 64; // values
    if (!load.getMask() || !load.getOther())
      return rewriter.notifyMatchFailure(load, "no mask, or no other value");
    llvm::SmallSetVector<Value, 8> made;
    made.insert(load.getResult());
    for (size_t i = 0; i < made.size(); ++i)
      for (OpOperand &use : made[i].getUses()) {
        auto store = dyn_cast<StoreOp>(use.getOwner());
        if (store && store.getValue() == made[i] && store.getPtr() != made[i] &&
            isWithin(store.getMask(), load.getMask()))
          continue;
        if (store || made.size() > most || !keepsElementsApart(use.getOwner()))
          return rewriter.notifyMatchFailure(load, "somebody may see the other value");
        made.insert(use.getOwner()->result_begin(), use.getOwner()->result_end());
      }
    rewriter.modifyOpInPlace(load, [&] { load.getOtherMutable().clear(); });
    return success();
  }
};

/// A store whose mask is known: all true writes without a mask, all false writes nothing.
struct FoldStoreMask : OpRewritePattern<StoreOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(StoreOp store, PatternRewriter &rewriter) const override {
    if (!store.getMask())
      return rewriter.notifyMatchFailure(store, "no mask");
    if (matchPattern(store.getMask(), m_One())) {
      rewriter.modifyOpInPlace(store, [&] { store.getMaskMutable().clear(); });
      return success();
    }
    if (!matchPattern(store.getMask(), m_Zero()))
      return rewriter.notifyMatchFailure(store, "the mask is not constant");
    rewriter.eraseOp(store);
    return success();
  }
};
} // namespace

void LoadOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<FoldLoadMask, DropUnseenOther>(context);
}

void StoreOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<FoldStoreMask>(context);
}

void AddPtrOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<MergeOffsets>(context);
}

LogicalResult AssertOp::canonicalize(AssertOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getCondition(), m_One()))
    return rewriter.notifyMatchFailure(op, "the condition is not known to be true");
  rewriter.eraseOp(op);
  return success();
}

LogicalResult AssumeOp::canonicalize(AssumeOp op, PatternRewriter &rewriter) {
  if (!matchPattern(op.getCondition(), m_One()))
    return rewriter.notifyMatchFailure(op, "the condition is not known to be true");
  rewriter.eraseOp(op);
  return success();
}
