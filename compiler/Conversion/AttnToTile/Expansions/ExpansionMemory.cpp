// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How an expansion's values come to its kernel, change their form there, and leave it (see ExpansionKernel.h).
#include "compiler/Conversion/AttnToTile/Expansions/ExpansionKernel.h"
#include "compiler/Conversion/AttnToTile/Rows/RowTile.h"

using namespace mlir;

namespace weft {

/// What the axes of a tile are.
enum Axis : int64_t { Token, Head, Channel };

Value permuteAxes(TileBuilder &b, Value value, ArrayRef<int32_t> order) {
  SmallVector<int64_t> shape;
  for (int32_t axis : order)
    shape.push_back(TileBuilder::shapeOf(value)[axis]);
  return tile::PermuteOp::create(b, RankedTensorType::get(shape, TileBuilder::elementOf(value)), value, order);
}

/// `vector` along `axis` of `rank`.
Value ExpansionKernel::along(Value vector, int64_t axis, int64_t rank) {
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis)
      vector = b.expand(vector, i);
  return vector;
}

// --- memory ---

// `order` says what each axis of the tile is.
Value ExpansionKernel::address(const TensorParameter &tensor, const HeadPiece &piece, const Chunk &chunk,
                               ArrayRef<int64_t> order, int64_t heads) {
  Value pointer = tensor.pointer;
  auto move = [&](Value index, Value stride) {
    Value step = b.cast(index, b.getI64Type());
    pointer = b.addPtr(pointer, stride ? b.mul(step, stride) : step);
  };
  move(batch, tensor.strides[0]);
  if (head)
    move(head, tensor.strides[1]);
  if (piece.first)
    move(b.i64(piece.first), tensor.strides[1]);
  move(firstToken, tensor.strides[2]);
  if (chunk.first)
    move(b.i64(chunk.first), {});
  const int64_t sizes[] = {tiling.tokens, heads, chunk.width};
  Value offset;
  SmallVector<int64_t> shape;
  for (auto [axis, what] : llvm::enumerate(order)) {
    Value step = b.range(sizes[what]);
    if (what != Channel)
      step = b.mul(step, b.cast(tensor.strides[what == Token ? 2 : 1], b.getI32Type()));
    step = along(step, axis, order.size());
    offset = offset ? b.add(offset, step) : step;
    shape.push_back(sizes[what]);
  }
  return b.addPtr(b.broadcast(pointer, shape), offset);
}

Value ExpansionKernel::exists(const HeadPiece &piece, ArrayRef<int64_t> order, int64_t heads) {
  Value mask;
  for (auto [axis, what] : llvm::enumerate(order)) {
    if (what == Channel || (what == Head && piece.valid == heads))
      continue;
    Value inside =
        what == Token ? b.less(b.range(tiling.tokens), tokensLeft) : b.less(b.range(heads), b.i32(piece.valid));
    inside = along(inside, axis, order.size());
    mask = mask ? b.both(mask, inside) : inside;
  }
  return mask;
}

/// The axes of a value in memory, as a program reads them: of one head there is no axis of heads.
static SmallVector<int64_t> axesOf(bool byHead) {
  return byHead ? SmallVector<int64_t>{Token, Channel} : SmallVector<int64_t>{Token, Head, Channel};
}

const ExpansionTiles &ExpansionKernel::loadSource(Value source, bool asRows) {
  auto [found, inserted] = loaded.try_emplace({source.getAsOpaquePointer(), asRows});
  if (!inserted)
    return found->second;
  const TensorParameter tensor = frame.input(stored.at(source));
  Tiles tiles{asRows, {}};
  int64_t size = channels(source);
  // Maps take as many heads a piece as a product's sums have columns.
  bool mapped =
      llvm::any_of(source.getUsers(), [&](Operation *user) { return isa<attn::MapOp>(user) && expansion.has(user); });
  for (const HeadPiece &piece : pieces(source)) {
    int64_t heads = mapped && !asRows ? piece.columns() : piece.width;
    SmallVector<int64_t> order = axesOf(expansion.byHead());
    if (asRows) {
      for (const Chunk &chunk : channelChunks(size)) {
        Value tile = b.load(address(tensor, piece, chunk, order, heads), exists(piece, order, heads));
        tiles.tiles.push_back(b.reshape(tile, {tiling.tokens * heads, chunk.width}));
      }
      continue;
    }
    Value tile = b.load(address(tensor, piece, {0, size, size}, order, heads), exists(piece, order, heads));
    tiles.tiles.push_back(b.reshape(permuteAxes(b, tile, {0, 2, 1}), {tiling.tokens * size, heads}));
  }
  return found->second = tiles;
}

void ExpansionKernel::store(const TensorParameter &output, Value value) {
  int64_t size = channels(value);
  const Tiles &tiles = compute(value);
  const auto *tile = tiles.tiles.begin();
  SmallVector<int64_t> order = axesOf(expansion.byHead());
  Type stored = output.type.getElementType();
  for (const HeadPiece &piece : pieces(value)) {
    if (!tiles.asRows) {
      Value signal = b.reshape(b.cast(*tile++, stored), {tiling.tokens, size, piece.columns()});
      Value rows = permuteAxes(b, firstHeads(signal, piece), {0, 2, 1});
      b.store(address(output, piece, {0, size, size}, order, piece.width), rows, exists(piece, order, piece.width));
      continue;
    }
    for (const Chunk &chunk : channelChunks(size)) {
      Value rows = b.cast(*tile++, stored);
      if (order.size() == 3)
        rows = b.reshape(rows, {tiling.tokens, piece.width, chunk.width});
      b.store(address(output, piece, chunk, order, piece.width), rows, exists(piece, order, piece.width));
    }
  }
}

// --- changes of form ---

SmallVector<HeadPiece> ExpansionKernel::pieces(Value value) const {
  return expansion.byHead() ? SmallVector<HeadPiece>{{0, 1, 1}} : headPieces(*wholeType(value).staticDim(1));
}

SmallVector<Chunk> ExpansionKernel::chunksOfRows(Value value) const {
  int64_t size = channels(value);
  return expansion.comesAsRows(value) ? channelChunks(size) : SmallVector<Chunk>{{0, size, size}};
}

/// The heads of a piece out of the columns of a product's sums.
Value ExpansionKernel::firstHeads(Value signal, const HeadPiece &piece) {
  SmallVector<int64_t> shape(TileBuilder::shapeOf(signal));
  if (shape[2] == piece.width)
    return signal;
  Value halves = permuteAxes(b, b.reshape(signal, {shape[0], shape[1], 2, piece.width}), {0, 1, 3, 2});
  auto half = RankedTensorType::get({shape[0], shape[1], piece.width}, TileBuilder::elementOf(signal));
  return tile::SplitOp::create(b, half, half, halves).getLhs();
}

SmallVector<Value> ExpansionKernel::signals(Value value) {
  SmallVector<Value> &signals = signal[value.getAsOpaquePointer()];
  if (!signals.empty())
    return signals;
  const Tiles tiles = compute(value);
  for (auto [piece, tile] : llvm::zip(pieces(value), tiles.tiles)) {
    int64_t heads = TileBuilder::shapeOf(tile)[1];
    Value signal = b.reshape(b.cast(tile, element), {tiling.tokens, channels(value), heads});
    signal = firstHeads(signal, piece);
    // A map of a head that does not exist may be anything.
    if (piece.valid < piece.width && paddingOf(expansion, value, headAxis) != attn::Padding::Zero) {
      Value heads = along(b.less(b.range(piece.width), b.i32(piece.valid)), 2, 3);
      signal = b.select(b.broadcast(heads, TileBuilder::shapeOf(signal)), signal,
                        b.full(TileBuilder::shapeOf(signal), 0, element));
    }
    signals.push_back(signal);
  }
  return signals;
}

ExpansionTiles ExpansionKernel::rowsOf(Value value) {
  if (!isInside(value))
    return loadSource(value, /*asRows=*/true);
  Tiles tiles = compute(value);
  if (tiles.asRows)
    return tiles;
  Tiles rows{true, {}};
  for (auto [piece, signal] : llvm::zip(pieces(value), signals(value)))
    rows.tiles.push_back(b.reshape(permuteAxes(b, signal, {0, 2, 1}), {tiling.tokens * piece.width, channels(value)}));
  turned.append(rows.tiles);
  return rows;
}

/// Appends the chunks of [rows, channels], both powers of two, that are at most as wide as `width`.
static void cut(TileBuilder &b, Value tile, int64_t width, SmallVector<Value> &chunks) {
  ArrayRef<int64_t> shape = TileBuilder::shapeOf(tile);
  if (shape[1] <= width) {
    chunks.push_back(tile);
    return;
  }
  auto half = RankedTensorType::get({shape[0], shape[1] / 2}, TileBuilder::elementOf(tile));
  auto halves =
      tile::SplitOp::create(b, half, half, permuteAxes(b, b.reshape(tile, {shape[0], 2, shape[1] / 2}), {0, 2, 1}));
  cut(b, halves.getLhs(), width, chunks);
  cut(b, halves.getRhs(), width, chunks);
}

ExpansionTiles ExpansionKernel::chunkedRowsOf(Value value) {
  Tiles rows = rowsOf(value);
  if (expansion.comesAsRows(value))
    return rows;
  Tiles chunked{true, {}};
  for (Value tile : rows.tiles)
    cut(b, tile, channelChunks(channels(value)).front().width, chunked.tiles);
  turned.append(chunked.tiles);
  return chunked;
}

// Of four, [a, c] beside [b, d], whose row-major order is a, b, c, d.
Value joined(TileBuilder &b, ArrayRef<Value> tensors) {
  if (tensors.size() == 1)
    return tensors.front();
  SmallVector<Value> even, odd;
  for (auto [i, tensor] : llvm::enumerate(tensors))
    (i % 2 ? odd : even).push_back(tensor);
  Value left = joined(b, even), right = joined(b, odd);
  SmallVector<int64_t> shape(TileBuilder::shapeOf(left));
  shape.push_back(2);
  return tile::JoinOp::create(b, RankedTensorType::get(shape, TileBuilder::elementOf(left)), left, right);
}

Value ExpansionKernel::moved(Value signal, int64_t move) {
  return tile::ShiftOp::create(b, signal.getType(), signal, b.getI32IntegerAttr(1), b.getI32IntegerAttr(-move));
}

Value ExpansionKernel::operandOf(Value signal, const Moves &moves, double none) {
  ArrayRef<int64_t> shape = TileBuilder::shapeOf(signal);
  SmallVector<Value> all;
  for (std::optional<int64_t> move : moves)
    all.push_back(move ? moved(signal, *move) : b.full(shape, none, element));
  return b.reshape(joined(b, all), {shape[0] * shape[1], shape[2] * int64_t(moves.size())});
}

} // namespace weft
