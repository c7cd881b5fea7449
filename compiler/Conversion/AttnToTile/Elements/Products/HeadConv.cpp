// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Kernels of attn.head_conv and of its weight's gradient. A tile is some tokens times some channels, all heads of one
// side its rows: result[o, (n, d)] = Σ_j weight_j[o, h] · x[h, (n, d + j - centre)], one product for each tap.
#include "compiler/Conversion/AttnToTile/Elements/ProductKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {
namespace {

/// Tokens times channels: 128 columns of products.
struct ColumnTile {
  int64_t tokens, width; ///< powers of two
  int64_t groups;        ///< of `width` channels that a token has, the last perhaps in part

  explicit ColumnTile(int64_t channels) {
    width = 16;
    while (width < 128 && channels % (2 * width) == 0)
      width *= 2;
    tokens = 128 / width;
    groups = llvm::divideCeil(channels, width);
  }
};

/// Where the columns of a tile lie: indices of rank 3, [heads, tokens, channels].
struct Columns {
  Value batch;
  AxisIndex token, channel;
  Value inside; ///< which tokens exist, [1, tokens, 1]
  const ColumnTile &tile;
  int64_t channels;

  /// The place, in a tensor [B, heads, N, D], of a chunk of heads at these columns moved by `offset` channels.
  Place at(TileBuilder &b, const Chunk &heads, Value firstHead, Value offset) const {
    AxisIndex head{heads.first ? b.i32(heads.first) : Value(), axisRange(b, heads.width, 0, 3)};
    if (firstHead)
      head.start = head.start ? b.add(head.start, firstHead) : firstHead;
    AxisIndex moved = channel;
    if (offset)
      moved.start = moved.start ? b.add(moved.start, offset) : offset;
    Place place{{{batch, {}}, head, token, moved}, {heads.width, tile.tokens, tile.width}, inside};
    if (heads.valid < heads.width)
      place.exists = b.both(place.exists, b.less(axisRange(b, heads.width, 0, 3), b.i32(heads.valid)));
    if (offset || channels % tile.width) {
      Value whole = moved.whole(b);
      Value within = b.both(b.compareInt(arith::CmpIPredicate::sge, whole, b.i32(0)), b.less(whole, b.i32(channels)));
      place.exists = b.both(place.exists, within);
    }
    return place;
  }
  /// The part of `value` there, [heads, columns].
  Value pull(TileBuilder &b, ElementPuller &puller, Value value, const Chunk &heads, Value offset, Type factor) const {
    Value tile = b.cast(puller.pull(value, at(b, heads, {}, offset)), factor);
    return b.reshape(tile, {heads.width, this->tile.tokens * this->tile.width});
  }
};

} // namespace

/// The columns of tile `number`: groups of channels before tokens before batches.
static Columns columnsOf(KernelFrame &frame, attn::WholeTensorType type, const ColumnTile &tile, Value number) {
  TileBuilder &b = frame.b;
  Value length = frame.size(type.dim(2)), tiles = b.ceilDiv(length, tile.tokens);
  Value row = b.div(number, b.i32(tile.groups)), group = b.sub(number, b.mul(row, b.i32(tile.groups)));
  Columns columns{b.div(row, tiles), {}, {}, {}, tile, *type.staticDim(3)};
  Value first = b.mul(b.sub(row, b.mul(columns.batch, tiles)), b.i32(tile.tokens));
  columns.token = {first, axisRange(b, tile.tokens, 1, 3)};
  columns.channel.offsets = axisRange(b, tile.width, 2, 3);
  if (tile.groups > 1)
    columns.channel.start = b.mul(group, b.i32(tile.width));
  columns.inside = b.less(columns.token.whole(b), length);
  return columns;
}

static std::string tilesOf(attn::WholeTensorType type, const ColumnTile &tile) {
  std::string tiles =
      "(" + type.dim(0).str() + ") * cdiv(" + type.dim(2).str() + ", " + std::to_string(tile.tokens) + ")";
  return tile.groups == 1 ? tiles : std::to_string(tile.groups) + " * " + tiles;
}

/// The tile of weight [Ho, H, K] at tap `tap`: a chunk of Ho by one of H.
static Place placeOfWeight(TileBuilder &b, const Chunk &to, const Chunk &from, Value tap) {
  auto index = [&](const Chunk &chunk, int64_t axis) {
    return AxisIndex{chunk.first ? b.i32(chunk.first) : Value(), axisRange(b, chunk.width, axis, 2)};
  };
  auto exists = [&](const Chunk &chunk, int64_t axis) {
    return chunk.valid == chunk.width ? Value() : b.less(axisRange(b, chunk.width, axis, 2), b.i32(chunk.valid));
  };
  Place place{{index(to, 0), index(from, 1), {tap, {}}}, {to.width, from.width}, {}};
  place.exists = andAlso(b, exists(to, 0), exists(from, 1));
  return place;
}

/// Heads that one program computes.
static SmallVector<Chunk> headChunks(int64_t heads) { return chunksOf(heads, 64); }

static LogicalResult lowerHeadConv(attn::HeadConvOp op, ArrayRef<Value> roots, StoredValues &stored) {
  attn::WholeTensorType from = wholeType(op.getSource()), to = wholeType(op.getResult());
  bool transposed = op.getTransposed();
  int64_t taps = *wholeType(op.getWeight()).staticDim(2);
  KernelFrame frame(op, "head_conv");
  TileBuilder &b = frame.b;
  ElementPuller puller(frame, stored);
  Type factor = factorType(op.getSource(), op.getWeight());
  ColumnTile tile(*from.staticDim(3));
  Columns columns = columnsOf(frame, to, tile, b.programId(tile::Axis::X));
  SmallVector<Chunk> results = headChunks(*to.staticDim(1)), sources = chunksOf(*from.staticDim(1), 64);

  Sums sums;
  for (const Chunk &chunk : results)
    sums.push_back(b.zeros({chunk.width, 128}));
  auto addTap = [&](Value tap, Value offset, ValueRange carried) {
    Sums next(carried);
    for (const Chunk &heads : sources) {
      SmallVector<Value> weights;
      for (const Chunk &chunk : results) {
        // Read with neighbours in memory as neighbours in the tile, and transposed after.
        Place at = transposed ? placeOfWeight(b, heads, chunk, tap) : placeOfWeight(b, chunk, heads, tap);
        Value weight = b.cast(puller.pull(op.getWeight(), at), factor);
        weights.push_back(transposed ? b.transpose(weight) : weight);
      }
      next = addProducts(b, next, weights, columns.pull(b, puller, op.getSource(), heads, offset, factor));
    }
    return next;
  };
  if (taps == 1) {
    sums = addTap({}, {}, sums);
  } else {
    auto loop = scf::ForOp::create(b, b.i32(0), b.i32(taps), b.i32(1), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value tap = loop.getInductionVar(), centre = b.i32((taps - 1) / 2);
    scf::YieldOp::create(b,
                         addTap(tap, transposed ? b.sub(centre, tap) : b.sub(tap, centre), loop.getRegionIterArgs()));
    sums.assign(loop.getResults().begin(), loop.getResults().end());
  }

  ElementPuller ends(frame, stored);
  ends.makeOutputs(roots);
  for (auto [heads, sum] : llvm::zip(results, sums)) {
    Place at = columns.at(b, heads, {}, {});
    sum = b.reshape(sum, at.shape);
    if (op.getBias()) {
      Value exists = heads.valid == heads.width ? Value() : b.less(axisRange(b, heads.width, 0, 3), b.i32(heads.valid));
      Value bias = puller.pull(op.getBias(), {{at.axes[1]}, {heads.width, 1, 1}, exists});
      sum = b.add(sum, b.cast(bias, b.getF32Type()));
    }
    ends.provide(op.getResult(), b.cast(sum, to.getElementType()));
    ends.storeAt(roots, at);
  }
  stored.record(roots, frame.finish({{tilesOf(to, tile), "1", "1"}, 4, 1}));
  return success();
}

// Program (part, tap) adds gradient · xᵀ, moved by the tap, over tiles part, part + parts, ...
static LogicalResult lowerHeadConvWeightGrad(attn::HeadConvWeightGradOp op, StoredValues &stored) {
  attn::WholeTensorType from = wholeType(op.getSource()), weight = wholeType(op.getResult());
  int64_t taps = *weight.staticDim(2);
  KernelFrame frame(op, "head_conv_weight_grad");
  TileBuilder &b = frame.b;
  ElementPuller puller(frame, stored);
  Type factor = factorType(op.getSource(), op.getGradient());
  ColumnTile tile(*from.staticDim(3));
  SmallVector<Chunk> outs = headChunks(*weight.staticDim(0)), ins = headChunks(*weight.staticDim(1));
  std::string tiles = tilesOf(from, tile);
  std::string parts = partsOf(tiles, *weight.staticDim(0) * *weight.staticDim(1) * taps);

  Value tap = taps == 1 ? Value() : b.programId(tile::Axis::Y);
  Value offset = tap ? b.sub(tap, b.i32((taps - 1) / 2)) : Value();
  // The bias' gradient is one more column of sums.
  SmallVector<Chunk> columnChunks = ins;
  if (op.getBias())
    columnChunks.push_back(onesChunk);
  auto loop = scf::ForOp::create(b, b.programId(tile::Axis::X), frame.size(tiles), frame.size(parts),
                                 zeroSums(b, outs, columnChunks));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Columns columns = columnsOf(frame, from, tile, loop.getInductionVar());
    SmallVector<Value> lefts, rights;
    for (const Chunk &heads : outs)
      lefts.push_back(columns.pull(b, puller, op.getGradient(), heads, {}, factor));
    for (const Chunk &heads : ins)
      rights.push_back(b.transpose(columns.pull(b, puller, op.getSource(), heads, offset, factor)));
    if (op.getBias())
      rights.push_back(ones(b, 128, factor));
    scf::YieldOp::create(b, addProducts(b, loop.getRegionIterArgs(), lefts, rights));
  }
  auto placeOfSums = [&](int64_t row, int64_t column) { return placeOfWeight(b, outs[row], ins[column], tap); };
  auto placeOfBias = [&](int64_t row) {
    Place at = placeOfWeight(b, outs[row], onesChunk, tap);
    at.axes = {at.axes[0]};
    if (tap) // The programs of every tap add it up; those of the first store it.
      at.exists = b.both(at.exists, b.compareInt(arith::CmpIPredicate::eq, b.broadcast(tap, {1, 1}), b.i32(0)));
    return at;
  };
  return finishParts(frame, puller, op,
                     {loop.getResults(), int64_t(outs.size()), int64_t(ins.size()), placeOfSums, placeOfBias},
                     {{parts, std::to_string(taps), "1"}, 4, 1}, stored);
}

void attachHeadConvKernels(MLIRContext &context) {
  attn::HeadConvOp::attachInterface<ProductKernel<attn::HeadConvOp, lowerHeadConv>>(context);
  attn::HeadConvWeightGradOp::attachInterface<WeightGradKernel<attn::HeadConvWeightGradOp, lowerHeadConvWeightGrad>>(
      context);
}

} // namespace weft
