// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Tiles of stored tensors: addresses, masks, loads and stores. What is computed on tiles is in RowCompute.cpp.
#include "compiler/Conversion/AttnToTile/Rows/RowTile.h"
#include "compiler/Conversion/AttnToTile/Kernel/Numbers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft {

SmallVector<Chunk> chunksOf(int64_t size, int64_t most) {
  SmallVector<Chunk> chunks;
  for (int64_t first = 0; first < size;) {
    int64_t left = size - first;
    int64_t width = left >= 16 ? std::min<int64_t>(most, int64_t(1) << llvm::Log2_64(left)) : 16;
    chunks.push_back({first, width, std::min(width, left)});
    first += width;
  }
  return chunks;
}

Value Chunk::inside(TileBuilder &b) const {
  if (limit)
    return b.less(b.add(start(b), b.range(width)), b.i32(limit));
  return valid < width ? b.less(b.range(width), b.i32(valid)) : Value();
}

/// The axis of the row space that axis `i` of a tensor stands for, or nothing where it is repeated along it.
static std::optional<RowAxis> rowSpaceAxis(attn::WholeTensorType type, unsigned i, bool channels, bool oneToken) {
  auto axis = static_cast<RowAxis>(i + (channels ? 4 : 3) - type.getRank());
  if (type.dim(i) == "1" && !(axis == tokenAxis && oneToken))
    return std::nullopt;
  return axis;
}

bool hasAxis(attn::WholeTensorType type, RowAxis axis, bool channels, bool oneToken) {
  for (unsigned i = 0; i < type.getRank(); ++i)
    if (rowSpaceAxis(type, i, channels, oneToken) == axis)
      return true;
  return false;
}

/// How many of the tile's heads share one of a tensor with `heads` heads.
static int64_t sharing(const RowTile &rows, StringRef heads) { return attn::headGroup(rows.heads, heads).value_or(1); }

bool RowTile::tellsApart(StringRef heads) const { return member && heads != "1" && sharing(*this, heads) % packed; }

Value RowTile::firstHeadIn(TileBuilder &b, StringRef heads) const {
  int64_t group = sharing(*this, heads);
  if (heads == "1")
    return b.i32(0);
  return group == 1 ? head : b.div(head, b.i32(group));
}

Value RowTile::headsBeyond(TileBuilder &b, StringRef heads) const {
  if (!tellsApart(heads))
    return {};
  int64_t group = sharing(*this, heads);
  return group == 1 ? member : b.sub(b.div(b.add(member, head), b.i32(group)), firstHeadIn(b, heads));
}

Value RowTile::headIn(TileBuilder &b, StringRef heads, bool asColumn) const {
  if (!tellsApart(heads))
    return firstHeadIn(b, heads);
  Value each = headOfRow(b, asColumn);
  int64_t group = sharing(*this, heads);
  return group == 1 ? each : b.div(each, b.i32(group));
}

/// Whether a tile's rows have different heads of a tensor.
static bool tellsHeadsApart(attn::WholeTensorType type, const RowTile &rows, bool channels) {
  for (unsigned i = 0; i < type.getRank(); ++i)
    if (rowSpaceAxis(type, i, channels, /*oneToken=*/false) == headAxis)
      return rows.tellsApart(type.dim(i));
  return false;
}

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
  bool byRow = hasAxis(type, tokenAxis, chunk, rows.isOneToken()) || tellsHeadsApart(type, rows, chunk);
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

Value Puller::load(Value outside, attn::WholeTensorType type, const RowTile &rows, const Chunk *chunk) {
  TensorParameter tensor = frame.input(outside);
  if (chunk && tensor.type.getRank() == 4 && type.dim(2) == "1" && tensor.type.dim(2) != "1") {
    // Partial sums of what has one row: added here.
    RowTile parts = rows;
    parts.tokens.clear();
    int64_t count = *tensor.type.staticDim(2);
    if (tellsHeadsApart(tensor.type, rows, chunk)) {
      parts.inside = parts.base = parts.scalarStart = parts.offsets = Value();
      Value sum;
      for (int64_t i = 0; i < count; ++i) {
        parts.token = b.full({rows.count}, i, b.getI32Type());
        Value term = b.load(pointers(tensor, parts, chunk), existing(b, tensor.type, parts, chunk));
        sum = sum ? b.add(sum, term) : term;
      }
      return b.cast(sum, type.getElementType());
    }
    parts.count = count;
    parts.member = Value();
    parts.token = b.range(parts.count);
    parts.inside = parts.base = parts.scalarStart = parts.offsets = Value();
    Value terms = b.load(pointers(tensor, parts, chunk), existing(b, tensor.type, parts, chunk));
    return b.cast(b.row(b.reduceSum(terms, 0)), type.getElementType());
  }
  return b.load(pointers(tensor, rows, chunk), existing(b, tensor.type, rows, chunk));
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

Puller::Key Puller::keyOf(Value value, const RowTile &rows, const Chunk *chunk) {
  if (!chunk || !hasAxis(wholeType(value), channelAxis, /*channels=*/true, rows.isOneToken()))
    return {value, rows.token, 0};
  return {value, rows.token, chunk->first, chunk->base};
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

/// The one row that a value of a single row has, whatever the rows of the tile are: once for each of them where these
/// have different heads of it (`byHead`).
static RowTile singleRow(TileBuilder &b, const RowTile &rows, bool byHead) {
  RowTile one = rows;
  one.single = true;
  if (!byHead) {
    one.count = 1;
    one.member = Value();
  }
  one.token = b.full({one.count}, 0, b.getI32Type());
  one.inside = one.base = one.scalarStart = one.offsets = Value();
  one.tokens.clear();
  return one;
}

Value Puller::part(Value value, const RowTile &rows, const Chunk *chunk) {
  if (Value tile = lookup(keyOf(value, rows, chunk)))
    return tile;
  auto type = cast<attn::WholeTensorType>(value.getType());
  auto outside = stored->find(value);
  if (outside != stored->end())
    return load(outside->second, type, rows, chunk);
  if (isNumber(value)) {
    Value tile = b.broadcast(b.cast(numberOf(frame, *stored, value), type.getElementType()), {1});
    return chunk ? b.column(tile) : tile;
  }
  bool byHead = tellsHeadsApart(type, rows, chunk);
  if (!hasAxis(type, tokenAxis, chunk, rows.isOneToken()) && (byHead ? !rows.single : rows.count != 1))
    return part(value, singleRow(b, rows, byHead), chunk);
  return compute(value, rows, chunk);
}

Value Puller::compute(Value value, const RowTile &rows, const Chunk *chunk) {
  auto refused = [&]() -> Value {
    frame.refuse(value);
    SmallVector<int64_t> shape{rows.count};
    if (chunk)
      shape.push_back(chunk->width);
    return b.full(shape, 0, wholeType(value).getElementType());
  };
  Operation *op = value.getDefiningOp();
  if (!isRowLocal(op))
    return refused();
  // One channel is a tile of one column whichever channels are asked for: what goes with it (a gain, taps) has no
  // others.
  const Chunk only{0, 1, 1};
  if (auto type = wholeType(value); chunk && type.getRank() == 4 && type.dim(3) == "1")
    chunk = &only;
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](attn::MapOp map) { return this->map(map, value, rows, chunk); })
      .Case([&](attn::SumOp sum) { return sumOfChannels(sum, rows, chunk); })
      .Case([&](attn::RopeOp rope) { return this->rope(rope, rows, *chunk); })
      .Case([&](attn::RmsNormOp norm) { return rmsNorm(norm, rows, *chunk); })
      .Case([&](attn::ShiftOp shift) { return this->shift(shift, rows, chunk); })
      .Case([&](attn::SpreadOp spread) { return this->spread(spread, rows, *chunk); })
      .Case([&](attn::ConvolveOp convolve) { return this->convolve(convolve, rows, *chunk); })
      .Default([&](Operation *) { return refused(); });
}

} // namespace weft
