// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Puller.h. Tiles of stored tensors: addresses, masks, loads and stores; where they are 0 is in Padding.cpp.
#include "compiler/Conversion/AttnToTile/Rows/Puller.h"
#include "compiler/Conversion/AttnToTile/Kernel/Numbers.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

Value Puller::pointers(const TensorParameter &tensor, const RowTile &rows, const Chunk *chunk) {
  attn::WholeTensorType type = tensor.type;
  Value scalar = tensor.pointer, tile;
  auto moveScalar = [&](Value index, Value stride) {
    Value step = b.cast(index, b.getI64Type());
    scalar = b.addPtr(scalar, stride ? b.mul(step, stride) : step);
  };
  auto moveTile = [&](Value offset) { tile = tile ? b.add(tile, offset) : offset; };
  for (unsigned i = 0; i < type.getRank(); ++i) {
    Value stride = i < tensor.strides.size() ? tensor.strides[i] : Value();
    std::optional<RowAxis> axis = rowSpaceAxis(type, i, chunk, rows.isOneToken());
    if (!axis)
      continue;
    switch (*axis) {
    case batchAxis:
      moveScalar(rows.batch, stride);
      break;
    case headAxis:
      moveScalar(rows.firstHeadIn(b, type.dim(i)), stride);
      if (Value beyond = rows.headsBeyond(b, type.dim(i))) {
        Value offset = b.mul(beyond, b.cast(stride, b.getI32Type()));
        moveTile(chunk ? b.column(offset) : offset);
      }
      break;
    case tokenAxis: {
      if (rows.base)
        moveScalar(rows.base, stride);
      if (rows.scalarStart)
        moveScalar(rows.scalarStart, stride);
      Value tokens = rows.scalarStart ? rows.offsets : rows.token;
      Value offset = stride ? b.mul(tokens, b.cast(stride, b.getI32Type())) : tokens;
      moveTile(chunk ? b.column(offset) : offset);
      break;
    }
    case channelAxis:
      if (chunk->base)
        scalar = b.addPtr(scalar, b.cast(chunk->base, b.getI64Type()));
      if (chunk->first)
        scalar = b.addPtr(scalar, b.i64(chunk->first));
      moveTile(b.row(b.range(chunk->width)));
      break;
    }
  }
  bool byRow = hasAxis(type, tokenAxis, chunk, rows.isOneToken()) || rows.tellsHeadsApart(type, chunk);
  SmallVector<int64_t> shape{byRow ? rows.count : 1};
  if (chunk)
    shape.push_back(hasAxis(type, channelAxis, chunk, rows.isOneToken()) ? chunk->width : 1);
  if (!tile)
    return b.broadcast(scalar, shape);
  return b.addPtr(b.broadcast(scalar, shape), b.broadcast(tile, shape));
}

/// Which elements of a tile exist, [count or 1, width or 1] with channels and [count] without; null for all.
static Value existing(TileBuilder &b, attn::WholeTensorType type, const RowTile &rows, const Chunk *chunk) {
  Value mask;
  if (rows.inside && hasAxis(type, tokenAxis, chunk, rows.isOneToken()))
    mask = chunk ? b.column(rows.inside) : rows.inside;
  Value channels = chunk && hasAxis(type, channelAxis, chunk, rows.isOneToken()) ? chunk->inside(b) : Value();
  if (channels)
    mask = mask ? b.both(mask, b.row(channels)) : b.row(channels);
  return mask;
}

Value Puller::exists(const RowTile &rows, const Chunk *chunk) {
  Value mask = rows.inside && chunk ? b.column(rows.inside) : rows.inside;
  Value channels = chunk ? chunk->inside(b) : Value();
  if (!channels)
    return mask;
  return mask ? b.both(mask, b.row(channels)) : b.row(channels);
}

Value Puller::load(const TensorParameter &tensor, const RowTile &rows, const Chunk *chunk) {
  return b.load(pointers(tensor, rows, chunk), existing(b, tensor.type, rows, chunk));
}

Value Puller::load(Value outside, attn::WholeTensorType type, const RowTile &rows, const Chunk *chunk) {
  TensorParameter tensor = frame.input(outside);
  if (chunk && tensor.type.getRank() == 4 && type.dim(2) == "1" && tensor.type.dim(2) != "1") {
    // Partial sums of what has one row: added here.
    int64_t count = *tensor.type.staticDim(2);
    if (rows.tellsHeadsApart(tensor.type, chunk)) {
      Value sum;
      for (int64_t i = 0; i < count; ++i) {
        RowTile parts = rows.anyPositions(b.full({rows.count}, i, b.getI32Type()), {});
        parts.tokens.clear();
        Value term = load(tensor, parts, chunk);
        sum = sum ? b.add(sum, term) : term;
      }
      return b.cast(sum, type.getElementType());
    }
    RowTile parts = rows.anyPositions(b.range(count), {});
    parts.count = count;
    parts.member = Value();
    parts.tokens.clear();
    Value terms = load(tensor, parts, chunk);
    return b.cast(b.row(b.reduceSum(terms, 0)), type.getElementType());
  }
  return load(tensor, rows, chunk);
}

/// Of a tile of a value with one channel, that channel.
static Value onlyChannel(TileBuilder &b, Value tile) {
  auto shape = TileBuilder::shapeOf(tile);
  Value first = b.row(b.less(b.range(shape[1]), b.i32(1)));
  return b.column(b.reduceSum(b.select(first, tile, b.full(shape, 0, TileBuilder::elementOf(tile))), 1));
}

void Puller::store(const TensorParameter &tensor, const RowTile &rows, const Chunk *chunk, Value tile) {
  Value address = pointers(tensor, rows, chunk);
  if (chunk && TileBuilder::shapeOf(address)[1] < TileBuilder::shapeOf(tile)[1])
    tile = onlyChannel(b, tile);
  Value value = b.broadcast(b.cast(tile, tensor.type.getElementType()), TileBuilder::shapeOf(address));
  b.store(address, value, existing(b, tensor.type, rows, chunk));
}

void Puller::storeRows(const TensorParameter &output, Value value, const RowTile &rows, ArrayRef<Chunk> chunks,
                       const RowTile &places) {
  if (output.type.getRank() == 3)
    store(output, places, nullptr, pullRow(value, rows, Zeros::Nowhere));
  for (const Chunk &chunk : chunks)
    store(output, places, &chunk, pull(value, rows, chunk, Zeros::Nowhere));
}

void Puller::storeAll(ValueRange values, const RowTile &rows, const ChannelPart *part, const RowTile *places) {
  const RowTile &stored = places ? *places : rows;
  for (Value value : values) {
    TensorParameter output = frame.output(wholeType(value));
    SmallVector<Chunk> whole;
    if (output.type.getRank() == 4)
      whole = chunksOf(*output.type.staticDim(3), widest);
    if (!part) {
      storeRows(output, value, rows, whole, stored);
    } else if (!whole.empty() && output.type.staticDim(3) == part->channels) {
      storeRows(output, value, rows, part->chunks, stored);
    } else {
      auto once = scf::IfOp::create(b, part->isFirst, /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(once.thenBlock());
      storeRows(output, value, rows, whole, stored);
    }
  }
}

void Puller::provide(Value value, const RowTile &rows, int64_t firstChannel, Value tile, Value base) {
  attn::WholeTensorType type = wholeType(value);
  if (type.getRank() == 4 && type.dim(3) == "1" && TileBuilder::shapeOf(tile).size() == 2 &&
      TileBuilder::shapeOf(tile)[1] > 1)
    tile = onlyChannel(b, tile);
  made.push_back({{value, rows.token, firstChannel, base}, tile, b.getInsertionBlock()});
}

Value Puller::lookup(const Key &key) const {
  for (const Entry &entry : llvm::reverse(made)) {
    if (!(entry.key == key))
      continue;
    for (Block *block = b.getInsertionBlock(); block;
         block = block->getParentOp() ? block->getParentOp()->getBlock() : nullptr)
      if (block == entry.block)
        return entry.tile;
  }
  return {};
}

Value Puller::known(Value value, const RowTile &rows, const Chunk *chunk) const {
  // What is repeated along the channels is one tile for all chunks.
  if (!chunk || !hasAxis(wholeType(value), channelAxis, /*channels=*/true, rows.isOneToken()))
    return lookup({value, rows.token, 0});
  return lookup({value, rows.token, chunk->first, chunk->base});
}

Value Puller::knownOfRows(Value value, const RowTile &rows, RowFact fact) const {
  return lookup({value, rows.token, fact});
}

Value Puller::part(Value value, const RowTile &rows, const Chunk *chunk) {
  if (Value tile = known(value, rows, chunk))
    return tile;
  attn::WholeTensorType type = wholeType(value);
  if (Value outside = stored.find(value))
    return load(outside, type, rows, chunk);
  if (isNumber(value)) {
    Value tile = b.broadcast(b.cast(numberOf(frame, stored, value), type.getElementType()), {1});
    return chunk ? b.column(tile) : tile;
  }
  bool byHead = rows.tellsHeadsApart(type, chunk);
  if (!hasAxis(type, tokenAxis, chunk, rows.isOneToken()) && (byHead ? !rows.single : rows.count != 1))
    return part(value, rows.onlyToken(b, byHead), chunk);
  return compute(value, rows, chunk);
}

Value Puller::compute(Value value, const RowTile &rows, const Chunk *chunk) {
  attn::WholeTensorType type = wholeType(value);
  Operation *op = value.getDefiningOp();
  if (!isRowLocal(op)) {
    frame.refuse(value);
    SmallVector<int64_t> shape{rows.count};
    if (chunk)
      shape.push_back(chunk->width);
    return b.full(shape, 0, type.getElementType());
  }
  // One channel is a tile of one column whichever channels are asked for: what goes with it (a gain, taps) has no
  // others.
  const Chunk only{0, 1, 1};
  if (chunk && type.getRank() == 4 && type.dim(3) == "1")
    chunk = &only;
  return cast<RowLocalOpInterface>(op).pull(cast<OpResult>(value), *this, rows, chunk);
}

} // namespace weft
