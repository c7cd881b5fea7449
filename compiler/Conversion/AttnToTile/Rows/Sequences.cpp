// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Sequences.h.
#include "compiler/Conversion/AttnToTile/Rows/Sequences.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

SequenceOfRows sequenceOfRows(KernelFrame &frame, Value cuSeqlens, Value tokens, Value length) {
  TileBuilder &b = frame.b;
  Value zero = b.broadcastLike(b.i32(0), tokens), end = b.broadcastLike(length, tokens);
  if (!cuSeqlens)
    return {zero, end};
  // Starts ascend: the last one at or before a token is its sequence's, the next one that sequence's end. Halved until
  // they are neighbours: `apart` is how far they are at most.
  const TensorParameter bounds = frame.input(cuSeqlens);
  auto boundAt = [&](Value index) { return b.load(b.addPtr(bounds.pointer, b.cast(index, b.getI64Type())), {}); };
  Value last = b.sub(frame.size(bounds.type.dim(0)), b.i32(1));
  SmallVector<Value> whole{zero, b.broadcastLike(last, tokens), last};
  SmallVector<Type> types(ValueRange(whole).getTypes());
  SmallVector<Location> locations(types.size(), b.getLoc());
  auto search = scf::WhileOp::create(b, types, whole);
  {
    OpBuilder::InsertionGuard guard(b);
    Block *condition = b.createBlock(&search.getBefore(), {}, types, locations);
    scf::ConditionOp::create(b, b.less(b.i32(1), condition->getArgument(2)), condition->getArguments());
    Block *body = b.createBlock(&search.getAfter(), {}, types, locations);
    Value low = body->getArgument(0), high = body->getArgument(1), apart = body->getArgument(2);
    Value middle = b.div(b.add(low, high), b.i32(2)), after = b.less(tokens, boundAt(middle));
    scf::YieldOp::create(b, ValueRange{b.select(after, low, middle), b.select(after, middle, high),
                                       b.div(b.add(apart, b.i32(1)), b.i32(2))});
  }
  // Whatever starts say, a sequence lies among the tokens.
  return {b.max(boundAt(search.getResult(0)), zero), b.min(boundAt(search.getResult(1)), end)};
}

SequenceOfRows sequencesOf(Puller &puller, Value cuSeqlens, const RowTile &rows, attn::WholeTensorType space) {
  if (cuSeqlens)
    if (Value first = puller.knownOfRows(cuSeqlens, rows, Puller::sequenceFirst))
      return {first, puller.knownOfRows(cuSeqlens, rows, Puller::sequencePast)};
  Value length = puller.frame.size(space.dim(2)), table = cuSeqlens ? puller.stored.at(cuSeqlens) : Value();
  SequenceOfRows sequence = sequenceOfRows(puller.frame, table, rows.position(puller.b), length);
  if (cuSeqlens) {
    puller.provide(cuSeqlens, rows, Puller::sequenceFirst, sequence.first);
    puller.provide(cuSeqlens, rows, Puller::sequencePast, sequence.past);
  }
  return sequence;
}

Value sequenceStart(TileBuilder &b, const TensorParameter &cuSeqlens, Value which, Value length) {
  constexpr int64_t together = 32;
  Value zero = b.i32(0);
  auto loop = scf::ForOp::create(b, zero, b.add(which, b.i32(1)), b.i32(together), ValueRange(zero));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value index = b.min(b.add(b.range(together), loop.getInductionVar()), b.broadcastLike(which, b.range(together)));
  Value bound = b.load(b.addPtr(cuSeqlens.pointer, b.cast(index, b.getI64Type())), {});
  scf::YieldOp::create(b, ValueRange(b.max(b.reduceMax(b.min(bound, length), 0), loop.getRegionIterArg(0))));
  return loop.getResult(0);
}

} // namespace weft
