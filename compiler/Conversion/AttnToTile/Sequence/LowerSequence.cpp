// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Kernels that walk the whole sequence: means, causal and of packed sequences, and the gradient of a convolution's
// taps.
//
//   %y = attn.prefix_mean %x : [B, H, N, 64]   ─▶      func.func @prefix_mean {          grid [4, H, B]: 16 channels each
//                                                        for each 64 tokens, with %sum of those before {
//                                                          %x = load 64 tokens × 16 channels
//                                                          store (tile.scan %x + %sum) / (token + 1)
//                                                          %sum += sum of %x
//                                                        }
//                                                      }
#include "compiler/Conversion/AttnToTile/Sequence/LowerSequence.h"
#include "compiler/Conversion/AttnToTile/Rows/Convolution.h"
#include "compiler/Conversion/AttnToTile/Rows/Sequences.h"
#include "compiler/Conversion/AttnToTile/Sequence/LowerSum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

// A program takes 16 or more channels of one head and goes through the sequence tile by tile with the running sum;
// transposed, from the end.
LogicalResult lowerPrefixMean(attn::PrefixMeanOp op, StoredValues &stored) {
  attn::WholeTensorType type = wholeType(op.getResult());
  if (type.getRank() != 4 || !type.staticDim(3))
    return op.emitOpError() << "expected [B, H, N, D] with a static D, but got " << type;
  constexpr int64_t count = 64, width = 16;
  KernelFrame frame(op, op.getTransposed() ? "prefix_mean_transposed" : "prefix_mean");
  TileBuilder &b = frame.b;
  Puller puller(frame, stored);
  int64_t channels = *type.staticDim(3), chunks = llvm::divideCeil(channels, width);
  Value length = frame.size(type.dim(2)), tiles = b.ceilDiv(length, count);
  Value slot = b.programId(tile::Axis::X);
  const TensorParameter source = frame.input(stored.at(op.getSource()));
  TensorParameter output = frame.output(type);
  Value channel = b.add(b.mul(slot, b.i32(width)), b.range(width));
  Value channelInside = b.less(channel, b.i32(channels));
  auto loop = scf::ForOp::create(b, b.i32(0), tiles, b.i32(1), b.zeros({width}));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value tile = loop.getInductionVar();
    if (op.getTransposed())
      tile = b.sub(b.sub(tiles, b.i32(1)), tile);
    RowTile rows = programRows(b, type, b.mul(tile, b.i32(count)), count, length);
    // Row by row upwards; for the transpose the tile is read with its last row first.
    if (op.getTransposed()) {
      rows.scalarStart = b.add(rows.scalarStart, b.i32(count - 1));
      rows.offsets = b.sub(b.i32(0), b.range(count));
      rows.token = b.add(rows.scalarStart, rows.offsets);
      rows.inside = b.less(rows.token, length);
    }
    Chunk chunk{0, width, width};
    Value mask = b.both(b.column(rows.inside), b.row(channelInside));
    auto at = [&](const TensorParameter &tensor) {
      return b.addPtr(puller.pointers(tensor, rows, &chunk), b.broadcast(b.mul(slot, b.i32(width)), {count, width}));
    };
    Value x = b.cast(b.load(at(source), mask), b.getF32Type());
    Value weight = b.div(b.f32(1), b.cast(b.add(rows.token, b.i32(1)), b.getF32Type()));
    if (op.getTransposed())
      x = b.mul(x, b.column(weight));
    Value sums = b.add(b.prefixSum(x), b.row(loop.getRegionIterArg(0)));
    Value mean = op.getTransposed() ? sums : b.mul(sums, b.column(weight));
    b.store(at(output), b.cast(mean, type.getElementType()), mask);
    scf::YieldOp::create(b, b.add(loop.getRegionIterArg(0), b.reduceSum(x, 0)));
  }
  stored.record(ValueRange(op.getResult()),
                frame.finish({{std::to_string(chunks), type.dim(1).str(), type.dim(0).str()}, 4, 1}));
  return success();
}

// A program takes 16 channels of one head and one sequence, goes through its rows for their sum, and again to store the
// mean at each.
LogicalResult lowerSequenceMean(attn::SequenceMeanOp op, StoredValues &stored) {
  attn::WholeTensorType type = wholeType(op.getResult());
  constexpr int64_t count = 64, width = 16;
  KernelFrame frame(op, "sequence_mean");
  TileBuilder &b = frame.b;
  Puller puller(frame, stored);
  const TensorParameter cuSeqlens = frame.input(stored.at(op.getCuSeqlens()));
  TensorParameter output = frame.output(type);
  int64_t channels = *type.staticDim(3);
  Value slot = b.programId(tile::Axis::X), sequence = b.programId(tile::Axis::Z);
  Value length = frame.size(type.dim(2)), zero = b.i32(0);
  Value first = sequenceStart(b, cuSeqlens, sequence, length);
  Value past = sequenceStart(b, cuSeqlens, b.add(sequence, b.i32(1)), length);
  Value begin = b.mul(slot, b.i32(width));
  Chunk chunk{0, width, width, begin, channels % width ? channels : 0};
  // Each tile of the sequence's rows, in turn.
  auto overRows = [&](ValueRange initial, auto body) {
    auto loop = scf::ForOp::create(b, first, past, b.i32(count), initial);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    RowTile rows = partRows(b, type, loop.getInductionVar(), count, past).of(type, zero, b.programId(tile::Axis::Y));
    SmallVector<Value> next = body(rows, loop.getRegionIterArgs());
    if (!next.empty()) // A loop that carries nothing has its terminator already.
      scf::YieldOp::create(b, next);
    return loop;
  };
  auto sums = overRows(b.zeros({count, width}), [&](const RowTile &rows, ValueRange sum) -> SmallVector<Value> {
    return {b.add(sum[0], b.cast(puller.pull(op.getSource(), rows, chunk, Zeros::Rows), b.getF32Type()))};
  });
  Value size = b.cast(b.sub(past, first), b.getF32Type());
  Value mean = b.div(b.reduceSum(sums.getResult(0), 0), size);
  Value tile = b.cast(b.broadcast(b.row(mean), {count, width}), type.getElementType());
  overRows({}, [&](const RowTile &rows, ValueRange) -> SmallVector<Value> {
    puller.store(output, rows, &chunk, tile);
    return {};
  });
  std::string chunks = std::to_string(llvm::divideCeil(channels, width));
  stored.record(ValueRange(op.getResult()),
                frame.finish({{chunks, type.dim(1).str(), cuSeqlens.type.dim(0).str() + "-1"}, 4, 1}));
  return success();
}

/// The rows that a tap takes for `rows`, inside where these and they exist. Rows that the tap does not meet are not
/// loaded, so a convolution in the source must not pick neighbours here.
static RowTile rowsOfTap(KernelFrame &frame, attn::ConvolveTapsGradOp op, const TapGeometry &geometry,
                         const RowTile &rows, Value tap, const StoredValues &stored) {
  TileBuilder &b = frame.b;
  RowTile moved = rows;
  Value zero = b.i32(0);
  auto within = [&](Value x, Value end) {
    return b.both(b.compareInt(arith::CmpIPredicate::sge, x, zero), b.less(x, end));
  };
  auto offsetOf = [&](Value index) { return b.mul(b.sub(index, b.i32(geometry.centre)), b.i32(geometry.direction)); };
  Value inside;
  if (geometry.grid) {
    Value columns = b.i32((*op.getGrid())[1]), lines = b.i32((*op.getGrid())[0]);
    Value down = offsetOf(b.div(tap, b.i32(geometry.side))), right = offsetOf(b.rem(tap, b.i32(geometry.side)));
    Value y = b.sub(b.div(rows.token, columns), down), x = b.sub(b.rem(rows.token, columns), right);
    inside = b.both(within(y, lines), within(x, columns));
    moved.token = b.add(b.mul(y, columns), x);
  } else {
    moved.token = b.sub(rows.token, offsetOf(tap));
    Value cuSeqlens = op.getCuSeqlens() ? stored.at(op.getCuSeqlens()) : Value();
    Value length = frame.size(wholeType(op.getSource()).dim(2));
    SequenceOfRows sequence = sequenceOfRows(frame, cuSeqlens, rows.token, length);
    inside = b.both(b.compareInt(arith::CmpIPredicate::sge, moved.token, sequence.first),
                    b.less(moved.token, sequence.past));
  }
  moved.scalarStart = moved.offsets = Value();
  moved.columns = 0;
  moved.inside = b.both(rows.inside, inside);
  return moved;
}

/// Stores sums over rows of a tap's products as the program's part of [parts, K, H·C].
static void storeTapSums(KernelFrame &frame, const TensorParameter &output, Value part, Value tap, int64_t channels,
                         ArrayRef<Chunk> chunks, ValueRange sums) {
  TileBuilder &b = frame.b;
  Value offset = b.add(b.mul(b.cast(part, b.getI64Type()), output.strides[0]),
                       b.mul(b.cast(tap, b.getI64Type()), output.strides[1]));
  offset = b.add(offset, b.cast(b.mul(b.programId(tile::Axis::Y), b.i32(channels)), b.getI64Type()));
  for (auto [chunk, sum] : llvm::zip(chunks, sums)) {
    Value pointers = b.addPtr(b.addPtr(output.pointer, offset), b.add(b.range(chunk.width), chunk.start(b)));
    b.store(pointers, b.reduceSum(sum, 0), chunk.inside(b));
  }
}

// taps' gradient [K, H·C]: parts of the tokens of all batches are summed by a program each, per head and tap, into
// [parts, K, H·C]; an ordinary sum adds the parts.
LogicalResult lowerTapsGrad(attn::ConvolveTapsGradOp op, StoredValues &stored) {
  attn::WholeTensorType from = wholeType(op.getSource()), to = wholeType(op.getResult());
  int64_t taps = *to.staticDim(0), channels = *from.staticDim(3);
  const TapGeometry geometry = TapGeometry::of(op, taps);
  constexpr int64_t count = 64, parts = 8, widest = 128;
  KernelFrame frame(op, "taps_grad");
  TileBuilder &b = frame.b;
  Puller puller(frame, stored);
  Value length = frame.size(from.dim(2)), part = b.programId(tile::Axis::X), tap = b.programId(tile::Axis::Z);
  // A program holds a product and a sum of every channel: wide rows are shared among programs.
  SmallVector<Chunk> chunks = chunksOf(channels);
  std::optional<WideValues> wide = splitChannels(channels, widest);
  if (wide) {
    Value program = part, pieces = b.i32(wide->parts);
    part = b.div(program, pieces);
    chunks = wide->chunksAt(b.mul(b.rem(program, pieces), b.i32(wide->width)));
  }
  Value tiles = b.ceilDiv(length, count), batches = frame.size(from.dim(0));
  SmallVector<Value> sums;
  for (const Chunk &chunk : chunks)
    sums.push_back(b.zeros({count, chunk.width}));
  auto loop = scf::ForOp::create(b, part, b.mul(tiles, batches), b.i32(parts), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar(), batch = b.div(i, tiles), tile = b.sub(i, b.mul(batch, tiles));
    RowTile rows = programRows(b, from, b.mul(tile, b.i32(count)), count, length);
    rows.batch = batch;
    RowTile moved = rowsOfTap(frame, op, geometry, rows, tap, stored);
    SmallVector<Value> next;
    for (auto [chunk, sum] : llvm::zip(chunks, loop.getRegionIterArgs())) {
      // Both factors are zeroed past the end: 0 times infinity or NaN is NaN.
      Value x = b.cast(puller.pull(op.getSource(), moved, chunk, Zeros::Rows), b.getF32Type());
      Value g = b.cast(puller.pull(op.getGradient(), rows, chunk, Zeros::Rows), b.getF32Type());
      next.push_back(b.add(sum, b.mul(x, g)));
    }
    scf::YieldOp::create(b, next);
  }
  auto partial = attn::WholeTensorType::get({b.getStringAttr(std::to_string(parts)), to.getDims()[0], to.getDims()[1]},
                                            b.getF32Type());
  TensorParameter output = frame.output(partial);
  storeTapSums(frame, output, part, tap, channels, chunks, loop.getResults());
  auto programs = overParts({std::to_string(parts), from.dim(1).str(), std::to_string(taps)}, wide);
  auto results = frame.finish({programs, 4, 1});
  return addParts(op, op.getResult(), results[0], stored);
}

} // namespace weft
