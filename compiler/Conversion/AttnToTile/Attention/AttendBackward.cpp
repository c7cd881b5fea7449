// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Attention backward (Dao 2023), from the saved log-sum-exp and delta = rowsum(dOut ⊙ out): the probabilities are
// computed again, block by block.
//
//   dq, a tile of queries down,                       dk and dv, a tile of keys down,
//   for each block of keys:                           for each block of queries of each head:
//     P = 2^(scale q kᵀ - lse)                          Pᵀ = 2^(scale k qᵀ - lse)
//     dS = P ⊙ (dOut vᵀ - delta)                        dSᵀ = Pᵀ ⊙ (v dOutᵀ - delta)
//     dq += dS k                                        dv += Pᵀ dOut
//                                                       dk += dSᵀ q
//
// Either way, what an exponential gives is the left operand of the next product as it lies in registers. Sums are owned
// by one program each, so results are the same every time. In a window that is one tile, one kernel makes all three
// from one P.
#include "compiler/Conversion/AttnToTile/Attention/AttendBackward.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendBackwardCaptures.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendDiagonal.h"
#include "compiler/Conversion/AttnToTile/Attention/ScheduleTable.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

SmallVector<BackwardPart> backwardParts(attn::AttendBackwardOp op) {
  using Kind = BackwardPart::Kind;
  Attend attend = Attend::of(op);
  unsigned domains = attend.keys.size();
  ValueRange gradients = op.getGradients();
  const std::optional<WindowTiling> &windows = attend.form.windows;
  bool captures = gradients.size() > 2 * domains;
  bool wide = attend.form.isWide, apart = makesValuesApart(op);
  if (windows && !captures && !wide && attend.group(0) == 1 && fitsOneKernel(attend, *windows) &&
      windows->tokens <= keyGradientSchedule(op).getRows())
    return {{Kind::Window, 0, {op.getDQuery(), gradients[0], gradients[1]}}};
  if (takesOnePass(op) && wide)
    return {{Kind::OnePass, 0, {gradients[0]}}, {Kind::Values, 0, {gradients[1]}}};
  if (takesOnePass(op))
    return {{Kind::OnePass, 0, {gradients[0], gradients[1]}}};
  SmallVector<BackwardPart> parts{{Kind::Query, 0, {op.getDQuery()}}};
  for (unsigned i = 0; i < domains; ++i) {
    bool own = i == diagonalDomain(op);
    if (apart && !own) {
      parts.push_back({Kind::Keys, i, {gradients[2 * i]}});
      parts.push_back({Kind::Values, i, {gradients[2 * i + 1]}});
    } else if (!own || !diagonalGradientsAreTerms(op, i)) {
      parts.push_back({own ? Kind::Diagonal : Kind::Keys, i, {gradients[2 * i], gradients[2 * i + 1]}});
    }
  }
  return parts;
}

/// dq, and of captured gradients all but those of keys.
static LogicalResult lowerQueryGradient(attn::AttendBackwardOp op, const SoftmaxNumbers &numbers, ArrayRef<Value> roots,
                                        StoredValues &stored) {
  attn::ScheduleAttr schedule = queryGradientSchedule(op);
  BackwardKernel kernel(op, numbers, stored, "attend_backward_query", schedule, /*queriesDown=*/true);
  TileBuilder &b = kernel.b;
  RowTile rows = kernel.begin(0);
  QuerySide queries = kernel.pullQueries(kernel.asQueries(rows, kernel.standing.head));
  CaptureGradients captures(kernel, planCaptures(op));
  std::optional<unsigned> own = diagonalDomain(op);
  bool terms = own && diagonalGradientsAreTerms(op, *own);
  SmallVector<Value> carried;
  if (own) {
    DiagonalPairs pairs = pairsAtDiagonal(kernel, *own, queries);
    carried = diagonalQuerySums(kernel, *own, queries, pairs);
    if (terms)
      storeDiagonalPairs(kernel, queries, pairs);
  } else {
    carried = kernel.zeroSums(kernel.queryChunks);
  }
  unsigned sums = carried.size();
  carried.append(captures.initial());
  for (unsigned domain = 0; domain < kernel.attend.keys.size(); ++domain) {
    if (domain == own)
      continue;
    carried = kernel.walk(
        domain, queries.rows, kernel.standing.head, carried,
        [&](const RowTile &columns, Fullness full, ValueRange values) {
          Value keyHead = b.div(kernel.standing.head, b.i32(kernel.attend.group(domain)));
          KeySide keys = kernel.pullKeys(domain, kernel.asKeys(domain, columns, keyHead));
          captures.enter(values.drop_front(sums));
          Pairs pairs = kernel.pairs(domain, queries, keys, full, [&](const Accumulation &a) { captures.add(a); });
          SmallVector<Value> next = kernel.accumulateProducts(pairs.dScores, keys.k, values.take_front(sums));
          next.append(captures.carried());
          return next;
        });
  }
  captures.leave(ValueRange(carried).drop_front(sums), queries.rows);
  kernel.provide(op.getDQuery(), queries.rows, kernel.queryChunks, ValueRange(carried).take_front(sums),
                 kernel.attend.scale);
  SmallVector<Value> launched = kernel.finish(roots, queries.rows);
  ValueRange others = ValueRange(launched).drop_back(roots.size());
  if (terms) // Never together with gradients of captured tensors.
    return makeDiagonalTerms(op, *own, others, stored), success();
  return captures.sum(others);
}

/// dk and dv of a domain, or dk alone, from all query heads that share its key head, and captured gradients of keys.
static LogicalResult lowerKeyGradients(attn::AttendBackwardOp op, const SoftmaxNumbers &numbers, unsigned domain,
                                       ArrayRef<Value> roots, StoredValues &stored) {
  attn::ScheduleAttr schedule = keyGradientSchedule(op);
  BackwardKernel kernel(op, numbers, stored, "attend_backward_keys", schedule, /*queriesDown=*/false);
  RowTile rows = kernel.begin(domain);
  KeySide keys = kernel.pullKeys(domain, kernel.asKeys(domain, rows, kernel.standing.head));
  CaptureGradients captures(kernel, planCaptures(op));
  SmallVector<Value> sums = kernel.zeroSums(kernel.queryChunks);
  unsigned dkCount = sums.size();
  bool alone = makesValuesApart(op);
  if (!alone)
    sums.append(kernel.zeroSums(kernel.valueChunks));
  unsigned count = sums.size();
  auto walkHead = [&](Value head, ValueRange initial) {
    SmallVector<Value> carried(initial);
    carried.append(captures.initial());
    carried =
        kernel.walk(domain, keys.rows, head, carried, [&](const RowTile &columns, Fullness full, ValueRange values) {
          QuerySide queries = kernel.pullQueries(kernel.asQueries(columns, head));
          captures.enter(values.drop_front(count));
          Pairs pairs = kernel.pairs(domain, queries, keys, full, [&](const Accumulation &a) { captures.add(a); });
          SmallVector<Value> dv;
          if (!alone)
            dv = kernel.accumulateProducts(pairs.weights, queries.g, values.take_front(count).drop_front(dkCount));
          SmallVector<Value> next = kernel.accumulateProducts(pairs.dScores, queries.q, values.take_front(dkCount));
          next.append(dv);
          next.append(captures.carried());
          return next;
        });
    captures.leave(ValueRange(carried).drop_front(count), kernel.storedRows(kernel.asQueries(keys.rows, head)));
    return SmallVector<Value>(ValueRange(carried).take_front(count));
  };
  sums = kernel.overHeads(sums, walkHead);
  ValueRange gradients = op.getGradients();
  kernel.provide(gradients[2 * domain], keys.rows, kernel.queryChunks, ValueRange(sums).take_front(dkCount),
                 kernel.attend.scale);
  if (!alone)
    kernel.provide(gradients[2 * domain + 1], keys.rows, kernel.valueChunks, ValueRange(sums).drop_front(dkCount), 1);
  SmallVector<Value> launched = kernel.finish(roots, keys.rows);
  return captures.sum(ValueRange(launched).drop_back(roots.size()));
}

/// All gradients of a window's tokens, which are queries and keys alike. dS is turned once, for dq.
static void lowerWindowGradients(attn::AttendBackwardOp op, const SoftmaxNumbers &numbers, ArrayRef<Value> roots,
                                 StoredValues &stored) {
  attn::ScheduleAttr schedule = keyGradientSchedule(op);
  BackwardKernel kernel(op, numbers, stored, "attend_backward_window", schedule, /*queriesDown=*/false);
  kernel.sumsRows = true;
  TileBuilder &b = kernel.b;
  RowTile rows = kernel.begin(0);
  RowTile tokens = kernel.asKeys(0, rows, kernel.standing.head);
  KeySide keys = kernel.pullKeys(0, tokens);
  QuerySide queries = kernel.pullQueries(kernel.asQueries(rows, kernel.standing.head));
  Pairs pairs = kernel.pairs(0, queries, keys, {false}, [](const Accumulation &) {});
  Value dScores = b.cast(pairs.dScores, kernel.attend.queryType().getElementType());
  SmallVector<Value> sums =
      kernel.accumulateProducts(b.transpose(dScores), keys.k, kernel.zeroSums(kernel.queryChunks));
  sums.append(kernel.accumulateProducts(dScores, queries.q, kernel.zeroSums(kernel.queryChunks)));
  sums.append(kernel.accumulateProducts(pairs.weights, queries.g, kernel.zeroSums(kernel.valueChunks)));
  unsigned count = kernel.queryChunks.size();
  ValueRange all(sums), results = op.getGradients();
  kernel.provide(op.getDQuery(), tokens, kernel.queryChunks, all.take_front(count), kernel.attend.scale);
  kernel.provide(results[0], tokens, kernel.queryChunks, all.drop_front(count).take_front(count), kernel.attend.scale);
  kernel.provide(results[1], tokens, kernel.valueChunks, all.drop_front(2 * count), 1);
  kernel.finish(roots, tokens);
}

LogicalResult lowerBackwardPart(attn::AttendBackwardOp op, const BackwardPart &part, const SoftmaxNumbers &numbers,
                                ArrayRef<Value> roots, StoredValues &stored) {
  // What nobody uses is not made.
  bool others = !planCaptures(op).empty() && part.kind != BackwardPart::Kind::Values;
  if (part.kind == BackwardPart::Kind::Query && diagonalDomain(op))
    others |= diagonalGradientsAreTerms(op, *diagonalDomain(op));
  if (roots.empty() && !others)
    return success();
  switch (part.kind) {
  case BackwardPart::Kind::Query:
    return lowerQueryGradient(op, numbers, roots, stored);
  case BackwardPart::Kind::Keys:
    return lowerKeyGradients(op, numbers, part.domain, roots, stored);
  case BackwardPart::Kind::Values:
    lowerValueGradients(op, numbers, part.domain, roots, stored);
    return success();
  case BackwardPart::Kind::Diagonal:
    lowerDiagonalGradients(op, numbers, part.domain, roots, stored);
    return success();
  case BackwardPart::Kind::Window:
    lowerWindowGradients(op, numbers, roots, stored);
    return success();
  case BackwardPart::Kind::OnePass:
    break; // lowerOnePass does it.
  }
  llvm_unreachable("all kinds are handled");
}

} // namespace weft
