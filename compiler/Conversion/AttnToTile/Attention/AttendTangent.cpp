// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The tangent of attention, computed by the forward kernel in the walk that computes its results. With ds the change of
// the scores, mu = Σ P ds and dout = Σ P (ds - mu) v + Σ P dv. Of the online softmax, whose weights p grow to P,
//
//   for each block:  ds = scale (dq kᵀ + q dkᵀ), through score_mod
//                    mu' = (mu l α + rowsum p ds) / l'                       l' and α as in the forward
//                    t = t α + acc α (mu - mu') + (p (ds - mu')) v + p dv    acc: the forward's sums, before the block
//   dout = t / l;  dlse = mu                                                 (with a sink: mu = dsink at first)
//
// The mean is taken off before the weights are rounded for the product: where one key has all the weight, p ds v and
// mu out are large and equal.
#include "compiler/Conversion/AttnToTile/Attention/AttendForward.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendForwardKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft {

ForwardOp ForwardOp::of(attn::AttendTangentOp op) {
  Region &region = op.getScoreModTangent();
  return {"attend_tangent",
          Attend::of(op),
          op.getSink(),
          op.getOut(),
          op.getLse(),
          tangentSchedule(op),
          ForwardTangents{op.getQueryTangent(), op.getSinkTangent(), op.getKeyTangents(), op.getValueTangents(),
                          region.empty() ? nullptr : &region, op.getOutTangent(), op.getLseTangent()}};
}

void ForwardKernel::beginTangent(State &state) {
  state.mean = b.zeros({rows.count});
  if (Value sink = op.tangents->sink) {
    Value change = b.cast(loadElement(frame, stored.at(sink), {rows.headOfRow(b, false)}), b.getF32Type());
    state.mean = b.broadcast(change, {rows.count});
  }
  for (const Chunk &chunk : valueChunks)
    state.tangents.push_back(b.zeros({rows.count, chunk.width}));
}

/// The change of q kᵀ by the channels of one chunk, onto `sum`, which is null before the first; `key` is that of k.
Value ForwardKernel::addProductTangent(unsigned domain, const RowTile &keys, unsigned chunk, Value key, Value sum) {
  auto add = [&](Value left, Value right) {
    Value start = sum ? sum : b.zeros({rows.count, keys.count});
    sum = b.dot(left, b.transpose(right), start, attend.precision());
  };
  if (!queryTangents.empty())
    add(queryTangents[chunk], key);
  if (!op.tangents->keys.empty())
    add(queries[chunk], puller.pull(op.tangents->keys[domain], keys, queryChunks[chunk], Zeros::Channels));
  return sum;
}

/// ds, from that of the product; null where it is zero.
Value ForwardKernel::changeOfScores(Value product, Value change, const RowTile &keys, Value belongs) {
  if (change)
    change = b.mul(change, b.f32(attend.scale));
  if (!op.tangents->scoreMod)
    return change;
  SmallVector<int64_t> shape{rows.count, keys.count};
  Value before = change ? change : b.zeros(shape);
  change = modified(*op.tangents->scoreMod, b.mul(product, b.f32(attend.scale)), keys, belongs, before);
  change = b.broadcast(change, shape);
  // The derivative of a pair outside the pattern may be infinite or NaN.
  return b.selectWhere(belongs, change, b.f32(0));
}

/// Gives `next` its mean. `kept` as keptPairs has it.
TangentStep ForwardKernel::moveMean(unsigned domain, Value kept, Value weights, Value decay, Value change,
                                    const State &state, State &next) {
  next.mean = state.mean;
  if (!change && !op.tangents->sink)
    return {};
  Value sum = b.mul(state.mean, b.mul(state.total, decay));
  if (change)
    sum = b.add(sum, b.reduceSum(b.mul(weights, change), 1));
  Value seen = b.compareFloat(arith::CmpFPredicate::UNE, next.total, b.f32(0));
  next.mean = b.select(seen, b.div(sum, b.select(seen, next.total, b.f32(1))), b.f32(0));
  Value mean = b.column(next.mean);
  Value centred = change ? b.sub(change, mean) : b.mul(mean, b.f32(-1));
  Value factors = b.selectWhere(kept, b.mul(weights, centred), b.f32(0));
  return {b.cast(factors, attend.valueType(domain).getElementType()), b.mul(decay, b.sub(state.mean, next.mean))};
}

/// The tangent's sums over a chunk of value channels, of which `v` is the values' tile and `weights` are as they are
/// multiplied with it.
Value ForwardKernel::sumTangent(unsigned domain, const RowTile &keys, unsigned chunk, const TangentStep &step, Value v,
                                Value weights, Value decay, const State &state) {
  Value sum = b.mul(state.tangents[chunk], b.column(decay));
  if (step.factors) {
    sum = b.add(sum, b.mul(state.sums[chunk], b.column(step.shift)));
    sum = b.dot(step.factors, v, sum, attend.precision());
  }
  if (op.tangents->values.empty())
    return sum;
  Zeros zeros = attend.valueSize() == 1 ? Zeros::Everywhere : Zeros::Rows;
  Value dv = puller.pull(op.tangents->values[domain], keys, valueChunks[chunk], zeros);
  return b.dot(weights, dv, sum, attend.precision());
}

/// Makes the tangents of the op's results known to the puller. `inverse` is 1 / l, and 0 for rows that have `seen` no
/// key.
void ForwardKernel::endTangent(const State &state, Value seen, Value inverse) {
  Value out = op.tangents->out;
  Type element = cast<attn::WholeTensorType>(out.getType()).getElementType();
  for (auto [chunk, sum] : llvm::zip(valueChunks, state.tangents))
    puller.provide(out, rows, chunk.first, b.cast(b.mul(sum, b.column(inverse)), element), chunk.base);
  auto isZero = [&](Value v) { return puller.channelPadding(v) == attn::Padding::Zero; };
  bool zero = llvm::all_of(attend.values, isZero) && llvm::all_of(op.tangents->values, isZero);
  puller.promise(out, zero ? attn::Padding::Zero : attn::Padding::Unknown);
  puller.provide(op.tangents->lse, rows, 0, b.select(seen, state.mean, b.f32(0)));
}

} // namespace weft
