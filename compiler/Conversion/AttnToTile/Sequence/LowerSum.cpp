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

static SumAxes axesOf(attn::SumOp op, KernelFrame &frame) {
  TileBuilder &b = frame.b;
  attn::WholeTensorType from = wholeType(op.getSource()), aligned = op.resultAtSourceRank();
  SumAxes axes;
  axes.keptCount = b.i32(1);
  axes.addedCount = b.i32(1);
  for (int64_t i = 0; i < from.getRank(); ++i) {
    StringRef size = from.dim(i), left = aligned.dim(i);
    axes.kept.push_back(frame.size(left));
    if (size == left)
      axes.added.push_back(b.i32(1));
    else if (left == "1")
      axes.added.push_back(frame.size(size));
    else
      axes.added.push_back(b.i32(*attn::headGroup(size, left)));
    axes.keptCount = b.mul(axes.keptCount, axes.kept.back());
    axes.addedCount = b.mul(axes.addedCount, axes.added.back());
  }
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

/// Any sum: a program adds up 16 elements of the result, over the summed axes in steps of 64 positions. A single number
/// is one program's. Neighbours in memory are neighbours in a tile: elements of the result where they have the last
/// axis (of parts, and of gradients repeated over a batch), else what is summed.
static void lowerAnySum(attn::SumOp op, StoredValues &stored) {
  attn::WholeTensorType from = wholeType(op.getSource()), to = wholeType(op.getResult());
  KernelFrame frame(op, "sum");
  TileBuilder &b = frame.b;
  const TensorParameter source = frame.input(stored.at(op.getSource()));
  bool single = llvm::all_of(to.getDims(), [](StringAttr dim) { return dim.getValue() == "1"; });
  const int64_t kept = single ? 1 : 16, added = single ? 1024 : 64;
  int64_t last = from.getRank() - 1;
  const bool keptLast = from.dim(last) == op.resultAtSourceRank().dim(last) && from.dim(last) != "1";
  auto alongKept = [&](Value vector) { return keptLast ? b.row(vector) : b.column(vector); };
  auto alongAdded = [&](Value vector) { return keptLast ? b.column(vector) : b.row(vector); };
  const int64_t keptAxis = keptLast ? 1 : 0, shape[] = {keptLast ? added : kept, keptLast ? kept : added};
  SumAxes axes = axesOf(op, frame);
  Value first = b.mul(b.programId(tile::Axis::X), b.i32(kept));
  Value keptIndex = b.add(first, b.range(kept));
  Value keptInside = b.less(keptIndex, axes.keptCount);
  Value keptOffset = b.broadcast(offsetsOf(b, source, keptIndex, axes.kept, axes.added), {kept});
  auto loop = scf::ForOp::create(b, b.i32(0), b.ceilDiv(axes.addedCount, added), b.i32(1), b.zeros(shape));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value index = b.add(b.mul(loop.getInductionVar(), b.i32(added)), b.range(added));
    Value inside = b.both(alongKept(keptInside), alongAdded(b.less(index, axes.addedCount)));
    Value addedOffset = b.broadcast(offsetsOf(b, source, index, axes.added, {}), {added});
    Value offset = b.add(alongKept(keptOffset), alongAdded(addedOffset));
    Value terms = b.load(b.addPtr(source.pointer, offset), inside);
    scf::YieldOp::create(b, b.add(loop.getRegionIterArg(0), b.cast(terms, b.getF32Type())));
  }
  Value sum = b.cast(b.reduceSum(loop.getResult(0), 1 - keptAxis), to.getElementType());
  TensorParameter output = frame.output(to);
  b.store(b.addPtr(output.pointer, keptIndex), sum, keptInside);
  stored.record(ValueRange(op.getResult()), frame.finish({{blocksOf(to, kept), "1", "1"}, 4, 2}));
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
