// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn.spread on tiles of rows: each token takes the row of its unit.
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft {

/// Both conditions; the first may be null for true.
static Value bothOrOne(TileBuilder &b, Value a, Value c) { return a ? b.both(a, c) : c; }

/// A chunk of the units that the rows take.
static Value spread(attn::SpreadOp op, Puller &puller, const RowTile &rows, const Chunk &chunk) {
  TileBuilder &b = puller.b;
  Value unit = puller.pullRow(op.getUnit(), rows, Zeros::Nowhere), inside = rows.inside, taken = unit;
  if (op.getOffset()) {
    inside = bothOrOne(b, inside, b.less(puller.pullRow(op.getLower(), rows), unit));
    taken = b.sub(unit, b.i32(1));
  }
  Value length;
  if (op.getMode() != attn::MergeMode::Sum) {
    Value end = puller.pullRow(op.getEnds(), rows.anyPositions(unit, rows.inside));
    if (op.getMode() == attn::MergeMode::Last) {
      Value survives = b.compareInt(arith::CmpIPredicate::eq, end, b.add(rows.position(b), b.i32(1)));
      inside = bothOrOne(b, inside, survives);
    } else {
      Value later = bothOrOne(b, rows.inside, b.less(b.i32(0), unit));
      Value begin = puller.pullRow(op.getEnds(), rows.anyPositions(b.sub(unit, b.i32(1)), later));
      length = b.cast(b.sub(end, begin), b.getF32Type());
    }
  }
  Value tile = puller.pull(op.getSource(), rows.anyPositions(taken, inside), chunk, Zeros::Rows);
  if (length)
    tile = b.div(b.cast(tile, b.getF32Type()), b.column(length));
  return b.cast(tile, wholeType(op.getResult()).getElementType());
}

namespace {
struct SpreadRows : RowLocalOpInterface::ExternalModel<SpreadRows, attn::SpreadOp> {
  // A table says which unit a token takes.
  bool readsByRow(Operation *, unsigned) const { return false; }
  RowsRead rowsRead(Operation *) const { return RowsRead::Anywhere; }
  Value pull(Operation *op, OpResult, Puller &puller, const RowTile &rows, const Chunk *chunk) const {
    return spread(cast<attn::SpreadOp>(op), puller, rows, *chunk);
  }
};
} // namespace

void attachSpreadRows(MLIRContext &context) { attn::SpreadOp::attachInterface<SpreadRows>(context); }

} // namespace weft
