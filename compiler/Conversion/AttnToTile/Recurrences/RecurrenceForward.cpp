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
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

// K by doubling: of two neighbouring blocks with K1 and K2, and C the part of L between them, the part of K between
// them is (I - K2 β) C (I - β K1). Blocks of one token have K = 0.
static Value lowerInverse(attn::RecurOp op, const attn::RecurrenceOperands &its, StoredValues &stored) {
  RecurrenceKernel kernel(op, its, {}, stored, "delta_inverse");
  TileBuilder &b = kernel.b;
  const int64_t side = kernel.side;
  TensorParameter output = kernel.frame.output(wholeType(op.getDelta()[1]));
  bool wide = kernel.element.isF32();
  auto precision = wide ? tile::Precision::TF32x3 : tile::Precision::TF32;
  kernel.withChunk([&](Value chunk) {
    RowTile rows = kernel.rows(chunk);
    Chunk keys = paddedChannels(its.headSize());
    Value k = kernel.tile(its.key, rows, keys), beta = b.row(kernel.numbers(its.beta, rows));
    ChunkDecays decays = kernel.decays(rows, keys);
    Value all = kernel.pairs(k, k, decays, rows, keys, /*strict=*/true), zero = b.zeros({side, side});
    Value inverse = b.select(kernel.acrossMiddle(1), all, zero);
    for (int64_t half = 2; half < side; half *= 2) {
      Value between = b.select(kernel.acrossMiddle(half), all, zero);
      Value right = b.sub(between, b.dot(b.mul(between, beta), inverse, zero, precision));
      Value left = b.dot(b.mul(inverse, beta), right, zero, precision);
      inverse = b.add(inverse, b.sub(right, left));
    }
    Chunk columns{0, side, side};
    kernel.store(output, rows, &columns, inverse);
  });
  Value made = kernel.frame.finish({kernel.chunkGrid(), 4, 1})[0];
  stored.record(op.getDelta()[1], made);
  return made;
}

/// Columns of values that a program takes, so that a state of so many rows stays in registers.
static int64_t columnsBeside(int64_t keys) { return std::max<int64_t>(16, 8192 / keys); }

LogicalResult lowerRecur(attn::RecurOp op, StoredValues &stored) {
  auto its = attn::RecurrenceOperands::of(op);
  DecaySums sums = lowerDecaySums(op, its, stored);
  if (its.beta)
    lowerInverse(op, its, stored);
  RecurrenceKernel kernel(op, its, sums, stored, its.beta ? "delta_rule" : "linear_attention");
  TileBuilder &b = kernel.b;
  Chunk keys = paddedChannels(its.headSize());
  int64_t most = columnsBeside(keys.width), parts = channelParts(its.valueSize(), most);
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
    Value weights = kernel.pairs(q, k, decays, rows, keys);
    Value o = kernel.product(weights, w, kernel.through(q, held, start));
    kernel.store(out, rows, &values, b.mul(o, scale));
    scf::YieldOp::create(b, kernel.outer(k, w, end, kernel.carried(state, decays)));
  }
  if (last.pointer)
    kernel.storeState(last, keys, values, loop.getResult(0));
  for (auto [result, made] : llvm::zip_equal(results, kernel.frame.finish({kernel.grid(parts), 4, 1})))
    stored.record(result, made);
  return success();
}

} // namespace weft
