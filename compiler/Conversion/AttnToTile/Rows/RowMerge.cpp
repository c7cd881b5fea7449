// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Rows taken from elsewhere in the sequence: shifts, and units' rows spread over their tokens.
#include "compiler/Conversion/AttnToTile/Rows/RowTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

SequenceOfRows sequenceOfRows(KernelFrame &frame, Value cu, Value tokens, Value length) {
  TileBuilder &b = frame.b;
  Value zero = b.broadcastLike(b.i32(0), tokens), end = b.broadcastLike(length, tokens);
  if (!cu)
    return {zero, end};
  // Starts ascend: the last one at or before a token is its sequence's, the next one that sequence's end. Halved until
  // they are neighbours: `apart` is how far they are at most.
  const TensorParameter bounds = frame.input(cu);
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

SequenceOfRows Puller::sequences(Value starts, const RowTile &rows, Value length) {
  // (A value of one axis has no channels: -1 and -2 stand for its bounds at the rows.)
  constexpr int64_t first = -1, past = -2;
  if (starts)
    if (Value found = lookup({starts, rows.token, first}))
      return {found, lookup({starts, rows.token, past})};
  SequenceOfRows sequence = sequenceOfRows(frame, starts ? stored->lookup(starts) : Value(), rows.position(b), length);
  if (starts) {
    provide(starts, rows, first, sequence.first);
    provide(starts, rows, past, sequence.past);
  }
  return sequence;
}

/// Rows that need not follow one another: `token` on the axis N of stored tensors.
static RowTile rowsAt(const RowTile &rows, Value token, Value inside) {
  RowTile moved = rows;
  moved.token = token;
  moved.inside = inside;
  moved.base = moved.scalarStart = moved.offsets = Value();
  moved.lines = 1;
  moved.columns = 0;
  return moved;
}

static Value bothOrEither(TileBuilder &b, Value a, Value c) { return a && c ? b.both(a, c) : a ? a : c; }

Value Puller::shift(attn::ShiftOp op, const RowTile &rows, const Chunk *chunk) {
  Value source = op.getSource();
  auto by = static_cast<int64_t>(op.getBy());
  Value position = rows.position(b), token = b.sub(position, b.i32(by));
  SequenceOfRows sequence = sequences(op.getCuSeqlens(), rows, frame.size(wholeType(op.getResult()).dim(2)));
  Value within = by > 0 ? b.compareInt(arith::CmpIPredicate::sge, token, sequence.first) : b.less(token, sequence.past);
  RowTile moved = rowsAt(rows, token, bothOrEither(b, rows.inside, within));
  if (rows.scalarStart && !rows.base) {
    moved.scalarStart = b.sub(rows.scalarStart, b.i32(by));
    moved.offsets = rows.offsets;
  }
  Value tile = chunk ? pull(source, moved, *chunk, Zeros::Rows) : pullRow(source, moved);
  return b.cast(tile, wholeType(op.getResult()).getElementType());
}

Value Puller::spread(attn::SpreadOp op, const RowTile &rows, const Chunk &chunk) {
  Value unit = pullRow(op.getUnit(), rows, Zeros::Nowhere), inside = rows.inside, taken = unit;
  if (op.getOffset()) {
    inside = bothOrEither(b, inside, b.less(pullRow(op.getLower(), rows), unit));
    taken = b.sub(unit, b.i32(1));
  }
  Value length;
  if (op.getMode() != attn::MergeMode::Sum) {
    Value end = pullRow(op.getEnds(), rowsAt(rows, unit, rows.inside));
    if (op.getMode() == attn::MergeMode::Last) {
      Value survives = b.compareInt(arith::CmpIPredicate::eq, end, b.add(rows.position(b), b.i32(1)));
      inside = bothOrEither(b, inside, survives);
    } else {
      Value later = bothOrEither(b, rows.inside, b.less(b.i32(0), unit));
      Value begin = pullRow(op.getEnds(), rowsAt(rows, b.sub(unit, b.i32(1)), later));
      length = b.cast(b.sub(end, begin), b.getF32Type());
    }
  }
  Value tile = pull(op.getSource(), rowsAt(rows, taken, inside), chunk, Zeros::Rows);
  if (length)
    tile = b.div(b.cast(tile, b.getF32Type()), b.column(length));
  return b.cast(tile, wholeType(op.getResult()).getElementType());
}

} // namespace weft
