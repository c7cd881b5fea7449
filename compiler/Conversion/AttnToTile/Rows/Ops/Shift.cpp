// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn.shift on tiles of rows: the row so many tokens before, 0 where its sequence has none.
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "compiler/Conversion/AttnToTile/Rows/Sequences.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft {

/// The rows that a shift takes for the tile's.
static RowTile shiftedRows(attn::ShiftOp op, Puller &puller, const RowTile &rows) {
  TileBuilder &b = puller.b;
  auto by = static_cast<int64_t>(op.getBy());
  Value token = b.sub(rows.position(b), b.i32(by));
  SequenceOfRows sequence = sequencesOf(puller, op.getCuSeqlens(), rows, wholeType(op.getResult()));
  Value within = by > 0 ? b.compareInt(arith::CmpIPredicate::sge, token, sequence.first) : b.less(token, sequence.past);
  RowTile moved = rows.anyPositions(token, rows.inside ? b.both(rows.inside, within) : within);
  if (rows.scalarStart && !rows.base) {
    moved.scalarStart = b.sub(rows.scalarStart, b.i32(by));
    moved.offsets = rows.offsets;
  }
  return moved;
}

namespace {
struct ShiftRows : RowLocalOpInterface::ExternalModel<ShiftRows, attn::ShiftOp> {
  RowsRead rowsRead(Operation *) const { return RowsRead::Neighbours; }
  Value pull(Operation *op, OpResult result, Puller &puller, const RowTile &rows, const Chunk *chunk) const {
    auto shift = cast<attn::ShiftOp>(op);
    RowTile moved = shiftedRows(shift, puller, rows);
    Value tile =
        chunk ? puller.pull(shift.getSource(), moved, *chunk, Zeros::Rows) : puller.pullRow(shift.getSource(), moved);
    return puller.b.cast(tile, wholeType(result).getElementType());
  }
};
} // namespace

void attachShiftRows(MLIRContext &context) { attn::ShiftOp::attachInterface<ShiftRows>(context); }

} // namespace weft
