// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Canonical forms: simpler patterns, domains without pairs left out, maps of maps merged, sums of sums.
#include "dialects/Attn/IR/AttnChecks.h"
#include "dialects/Attn/Pattern/Simplify.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include <limits>

using namespace mlir;
using namespace weft::attn;

/// What types say of the lengths of a domain. Nothing where they are those of buffers, not of what is in use.
template <typename Op> static Lengths lengthsOf(Op op, Value key) {
  if (!op.getCounts().empty())
    return {};
  WholeTensorType queries = tensorTypeOf(op.getQuery()), keys = tensorTypeOf(key);
  Lengths lengths = Lengths::of(queries.staticDim(2), keys.staticDim(2));
  if (queries.dim(2) == keys.dim(2))
    lengths.difference = 0;
  return lengths;
}

namespace {

/// Merges and folds patterns: full ∧ causal is causal, a window as wide as the sequence is full.
template <typename Op> struct SimplifyPatterns : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    SmallVector<Attribute> simpler;
    for (auto [pattern, key] : llvm::zip(op.getPatterns(), op.getKeys())) {
      Lengths lengths = lengthsOf(op, key);
      if (!op.getCuSeqlens().empty())
        lengths = {};
      simpler.push_back(simplifyPattern(pattern, lengths));
    }
    ArrayAttr patterns = rewriter.getArrayAttr(simpler);
    if (patterns == op.getPatterns())
      return rewriter.notifyMatchFailure(op, "patterns are as simple as they get");
    rewriter.modifyOpInPlace(op, [&] { op.setPatternsAttr(patterns); });
    return success();
  }
};

/// Notes on the program's arguments that `values` are made of, tensors of floats, that they were read.
static void noteLeftOut(ValueRange values, PatternRewriter &rewriter) {
  SmallVector<Value> open(values);
  llvm::SmallPtrSet<Value, 16> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    auto type = dyn_cast<WholeTensorType>(value.getType());
    if (!type || !hasGradient(type) || !seen.insert(value).second)
      continue;
    if (Operation *op = value.getDefiningOp()) {
      op->walk([&](Operation *part) { llvm::append_range(open, part->getOperands()); });
      continue;
    }
    auto argument = cast<BlockArgument>(value);
    auto program = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    if (program && program->hasAttr(programAttrName))
      rewriter.modifyOpInPlace(
          program, [&] { program.setArgAttr(argument.getArgNumber(), leftOutAttrName, rewriter.getUnitAttr()); });
  }
}

/// Drops domains that no pair belongs to. Without any domain and without a sink, the outputs are 0 and the lse -inf.
struct DropEmptyDomains : OpRewritePattern<AttendOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttendOp op, PatternRewriter &rewriter) const override {
    SmallVector<unsigned> kept;
    for (auto [i, pattern] : llvm::enumerate(op.getPatterns()))
      if (!isa<EmptyAttr>(pattern))
        kept.push_back(i);
    if (kept.size() == op.getKeys().size())
      return rewriter.notifyMatchFailure(op, "no domain is empty");
    if (kept.empty())
      return replaceByConstants(op, rewriter);
    for (unsigned i : llvm::seq<unsigned>(op.getKeys().size()))
      if (!llvm::is_contained(kept, i))
        noteLeftOut({op.getKeys()[i], op.getValues()[i]}, rewriter);
    auto take = [&](auto range) {
      SmallVector<Value> taken;
      for (unsigned i : kept)
        if (i < range.size())
          taken.push_back(range[i]);
      return taken;
    };
    SmallVector<Attribute> patterns = llvm::map_to_vector(kept, [&](unsigned i) { return op.getPatterns()[i]; });
    rewriter.modifyOpInPlace(op, [&] {
      op.getKeysMutable().assign(take(op.getKeys()));
      op.getValuesMutable().assign(take(op.getValues()));
      op.getCountsMutable().assign(take(op.getCounts()));
      op.setPatternsAttr(rewriter.getArrayAttr(patterns));
    });
    return success();
  }

  static LogicalResult replaceByConstants(AttendOp op, PatternRewriter &rewriter) {
    if (op.getSink())
      return rewriter.notifyMatchFailure(op, "the sink is in the normaliser");
    auto fill = [&](Value like, float value) {
      auto body = [&](ImplicitLocOpBuilder &b, ValueRange) -> SmallVector<Value> {
        return {arith::ConstantOp::create(b, b.getF32FloatAttr(value))};
      };
      return MapOp::create(rewriter, op.getLoc(), like.getType(), ValueRange(), body).getResult(0);
    };
    Value out = fill(op.getOut(), 0), lse = fill(op.getLse(), -std::numeric_limits<float>::infinity());
    SmallVector<Value> read;
    op->walk([&](Operation *part) { llvm::append_range(read, part->getOperands()); });
    noteLeftOut(read, rewriter);
    rewriter.replaceOp(op, {out, lse});
    return success();
  }
};

/// Inputs that the body does not read, inputs given twice, and results that nothing uses are left out.
struct DropUnusedOfMap : OpRewritePattern<MapOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MapOp op, PatternRewriter &rewriter) const override {
    if (op.use_empty())
      return rewriter.notifyMatchFailure(op, "dead as a whole");
    Block &body = op.getBody().front();
    SmallVector<Value> inputs;
    llvm::BitVector dropped(body.getNumArguments());
    llvm::DenseMap<Value, unsigned> first;
    for (auto [i, input] : llvm::enumerate(op.getInputs())) {
      auto [known, isNew] = first.try_emplace(input, i);
      if (!isNew && !body.getArgument(i).use_empty())
        rewriter.replaceAllUsesWith(body.getArgument(i), body.getArgument(known->second));
    }
    for (auto [i, input] : llvm::enumerate(op.getInputs()))
      if (body.getArgument(i).use_empty())
        dropped.set(i);
      else
        inputs.push_back(input);
    SmallVector<Value> yielded, results;
    for (auto [result, value] : llvm::zip(op.getResults(), body.getTerminator()->getOperands()))
      if (!result.use_empty()) {
        results.push_back(result);
        yielded.push_back(value);
      }
    if (dropped.none() && results.size() == op.getNumResults())
      return rewriter.notifyMatchFailure(op, "all inputs and results are used");
    auto smaller = MapOp::create(rewriter, op.getLoc(), ValueRange(results).getTypes(), inputs);
    rewriter.modifyOpInPlace(op, [&] {
      body.getTerminator()->setOperands(yielded);
      body.eraseArguments(dropped);
    });
    rewriter.inlineRegionBefore(op.getBody(), smaller.getBody(), smaller.getBody().end());
    for (auto [from, to] : llvm::zip(results, smaller.getResults()))
      rewriter.replaceAllUsesWith(from, to);
    rewriter.eraseOp(op);
    return success();
  }
};

/// A map of a map is one, where nothing else reads the inner's result, and that result is not rounded.
struct MergeMaps : OpRewritePattern<MapOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MapOp op, PatternRewriter &rewriter) const override {
    auto shape = cast<WholeTensorType>(op.getResult(0).getType());
    for (auto [number, input] : llvm::enumerate(op.getInputs())) {
      auto inner = input.getDefiningOp<MapOp>();
      if (!inner || inner.getNumResults() != 1 || !input.hasOneUse() || inner->getBlock() != op->getBlock())
        continue;
      WholeTensorType type = tensorTypeOf(input);
      if (type.getDims() != shape.getDims() || !type.getElementType().isF32())
        continue;
      merge(op, number, inner, rewriter);
      return success();
    }
    return rewriter.notifyMatchFailure(op, "no input is a map's only use, of the same shape and f32");
  }

  static void merge(MapOp op, unsigned number, MapOp inner, PatternRewriter &rewriter) {
    SmallVector<Value> inputs(inner.getInputs());
    for (auto [i, input] : llvm::enumerate(op.getInputs()))
      if (i != number)
        inputs.push_back(input);
    auto body = [&](ImplicitLocOpBuilder &b, ValueRange scalars) -> SmallVector<Value> {
      IRMapping mapping;
      auto copy = [&](MapOp from) {
        for (Operation &each : from.getBody().front().without_terminator())
          b.clone(each, mapping);
        return from.getBody().front().getTerminator()->getOperands();
      };
      unsigned next = inner.getInputs().size();
      mapping.map(inner.getBody().getArguments(), scalars.take_front(next));
      Value between = mapping.lookupOrDefault(copy(inner)[0]);
      for (BlockArgument argument : op.getBody().getArguments())
        mapping.map(argument, argument.getArgNumber() == number ? between : scalars[next++]);
      return llvm::map_to_vector(copy(op), [&](Value value) { return mapping.lookupOrDefault(value); });
    };
    auto merged = MapOp::create(rewriter, op.getLoc(), op.getResultTypes(), inputs, body);
    rewriter.replaceOp(op, merged.getResults());
  }
};

/// A sum of a sum is one sum, where the inner is not rounded.
struct MergeSums : OpRewritePattern<SumOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SumOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getSource().getDefiningOp<SumOp>();
    if (!inner || op.getAway() || inner.getAway() || !inner->hasOneUse() ||
        !tensorTypeOf(op.getSource()).getElementType().isF32() ||
        !broadcastsTo(cast<WholeTensorType>(op.getType()), tensorTypeOf(inner.getSource())))
      return rewriter.notifyMatchFailure(op, "the source is no sum that may be left out");
    rewriter.replaceOpWithNewOp<SumOp>(op, op.getType(), inner.getSource());
    return success();
  }
};

} // namespace

OpFoldResult SumOp::fold(FoldAdaptor) {
  return getSource().getType() == getType() && !getAway() ? OpFoldResult(getSource()) : OpFoldResult();
}

void SoftmaxOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<SimplifyPatterns<SoftmaxOp>>(context);
}
void AttendOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<SimplifyPatterns<AttendOp>, DropEmptyDomains>(context);
}
void AttendBackwardOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<SimplifyPatterns<AttendBackwardOp>>(context);
}
void MapOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DropUnusedOfMap, MergeMaps>(context);
}
void SumOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<MergeSums>(context);
}
