// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The tangent of attention's gradient, from which second derivatives are made. With a = dOut vᵀ - delta and g = P ⊙ a,
//
//   P' = P ⊙ (s' - lse');  g' = P' ⊙ a + P ⊙ (dOut' vᵀ + dOut v'ᵀ - delta');  dS, dS' of g, g' through score_mod
//   dq' = scale (dS' k + dS k');  dk' = scale (dS'ᵀ q + dSᵀ q');  dv' = P'ᵀ dOut + Pᵀ dOut'
//
// where x' is the tangent of x. As for the gradient itself, a kernel of queries makes dq', one of each domain's keys
// dk' and dv'; the gradients are the other op's.
#include "compiler/Conversion/AttnToTile/Attention/AttendBackwardTangent.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendBackwardKernel.h"
#include "compiler/Conversion/AttnToTile/Attention/ScheduleTable.h"

using namespace mlir;

namespace weft {
namespace {

/// The tangents of what a tile of queries brings, and of a tile of keys.
struct QueryTangents {
  SmallVector<Value> q, g;
  Value lse, delta;
};
struct KeyTangents {
  SmallVector<Value> k, v;
};

/// A block of pairs, and how it changes.
struct ChangingPairs {
  Value weights, dScores, weightsTangent, dScoresTangent;
};

/// A kernel of the gradient's, with tangents beside what it reads.
class TangentKernel : public BackwardKernel {
public:
  TangentKernel(attn::AttendBackwardTangentOp tangent, attn::AttendBackwardOp op, StoredValues &stored, StringRef name,
                bool queriesDown)
      : BackwardKernel(op, SoftmaxNumbers(), stored, name, gradientTangentSchedule(op), queriesDown), tangent(tangent) {
  }

  QueryTangents pullQueryTangents(const RowTile &rows);
  KeyTangents pullKeyTangents(unsigned domain, const RowTile &rows);
  ChangingPairs changingPairs(unsigned domain, const QuerySide &queries, const QueryTangents &ofQueries,
                              const KeySide &keys, const KeyTangents &ofKeys, Fullness full);
  /// The values of a region at a block; `there` are the pairs that exist.
  Value evaluate(Region &region, ValueRange given, ArrayRef<int64_t> shape, Value there);
  /// Sums of two products: factors · chunks and otherFactors · otherChunks.
  SmallVector<Value> accumulateBoth(Value factors, ValueRange chunks, Value otherFactors, ValueRange otherChunks,
                                    ValueRange sums) {
    return accumulateProducts(factors, chunks, accumulateProducts(otherFactors, otherChunks, sums));
  }

  attn::AttendBackwardTangentOp tangent;
};

} // namespace

QueryTangents TangentKernel::pullQueryTangents(const RowTile &rows) {
  QueryTangents side;
  for (const Chunk &chunk : queryChunks)
    side.q.push_back(puller.pull(tangent.getQueryTangent(), rows, chunk));
  for (const Chunk &chunk : valueChunks)
    side.g.push_back(puller.pull(tangent.getDOutTangent(), rows, chunk));
  side.lse = puller.pullRow(tangent.getLseTangent(), rows);
  side.delta = puller.pullRow(tangent.getDeltaTangent(), rows);
  return side;
}

KeyTangents TangentKernel::pullKeyTangents(unsigned domain, const RowTile &rows) {
  KeyTangents side;
  for (const Chunk &chunk : queryChunks)
    side.k.push_back(puller.pull(tangent.getKeyTangents()[domain], rows, chunk));
  for (const Chunk &chunk : valueChunks)
    side.v.push_back(puller.pull(tangent.getValueTangents()[domain], rows, chunk));
  return side;
}

Value TangentKernel::evaluate(Region &region, ValueRange given, ArrayRef<int64_t> shape, Value there) {
  Value read = there ? b.broadcast(there, shape) : Value();
  auto element = [&](Value tensor, ValueRange indices) {
    return loadAtPairs(frame, stored.at(tensor), indices, given, read, {});
  };
  return b.broadcast(evaluateRegion(region, given, {frame, element, nullptr, nullptr})[0], shape);
}

ChangingPairs TangentKernel::changingPairs(unsigned domain, const QuerySide &queries, const QueryTangents &ofQueries,
                                           const KeySide &keys, const KeyTangents &ofKeys, Fullness full) {
  const RowTile &rows = queriesDown ? queries.rows : keys.rows, &columns = queriesDown ? keys.rows : queries.rows;
  SmallVector<int64_t> shape{rows.count, columns.count};
  auto product = [&](ValueRange left, ValueRange right, Value sum) {
    return queriesDown ? outer(left, right, sum) : outer(right, left, sum);
  };
  auto wide = [&](Value ofQuery) { return b.broadcast(downOrAcross(ofQuery, true), shape); };
  Value score = b.mul(product(queries.q, keys.k, b.zeros(shape)), b.f32(attend.scale));
  Value change = product(queries.q, ofKeys.k, product(ofQueries.q, keys.k, b.zeros(shape)));
  change = b.mul(change, b.f32(attend.scale));
  Value exists = belongs(domain, queries.rows, keys.rows, full);
  if (full.at)
    exists = b.either(exists, full.at);
  Value there = exists;
  if (rows.inside)
    there = there ? b.both(there, b.column(rows.inside)) : b.column(rows.inside);
  SmallVector<Value> given{score, queries.rows.batch, queries.rows.head, downOrAcross(queries.rows.token, true),
                           downOrAcross(keys.rows.token, false)};
  auto with = [&](ArrayRef<Value> more) {
    SmallVector<Value> all(given);
    all.append(more.begin(), more.end());
    return all;
  };
  Value modified = score, modifiedChange = change;
  if (attend.scoreMod) {
    modified = evaluate(*attend.scoreMod, given, shape, there);
    modifiedChange = evaluate(tangent.getScoreModTangent(), with(change), shape, there);
  }
  ChangingPairs made;
  made.weights = b.exp2(b.add(b.mul(modified, b.f32(log2OfE)), downOrAcross(queries.minusShift, true)));
  auto ifExists = [&](Value value) { return b.selectWhere(exists, value, b.f32(0)); };
  made.weights = ifExists(made.weights);
  Value moved = b.sub(modifiedChange, wide(ofQueries.lse));
  Value minusDelta = wide(queries.minusDelta), minusOfDelta = wide(b.mul(ofQueries.delta, b.f32(-1)));
  Value a = product(queries.g, keys.v, minusDelta);
  Value ofA = product(queries.g, ofKeys.v, product(ofQueries.g, keys.v, minusOfDelta));
  Value kept = keptPairs(domain, queries.rows, keys.rows);
  a = b.selectWhere(kept, a, minusDelta);
  ofA = b.selectWhere(kept, ofA, minusOfDelta);
  made.weightsTangent = ifExists(b.mul(made.weights, moved));
  made.dScores = b.mul(made.weights, a);
  made.dScoresTangent = b.mul(made.weights, b.add(b.mul(moved, a), ofA));
  made.weights = b.selectWhere(kept, made.weights, b.f32(0));
  made.weightsTangent = b.selectWhere(kept, made.weightsTangent, b.f32(0));
  if (attend.scoreMod) {
    Value g = made.dScores, ofG = made.dScoresTangent;
    made.dScores = evaluate(op.getScoreModGrad(), with(g), shape, there);
    made.dScoresTangent = evaluate(tangent.getScoreModGradTangent(), with({g, change, ofG}), shape, there);
  }
  // The derivatives of a pair outside the pattern may be infinite or NaN.
  made.dScores = ifExists(made.dScores);
  made.dScoresTangent = ifExists(made.dScoresTangent);
  return made;
}

/// dq'.
static void lowerQueries(attn::AttendBackwardTangentOp op, attn::AttendBackwardOp base, ArrayRef<Value> roots,
                         StoredValues &stored) {
  TangentKernel kernel(op, base, stored, "attend_backward_tangent_query", /*queriesDown=*/true);
  TileBuilder &b = kernel.b;
  RowTile rows = kernel.asQueries(kernel.begin(0), kernel.standing.head);
  QuerySide queries = kernel.pullQueries(rows);
  QueryTangents ofQueries = kernel.pullQueryTangents(rows);
  SmallVector<Value> sums = kernel.zeroSums(kernel.queryChunks);
  for (unsigned domain = 0; domain < kernel.attend.keys.size(); ++domain)
    sums = kernel.walk(domain, rows, kernel.standing.head, sums,
                       [&](const RowTile &columns, Fullness full, ValueRange carried) {
                         Value keyHead = b.div(kernel.standing.head, b.i32(kernel.attend.group(domain)));
                         RowTile tokens = kernel.asKeys(domain, columns, keyHead);
                         KeySide keys = kernel.pullKeys(domain, tokens);
                         KeyTangents ofKeys = kernel.pullKeyTangents(domain, tokens);
                         ChangingPairs pairs = kernel.changingPairs(domain, queries, ofQueries, keys, ofKeys, full);
                         return kernel.accumulateBoth(pairs.dScoresTangent, keys.k, pairs.dScores, ofKeys.k, carried);
                       });
  kernel.provide(op.getDQueryTangent(), rows, kernel.queryChunks, sums, kernel.attend.scale);
  kernel.finish(roots, rows);
}

/// dk' and dv' of a domain.
static void lowerKeys(attn::AttendBackwardTangentOp op, attn::AttendBackwardOp base, unsigned domain,
                      ArrayRef<Value> roots, StoredValues &stored) {
  TangentKernel kernel(op, base, stored, "attend_backward_tangent_keys", /*queriesDown=*/false);
  RowTile rows = kernel.begin(domain);
  rows = kernel.asKeys(domain, rows, kernel.standing.head);
  KeySide keys = kernel.pullKeys(domain, rows);
  KeyTangents ofKeys = kernel.pullKeyTangents(domain, rows);
  SmallVector<Value> initial = kernel.zeroSums(kernel.queryChunks);
  unsigned count = initial.size();
  initial.append(kernel.zeroSums(kernel.valueChunks));
  SmallVector<Value> sums = kernel.overHeads(initial, [&](Value head, ValueRange before) {
    return kernel.walk(domain, rows, head, before, [&](const RowTile &columns, Fullness full, ValueRange carried) {
      RowTile tokens = kernel.asQueries(columns, head);
      QuerySide queries = kernel.pullQueries(tokens);
      QueryTangents ofQueries = kernel.pullQueryTangents(tokens);
      ChangingPairs pairs = kernel.changingPairs(domain, queries, ofQueries, keys, ofKeys, full);
      SmallVector<Value> next =
          kernel.accumulateBoth(pairs.dScoresTangent, queries.q, pairs.dScores, ofQueries.q, carried.take_front(count));
      next.append(kernel.accumulateBoth(pairs.weightsTangent, queries.g, pairs.weights, ofQueries.g,
                                        carried.drop_front(count)));
      return next;
    });
  });
  ValueRange results = op.getGradientTangents();
  kernel.provide(results[2 * domain], rows, kernel.queryChunks, ValueRange(sums).take_front(count),
                 kernel.attend.scale);
  kernel.provide(results[2 * domain + 1], rows, kernel.valueChunks, ValueRange(sums).drop_front(count), 1);
  kernel.finish(roots, rows);
}

/// The gradient that `op` is the tangent of: kernels find their operands by it. It goes with all that lowering added.
static attn::AttendBackwardOp gradientOf(attn::AttendBackwardTangentOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto base = attn::AttendBackwardOp::create(
      b, op.getDQueryTangent().getType(), op.getGradientTangents().getTypes(), op.getQuery(), op.getKeys(),
      op.getValues(), op.getCounts(), op.getLse(), op.getDelta(), op.getDOut(), op.getCuSeqlens(),
      op.getPatternOperands(), op.getPatternsAttr(), op.getScaleAttr(), op.getPrecisionAttr(), /*fast=*/UnitAttr(),
      /*scheduleQuery=*/attn::ScheduleAttr(), /*scheduleKeys=*/attn::ScheduleAttr(),
      /*scheduleValues=*/attn::ScheduleAttr(), op.getMasks().size());
  IRMapping mapping;
  op.getScoreMod().cloneInto(&base.getScoreMod(), mapping);
  op.getScoreModGrad().cloneInto(&base.getScoreModGrad(), mapping);
  for (auto [from, to] : llvm::zip(op.getMasks(), base.getMasks()))
    from.cloneInto(&to, mapping);
  return base;
}

LogicalResult lowerAttendBackwardTangent(attn::AttendBackwardTangentOp op, ProgramKernels &program) {
  attn::AttendBackwardOp base = gradientOf(op);
  for (unsigned part = 0; part <= op.getKeys().size(); ++part) {
    ValueRange results = op->getResults().take_front(1);
    if (part)
      results = op.getGradientTangents().slice(2 * (part - 1), 2);
    auto roots = program.joinRowLocalUsers(op, results);
    if (failed(roots))
      return failure();
    if (roots->empty()) // What nobody uses is not made.
      continue;
    if (part)
      lowerKeys(op, base, part - 1, *roots, program.stored);
    else
      lowerQueries(op, base, *roots, program.stored);
  }
  return success();
}

} // namespace weft
