// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Linear recurrences. A program takes some columns of the values of one head and goes through the chunks of its tokens
// with the state, which stays in registers. Within a chunk, with G the decays since its start and S the state before it,
//
//   out = scale (exp(G) q S + P w),   P_nm = q_n·k_m exp(G_n - G_m) for m <= n,   w = v
//   S  <- exp(G_end) S + (exp(G_end - G) k)ᵀ w.
//
// The delta rule writes w = β r, where r = v - exp(G) k S - L w with L_nm = k_n·k_m exp(G_n - G_m) for m < n. So with
// K = (I + L β)⁻¹ L and u = v - exp(G) k S, r = u - K β u. K needs no state: a kernel of its own makes it for all
// chunks at once.
#include "compiler/Conversion/AttnToTile/Recurrences/RecurrenceKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

namespace {

/// K by doubling: of two neighbouring blocks with K1 and K2, and C the part of L between them, the part of K between
/// them is (I - K2 β) C (I - β K1). Blocks of one token have K = 0. Of a row no more columns are held than its block has,
/// [tokens, columns], at least those of a matrix instruction: for two tokens of 64 that is an eighth of the products.
class Doubling {
public:
  Doubling(RecurrenceKernel &kernel, Value beta)
      : b(kernel.b), side(kernel.side), beta(beta),
        precision(kernel.element.isF32() ? tile::Precision::TF32x3 : tile::Precision::TF32) {}

  /// K of all tokens of a chunk, from L and `beta` as a row.
  Value run(Value all);

private:
  /// K of blocks twice as large, in as many columns as `inverse` has.
  Value doubled(Value between, Value inverse);
  /// [side, width] to half of the width, the columns of the row's own block, and to `times` of it, zeros elsewhere.
  Value ownHalf(Value wider);
  Value among(Value own, int64_t times);
  /// [side, times, width] i1: which of so many blocks of columns is the row's own.
  Value isOwn(int64_t times, int64_t width);

  static constexpr int64_t least = 8;
  TileBuilder &b;
  const int64_t side;
  Value beta;
  tile::Precision precision;
};

} // namespace

Value Doubling::isOwn(int64_t times, int64_t width) {
  Value block = b.rem(b.div(b.range(side), b.i32(width)), b.i32(times));
  Value same = b.compareInt(arith::CmpIPredicate::eq, b.column(b.column(block)), b.expand(b.column(b.range(times)), 0));
  return b.broadcast(same, {side, times, width});
}

Value Doubling::ownHalf(Value wider) {
  SmallVector<int64_t> shape{side, 2, TileBuilder::shapeOf(wider)[1] / 2};
  return b.reduceSum(b.select(isOwn(2, shape[2]), b.reshape(wider, shape), b.zeros(shape)), 1);
}

Value Doubling::among(Value own, int64_t times) {
  SmallVector<int64_t> shape{side, times, TileBuilder::shapeOf(own)[1]};
  Value repeated = b.broadcast(b.expand(own, 1), shape);
  return b.reshape(b.select(isOwn(times, shape[2]), repeated, b.zeros(shape)), {side, times * shape[2]});
}

Value Doubling::doubled(Value between, Value inverse) {
  SmallVector<int64_t> shape(TileBuilder::shapeOf(inverse));
  auto product = [&](Value left, Value right) {
    Value whole = shape[1] == side ? left : among(left, side / shape[1]);
    return b.dot(b.mul(whole, beta), right, b.zeros(shape), precision);
  };
  Value right = b.sub(between, product(between, inverse));
  return b.add(inverse, b.sub(right, product(inverse, right)));
}

Value Doubling::run(Value all) {
  SmallVector<Value> own{all}; // of ever smaller blocks
  for (int64_t width = side; width > least; width /= 2)
    own.push_back(ownHalf(own.back()));
  Value rows = b.column(b.range(side)), inverse;
  for (int64_t half = 1; half < side; half *= 2) {
    if (half >= least && own.size() > 1) {
      own.pop_back();
      inverse = among(inverse, 2);
    }
    const int64_t width = TileBuilder::shapeOf(own.back())[1];
    Value first = b.sub(b.range(side), b.rem(b.range(side), b.i32(width)));
    Value number = b.div(b.add(b.column(first), b.row(b.range(width))), b.i32(half));
    Value later = b.compareInt(arith::CmpIPredicate::eq, b.div(rows, b.i32(half)), b.add(number, b.i32(1)));
    Value even = b.compareInt(arith::CmpIPredicate::eq, b.rem(number, b.i32(2)), b.i32(0));
    Value between = b.select(b.both(later, even), own.back(), b.zeros({side, width}));
    inverse = inverse ? doubled(between, inverse) : between;
  }
  return inverse;
}

static Value lowerInverse(attn::RecurOp op, const attn::RecurrenceOperands &its, const StoredDecays &storedDecays,
                          StoredValues &stored) {
  RecurrenceKernel kernel(op, its, storedDecays, stored, "delta_inverse");
  TileBuilder &b = kernel.b;
  TensorParameter output = kernel.frame.output(wholeType(op.getDelta()[1]));
  kernel.withChunk([&](Value chunk) {
    RowTile rows = kernel.rows(chunk);
    Chunk keys = paddedChannels(its.headSize());
    Value k = kernel.tile(its.key, rows, keys), beta = b.row(kernel.numbers(its.beta, rows));
    ChunkDecays decays = kernel.decays(rows, keys);
    Value inverse = Doubling(kernel, beta).run(kernel.pairs(k, k, decays, /*strict=*/true));
    Chunk columns{0, kernel.side, kernel.side};
    kernel.store(output, rows, &columns, inverse);
  });
  Value made = kernel.frame.finish({kernel.chunkGrid(), 4, 1})[0];
  stored.record(op.getDelta()[1], made);
  return made;
}

LogicalResult lowerRecur(attn::RecurOp op, StoredValues &stored) {
  auto its = attn::RecurrenceOperands::of(op);
  Chunk keys = paddedChannels(its.headSize());
  const int64_t most = columnsBeside(keys.width), parts = channelParts(its.valueSize(), most);
  StoredDecays storedDecays = lowerDecays(op, its, stored, /*scale=*/1, parts);
  if (its.beta)
    lowerInverse(op, its, storedDecays, stored);
  RecurrenceKernel kernel(op, its, storedDecays, stored, its.beta ? "delta_rule" : "linear_attention");
  TileBuilder &b = kernel.b;
  Chunk values = channelPart(b, its.valueSize(), most, b.programId(tile::Axis::X));
  SmallVector<Value> results{op.getOut()};
  TensorParameter out = kernel.frame.output(wholeType(op.getOut())), residual, last;
  if (its.beta && !op.getDelta()[0].use_empty()) {
    results.push_back(op.getDelta()[0]);
    residual = kernel.frame.output(wholeType(op.getDelta()[0]));
  }
  if (!op.getFinalState().use_empty()) {
    results.push_back(op.getFinalState());
    last = kernel.frame.output(wholeType(op.getFinalState()));
  }
  Value scale = b.f32(op.getScale().convertToDouble());
  Value initial = kernel.loadState(its.initialState, keys, values);
  auto loop = scf::ForOp::create(b, b.i32(0), kernel.place.chunks, b.i32(1), initial);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value state = loop.getRegionIterArg(0);
    RowTile rows = kernel.rows(loop.getInductionVar());
    Value q = kernel.tile(its.query, rows, keys), k = kernel.tile(its.key, rows, keys);
    Value w = kernel.tile(its.value, rows, values);
    ChunkDecays decays = kernel.decays(rows, keys);
    Value start = kernel.fromStart(decays), end = kernel.toEnd(decays);
    if (decays.byChannel)
      kernel.decayForProducts(q, start), kernel.decayForProducts(k, end);
    Value held = b.cast(state, kernel.element);
    if (its.beta) {
      Value beta = b.column(kernel.numbers(its.beta, rows));
      Value u = b.sub(b.cast(w, b.getF32Type()), kernel.through(k, held, start));
      Chunk columns{0, kernel.side, kernel.side};
      Value inverse = kernel.tile(op.getDelta()[1], rows, columns);
      Value r = b.sub(u, kernel.product(inverse, b.mul(u, beta)));
      if (residual.pointer)
        kernel.store(residual, rows, &values, r);
      w = b.mul(r, beta);
    }
    Value weights = kernel.pairsOfQueries(rows, q, k, decays, /*scale=*/1);
    Value o = kernel.product(weights, w, kernel.through(q, held, start));
    kernel.store(out, rows, &values, b.mul(o, scale));
    scf::YieldOp::create(b, kernel.outer(k, w, end, kernel.carried(state, decays)));
  }
  if (last.pointer)
    kernel.storeState(last, keys, values, loop.getResult(0));
  for (auto [result, made] : llvm::zip_equal(results, kernel.frame.finish({kernel.grid(parts), kernel.warps(), 1})))
    stored.record(result, made);
  return success();
}

} // namespace weft
