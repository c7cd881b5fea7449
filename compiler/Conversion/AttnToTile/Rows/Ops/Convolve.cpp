// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn.convolve of few taps on tiles of rows.
#include "compiler/Conversion/AttnToTile/Rows/Convolution.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "compiler/Conversion/AttnToTile/Rows/Sequences.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft {

/// The rows from which tap `offset` of a convolution takes: moved back by it along the sequence, or over a grid.
static RowTile movedRows(attn::ConvolveOp op, Puller &puller, const RowTile &rows, int64_t down, int64_t right) {
  TileBuilder &b = puller.b;
  RowTile moved = rows;
  Value inside, position = rows.position(b);
  if (!op.getGrid()) {
    moved = rows.movedBack(b, right);
    // The tile may be of one packed sequence while the convolution runs over all tokens.
    SequenceOfRows sequence = sequencesOf(puller, op.getCuSeqlens(), rows, wholeType(op.getResult()));
    Value there = moved.position(b);
    inside = right > 0 ? b.compareInt(arith::CmpIPredicate::sge, there, sequence.first) : b.less(there, sequence.past);
  } else {
    Value columns = b.i32((*op.getGrid())[1]), lines = b.i32((*op.getGrid())[0]);
    Value y = b.sub(b.div(position, columns), b.i32(down)), x = b.sub(b.rem(position, columns), b.i32(right));
    Value zero = b.i32(0);
    inside = b.both(b.both(b.compareInt(arith::CmpIPredicate::sge, y, zero), b.less(y, lines)),
                    b.both(b.compareInt(arith::CmpIPredicate::sge, x, zero), b.less(x, columns)));
    moved = rows.anyRows(b.sub(rows.token, b.i32(down * (*op.getGrid())[1] + right)), {});
  }
  moved.inside = rows.inside ? b.both(rows.inside, inside) : inside;
  return moved;
}

/// Whether a tile's rows are neighbours as a convolution has them: any of a line, a rectangle of the same grid.
static bool liesAlong(attn::ConvolveOp op, const RowTile &rows) {
  return rows.columns && (!op.getGrid() || rows.gridColumns == (*op.getGrid())[1]);
}

/// [count, width] of the rows that lie `down` lines and `right` columns before the tile's. Where the kernel has the
/// source's tile already, rows of it are picked from there, and only those that lie outside it are loaded.
static Value neighbours(attn::ConvolveOp op, Puller &puller, const RowTile &rows, const Chunk &chunk, int64_t down,
                        int64_t right) {
  TileBuilder &b = puller.b;
  Value source = op.getSource();
  if (!down && !right)
    return puller.part(source, rows, &chunk);
  RowTile moved = movedRows(op, puller, rows, down, right);
  // A tile of one packed sequence lacks the rows of the next one, which the convolution may read.
  Value tile = liesAlong(op, rows) && !rows.base ? puller.known(source, rows, &chunk) : Value();
  if (!tile)
    return puller.pull(source, moved, chunk, Zeros::Rows);
  Value columns = b.i32(rows.columns), row = b.range(rows.count), zero = b.i32(0);
  Value x = b.sub(rows.lines == 1 ? row : b.rem(row, columns), b.i32(right));
  Value within = b.both(b.compareInt(arith::CmpIPredicate::sge, x, zero), b.less(x, columns));
  if (rows.lines > 1 || down) {
    Value y = b.sub(b.div(row, columns), b.i32(down));
    within = b.both(within, b.both(b.compareInt(arith::CmpIPredicate::sge, y, zero), b.less(y, b.i32(rows.lines))));
  }
  // Indices wrap within the tile; rows that lie outside are replaced below.
  Value place = b.both(b.sub(row, b.i32(down * rows.columns + right)), b.i32(rows.count - 1));
  Value index = b.broadcast(b.column(place), TileBuilder::shapeOf(tile));
  Value picked = tile::GatherOp::create(b, tile.getType(), tile, index, b.getI32IntegerAttr(0));
  Value exists = moved.inside;
  moved.inside = b.both(exists, b.negate(within));
  Value outside = puller.part(source, moved, &chunk);
  Value kept = b.select(b.column(b.both(exists, within)), picked, b.cast(b.f32(0), TileBuilder::elementOf(tile)));
  return b.select(b.column(moved.inside), outside, kept);
}

/// A rectangle's tokens and those `reach` lines and columns around it as one tile, in lines of columns + 2 reach: what
/// is around it is loaded, once for all taps. Null where it would be too large, or the tile is not at hand.
static Value withSurroundings(attn::ConvolveOp op, Puller &puller, const RowTile &rows, const Chunk &chunk,
                              int64_t reach) {
  TileBuilder &b = puller.b;
  Value own = rows.top && liesAlong(op, rows) ? puller.known(op.getSource(), rows, &chunk) : Value();
  int64_t lines = rows.lines + 2 * reach, columns = rows.columns + 2 * reach;
  int64_t count = llvm::PowerOf2Ceil(lines * columns);
  if (!own || count > 4 * rows.count || count * chunk.width > 256 * 64)
    return {};
  Value index = b.range(count), zero = b.i32(0);
  // Lines and columns from the rectangle's first.
  Value down = b.sub(b.div(index, b.i32(columns)), b.i32(reach));
  Value right = b.sub(b.rem(index, b.i32(columns)), b.i32(reach));
  auto within = [&](Value place, Value end) {
    return b.both(b.compareInt(arith::CmpIPredicate::sge, place, zero), b.less(place, end));
  };
  Value y = b.add(rows.top, down), x = b.add(rows.left, right);
  Value gridLines = b.i32((*op.getGrid())[0]), gridColumns = b.i32((*op.getGrid())[1]);
  Value inGrid = b.both(within(y, gridLines), within(x, gridColumns));
  Value inside = b.both(within(down, b.i32(rows.lines)), within(right, b.i32(rows.columns)));
  Value token = b.add(b.mul(y, gridColumns), x);
  RowTile around = rows.anyRows(token, b.both(b.both(inGrid, b.negate(inside)), b.less(index, b.i32(lines * columns))));
  around.count = count;
  Value loaded = puller.part(op.getSource(), around, &chunk);
  Value place = b.both(b.add(b.mul(down, b.i32(rows.columns)), right), b.i32(rows.count - 1));
  Value from = b.broadcast(b.column(place), TileBuilder::shapeOf(loaded));
  Value picked = tile::GatherOp::create(b, loaded.getType(), own, from, b.getI32IntegerAttr(0));
  Value none = b.cast(b.f32(0), TileBuilder::elementOf(own));
  return b.select(b.column(around.inside), loaded, b.select(b.column(b.both(inside, inGrid)), picked, none));
}

/// A chunk of the sum over all taps.
static Value convolve(attn::ConvolveOp op, Puller &puller, const RowTile &rows, const Chunk &chunk) {
  TileBuilder &b = puller.b;
  attn::WholeTensorType type = wholeType(op.getResult());
  const TensorParameter taps = puller.frame.input(puller.stored.at(op.getTaps()));
  int64_t count = *taps.type.staticDim(0), channels = *type.staticDim(3);
  auto [grid, side, centre, direction] = TapGeometry::of(op, count);
  // taps[j, h·C + c]: heads as the value has them.
  Value head = rows.headIn(b, type.dim(1), /*asColumn=*/true);
  Value channel = b.add(b.mul(head, b.i32(channels)), chunk.start(b));
  Value lane = b.row(b.range(chunk.width));
  Value inside = chunk.inside(b), mask = inside ? b.row(inside) : Value();
  Value sum;
  int64_t reach = std::abs(direction) * centre;
  Value surrounded = grid && reach ? withSurroundings(op, puller, rows, chunk, reach) : Value();
  // The row's place there, for the tap of the token itself.
  Value place;
  if (surrounded) {
    Value row = b.range(rows.count), line = b.div(row, b.i32(rows.columns));
    place = b.add(b.mul(line, b.i32(2 * reach)), b.add(row, b.i32(reach * (rows.columns + 2 * reach) + reach)));
  }
  auto tap = [&](int64_t down, int64_t right) -> Value {
    if (!surrounded || (!down && !right))
      return neighbours(op, puller, rows, chunk, down, right);
    Value at = b.sub(place, b.i32(down * (rows.columns + 2 * reach) + right));
    at = b.both(at, b.i32(TileBuilder::shapeOf(surrounded)[0] - 1));
    SmallVector<int64_t> shape{rows.count, TileBuilder::shapeOf(surrounded)[1]};
    Value index = b.broadcast(b.column(at), shape);
    Type type = RankedTensorType::get(shape, TileBuilder::elementOf(surrounded));
    return tile::GatherOp::create(b, type, surrounded, index, b.getI32IntegerAttr(0));
  };
  for (int64_t j = 0; j < count; ++j) {
    int64_t down = grid ? direction * (j / side - centre) : 0;
    int64_t right = direction * ((grid ? j % side : j) - centre);
    Value start = b.add(b.cast(channel, b.getI64Type()), b.mul(taps.strides[0], b.i64(j)));
    Value weight = b.load(b.addPtr(b.addPtr(taps.pointer, start), lane), mask);
    Value x = b.cast(tap(down, right), b.getF32Type());
    Value term = b.mul(x, b.cast(weight, b.getF32Type()));
    sum = sum ? b.add(sum, term) : term;
  }
  if (surrounded && rows.inside) // Rows past the rectangle hold arbitrary sums.
    sum = b.select(b.column(rows.inside), sum, b.f32(0));
  return b.cast(sum, type.getElementType());
}

namespace {
struct ConvolveRows : RowLocalOpInterface::ExternalModel<ConvolveRows, attn::ConvolveOp> {
  bool isRowLocal(Operation *op) const {
    auto convolve = cast<attn::ConvolveOp>(op);
    return !isLongConvolution(convolve, wholeType(convolve.getTaps()));
  }
  RowsRead rowsRead(Operation *) const { return RowsRead::Neighbours; }
  int64_t tilesRead(Operation *op) const {
    return wholeType(cast<attn::ConvolveOp>(op).getTaps()).staticDim(0).value_or(1);
  }
  ChannelUse channelUse(Operation *) const { return ChannelUse::Neighbours; }
  Value pull(Operation *op, OpResult, Puller &puller, const RowTile &rows, const Chunk *chunk) const {
    return convolve(cast<attn::ConvolveOp>(op), puller, rows, *chunk);
  }
};
} // namespace

void attachConvolveRows(MLIRContext &context) { attn::ConvolveOp::attachInterface<ConvolveRows>(context); }

} // namespace weft
