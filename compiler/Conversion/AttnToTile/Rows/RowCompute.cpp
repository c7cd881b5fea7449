// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a kernel computes on a tile of rows instead of loading it: maps, rotations, norms, sums over channels,
// convolutions.
#include "compiler/Conversion/AttnToTile/Kernel/Numbers.h"
#include "compiler/Conversion/AttnToTile/Kernel/ScalarRegion.h"
#include "compiler/Conversion/AttnToTile/Rows/RowTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace weft {

/// Whether a map is the square of its only input.
static bool squares(attn::MapOp map) {
  Block &body = map.getBody().front();
  auto product = dyn_cast<arith::MulFOp>(body.front());
  return map.getInputs().size() == 1 && product && product.getLhs() == body.getArgument(0) &&
         product.getRhs() == body.getArgument(0) && body.getTerminator()->getOperands() == product->getResults();
}

attn::SumOp sumOfSquares(Value value) {
  for (Operation *user : value.getUsers())
    if (auto map = dyn_cast<attn::MapOp>(user);
        map && squares(map) && wholeType(map.getResult(0)).getElementType().isF32())
      for (Operation *sum : map.getResult(0).getUsers())
        if (auto found = dyn_cast<attn::SumOp>(sum);
            found && found.isRowLocal() && wholeType(found.getResult()).getElementType().isF32())
          return found;
  return {};
}

bool isRowLocal(Operation *op) {
  auto local = dyn_cast_if_present<attn::RowLocalOpInterface>(op);
  auto convolve = dyn_cast_if_present<attn::ConvolveOp>(op);
  if (!local || !local.isRowLocal() || (convolve && isLongConvolution(convolve, wholeType(convolve.getTaps()))))
    return false;
  auto rowSpace = [](Value value) {
    auto type = cast<attn::WholeTensorType>(value.getType());
    return type.getRank() == 3 || (type.getRank() == 4 && type.staticDim(3));
  };
  return llvm::all_of(op->getResults(), rowSpace);
}

bool readsOtherRows(Operation *op) {
  auto local = dyn_cast_if_present<attn::RowLocalOpInterface>(op);
  return local && local.readsOtherRows();
}

/// A tile of any element type as the scalar type that regions compute on.
static Value asScalars(TileBuilder &b, Value tile) {
  Type element = TileBuilder::elementOf(tile);
  if (isa<FloatType>(element))
    return b.cast(tile, b.getF32Type());
  return element.isInteger(1) ? tile : b.cast(tile, b.getI32Type());
}

Value Puller::map(attn::MapOp op, Value value, const RowTile &rows, const Chunk *chunk) {
  SmallVector<Value> arguments;
  for (Value input : op.getInputs())
    arguments.push_back(asScalars(b, part(input, rows, chunk)));
  // (One channel is a tile of one column.)
  attn::WholeTensorType made = wholeType(op.getResult(0));
  int64_t width = !chunk ? 0 : made.dim(made.getRank() - 1) == "1" ? 1 : chunk->width;
  auto index = [&](int64_t axis) -> Value {
    auto type = cast<attn::WholeTensorType>(value.getType());
    switch (axis + (chunk ? 4 : 3) - type.getRank()) {
    case 0:
      return type.dim(axis) == "1" ? b.i32(0) : rows.batch;
    case 1:
      return rows.headIn(b, type.dim(axis), chunk);
    case 2:
      return chunk ? b.column(rows.position(b)) : rows.position(b);
    default:
      return b.row(b.add(b.range(width), chunk->start(b)));
    }
  };
  // Elements are read for the rows and channels that exist, as far as the indices tell them apart.
  auto element = [&](Value tensor, ValueRange indices) {
    bool byRow = false, byChannel = false;
    for (Value each : indices) {
      auto shape = TileBuilder::shapeOf(each);
      byRow |= !shape.empty() && shape[0] == rows.count && rows.count > 1;
      byChannel |= width > 1 && shape.size() == 2 && shape[1] == width;
    }
    Value inside;
    if (byRow && rows.inside)
      inside = chunk ? b.column(rows.inside) : rows.inside;
    if (Value channels = byChannel ? chunk->inside(b) : Value())
      inside = inside ? b.both(inside, b.row(channels)) : b.row(channels);
    return elementOf(frame, *stored, tensor, indices, inside);
  };
  SmallVector<Value> results = evaluateRegion(op.getBody(), arguments, {frame, element, index, nullptr});
  Value kept;
  for (auto [result, tile] : llvm::zip(op.getResults(), results)) {
    auto type = cast<attn::WholeTensorType>(result.getType());
    SmallVector<int64_t> shape{rows.count};
    if (chunk)
      shape.push_back(width);
    Value rounded = b.cast(b.broadcast(tile, shape), type.getElementType());
    provide(result, rows, chunk ? chunk->first : 0, rounded, chunk ? chunk->base : Value());
    if (result == value)
      kept = rounded;
  }
  return kept;
}

/// A value of 16 bits that lies in memory and that `source` is, whatever its type; null where there is none.
static Value storedHalves(Value source, const DenseMap<Value, Value> &stored) {
  while (!stored.count(source)) {
    auto map = source.getDefiningOp<attn::MapOp>();
    if (!map || map.getInputs().size() != 1 || !llvm::hasSingleElement(map.getBody().front()) ||
        map.getBody().front().getTerminator()->getOperand(0) != map.getBody().getArgument(0) ||
        wholeType(map.getInputs()[0]).getDims() != wholeType(source).getDims())
      return {};
    source = map.getInputs()[0];
  }
  Type element = wholeType(source).getElementType();
  return element.isF16() || element.isBF16() ? source : Value();
}

/// Rows' products with themselves, by matrix instructions: those of 16-bit elements are exact.
Value Puller::sumSquaresOfHalves(Value source, const RowTile &rows) {
  Value sum;
  for (const Chunk &chunk : chunksOf(*wholeType(source).staticDim(3), widest)) {
    Value x = pull(source, rows, chunk, Zeros::Channels);
    Value term = tile::RowDotOp::create(b, RankedTensorType::get({rows.count}, b.getF32Type()), x, x);
    sum = sum ? b.add(sum, term) : term;
  }
  return sum;
}

Value Puller::sumChannels(Value source, const RowTile &rows, bool squares) {
  if (attn::SumOp same = squares ? sumOfSquares(source) : attn::SumOp(); same && stored->count(same.getResult())) {
    bool lastIsThere = wholeType(same.getResult()).getRank() == 4; // (of size 1)
    Chunk only{0, 1, 1};
    Value sum = part(same.getResult(), rows, lastIsThere ? &only : nullptr);
    return lastIsThere ? b.reduceSum(sum, 1) : sum;
  }
  // (Tiles of fewer rows are fewer than a matrix instruction's for each warp.)
  if (Value halves = squares && rows.count >= 64 ? storedHalves(source, *stored) : Value())
    return sumSquaresOfHalves(halves, rows);
  // Chunks of one width are added before their lanes are.
  Value terms, sum;
  auto addUp = [&] {
    Value part = b.reduceSum(terms, 1);
    sum = sum ? b.add(sum, part) : part;
  };
  int64_t channels = *cast<attn::WholeTensorType>(source.getType()).staticDim(3);
  for (const Chunk &each : chunksOf(channels, widest)) {
    Value x = b.cast(pull(source, rows, each, Zeros::Channels), b.getF32Type());
    Value term = squares ? b.mul(x, x) : x;
    bool fits = terms && TileBuilder::shapeOf(terms) == TileBuilder::shapeOf(term);
    if (terms && !fits)
      addUp();
    terms = fits ? b.add(terms, term) : term;
  }
  addUp();
  return sum;
}

Value Puller::sumOfChannels(attn::SumOp op, const RowTile &rows, const Chunk *chunk) {
  Value sum = lookup({op.getResult(), rows.token, -1});
  if (!sum) {
    sum = b.cast(sumChannels(op.getSource(), rows, /*squares=*/false), wholeType(op.getResult()).getElementType());
    provide(op.getResult(), rows, -1, sum);
  }
  return chunk ? b.column(sum) : sum;
}

Value Puller::rmsNorm(attn::RmsNormOp op, const RowTile &rows, const Chunk &chunk) {
  auto type = cast<attn::WholeTensorType>(op.getType());
  int64_t channels = *type.staticDim(3);
  Value factor = lookup({op.getResult(), rows.token, -1});
  if (!factor) {
    Value mean = b.mul(sumChannels(op.getSource(), rows, /*squares=*/true), b.f32(1.0 / channels));
    factor = b.rsqrt(b.add(mean, b.f32(op.getEps().convertToDouble())));
    provide(op.getResult(), rows, -1, factor);
  }
  Value x = b.mul(b.cast(part(op.getSource(), rows, &chunk), b.getF32Type()), b.column(factor));
  if (Value gain = op.getGain()) {
    // [H, D]: the tile's head, shared as heads are.
    TensorParameter tensor = frame.input(stored->lookup(gain));
    Value head = rows.headIn(b, tensor.type.dim(0), /*asColumn=*/true);
    Value offset =
        b.add(b.mul(b.cast(head, b.getI64Type()), tensor.strides[0]), b.cast(chunk.start(b), b.getI64Type()));
    Value lane = b.row(b.range(channels == 1 ? 1 : chunk.width)); // (One channel is a tile of one column.)
    Value pointers = b.addPtr(b.addPtr(tensor.pointer, offset), lane);
    Value inside = channels == 1 ? Value() : chunk.inside(b), mask = inside ? b.row(inside) : Value();
    x = b.mul(x, b.cast(b.load(pointers, mask), b.getF32Type()));
  }
  return b.cast(x, type.getElementType());
}

/// The position that turns each pair of channels of a chunk, as a tile [count, pairs] or [count, 1] of i32.
Value Puller::ropePositions(attn::RopeOp op, const RowTile &rows, const Chunk &chunk) {
  Value token = rows.position(b);
  if (op.getCuSeqlens())
    token = b.sub(token, sequences(op.getCuSeqlens(), rows, frame.size(wholeType(op.getResult()).dim(2))).first);
  if (!op.getWindow())
    return b.column(token);
  ArrayRef<int64_t> window = *op.getWindow();
  if (!op.getGrid())
    return b.column(b.rem(token, b.i32(window[0])));
  Value columns = b.i32((*op.getGrid())[1]);
  Value y = b.rem(b.div(token, columns), b.i32(window[0])), x = b.rem(b.rem(token, columns), b.i32(window[1]));
  if (op.getForm() == attn::RopeForm::Line)
    return b.column(b.add(b.mul(y, b.i32(window[1])), x));
  int64_t channels = *cast<attn::WholeTensorType>(op.getType()).staticDim(3);
  Value pair = b.row(b.add(b.range(chunk.width / 2), b.div(chunk.start(b), b.i32(2))));
  return b.select(b.less(pair, b.i32(channels / 4)), b.column(y), b.column(x));
}

Value Puller::rope(attn::RopeOp op, const RowTile &rows, const Chunk &chunk) {
  auto type = cast<attn::WholeTensorType>(op.getType());
  int64_t channels = *type.staticDim(3), pairs = chunk.width / 2;
  bool axial = op.getForm() == attn::RopeForm::Axial;
  Value x = b.cast(part(op.getSource(), rows, &chunk), b.getF32Type());
  // The frequency of pair i is base^(-2i/D); in the axial form each half counts its pairs from 0 and has D/4 of them.
  Value pair = b.add(b.range(pairs), b.div(chunk.start(b), b.i32(2)));
  if (axial)
    pair = b.select(b.less(pair, b.i32(channels / 4)), pair, b.sub(pair, b.i32(channels / 4)));
  double step = -std::log2(op.getBase().convertToDouble()) / (axial ? channels / 4 : channels / 2);
  Value frequency = b.exp2(b.mul(b.cast(pair, b.getF32Type()), b.f32(step)));
  Value angle = b.mul(b.cast(ropePositions(op, rows, chunk), b.getF32Type()), b.row(frequency));
  Value cosine = math::CosOp::create(b, angle), sine = math::SinOp::create(b, angle);
  if (op.getInverse())
    sine = b.sub(b.zeros({1, 1}), sine);
  auto half = RankedTensorType::get({rows.count, pairs}, b.getF32Type());
  auto split = tile::SplitOp::create(b, half, half, b.reshape(x, {rows.count, pairs, 2}));
  Value even = split.getLhs(), odd = split.getRhs();
  Value turned =
      tile::JoinOp::create(b, RankedTensorType::get({rows.count, pairs, 2}, b.getF32Type()),
                           b.sub(b.mul(even, cosine), b.mul(odd, sine)), b.add(b.mul(even, sine), b.mul(odd, cosine)));
  return b.cast(b.reshape(turned, {rows.count, chunk.width}), type.getElementType());
}

/// The rows from which tap `offset` of a convolution takes: moved back by it along the sequence, or over a grid.
RowTile Puller::movedRows(attn::ConvolveOp op, const RowTile &rows, int64_t down, int64_t right) {
  RowTile moved = rows;
  Value inside, position = rows.position(b);
  if (!op.getGrid()) {
    moved.token = b.sub(rows.token, b.i32(right));
    if (rows.offsets)
      moved.offsets = b.sub(rows.offsets, b.i32(right));
    // (The tile's rows may be of a packed sequence while the convolution is of all of them.)
    SequenceOfRows sequence = sequences(op.getCuSeqlens(), rows, frame.size(wholeType(op.getResult()).dim(2)));
    Value there = moved.position(b);
    inside = right > 0 ? b.compareInt(arith::CmpIPredicate::sge, there, sequence.first) : b.less(there, sequence.past);
  } else {
    Value columns = b.i32((*op.getGrid())[1]), lines = b.i32((*op.getGrid())[0]);
    Value y = b.sub(b.div(position, columns), b.i32(down)), x = b.sub(b.rem(position, columns), b.i32(right));
    Value zero = b.i32(0);
    inside = b.both(b.both(b.compareInt(arith::CmpIPredicate::sge, y, zero), b.less(y, lines)),
                    b.both(b.compareInt(arith::CmpIPredicate::sge, x, zero), b.less(x, columns)));
    moved.token = b.sub(rows.token, b.i32(down * (*op.getGrid())[1] + right));
    moved.scalarStart = moved.offsets = Value();
  }
  moved.columns = 0;
  moved.inside = rows.inside ? b.both(rows.inside, inside) : inside;
  return moved;
}

/// Whether a tile's rows are neighbours as a convolution has them: any of a line, a rectangle of the same grid.
static bool liesAlong(attn::ConvolveOp op, const RowTile &rows) {
  return rows.columns && (!op.getGrid() || rows.gridColumns == (*op.getGrid())[1]);
}

/// [count, width] of the rows that lie `down` lines and `right` columns before the tile's. Where the kernel has the
/// source's tile already, rows of it are picked from there, and only those that lie outside it are loaded.
Value Puller::neighbours(Value source, attn::ConvolveOp op, const RowTile &rows, const Chunk &chunk, int64_t down,
                         int64_t right) {
  if (!down && !right)
    return part(source, rows, &chunk);
  RowTile moved = movedRows(op, rows, down, right);
  // (A packed sequence's tile lacks rows of the next one, which a convolution may take.)
  Value tile = liesAlong(op, rows) && !rows.base ? lookup(keyOf(source, rows, &chunk)) : Value();
  if (!tile)
    return pull(source, moved, chunk, Zeros::Rows);
  Value columns = b.i32(rows.columns), row = b.range(rows.count), zero = b.i32(0);
  Value x = b.sub(rows.lines == 1 ? row : b.rem(row, columns), b.i32(right));
  Value within = b.both(b.compareInt(arith::CmpIPredicate::sge, x, zero), b.less(x, columns));
  if (rows.lines > 1 || down) {
    Value y = b.sub(b.div(row, columns), b.i32(down));
    within = b.both(within, b.both(b.compareInt(arith::CmpIPredicate::sge, y, zero), b.less(y, b.i32(rows.lines))));
  }
  // (Picked within the tile whatever the row; those that are not of it are replaced.)
  Value place = b.both(b.sub(row, b.i32(down * rows.columns + right)), b.i32(rows.count - 1));
  Value index = b.broadcast(b.column(place), TileBuilder::shapeOf(tile));
  Value picked = tile::GatherOp::create(b, tile.getType(), tile, index, b.getI32IntegerAttr(0));
  Value exists = moved.inside;
  moved.inside = b.both(exists, b.negate(within));
  Value outside = part(source, moved, &chunk);
  Value kept = b.select(b.column(b.both(exists, within)), picked, b.cast(b.f32(0), TileBuilder::elementOf(tile)));
  return b.select(b.column(moved.inside), outside, kept);
}

Value Puller::withSurroundings(attn::ConvolveOp op, const RowTile &rows, const Chunk &chunk, int64_t reach) {
  Value own = rows.top && liesAlong(op, rows) ? lookup(keyOf(op.getSource(), rows, &chunk)) : Value();
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
  RowTile around = rows;
  around.count = count;
  around.token = b.add(b.mul(y, gridColumns), x);
  around.inside = b.both(b.both(inGrid, b.negate(inside)), b.less(index, b.i32(lines * columns)));
  around.scalarStart = around.offsets = around.top = around.left = Value();
  around.columns = 0;
  Value loaded = part(op.getSource(), around, &chunk);
  Value place = b.both(b.add(b.mul(down, b.i32(rows.columns)), right), b.i32(rows.count - 1));
  Value from = b.broadcast(b.column(place), TileBuilder::shapeOf(loaded));
  Value picked = tile::GatherOp::create(b, loaded.getType(), own, from, b.getI32IntegerAttr(0));
  Value none = b.cast(b.f32(0), TileBuilder::elementOf(own));
  return b.select(b.column(around.inside), loaded, b.select(b.column(b.both(inside, inGrid)), picked, none));
}

Value Puller::convolve(attn::ConvolveOp op, const RowTile &rows, const Chunk &chunk) {
  auto type = cast<attn::WholeTensorType>(op.getType());
  const TensorParameter taps = frame.input(stored->lookup(op.getTaps()));
  int64_t count = *taps.type.staticDim(0), channels = *type.staticDim(3);
  auto [grid, side, centre, direction] = TapGeometry::of(op, count);
  // taps[j, h·C + c]: heads as the value has them.
  Value head = rows.headIn(b, type.dim(1), /*asColumn=*/true);
  Value channel = b.add(b.mul(head, b.i32(channels)), chunk.start(b));
  // (One channel is a tile of one column.)
  Value lane = b.row(b.range(channels == 1 ? 1 : chunk.width));
  Value inside = channels == 1 ? Value() : chunk.inside(b), mask = inside ? b.row(inside) : Value();
  Value sum;
  int64_t reach = std::abs(direction) * centre;
  Value surrounded = grid && reach ? withSurroundings(op, rows, chunk, reach) : Value();
  // The row's place there, for the tap of the token itself.
  Value place;
  if (surrounded) {
    Value row = b.range(rows.count), line = b.div(row, b.i32(rows.columns));
    place = b.add(b.mul(line, b.i32(2 * reach)), b.add(row, b.i32(reach * (rows.columns + 2 * reach) + reach)));
  }
  auto tap = [&](int64_t down, int64_t right) -> Value {
    if (!surrounded || (!down && !right))
      return neighbours(op.getSource(), op, rows, chunk, down, right);
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
  if (surrounded && rows.inside) // (Rows past the rectangle took anything.)
    sum = b.select(b.column(rows.inside), sum, b.f32(0));
  return b.cast(sum, type.getElementType());
}

} // namespace weft
