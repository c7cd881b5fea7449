// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Convolutions with as many taps as there are tokens, on matrix instructions. Sequences are cut into chunks of s = 64
// tokens; with x[a] the chunk a of a channel, and W_δ[b, b'] = w[δ s + b - b'] (0 where there is no such tap),
//
//   y[a] = Σ_δ W_δ x[a - δ],             a product of the s × s matrix W_δ with the chunks of all batches at once,
//   dw[δ s + b - b'] += G_δ[b, b']  with  G_δ = Σ_a dy[a] x[a - δ]ᵀ,  summed along its diagonals.
//
// A channel's tokens lie apart, one in each row of [B, H, N, C]; they are brought together first, as [B, H·C, chunks,
// s], and the result is brought back. The transposed convolution is the same on sequences read from their ends.
#include "compiler/Conversion/AttnToTile/Rows/Puller.h"
#include "compiler/Conversion/AttnToTile/Sequence/LowerSequence.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {
namespace {

constexpr int64_t side = 64;   // tokens of a chunk
constexpr int64_t across = 64; // chunks in a product, unless it is tiled otherwise, or channels in a copy

/// Sizes, as grid expressions, of the sequences [B, H, N, C] of a convolution with taps [K, H·C].
struct Sizes {
  std::string batch, heads, length, channels, all, chunks, taps;

  Sizes(attn::WholeTensorType sequence, attn::WholeTensorType tapsType)
      : batch(sequence.dim(0).str()), heads(sequence.dim(1).str()), length(sequence.dim(2).str()),
        channels(sequence.dim(3).str()), all("(" + heads + ") * " + channels),
        chunks("cdiv(" + length + ", " + std::to_string(side) + ")"), taps(tapsType.dim(0).str()) {}
  /// How many δ have a tap in W_δ.
  std::string distances() const { return "cdiv((" + taps + ") - 1, " + std::to_string(side) + ") + 1"; }
};

attn::WholeTensorType typeOf(MLIRContext *context, ArrayRef<std::string> sizes, Type element) {
  Builder b(context);
  return attn::WholeTensorType::get(
      llvm::map_to_vector(sizes, [&](const std::string &size) { return b.getStringAttr(size); }), element);
}

/// A tensor's element at indices, all of them but the last two scalars: `row` and `column` make a tile of pointers.
Value pointersAt(TileBuilder &b, const TensorParameter &tensor, ArrayRef<Value> indices, Value row, Value column) {
  Value pointer = tensor.pointer;
  for (auto [index, stride] : llvm::zip(indices, tensor.strides))
    pointer = b.addPtr(pointer, b.mul(b.cast(index, b.getI64Type()), stride));
  Value offset = b.add(b.column(row), b.row(column));
  return b.addPtr(b.broadcast(pointer, TileBuilder::shapeOf(offset)), offset);
}

/// i32 offsets of `count` steps of a stride.
Value steps(TileBuilder &b, int64_t count, Value stride) {
  return b.mul(b.range(count), b.cast(stride, b.getI32Type()));
}

/// Rows of the chunk `tile` of a sequence, from its end on where `reversed`.
RowTile chunkRows(TileBuilder &b, attn::WholeTensorType type, Value tile, Value length, bool reversed) {
  RowTile rows = programRows(b, type, b.mul(tile, b.i32(side)), side, length);
  return reversed ? rows.anyRows(b.sub(b.sub(length, b.i32(1)), rows.token), rows.inside) : rows;
}

/// The channels of a copying program: x of the grid counts chunks, and for each its blocks of channels.
struct CopyPlace {
  Value chunk, firstChannel;
  Chunk channels;
  Value inside; ///< [across] i1

  CopyPlace(TileBuilder &b, int64_t size) {
    int64_t blocks = llvm::divideCeil(size, across);
    Value program = b.programId(tile::Axis::X);
    chunk = b.div(program, b.i32(blocks));
    firstChannel = b.mul(b.rem(program, b.i32(blocks)), b.i32(across));
    channels = {0, across, across, firstChannel, size};
    inside = channels.inside(b);
  }
};

class LongConvolution {
public:
  LongConvolution(Operation *op, const Sizes &sizes, StoredValues &stored) : op(op), sizes(sizes), stored(stored) {}

  /// A sequence [B, H, N, C] as [B, H·C, chunks, side], 0 past its end.
  Value toChunks(Value sequence, bool reversed, Type element);
  /// And back, in the element type of `type`.
  Value fromChunks(Value chunks, attn::WholeTensorType type, bool reversed);
  /// Taps [K, H·C] as [H·C, blocks, side], tap j at place j + side, zeros before and after.
  Value spread(Value taps, Type element);
  /// The products with W_δ.
  Value convolve(Value chunks, Value taps, Type element);
  /// Sums of the diagonals of G_δ [H·C, 2, distances, side]: of those from the main one up, which are taps δ s + i, and
  /// of those below, which are taps (δ-1) s + i, at δ-1.
  Value correlate(Value gradients, Value chunks);
  /// Those added, as [K, H·C].
  Value gather(Value sums, attn::WholeTensorType type);

private:
  MLIRContext *context() { return op->getContext(); }
  std::array<std::string, 3> copyGrid(int64_t channels) {
    std::string blocks = std::to_string(llvm::divideCeil(channels, across));
    return {sizes.chunks + " * " + blocks, sizes.heads, sizes.batch};
  }

  Operation *op;
  const Sizes &sizes;
  StoredValues &stored;
};

} // namespace

Value LongConvolution::toChunks(Value sequence, bool reversed, Type element) {
  KernelFrame frame(op, "to_chunks");
  TileBuilder &b = frame.b;
  Puller puller(frame, stored);
  attn::WholeTensorType from = wholeType(sequence);
  int64_t channels = *from.staticDim(3);
  CopyPlace place(b, channels);
  RowTile rows = chunkRows(b, from, place.chunk, frame.size(sizes.length), reversed);
  Value tile = b.broadcast(b.cast(puller.pull(sequence, rows, place.channels, Zeros::Rows), element), {side, across});
  TensorParameter output = frame.output(typeOf(context(), {sizes.batch, sizes.all, sizes.chunks, "64"}, element));
  Value first = b.add(b.mul(rows.head, b.i32(channels)), place.firstChannel);
  Value pointers =
      pointersAt(b, output, {rows.batch, first, place.chunk}, steps(b, across, output.strides[1]), b.range(side));
  b.store(pointers, b.transpose(tile), b.broadcast(b.column(place.inside), {across, side}));
  return frame.finish({copyGrid(channels), 4, 2})[0];
}

Value LongConvolution::fromChunks(Value chunks, attn::WholeTensorType type, bool reversed) {
  KernelFrame frame(op, "from_chunks");
  TileBuilder &b = frame.b;
  Puller puller(frame, stored);
  int64_t channels = *type.staticDim(3);
  CopyPlace place(b, channels);
  RowTile rows = chunkRows(b, type, place.chunk, frame.size(sizes.length), reversed);
  const TensorParameter source = frame.input(chunks);
  Value first = b.add(b.mul(rows.head, b.i32(channels)), place.firstChannel);
  Value pointers =
      pointersAt(b, source, {rows.batch, first, place.chunk}, steps(b, across, source.strides[1]), b.range(side));
  Value tile = b.transpose(b.load(pointers, b.broadcast(b.column(place.inside), {across, side})));
  if (channels == 1) // A tile of one column; the others are 0.
    tile = b.column(b.reduceSum(b.cast(tile, b.getF32Type()), 1));
  puller.store(frame.output(type), rows, &place.channels, tile);
  return frame.finish({copyGrid(channels), 4, 2})[0];
}

Value LongConvolution::spread(Value taps, Type element) {
  KernelFrame frame(op, "spread_taps");
  TileBuilder &b = frame.b;
  const TensorParameter source = frame.input(stored.at(taps));
  Value block = b.programId(tile::Axis::X), first = b.mul(b.programId(tile::Axis::Y), b.i32(across));
  Value tap = b.add(b.mul(b.sub(block, b.i32(1)), b.i32(side)), b.range(side));
  Value channel = b.add(first, b.range(across)), inside = b.less(channel, frame.size(sizes.all));
  Value exists = b.both(b.compareInt(arith::CmpIPredicate::sge, tap, b.i32(0)), b.less(tap, frame.size(sizes.taps)));
  Value pointers = pointersAt(b, source, {b.mul(b.sub(block, b.i32(1)), b.i32(side))},
                              steps(b, side, source.strides[0]), b.range(across));
  pointers = b.addPtr(pointers, b.broadcast(first, {side, across}));
  Value tile = b.cast(b.load(pointers, b.both(b.column(exists), b.row(inside))), element);
  std::string blocks = "cdiv(" + sizes.taps + ", 64) + 3";
  TensorParameter output = frame.output(typeOf(context(), {sizes.all, blocks, "64"}, element));
  Value places = pointersAt(b, output, {first, block}, steps(b, across, output.strides[0]), b.range(side));
  b.store(places, b.transpose(tile), b.broadcast(b.column(inside), {across, side}));
  return frame.finish({{blocks, "cdiv(" + sizes.all + ", 64)", "1"}, 4, 2})[0];
}

Value LongConvolution::convolve(Value chunks, Value taps, Type element) {
  KernelFrame frame(op, "long_convolution");
  TileBuilder &b = frame.b;
  const KernelTiling tiling = frame.tiling({{across, 4}, {32, 64, 128}, {2, 4, 8}});
  const int64_t count = tiling.rows;
  const TensorParameter source = frame.input(chunks), filter = frame.input(taps);
  TensorParameter output = frame.output(wholeType(chunks).withElement(element));
  Value channel = b.programId(tile::Axis::Y), batches = frame.size(sizes.batch);
  // Chunks of all batches, those of one number after one another.
  Value total = b.mul(frame.size(sizes.chunks), batches), start = b.mul(b.programId(tile::Axis::X), b.i32(count));
  Value number = b.add(start, b.range(count)), inside = b.less(number, total);
  Value chunk = b.div(number, batches), batch = b.rem(number, batches);
  Value last = b.div(b.min(b.add(start, b.i32(count - 1)), b.sub(total, b.i32(1))), batches);
  Value distances = b.min(b.add(last, b.i32(1)), frame.size(sizes.distances()));
  auto at = [&](const TensorParameter &tensor) {
    Value pointer = b.addPtr(tensor.pointer, b.mul(b.cast(channel, b.getI64Type()), tensor.strides[1]));
    Value offset = b.add(b.mul(b.cast(batch, b.getI64Type()), tensor.strides[0]),
                         b.cast(b.mul(chunk, b.i32(side)), b.getI64Type()));
    Value tile = b.add(b.column(offset), b.row(b.cast(b.range(side), b.getI64Type())));
    return b.addPtr(b.broadcast(pointer, {count, side}), tile);
  };
  // [b', b]: a column of W_δ is a row here.
  Value along = b.sub(b.row(b.range(side)), b.column(b.range(side)));
  Value filterStart = b.addPtr(filter.pointer, b.mul(b.cast(channel, b.getI64Type()), filter.strides[0]));
  Value sources = at(source);
  auto loop = scf::ForOp::create(b, b.i32(0), distances, b.i32(1), b.zeros({count, side}));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value distance = loop.getInductionVar();
    Value exists = b.both(inside, b.compareInt(arith::CmpIPredicate::sge, chunk, distance));
    Value back = b.broadcast(b.mul(distance, b.i32(-side)), {count, side});
    Value x = b.load(b.addPtr(sources, back), b.broadcast(b.column(exists), {count, side}));
    Value first = b.addPtr(filterStart, b.mul(b.add(distance, b.i32(1)), b.i32(side)));
    Value w = b.load(b.addPtr(b.broadcast(first, {side, side}), along), {});
    scf::YieldOp::create(b, b.dot(x, w, loop.getRegionIterArg(0), tile::Precision::TF32x3));
  }
  b.store(at(output), b.cast(loop.getResult(0), element), b.broadcast(b.column(inside), {count, side}));
  std::string tiles = "cdiv(" + sizes.chunks + " * (" + sizes.batch + "), " + std::to_string(count) + ")";
  return frame.finish({{tiles, sizes.all, "1"}, tiling.warps, 2})[0];
}

Value LongConvolution::correlate(Value gradients, Value chunks) {
  KernelFrame frame(op, "long_taps_grad");
  TileBuilder &b = frame.b;
  const KernelTiling tiling = frame.tiling({{across, 4}, {32, 64, 128}, {2, 4, 8}});
  const int64_t count = tiling.rows;
  const TensorParameter left = frame.input(gradients), right = frame.input(chunks);
  Value distance = b.programId(tile::Axis::X), channel = b.programId(tile::Axis::Y);
  Value batches = frame.size(sizes.batch), distances = frame.size(sizes.distances());
  // Chunk number i of x meets that of dy which comes δ chunks of every batch later.
  Value later = b.mul(distance, batches), total = b.sub(b.mul(frame.size(sizes.chunks), batches), later);
  auto load = [&](const TensorParameter &tensor, Value number, Value inside) {
    Value chunk = b.div(number, batches), batch = b.rem(number, batches);
    Value pointer = b.addPtr(tensor.pointer, b.mul(b.cast(channel, b.getI64Type()), tensor.strides[1]));
    Value offset = b.add(b.mul(b.cast(batch, b.getI64Type()), tensor.strides[0]),
                         b.cast(b.mul(chunk, b.i32(side)), b.getI64Type()));
    Value tile = b.add(b.column(offset), b.row(b.cast(b.range(side), b.getI64Type())));
    return b.load(b.addPtr(b.broadcast(pointer, {count, side}), tile), b.broadcast(b.column(inside), {count, side}));
  };
  auto loop =
      scf::ForOp::create(b, b.i32(0), b.ceilDiv(b.max(total, b.i32(0)), count), b.i32(1), b.zeros({side, side}));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value number = b.add(b.mul(loop.getInductionVar(), b.i32(count)), b.range(count));
    Value inside = b.less(number, total);
    Value dy = load(left, b.add(number, later), inside), x = load(right, number, inside);
    scf::YieldOp::create(b, b.dot(b.transpose(dy), x, loop.getRegionIterArg(0), tile::Precision::TF32x3));
  }
  // Diagonal by diagonal: row i of `turned` has G[i + b', b'], which comes round at the end.
  Value row = b.column(b.range(side)), column = b.row(b.range(side)), sum = b.add(row, column);
  Value index = b.broadcast(b.both(sum, b.i32(side - 1)), {side, side});
  Value turned =
      tile::GatherOp::create(b, loop.getResult(0).getType(), loop.getResult(0), index, b.getI32IntegerAttr(0));
  Value upper = b.less(sum, b.i32(side)), zero = b.zeros({side, side});
  Value above = b.reduceSum(b.select(upper, turned, zero), 1), below = b.reduceSum(b.select(upper, zero, turned), 1);
  TensorParameter output = frame.output(typeOf(context(), {sizes.all, "2", sizes.distances(), "64"}, b.getF32Type()));
  auto places = [&](int64_t part, Value at) {
    Value pointer = b.addPtr(output.pointer, b.mul(b.cast(channel, b.getI64Type()), output.strides[0]));
    pointer = b.addPtr(pointer, b.mul(b.i64(part), output.strides[1]));
    pointer = b.addPtr(pointer, b.mul(b.cast(at, b.getI64Type()), output.strides[2]));
    return b.addPtr(b.broadcast(pointer, {side}), b.range(side));
  };
  // Below the main diagonal of G_0 there are no taps; below that of the distance past the last, none exist.
  Value isFirst = b.compareInt(arith::CmpIPredicate::eq, distance, b.i32(0));
  Value before = b.select(isFirst, b.sub(distances, b.i32(1)), b.sub(distance, b.i32(1)));
  b.store(places(0, distance), above, {});
  b.store(places(1, before), b.select(isFirst, b.f32(0), below), {});
  return frame.finish({{sizes.distances(), sizes.all, "1"}, tiling.warps, 2})[0];
}

Value LongConvolution::gather(Value sums, attn::WholeTensorType type) {
  KernelFrame frame(op, "gather_taps");
  TileBuilder &b = frame.b;
  const TensorParameter source = frame.input(sums);
  Value block = b.programId(tile::Axis::X), first = b.mul(b.programId(tile::Axis::Y), b.i32(across));
  Value start = b.mul(block, b.i32(side)), tap = b.add(start, b.range(side));
  Value channel = b.add(first, b.range(across)), inside = b.less(channel, frame.size(sizes.all));
  Value tile;
  for (int64_t part : {0, 1}) {
    Value pointers =
        pointersAt(b, source, {first, b.i32(part), block}, steps(b, across, source.strides[0]), b.range(side));
    Value term = b.load(pointers, b.broadcast(b.column(inside), {across, side}));
    tile = tile ? b.add(tile, term) : term;
  }
  TensorParameter output = frame.output(type);
  Value pointers = pointersAt(b, output, {start}, steps(b, side, output.strides[0]), channel);
  Value exists = b.both(b.column(b.less(tap, frame.size(sizes.taps))), b.row(inside));
  b.store(pointers, b.transpose(b.cast(tile, type.getElementType())), exists);
  return frame.finish({{"cdiv(" + sizes.taps + ", 64)", "cdiv(" + sizes.all + ", 64)", "1"}, 4, 2})[0];
}

/// The type in which two tensors are multiplied: theirs, or f32 where they differ.
static Type productType(Value a, Value b) {
  Type element = wholeType(a).getElementType();
  return element == wholeType(b).getElementType() ? element : Float32Type::get(a.getContext());
}

LogicalResult lowerLongConvolve(attn::ConvolveOp op, StoredValues &stored) {
  attn::WholeTensorType type = wholeType(op.getResult());
  if (!type.staticDim(3))
    return op.emitOpError() << "expected [B, H, N, C] with a static C, but got " << type;
  Sizes sizes(type, wholeType(op.getTaps()));
  LongConvolution lowering(op, sizes, stored);
  Type element = productType(op.getSource(), op.getTaps());
  Value chunks = lowering.toChunks(op.getSource(), op.getTransposed(), element);
  Value taps = lowering.spread(op.getTaps(), element);
  Value result = lowering.convolve(chunks, taps, type.getElementType());
  stored.record(op.getResult(), lowering.fromChunks(result, type, op.getTransposed()));
  return success();
}

LogicalResult lowerLongTapsGrad(attn::ConvolveTapsGradOp op, StoredValues &stored) {
  attn::WholeTensorType from = wholeType(op.getSource()), to = wholeType(op.getResult());
  if (!from.staticDim(3))
    return op.emitOpError() << "expected [B, H, N, C] with a static C, but got " << from;
  Sizes sizes(from, to);
  LongConvolution lowering(op, sizes, stored);
  Type element = productType(op.getSource(), op.getGradient());
  Value chunks = lowering.toChunks(op.getSource(), op.getTransposed(), element);
  Value gradients = lowering.toChunks(op.getGradient(), op.getTransposed(), element);
  stored.record(op.getResult(), lowering.gather(lowering.correlate(gradients, chunks), to));
  return success();
}

} // namespace weft
