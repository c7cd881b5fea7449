// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Kernels of attn.linear and of its weight's gradient. With heads side by side or without, a row is a token of a batch
// and of a group of heads; on one side of the weight it has H·D channels (H is 1 without), on the other E.
#include "compiler/Conversion/AttnToTile/Elements/ProductKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {
namespace {

/// The sizes of a linear map's two sides: `many` [.., N, D] or [B, G·H, N, D], and `few` [.., N, E].
struct LinearShape {
  attn::WholeTensorType many, few;
  bool concatenated;
  int64_t heads, channels; ///< H and D
  int64_t outer;           ///< E

  LinearShape(attn::WholeTensorType many, attn::WholeTensorType few, attn::WholeTensorType weight, bool concatenated)
      : many(many), few(few), concatenated(concatenated), outer(*weight.staticDim(0)) {
    channels = *many.staticDim(many.getRank() - 1);
    heads = *weight.staticDim(1) / channels;
  }
  /// Axes of `few` before the tokens.
  int64_t leads() const { return few.getRank() - 2; }
  /// The tiles of `count` tokens that there are, as an expression.
  std::string tiles(int64_t count) const {
    std::string tiles = "cdiv(" + tokens().str() + ", " + std::to_string(count) + ")";
    for (int64_t axis = leads(); axis-- > 0;)
      tiles = "(" + few.dim(axis).str() + ") * " + tiles;
    return tiles;
  }
  StringRef tokens() const { return few.dim(leads()); }
};

/// Rows of a tile: the indices of the axes before the tokens, and the tokens.
struct LinearRows {
  SmallVector<Value> leads;
  AxisIndex token;
  Value inside; ///< [count, 1]
  int64_t count;
};

/// A range of channels, of one head on the side of many: columns of a tile.
struct LinearColumns {
  Value head;        ///< i32: within its group of heads, or null
  AxisIndex channel; ///< offsets [1, width]
  Value exists;      ///< [1, width], or null
  int64_t width;
};

} // namespace

/// The rows of tile `tile`, which counts all tokens of a batch and group before those of the next.
static LinearRows tileOfRows(KernelFrame &frame, const LinearShape &shape, Value tile, int64_t count) {
  TileBuilder &b = frame.b;
  Value length = frame.size(shape.tokens()), tiles = b.ceilDiv(length, count);
  LinearRows rows{SmallVector<Value>(shape.leads()), {}, {}, count};
  Value lead = b.div(tile, tiles);
  rows.token = {b.mul(b.sub(tile, b.mul(lead, tiles)), b.i32(count)), axisRange(b, count, 0, 2)};
  rows.inside = b.less(rows.token.whole(b), length);
  for (int64_t axis = shape.leads() - 1; axis >= 0; --axis) {
    Value size = frame.size(shape.few.dim(axis));
    rows.leads[axis] = axis == 0 ? lead : b.rem(lead, size);
    lead = axis == 0 ? lead : b.div(lead, size);
  }
  return rows;
}

/// `width` channels from `start` (null for 0) + `first` on, of `size`.
static LinearColumns columnsFrom(TileBuilder &b, Value head, Value start, const Chunk &chunk, int64_t size) {
  LinearColumns columns{head, {start, axisRange(b, chunk.width, 1, 2)}, {}, chunk.width};
  if (chunk.first)
    columns.channel.start = start ? b.add(start, b.i32(chunk.first)) : b.i32(chunk.first);
  bool whole = start ? size % chunk.width == 0 && chunk.valid == chunk.width : chunk.valid == chunk.width;
  columns.exists = below(b, columns.channel.whole(b), b.i32(size), whole);
  return columns;
}

static Place placeOfFew(TileBuilder &b, const LinearRows &rows, const LinearColumns &columns) {
  Place place{{}, {rows.count, columns.width}, andAlso(b, rows.inside, columns.exists)};
  for (Value lead : rows.leads)
    place.axes.push_back({lead, {}});
  place.axes.push_back(rows.token);
  place.axes.push_back(columns.channel);
  return place;
}

static Place placeOfMany(TileBuilder &b, const LinearShape &shape, const LinearRows &rows,
                         const LinearColumns &columns) {
  Place place = placeOfFew(b, rows, columns);
  if (!shape.concatenated)
    return place;
  Value head = columns.head ? columns.head : b.i32(0);
  if (rows.leads.size() == 1)
    place.axes.insert(place.axes.begin() + 1, AxisIndex{head, {}});
  else
    place.axes[1].start = b.add(b.mul(rows.leads[1], b.i32(shape.heads)), head);
  return place;
}

/// Channels of a side gone through in steps of at most 64: a loop over heads (or over steps of many channels), and
/// chunks within.
namespace {
struct Contraction {
  int64_t heads, size;

  bool stepped() const { return size > 256; }
  int64_t steps() const { return heads * (stepped() ? llvm::divideCeil(size, 64) : 1); }
  SmallVector<Chunk> chunks() const { return stepped() ? SmallVector<Chunk>{{0, 64, 64}} : chunksOf(size, 64); }
  LinearColumns columns(TileBuilder &b, Value step, const Chunk &chunk) const {
    if (!stepped())
      return columnsFrom(b, step, {}, chunk, size);
    int64_t each = llvm::divideCeil(size, 64);
    return columnsFrom(b, b.div(step, b.i32(each)), b.mul(b.rem(step, b.i32(each)), b.i32(64)), chunk, size);
  }
};
} // namespace

/// The place of the weight [E, H·D] at channels `outer` of E, as rows, and `inner` of a head.
static Place placeOfWeight(TileBuilder &b, const LinearShape &shape, const LinearColumns &outer,
                           const LinearColumns &inner) {
  AxisIndex rows{outer.channel.start, axisRange(b, outer.width, 0, 2)}, columns = inner.channel;
  Value exists = outer.exists ? b.less(rows.whole(b), b.i32(shape.outer)) : Value();
  if (inner.head && shape.heads > 1) {
    Value first = b.mul(inner.head, b.i32(shape.channels));
    columns.start = columns.start ? b.add(columns.start, first) : first;
  }
  return {{rows, columns}, {outer.width, inner.width}, andAlso(b, exists, inner.exists)};
}

namespace {
/// A linear map's kernel: a tile of rows, a range of the result's channels in chunks, and where operands of their
/// products lie.
struct LinearTile {
  attn::LinearOp op;
  const LinearShape &shape;
  LinearRows rows;
  SmallVector<LinearColumns> results;

  /// The places of the source, the weight and the result for channels `inner` that are contracted, and `columns`.
  Place source(TileBuilder &b, const LinearColumns &inner) {
    return op.getTransposed() ? placeOfFew(b, rows, inner) : placeOfMany(b, shape, rows, inner);
  }
  Place weight(TileBuilder &b, const LinearColumns &inner, const LinearColumns &columns) {
    return op.getTransposed() ? placeOfWeight(b, shape, inner, columns) : placeOfWeight(b, shape, columns, inner);
  }
  Place result(TileBuilder &b, const LinearColumns &columns) {
    return op.getTransposed() ? placeOfMany(b, shape, rows, columns) : placeOfFew(b, rows, columns);
  }
};
} // namespace

/// Adds the products of one step of the contraction.
static Sums addStep(TileBuilder &b, ElementPuller &puller, LinearTile &tile, const Contraction &along, Value number,
                    ValueRange carried) {
  attn::LinearOp op = tile.op;
  Type factor = factorType(op.getSource(), op.getWeight());
  Sums next(carried);
  for (const Chunk &chunk : along.chunks()) {
    LinearColumns inner = along.columns(b, number, chunk);
    Value x = b.cast(puller.pull(op.getSource(), tile.source(b, inner)), factor);
    SmallVector<Value> weights;
    for (const LinearColumns &columns : tile.results) {
      Value weight = b.cast(puller.pull(op.getWeight(), tile.weight(b, inner, columns)), factor);
      weights.push_back(op.getTransposed() ? weight : b.transpose(weight));
    }
    next = addProducts(b, next, x, weights);
  }
  return next;
}

/// Adds the bias to the sums, and stores what the roots make of them.
static void storeSums(KernelFrame &frame, ElementPuller &puller, StoredValues &stored, LinearTile &tile,
                      ValueRange sums, ArrayRef<Value> roots) {
  TileBuilder &b = frame.b;
  attn::LinearOp op = tile.op;
  ElementPuller ends(frame, stored);
  ends.makeOutputs(roots);
  for (auto [columns, product] : llvm::zip(tile.results, sums)) {
    Value sum = product;
    if (op.getBias()) {
      Place at{{columns.channel}, {1, columns.width}, columns.exists};
      sum = b.add(sum, b.cast(puller.pull(op.getBias(), at), b.getF32Type()));
    }
    ends.provide(op.getResult(), b.cast(sum, wholeType(op.getResult()).getElementType()));
    ends.storeAt(roots, tile.result(b, columns));
  }
}

static LogicalResult lowerLinear(attn::LinearOp op, ArrayRef<Value> roots, StoredValues &stored) {
  constexpr int64_t count = 64, most = 128;
  bool transposed = op.getTransposed();
  LinearShape shape(wholeType(transposed ? op.getResult() : op.getSource()),
                    wholeType(transposed ? op.getSource() : op.getResult()), wholeType(op.getWeight()),
                    op.getConcatenated());
  Contraction along = transposed ? Contraction{1, shape.outer} : Contraction{shape.heads, shape.channels};
  int64_t size = transposed ? shape.channels : shape.outer, groups = llvm::divideCeil(size, most);
  KernelFrame frame(op, "linear");
  TileBuilder &b = frame.b;
  ElementPuller puller(frame, stored);
  LinearTile tile{op, shape, tileOfRows(frame, shape, b.programId(tile::Axis::X), count), {}};
  Value column = b.programId(tile::Axis::Y), head = groups == 1 ? column : b.div(column, b.i32(groups));
  Value start = groups == 1 ? Value() : b.mul(b.rem(column, b.i32(groups)), b.i32(most));
  Sums sums;
  for (const Chunk &chunk : chunksOf(std::min(size, most)))
    tile.results.push_back(columnsFrom(b, transposed ? head : Value(), start, chunk, size));
  for (const LinearColumns &columns : tile.results)
    sums.push_back(b.zeros({count, columns.width}));
  if (along.steps() == 1) {
    sums = addStep(b, puller, tile, along, b.i32(0), sums);
  } else {
    auto loop = scf::ForOp::create(b, b.i32(0), b.i32(along.steps()), b.i32(1), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    scf::YieldOp::create(b, addStep(b, puller, tile, along, loop.getInductionVar(), loop.getRegionIterArgs()));
    sums.assign(loop.getResults().begin(), loop.getResults().end());
  }
  storeSums(frame, puller, stored, tile, sums, roots);
  std::string tiles = shape.tiles(count);
  std::string heads = std::to_string((transposed ? shape.heads : 1) * groups);
  stored.record(roots, frame.finish({{tiles, heads, "1"}, 4, 2}));
  return success();
}

// Program (part, e, h and d) adds gradientᵀ · x over tiles part, part + parts, ... of rows.
static LogicalResult lowerLinearWeightGrad(attn::LinearWeightGradOp op, StoredValues &stored) {
  constexpr int64_t count = 64, most = 128;
  attn::WholeTensorType weight = wholeType(op.getResult());
  LinearShape shape(wholeType(op.getSource()), wholeType(op.getGradient()), weight, op.getConcatenated());
  int64_t groupsOfE = llvm::divideCeil(shape.outer, most), groupsOfD = llvm::divideCeil(shape.channels, most);
  KernelFrame frame(op, "linear_weight_grad");
  TileBuilder &b = frame.b;
  ElementPuller puller(frame, stored);
  Type factor = factorType(op.getSource(), op.getGradient());
  std::string tiles = shape.tiles(count);
  std::string parts = partsOf(tiles, shape.outer * *weight.staticDim(1));

  Value y = b.programId(tile::Axis::Y), z = b.programId(tile::Axis::Z);
  auto groupStart = [&](Value number, int64_t groups) {
    return groups == 1 ? Value() : b.mul(b.rem(number, b.i32(groups)), b.i32(most));
  };
  SmallVector<Chunk> chunksOfE = chunksOf(std::min(shape.outer, most)),
                     chunksOfD = chunksOf(std::min(shape.channels, most));
  SmallVector<LinearColumns> outer, inner;
  for (const Chunk &chunk : chunksOfE)
    outer.push_back(columnsFrom(b, {}, groupStart(y, groupsOfE), chunk, shape.outer));
  for (const Chunk &chunk : chunksOfD)
    inner.push_back(columnsFrom(b, b.div(z, b.i32(groupsOfD)), groupStart(z, groupsOfD), chunk, shape.channels));

  // The bias' gradient is one more column of sums.
  SmallVector<Chunk> columnChunks = chunksOfD;
  if (op.getBias())
    columnChunks.push_back(onesChunk);
  auto loop = scf::ForOp::create(b, b.programId(tile::Axis::X), frame.size(tiles), frame.size(parts),
                                 zeroSums(b, chunksOfE, columnChunks));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    LinearRows rows = tileOfRows(frame, shape, loop.getInductionVar(), count);
    SmallVector<Value> lefts, rights;
    for (const LinearColumns &columns : outer)
      lefts.push_back(b.transpose(b.cast(puller.pull(op.getGradient(), placeOfFew(b, rows, columns)), factor)));
    for (const LinearColumns &columns : inner)
      rights.push_back(b.cast(puller.pull(op.getSource(), placeOfMany(b, shape, rows, columns)), factor));
    if (op.getBias())
      rights.push_back(ones(b, count, factor));
    scf::YieldOp::create(b, addProducts(b, loop.getRegionIterArgs(), lefts, rights));
  }
  auto placeOfSums = [&](int64_t row, int64_t column) { return placeOfWeight(b, shape, outer[row], inner[column]); };
  auto placeOfBias = [&](int64_t row) {
    Place at = placeOfWeight(b, shape, outer[row], columnsFrom(b, {}, {}, onesChunk, 1));
    at.axes = {at.axes[0]};
    // The programs of all columns add it up; those of the first store it.
    at.exists = b.both(at.exists, b.compareInt(arith::CmpIPredicate::eq, b.broadcast(z, {1, 1}), b.i32(0)));
    return at;
  };
  std::string rows = std::to_string(groupsOfE), columns = std::to_string(shape.heads * groupsOfD);
  int64_t accumulators = std::min(shape.outer, most) * std::min(shape.channels, most);
  return finishParts(frame, puller, op,
                     {loop.getResults(), int64_t(outer.size()), int64_t(inner.size()), placeOfSums, placeOfBias},
                     {{parts, rows, columns}, accumulators > 8192 ? 8 : 4, 2}, stored);
}

void attachLinearKernels(MLIRContext &context) {
  attn::LinearOp::attachInterface<ProductKernel<attn::LinearOp, lowerLinear>>(context);
  attn::LinearWeightGradOp::attachInterface<WeightGradKernel<attn::LinearWeightGradOp, lowerLinearWeightGrad>>(context);
}

} // namespace weft
