// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See LowerSum.h.
#include "compiler/Conversion/AttnToTile/Sequence/LowerSum.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "compiler/Conversion/AttnToTile/Sequence/LowerRows.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

/// Whether a sum is one over tokens, at least. (What has one token by its type, as parts of a weight's gradient may, has
/// none to add.)
static bool addsTokens(attn::SumOp op) {
  attn::WholeTensorType from = wholeType(op.getSource()), to = op.resultAtSourceRank();
  return from.getRank() == 4 && from.staticDim(3) && from.dim(2) != "1" && to.dim(2) == "1";
}

/// [B, H', parts, D'], what a sum over tokens, and of channels where it is one, leaves to add: batches, heads where no
/// known number of them is added up, and parts.
static attn::WholeTensorType partsOf(attn::SumOp op) {
  attn::WholeTensorType from = wholeType(op.getSource()), to = op.resultAtSourceRank().withDim(0, from.dim(0));
  if (!attn::headGroup(from.dim(1), to.dim(1)))
    to = to.withDim(1, from.dim(1));
  return to.withDim(2, std::to_string(sumParts)).withElement(Float32Type::get(op.getContext()));
}

bool sumsTokens(attn::SumOp op) {
  attn::WholeTensorType to = wholeType(op.getResult());
  return addsTokens(op) && to.getRank() == 4 &&
         to.withDim(2, std::to_string(sumParts)).getDims() == partsOf(op).getDims() &&
         to.dim(3) == wholeType(op.getSource()).dim(3);
}

bool sumsTokensAndMore(attn::SumOp op) { return addsTokens(op) && !sumsTokens(op); }

/// f32 [1, width]: the sum of a tile's rows; of all its elements, [1, 1], where the result has one channel.
static Value tileSum(TileBuilder &b, Value tile, bool ofChannels) {
  Value sum = b.reduceSum(tile, 0);
  return b.row(ofChannels ? b.broadcast(b.reduceSum(sum, 0), {1}) : sum);
}

/// [B, H, N, D] to `partsOf` it: part i has the rows from i cdiv(N, parts) on, of every head that shares.
static Value tokenSums(attn::SumOp op, StoredValues &stored) {
  attn::WholeTensorType from = wholeType(op.getSource()), to = partsOf(op);
  KernelFrame frame(op, "sum_tokens");
  TileBuilder &b = frame.b;
  RowNeeds needs = needsOf(op.getSource(), stored);
  Puller puller(frame, stored, needs.widest);
  int64_t channels = *from.staticDim(3), group = *attn::headGroup(from.dim(1), to.dim(1));
  int64_t count = rowsOfTile(channels);
  SmallVector<Chunk> chunks = chunksOf(channels, needs.widest);
  if (channels == 1) // A tile of one column.
    chunks = {{0, 1, 1}};
  const bool ofChannels = from.dim(3) != to.dim(3);
  const Zeros zeros = ofChannels ? Zeros::Everywhere : Zeros::Rows;
  Value length = frame.size(from.dim(2)), part = b.programId(tile::Axis::X);
  Value partLength = b.ceilDiv(length, sumParts);
  Value begin = b.mul(part, partLength), end = b.min(b.add(begin, partLength), length);
  SmallVector<Value> sums;
  for (const Chunk &chunk : chunks)
    sums.push_back(b.zeros({count, chunk.width}));
  // Tiles of all heads of a group after one another.
  Value tiles = b.ceilDiv(partLength, count);
  auto loop = scf::ForOp::create(b, b.i32(0), b.mul(tiles, b.i32(group)), b.i32(1), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar(), tile = i, member = b.i32(0);
    if (group > 1) {
      member = b.div(i, tiles);
      tile = b.sub(i, b.mul(member, tiles));
    }
    RowTile rows = partRows(b, from, b.add(begin, b.mul(tile, b.i32(count))), count, end);
    rows.head = b.add(b.mul(rows.head, b.i32(group)), member);
    SmallVector<Value> next;
    for (auto [chunk, sum] : llvm::zip(chunks, loop.getRegionIterArgs()))
      next.push_back(b.add(sum, b.cast(puller.pull(op.getSource(), rows, chunk, zeros), b.getF32Type())));
    scf::YieldOp::create(b, next);
  }
  TensorParameter output = frame.output(to);
  RowTile one = programRows(b, to, part, 1, b.i32(sumParts));
  one.inside = Value();
  SmallVector<Value> rows =
      llvm::map_to_vector(loop.getResults(), [&](Value sum) { return tileSum(b, sum, ofChannels); });
  if (ofChannels) {
    for (Value row : llvm::drop_begin(rows))
      rows.front() = b.add(rows.front(), row);
    chunks = {{0, 1, 1}};
  }
  for (auto [chunk, row] : llvm::zip(chunks, rows))
    puller.store(output, one, &chunk, row);
  return frame.finish({{std::to_string(sumParts), to.dim(1).str(), to.dim(0).str()}, 4, 2})[0];
}

namespace {
/// Each axis of a sum's source is one of the result times one that is summed away; either may be 1.
struct SumAxes {
  SmallVector<Value> kept, added; ///< their sizes, i32
  Value keptCount, addedCount;    ///< and products
};
} // namespace

static Value productOf(TileBuilder &b, ArrayRef<Value> sizes) {
  Value product = b.i32(1);
  for (Value size : sizes)
    product = b.mul(product, size);
  return product;
}

static SumAxes axesOf(attn::SumOp op, KernelFrame &frame) {
  TileBuilder &b = frame.b;
  attn::WholeTensorType from = wholeType(op.getSource()), aligned = op.resultAtSourceRank();
  SumAxes axes;
  for (int64_t i = 0; i < from.getRank(); ++i) {
    StringRef size = from.dim(i), left = aligned.dim(i);
    axes.kept.push_back(frame.size(left));
    if (size == left)
      axes.added.push_back(b.i32(1));
    else if (left == "1")
      axes.added.push_back(frame.size(size));
    else
      axes.added.push_back(b.i32(*attn::headGroup(size, left)));
  }
  axes.keptCount = productOf(b, axes.kept);
  axes.addedCount = productOf(b, axes.added);
  return axes;
}

/// The offsets in a tensor of flat indices over `sizes`, an index's step along each axis being so many elements of it:
/// 1 where `steps` is empty.
static Value offsetsOf(TileBuilder &b, const TensorParameter &tensor, Value flat, ArrayRef<Value> sizes,
                       ArrayRef<Value> steps) {
  Value offset;
  for (int64_t i = sizes.size() - 1; i >= 0; --i) {
    if (TileBuilder::constantOf(sizes[i]) == 1)
      continue;
    Value index = i == 0 ? flat : b.rem(flat, sizes[i]);
    flat = i == 0 ? flat : b.div(flat, sizes[i]);
    if (!steps.empty())
      index = b.mul(index, steps[i]);
    Value step = b.cast(index, b.getI64Type());
    if (static_cast<size_t>(i) < tensor.strides.size())
      step = b.mul(step, tensor.strides[i]);
    offset = offset ? b.add(offset, step) : step;
  }
  return offset ? offset : b.i64(0);
}

namespace {
/// What a program of a sum adds up at a time, of neighbours in memory as many as there are:
///
///   Rows     results that follow one another, as of a table of pairs, and one term after another of each
///   Lines    terms that follow one another, of one result
///   Columns  a few results that follow one another, as of the parts of a gain's gradient, and many terms of each
enum class SumTiles : uint8_t { Rows, Lines, Columns };

/// Rows of the innermost axis of a sum's source, `count` of them `width` wide.
struct SumTile {
  static constexpr int64_t elements = 1024;

  int64_t axis, count, width;

  static SumTile of(attn::WholeTensorType from) {
    int64_t axis = innermostAxis(from), width = elements / 4;
    if (std::optional<int64_t> size = from.staticDim(axis))
      width = std::min<int64_t>(elements, llvm::bit_ceil(uint64_t(*size)));
    return {axis, elements / width, width};
  }
  /// The last axis that has more than one position by its type.
  static int64_t innermostAxis(attn::WholeTensorType type) {
    int64_t axis = type.getRank() - 1;
    while (axis > 0 && type.dim(axis) == "1")
      --axis;
    return axis;
  }
  /// `sizes` of the other axes.
  SmallVector<Value> others(TileBuilder &b, ArrayRef<Value> sizes) const {
    SmallVector<Value> found(sizes);
    found[axis] = b.i32(1);
    return found;
  }
  /// Where the elements are whose places on the other axes and on the innermost one are those [count] and [width].
  Value offsets(TileBuilder &b, const TensorParameter &tensor, Value rows, Value columns) const {
    Value step = b.cast(columns, b.getI64Type());
    if (static_cast<size_t>(axis) < tensor.strides.size())
      step = b.mul(step, tensor.strides[axis]);
    return b.broadcast(b.add(b.column(b.broadcast(rows, {count})), b.row(step)), {count, width});
  }
};
} // namespace

/// Whether a tensor is known to have few elements: fewer than would give work to all of a GPU, a tile a program.
static bool isSmall(attn::WholeTensorType type) {
  uint64_t count = 1;
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (std::optional<int64_t> size = type.staticDim(axis))
      count = llvm::SaturatingMultiply<uint64_t>(count, *size);
    else
      return false;
  return count < 64 * SumTile::elements;
}

static SumTiles tilesOf(attn::SumOp op) {
  attn::WholeTensorType from = wholeType(op.getSource()), to = op.resultAtSourceRank();
  int64_t axis = SumTile::innermostAxis(from);
  if (from.dim(axis) != to.dim(axis))
    return SumTiles::Lines;
  return axis > 0 && to.dim(axis - 1) != "1" && !isSmall(to) ? SumTiles::Rows : SumTiles::Columns;
}

namespace {
/// A kernel that adds up tile by tile.
struct TiledSum {
  KernelFrame frame;
  TileBuilder &b;
  TensorParameter source;
  SumTile tile;
  SumAxes axes;

  TiledSum(attn::SumOp op, const StoredValues &stored)
      : frame(op, "sum"), b(frame.b), source(frame.input(stored.at(op.getSource()))),
        tile(SumTile::of(wholeType(op.getSource()))), axes(axesOf(op, frame)) {}
};
} // namespace

static void sumRows(attn::SumOp op, StoredValues &stored) {
  attn::WholeTensorType from = wholeType(op.getSource()), to = wholeType(op.getResult());
  TiledSum kernel(op, stored);
  auto &[frame, b, source, tile, axes] = kernel;
  const SmallVector<Value> others = tile.others(b, axes.kept);
  Value rows = b.add(b.mul(b.programId(tile::Axis::X), b.i32(tile.count)), b.range(tile.count));
  Value columns = b.add(b.mul(b.programId(tile::Axis::Y), b.i32(tile.width)), b.range(tile.width));
  Value rowsExist = b.column(b.less(rows, productOf(b, others)));
  Value inside = b.broadcast(b.both(rowsExist, b.row(b.less(columns, axes.kept[tile.axis]))), {tile.count, tile.width});
  Value offsets = tile.offsets(b, source, offsetsOf(b, source, rows, others, axes.added), columns);
  auto loop = scf::ForOp::create(b, b.i32(0), axes.addedCount, b.i32(1), b.zeros({tile.count, tile.width}));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value first = b.addPtr(source.pointer, offsetsOf(b, source, loop.getInductionVar(), axes.added, {}));
    Value terms = b.load(b.addPtr(first, offsets), inside);
    scf::YieldOp::create(b, b.add(loop.getRegionIterArg(0), b.cast(terms, b.getF32Type())));
  }
  TensorParameter output = frame.output(to);
  Value wide = b.cast(axes.kept[tile.axis], b.getI64Type());
  Value places = b.add(b.column(b.mul(b.cast(rows, b.getI64Type()), wide)), b.row(b.cast(columns, b.getI64Type())));
  b.store(b.addPtr(output.pointer, b.broadcast(places, {tile.count, tile.width})),
          b.cast(loop.getResult(0), to.getElementType()), inside);
  auto line = attn::WholeTensorType::get(from.getDims().slice(tile.axis, 1), from.getElementType());
  std::string blocks = blocksOf(op.resultAtSourceRank().withDim(tile.axis, "1"), tile.count);
  stored.record(ValueRange(op.getResult()), frame.finish({{blocks, blocksOf(line, tile.width), "1"}, 4, 2}));
}

static void sumLines(attn::SumOp op, StoredValues &stored) {
  attn::WholeTensorType to = wholeType(op.getResult());
  TiledSum kernel(op, stored);
  auto &[frame, b, source, tile, axes] = kernel;
  const SmallVector<Value> others = tile.others(b, axes.added);
  Value result = b.programId(tile::Axis::X), count = productOf(b, others), length = axes.added[tile.axis];
  Value first = b.addPtr(source.pointer, offsetsOf(b, source, result, axes.kept, axes.added));
  Value across = b.ceilDiv(length, tile.width), tiles = b.mul(across, b.ceilDiv(count, tile.count));
  auto loop = scf::ForOp::create(b, b.i32(0), tiles, b.i32(1), b.zeros({tile.count, tile.width}));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value number = loop.getInductionVar(), down = b.div(number, across);
    Value rows = b.add(b.mul(down, b.i32(tile.count)), b.range(tile.count));
    Value columns = b.add(b.mul(b.sub(number, b.mul(down, across)), b.i32(tile.width)), b.range(tile.width));
    Value inside = b.both(b.column(b.less(rows, count)), b.row(b.less(columns, length)));
    Value offsets = tile.offsets(b, source, offsetsOf(b, source, rows, others, {}), columns);
    Value terms = b.load(b.addPtr(first, offsets), b.broadcast(inside, {tile.count, tile.width}));
    scf::YieldOp::create(b, b.add(loop.getRegionIterArg(0), b.cast(terms, b.getF32Type())));
  }
  Value sum = b.broadcast(b.reduceSum(b.reduceSum(loop.getResult(0), 0), 0), {1});
  TensorParameter output = frame.output(to);
  b.store(b.broadcast(b.addPtr(output.pointer, result), {1}), b.cast(sum, to.getElementType()), {});
  stored.record(ValueRange(op.getResult()), frame.finish({{blocksOf(to, 1), "1", "1"}, 4, 2}));
}

/// Sixteen results a program, over what is added to each in steps of 64 terms. A single number is one program's.
static void sumColumns(attn::SumOp op, StoredValues &stored) {
  attn::WholeTensorType to = wholeType(op.getResult());
  KernelFrame frame(op, "sum");
  TileBuilder &b = frame.b;
  const TensorParameter source = frame.input(stored.at(op.getSource()));
  bool single = llvm::all_of(to.getDims(), [](StringAttr dim) { return dim.getValue() == "1"; });
  const int64_t kept = single ? 1 : 16, added = single ? 1024 : 64;
  SumAxes axes = axesOf(op, frame);
  Value first = b.mul(b.programId(tile::Axis::X), b.i32(kept));
  Value keptIndex = b.add(first, b.range(kept));
  Value keptInside = b.less(keptIndex, axes.keptCount);
  Value keptOffset = b.broadcast(offsetsOf(b, source, keptIndex, axes.kept, axes.added), {kept});
  auto loop = scf::ForOp::create(b, b.i32(0), b.ceilDiv(axes.addedCount, added), b.i32(1), b.zeros({added, kept}));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value index = b.add(b.mul(loop.getInductionVar(), b.i32(added)), b.range(added));
    Value inside = b.both(b.row(keptInside), b.column(b.less(index, axes.addedCount)));
    Value addedOffset = b.broadcast(offsetsOf(b, source, index, axes.added, {}), {added});
    Value offset = b.add(b.row(keptOffset), b.column(addedOffset));
    Value terms = b.load(b.addPtr(source.pointer, offset), inside);
    scf::YieldOp::create(b, b.add(loop.getRegionIterArg(0), b.cast(terms, b.getF32Type())));
  }
  Value sum = b.cast(b.reduceSum(loop.getResult(0), 0), to.getElementType());
  TensorParameter output = frame.output(to);
  b.store(b.addPtr(output.pointer, keptIndex), sum, keptInside);
  stored.record(ValueRange(op.getResult()), frame.finish({{blocksOf(to, kept), "1", "1"}, 4, 2}));
}

/// A sum over any axes.
static void lowerAnySum(attn::SumOp op, StoredValues &stored) {
  switch (tilesOf(op)) {
  case SumTiles::Rows:
    return sumRows(op, stored);
  case SumTiles::Lines:
    return sumLines(op, stored);
  case SumTiles::Columns:
    return sumColumns(op, stored);
  }
  llvm_unreachable("all are handled");
}

/// Stores `result` as the sum of parts, over `away` too.
static void addUp(Operation *anchor, Value result, Value parts, DenseI64ArrayAttr away, StoredValues &stored) {
  OpBuilder builder(anchor);
  auto sum = attn::SumOp::create(builder, result.getLoc(), result.getType(), parts, away);
  stored.recordAsValues(parts);
  lowerAnySum(sum, stored);
  stored.recordInsteadOf(result, sum.getResult());
  sum.erase();
}

void addTokenParts(Operation *anchor, Value sum, StoredValues &stored) {
  addUp(anchor, sum, stored.at(sum), {}, stored);
}

LogicalResult lowerSum(attn::SumOp op, StoredValues &stored) {
  if (sumsTokens(op))
    stored.record(op.getResult(), tokenSums(op, stored));
  else if (sumsTokensAndMore(op)) // First the parts of each batch and head, then those.
    addUp(op, op.getResult(), tokenSums(op, stored), op.getAwayAttr(), stored);
  else
    lowerAnySum(op, stored);
  return success();
}

LogicalResult addParts(Operation *op, Value result, Value parts, StoredValues &stored) {
  OpBuilder builder(op);
  auto sum = attn::SumOp::create(builder, op->getLoc(), result.getType(), parts);
  stored.recordAsValues(parts);
  LogicalResult lowered = lowerSum(sum, stored);
  stored.recordInsteadOf(result, sum.getResult());
  sum.erase();
  return lowered;
}

} // namespace weft
