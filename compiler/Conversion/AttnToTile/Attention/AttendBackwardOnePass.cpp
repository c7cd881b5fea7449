// Part of Weft. SPDX-License-Identifier: Apache-2.0
// All gradients of attention in one pass, where their sums need not be the same bits every time, or programs add to
// them in turns:
//
//   dk and dv, a tile of keys down, for each block of queries of each head:
//     Pᵀ = 2^(scale k qᵀ - lse);  dSᵀ = Pᵀ ⊙ (v dOutᵀ - delta);  dv += Pᵀ dOut;  dk += dSᵀ q
//     memory[dq] += dS k                                                           (red.global.add.f32)
//
// Scores and their gradients are computed once, not a second time for dq: five products where two passes have seven.
// dq is scaled and rounded by whoever takes it. Additions in memory outweigh most of the instructions that are saved;
// matrix units, which bound attention, have five sevenths to do. Heads of more than 128 would spill. Wide values,
// whose dv has a kernel of its own, gain more, as dP is most of the work: the channels are contracted once, not for dq
// and for dk each. Then it is the default too, by turns (Turns.h), wherever the pattern says who comes before whom.
#include "compiler/Conversion/AttnToTile/Attention/AttendBackwardCaptures.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendBackwardKernel.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendDiagonal.h"
#include "compiler/Conversion/AttnToTile/Attention/ScheduleTable.h"
#include "compiler/Conversion/AttnToTile/Attention/Turns.h"

using namespace mlir;

namespace weft {

StringRef whyNotOnePass(attn::AttendBackwardOp op) {
  Attend attend = Attend::of(op);
  if (attend.keys.size() != 1)
    return "the attention has several domains of keys";
  if (diagonalDomain(op))
    return "one domain of keys is the diagonal";
  if (op.getGradients().size() != 2)
    return "captured tensors have gradients too";
  if (attend.form.windows)
    return "windows tile the kernels";
  if (attend.form.isSingle || attend.headSize() == 1)
    return "one head, or heads of one channel, gain nothing by it";
  if (attend.headSize() > 128 || (!attend.form.isWide && attend.valueSize() > 128))
    return "heads of more than 128 channels would spill";
  if (op.getFast() || (attend.form.isWide && canTakeTurns(attend)))
    return "";
  return attend.form.isWide ? "no order is known for the programs to add in, and the backward is not asked to be fast"
                            : "sums in any order are not the same bits every time, and the backward is not asked to be "
                              "fast";
}

bool takesOnePass(attn::AttendBackwardOp op) { return whyNotOnePass(op).empty(); }

/// Adds dS k to the sums at a block of queries.
static void addToQueries(BackwardKernel &kernel, const TensorParameter &sums, const QuerySide &queries,
                         const KeySide &keys, Value dScores) {
  TileBuilder &b = kernel.b;
  Value factors = b.transpose(dScores);
  for (auto [chunk, k] : llvm::zip_equal(kernel.queryChunks, keys.k)) {
    SmallVector<int64_t> shape{queries.rows.count, chunk.width};
    Value product = b.dot(factors, k, b.zeros(shape), kernel.attend.precision());
    Value mask = kernel.puller.exists(queries.rows, &chunk);
    tile::AtomicRMWOp::create(b, product.getType(), tile::AtomicKind::FAdd,
                              kernel.puller.pointers(sums, queries.rows, &chunk), product,
                              mask ? b.broadcast(mask, shape) : mask, tile::MemoryOrder::Relaxed);
  }
}

Value lowerOnePass(attn::AttendBackwardOp op, const BackwardPart &part, const SoftmaxNumbers &numbers,
                   ArrayRef<Value> roots, StoredValues &stored) {
  attn::ScheduleAttr schedule = keyGradientSchedule(op);
  BackwardKernel kernel(op, numbers, stored, "attend_backward", schedule, /*queriesDown=*/false);
  kernel.sumsRows = true;
  // Behind a loop of several kinds of blocks ptxas may not see that all lanes reduce at one place, and asks each of them.
  kernel.joins = false;
  TileBuilder &b = kernel.b;
  TensorParameter queryGradient =
      kernel.frame.output(kernel.attend.queryType().withElement(b.getF32Type()), /*zeroed=*/true);
  std::optional<Turns> turns;
  if (!op.getFast())
    turns.emplace(kernel);
  RowTile rows = kernel.begin(0, turns ? turns->place : Value());
  KeySide keys = kernel.pullKeys(0, kernel.asKeys(0, rows, kernel.standing.head));
  SmallVector<Value> sums = kernel.zeroSums(kernel.queryChunks);
  unsigned ofKeys = sums.size();
  sums.append(kernel.zeroSums(kernel.valueChunks)); // Wide values have a kernel of their own, and no sums here.
  auto walkHead = [&](Value head, ValueRange initial) {
    return kernel.walk(0, keys.rows, head, initial, [&](const RowTile &columns, Fullness full, ValueRange values) {
      QuerySide queries = kernel.pullQueries(kernel.asQueries(columns, head));
      Pairs pairs = kernel.pairs(0, queries, keys, full, [](const Accumulation &) {});
      SmallVector<Value> dv = kernel.accumulateProducts(pairs.weights, queries.g, values.drop_front(ofKeys));
      Value dScores = b.cast(pairs.dScores, kernel.attend.queryType().getElementType());
      SmallVector<Value> next = kernel.accumulateProducts(dScores, queries.q, values.take_front(ofKeys));
      if (turns)
        turns->wait(queries.rows);
      addToQueries(kernel, queryGradient, queries, keys, dScores);
      if (turns)
        turns->pass(queries.rows);
      next.append(dv);
      return next;
    });
  };
  sums = kernel.overHeads(sums, walkHead);
  kernel.provide(part.results[0], keys.rows, kernel.queryChunks, ValueRange(sums).take_front(ofKeys),
                 kernel.attend.scale);
  if (part.results.size() > 1)
    kernel.provide(part.results[1], keys.rows, kernel.valueChunks, ValueRange(sums).drop_front(ofKeys), 1);
  return kernel.finish(roots, keys.rows).front();
}

} // namespace weft
