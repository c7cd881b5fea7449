// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See RecurrenceKernel.h.
#include "compiler/Conversion/AttnToTile/Recurrences/RecurrenceKernel.h"
#include "compiler/Conversion/AttnToTile/Rows/Sequences.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

static constexpr double log2OfE = 1.4426950408889634;
/// 2^-160 is 0 in f32, and so is what a longer decay leaves.
static constexpr double mostDecay = 160;

RecurrenceKernel::RecurrenceKernel(Operation *op, const attn::RecurrenceOperands &its, const StoredDecays &storedDecays,
                                   StoredValues &stored, StringRef name)
    : frame(op, name), b(frame.b), puller(frame, stored), its(its), side(its.chunk()),
      element(its.queryType().getElementType()), storedDecays(storedDecays) {
  Value z = b.programId(tile::Axis::Z), length = frame.size(its.queryType().dim(2));
  place = {z, z, b.programId(tile::Axis::Y), {}, length, {}};
  if (its.cuSeqlens) {
    const TensorParameter starts = frame.input(stored.at(its.cuSeqlens));
    place.batch = b.i32(0);
    place.base = sequenceStart(b, starts, z, length);
    place.length = b.sub(sequenceStart(b, starts, b.add(z, b.i32(1)), length), place.base);
  }
  place.chunks = b.ceilDiv(place.length, side);
}

RowTile RecurrenceKernel::rows(Value chunk) {
  RowTile rows = rowsFrom(b, b.mul(chunk, b.i32(side)), side, place.length, /*bounded=*/true)
                     .of(its.queryType(), place.batch, place.head);
  rows.base = place.base;
  return rows;
}

Value RecurrenceKernel::tile(Value tensor, const RowTile &rows, const Chunk &chunk) {
  return b.broadcast(puller.pull(tensor, rows, chunk), {side, chunk.width});
}

Value RecurrenceKernel::numbers(Value tensor, const RowTile &rows) {
  return b.broadcast(b.cast(puller.pullRow(tensor, rows), b.getF32Type()), {side});
}

void RecurrenceKernel::store(const TensorParameter &output, const RowTile &rows, const Chunk *chunk, Value tile) {
  puller.store(output, rows, chunk, tile);
}

Value RecurrenceKernel::product(Value left, Value right, Value sum) {
  if (!sum)
    sum = b.zeros({TileBuilder::shapeOf(left)[0], TileBuilder::shapeOf(right)[1]});
  return b.dot(b.cast(left, element), b.cast(right, element), sum, tile::Precision::TF32x3);
}

/// A decay in powers of two, as a multiple of 2⁻⁶ and what is left. Adding and taking off 1.5 · 2¹⁷ rounds to such a
/// multiple.
static std::pair<Value, Value> splitDecay(TileBuilder &b, Value decay) {
  Value power = b.mul(b.cast(decay, b.getF32Type()), b.f32(log2OfE));
  power = b.min(b.max(power, b.f32(-mostDecay)), b.f32(mostDecay));
  Value coarse = b.sub(b.add(power, b.f32(196608)), b.f32(196608));
  return {coarse, b.sub(power, coarse)};
}

std::pair<Value, Value> RecurrenceKernel::sumsAt(const RowTile &rows, const Chunk &keys) {
  auto at = [&](Value sums) { return its.decaysByChannel() ? tile(sums, rows, keys) : numbers(sums, rows); };
  return {at(storedDecays.coarse), at(storedDecays.fine)};
}

std::pair<Value, Value> RecurrenceKernel::sumsAtEnd(const RowTile &rows, const Chunk &keys) {
  Value end = b.min(b.add(rows.scalarStart, b.i32(side)), place.length);
  RowTile last = rowsFrom(b, b.sub(end, b.i32(1)), 1, place.length, /*bounded=*/false)
                     .of(its.queryType(), place.batch, place.head);
  last.base = place.base;
  auto at = [&](Value sums) {
    return its.decaysByChannel() ? b.reshape(puller.pull(sums, last, keys), {keys.width})
                                 : b.reduceSum(puller.pullRow(sums, last), 0);
  };
  return {at(storedDecays.coarse), at(storedDecays.fine)};
}

ChunkDecays RecurrenceKernel::decays(const RowTile &rows, const Chunk &keys) {
  ChunkDecays decays;
  if (!its.decay)
    return decays;
  decays.byChannel = its.decaysByChannel();
  if (storedDecays.coarse) {
    // Past the last token as at it: no factor of what is not there is infinite.
    std::tie(decays.coarse, decays.fine) = sumsAt(rows.clamped(b, place.length), keys);
    std::tie(decays.coarseEnd, decays.fineEnd) = sumsAtEnd(rows, keys);
    return decays;
  }
  auto [coarse, fine] = splitDecay(b, numbers(its.decay, rows));
  std::tie(decays.coarse, decays.fine) = std::pair(b.prefixSum(coarse), b.prefixSum(fine));
  decays.coarseEnd = b.reduceSum(coarse, 0);
  decays.fineEnd = b.reduceSum(fine, 0);
  return decays;
}

Value RecurrenceKernel::fromStart(const ChunkDecays &decays) {
  if (!decays)
    return {};
  Value factors = b.exp2(b.add(decays.coarse, decays.fine));
  return decays.byChannel ? factors : b.column(factors);
}

Value RecurrenceKernel::toEnd(const ChunkDecays &decays) {
  if (!decays)
    return {};
  Value factors = b.exp2(b.add(b.sub(decays.coarseEnd, decays.coarse), b.sub(decays.fineEnd, decays.fine)));
  return decays.byChannel ? factors : b.column(factors);
}

Value RecurrenceKernel::decayed(Value tile, Value factors) {
  return factors ? b.mul(b.cast(tile, b.getF32Type()), factors) : tile;
}

void RecurrenceKernel::decayForProducts(Value &tile, Value &factors) {
  tile = b.cast(decayed(tile, factors), element);
  factors = {};
}

Value RecurrenceKernel::through(Value rows, Value state, Value factors) {
  return its.decaysByChannel() ? product(decayed(rows, factors), state) : decayed(product(rows, state), factors);
}

Value RecurrenceKernel::outer(Value a, Value x, Value factors, Value sum) {
  if (its.decaysByChannel())
    return product(b.transpose(b.cast(decayed(a, factors), element)), x, sum);
  return product(b.transpose(a), decayed(x, factors), sum);
}

Value RecurrenceKernel::carried(Value state, const ChunkDecays &decays) {
  if (!decays)
    return state;
  Value factor = b.exp2(b.add(decays.coarseEnd, decays.fineEnd));
  return b.mul(state, decays.byChannel ? b.column(factor) : factor);
}

Value RecurrenceKernel::ordered(bool strict) {
  Value n = b.column(b.range(side)), m = b.row(b.range(side));
  return b.compareInt(strict ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sle, m, n);
}

Value RecurrenceKernel::acrossMiddle(int64_t half) {
  // Block numbers of both differ in the last bit alone.
  Value n = b.div(b.range(side), b.i32(half)), m = n;
  Value later = b.compareInt(arith::CmpIPredicate::eq, b.column(n), b.row(b.add(m, b.i32(1))));
  return b.both(later, b.row(b.compareInt(arith::CmpIPredicate::eq, b.rem(m, b.i32(2)), b.i32(0))));
}

Value RecurrenceKernel::isLaterHalf(int64_t half) {
  return b.column(b.compareInt(arith::CmpIPredicate::eq, b.rem(b.div(b.range(side), b.i32(half)), b.i32(2)), b.i32(1)));
}

Value RecurrenceKernel::aboutMiddle(const ChunkDecays &decays, const RowTile &rows, const Chunk &keys, int64_t half) {
  // The last token of the earlier half, or of all where that has less.
  Value offset = b.sub(b.range(side), b.rem(b.range(side), b.i32(2 * half)));
  Value middle = b.add(b.add(offset, b.i32(half - 1)), rows.scalarStart);
  RowTile at = rows.anyRows(b.min(middle, b.sub(place.length, b.i32(1))), {}); // as `decays` are past the last token
  auto [coarse, fine] = sumsAt(at, keys);
  Value exponent = b.add(b.sub(decays.coarse, coarse), b.sub(decays.fine, fine));
  Value sign = b.select(isLaterHalf(half), b.full({side, 1}, 1, b.getF32Type()), b.full({side, 1}, -1, b.getF32Type()));
  return b.exp2(b.mul(exponent, sign));
}

Value RecurrenceKernel::decayPairs(Value weights, const ChunkDecays &decays, bool strict) {
  Value counts = ordered(strict);
  if (!decays || decays.byChannel)
    return b.select(counts, weights, b.zeros({side, side}));
  Value exponent =
      b.add(b.sub(b.column(decays.coarse), b.row(decays.coarse)), b.sub(b.column(decays.fine), b.row(decays.fine)));
  // 2^-inf is 0; of the others only sums from m+1 to n are taken.
  Value none = b.full({side, side}, -std::numeric_limits<double>::infinity(), b.getF32Type());
  return b.mul(weights, b.exp2(b.select(counts, exponent, none)));
}

Value RecurrenceKernel::pairs(Value left, Value right, const ChunkDecays &decays, bool strict) {
  return decayPairs(product(left, b.transpose(right)), decays, strict);
}

Value RecurrenceKernel::pairsOfQueries(const RowTile &rows, Value q, Value k, const ChunkDecays &decays, double scale) {
  if (storedDecays.pairs)
    return tile(storedDecays.pairs, rows, {0, side, side});
  return b.mul(pairs(q, k, decays), b.f32(scale));
}

Value RecurrenceKernel::pairsByChannel(const RowTile &rows) {
  const int64_t most =
      paddedChannels(its.headSize()).width > 64
          ? 32
          : 64; // of all channels at once a thread has no room for the decays, and those of the middles
  Value own = b.compareInt(arith::CmpIPredicate::eq, b.column(b.range(side)), b.row(b.range(side)));
  Value zero = b.zeros({side, side});
  auto loop = scf::ForOp::create(b, b.i32(0), b.i32(channelParts(its.headSize(), most)), b.i32(1), zero);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Chunk keys = channelPart(b, its.headSize(), most, loop.getInductionVar());
  Value q = tile(its.query, rows, keys), k = tile(its.key, rows, keys);
  ChunkDecays decays;
  std::tie(decays.coarse, decays.fine) = sumsAt(rows, keys);
  Value same = b.reduceSum(b.mul(b.cast(q, b.getF32Type()), b.cast(k, b.getF32Type())), 1);
  Value sum = b.add(loop.getRegionIterArg(0), b.select(own, b.broadcast(b.column(same), {side, side}), zero));
  for (int64_t half = side / 2; half >= 1; half /= 2) {
    // Of pairs across the middle, which alone are taken, one is a query of the later half, the other a key of the other.
    Value both = b.select(b.broadcast(isLaterHalf(half), {side, keys.width}), q, k);
    Value factored = b.cast(decayed(both, aboutMiddle(decays, rows, keys, half)), element);
    Value across = product(factored, b.transpose(factored));
    sum = b.add(sum, b.select(acrossMiddle(half), across, zero));
  }
  scf::YieldOp::create(b, sum);
  return loop.getResult(0);
}

RecurrenceKernel::Mixed RecurrenceKernel::mixByChannel(Value weights, Value q, Value k, const ChunkDecays &decays,
                                                       const RowTile &rows, const Chunk &keys) {
  Value own = b.compareInt(arith::CmpIPredicate::eq, b.column(b.range(side)), b.row(b.range(side)));
  Value zero = b.zeros({side, side});
  auto wide = [&](Value value) { return b.cast(value, b.getF32Type()); };
  // A token and itself: no decay lies between.
  Value diagonal = b.column(b.reduceSum(b.select(own, weights, zero), 1));
  Mixed sum{b.mul(wide(k), diagonal), b.mul(wide(q), diagonal), b.zeros({side, keys.width})};
  for (int64_t half = side / 2; half >= 1; half /= 2) {
    // Factors of the other half, which may be infinite where decays are positive, are not to meet weights of 0.
    Value factors = aboutMiddle(decays, rows, keys, half), none = b.zeros({side, keys.width});
    Value ofLaterHalf = b.broadcast(isLaterHalf(half), {side, keys.width});
    Value later = b.select(ofLaterHalf, factors, none), earlier = b.select(ofLaterHalf, none, factors);
    Value across = b.cast(b.select(acrossMiddle(half), weights, zero), element);
    Value both = b.cast(decayed(b.select(ofLaterHalf, q, k), factors), element), no = b.cast(none, element);
    Value ofLater = product(across, b.select(ofLaterHalf, no, both));
    Value ofEarlier = product(b.transpose(across), b.select(ofLaterHalf, both, no));
    sum.later = b.add(sum.later, b.mul(ofLater, later));
    sum.earlier = b.add(sum.earlier, b.mul(ofEarlier, earlier));
    Value difference = b.select(ofLaterHalf, ofLater, b.mul(ofEarlier, b.f32(-1)));
    sum.difference = b.add(sum.difference, b.mul(wide(both), difference));
  }
  return sum;
}

Value RecurrenceKernel::statePointers(const TensorParameter &tensor, ArrayRef<Value> indices, const Chunk &keys,
                                      const Chunk &values) {
  Value pointer = tensor.pointer;
  auto wide = [&](Value value) { return b.cast(value, b.getI64Type()); };
  for (auto [index, stride] : llvm::zip(indices, tensor.strides))
    pointer = b.addPtr(pointer, b.mul(wide(index), stride));
  pointer = b.addPtr(pointer, b.mul(wide(keys.start(b)), tensor.strides.back()));
  pointer = b.addPtr(pointer, values.start(b));
  Value row = b.mul(b.range(keys.width), b.cast(tensor.strides.back(), b.getI32Type()));
  Value offsets = b.add(b.column(row), b.row(b.range(values.width)));
  return b.addPtr(b.broadcast(pointer, {keys.width, values.width}), offsets);
}

Value RecurrenceKernel::stateExists(const Chunk &keys, const Chunk &values) {
  Value down = keys.inside(b), across = values.inside(b), mask;
  if (down)
    mask = b.column(down);
  if (across)
    mask = mask ? b.both(mask, b.row(across)) : b.row(across);
  return mask ? b.broadcast(mask, {keys.width, values.width}) : mask;
}

Value RecurrenceKernel::loadState(Value tensor, const Chunk &keys, const Chunk &values) {
  if (!tensor)
    return b.zeros({keys.width, values.width});
  const TensorParameter source = frame.input(puller.stored.at(tensor));
  // Of packed sequences there may be more than states.
  Value exists = b.broadcast(b.less(place.state, frame.size(source.type.dim(0))), {keys.width, values.width});
  if (Value inside = stateExists(keys, values))
    exists = b.both(exists, inside);
  return b.cast(b.load(statePointers(source, {place.state, place.head}, keys, values), exists), b.getF32Type());
}

void RecurrenceKernel::storeState(const TensorParameter &output, const Chunk &keys, const Chunk &values, Value tile) {
  Value exists = b.broadcast(b.less(place.state, frame.size(output.type.dim(0))), {keys.width, values.width});
  if (Value inside = stateExists(keys, values))
    exists = b.both(exists, inside);
  b.store(statePointers(output, {place.state, place.head}, keys, values), b.cast(tile, output.type.getElementType()),
          exists);
}

SmallVector<Value> RecurrenceKernel::chunkIndices(Value chunk) {
  // Packed sequences follow one another; each begins a chunk of its own.
  if (place.base)
    chunk = b.add(chunk, b.add(b.div(place.base, b.i32(side)), place.state));
  return {place.batch, place.head, chunk};
}

attn::WholeTensorType RecurrenceKernel::chunkStatesType() {
  attn::WholeTensorType query = its.queryType();
  std::string chunks = "cdiv(" + query.dim(2).str() + ", " + std::to_string(side) + ")";
  if (its.cuSeqlens)
    chunks += " + " + wholeType(its.cuSeqlens).dim(0).str();
  SmallVector<StringAttr> dims{query.getDims()[0], query.getDims()[1], b.getStringAttr(chunks), query.getDims()[3],
                               its.valueType().getDims()[3]};
  return attn::WholeTensorType::get(dims, element);
}

Value RecurrenceKernel::loadChunkState(Value tensor, Value chunk, const Chunk &keys, const Chunk &values) {
  const TensorParameter source = frame.input(tensor);
  return b.load(statePointers(source, chunkIndices(chunk), keys, values), stateExists(keys, values));
}

void RecurrenceKernel::storeChunkState(const TensorParameter &output, Value chunk, const Chunk &keys,
                                       const Chunk &values, Value tile) {
  b.store(statePointers(output, chunkIndices(chunk), keys, values), b.cast(tile, output.type.getElementType()),
          stateExists(keys, values));
}

std::array<std::string, 3> RecurrenceKernel::grid(int64_t across) {
  std::string states =
      its.cuSeqlens ? "(" + wholeType(its.cuSeqlens).dim(0).str() + ") - 1" : its.queryType().dim(0).str();
  return {std::to_string(across), its.queryType().dim(1).str(), states};
}

int64_t RecurrenceKernel::warps() const {
  int64_t keys = paddedChannels(its.headSize()).width;
  return keys > 64 || (keys > 32 && its.decaysByChannel()) ? 8 : 4;
}

std::array<std::string, 3> RecurrenceKernel::chunkGrid() {
  std::array<std::string, 3> all = grid(1);
  all[0] = tilesOf(its.queryType(), side);
  return all;
}

void RecurrenceKernel::withChunk(function_ref<void(Value)> body) {
  Value chunk = b.programId(tile::Axis::X);
  if (!its.cuSeqlens)
    return body(chunk);
  auto exists = scf::IfOp::create(b, b.less(chunk, place.chunks), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(exists.thenBlock());
  body(chunk);
}

Chunk paddedChannels(int64_t size) { return {0, std::max<int64_t>(16, llvm::PowerOf2Ceil(size)), size}; }

int64_t channelParts(int64_t size, int64_t most) { return llvm::divideCeil(size, most); }

int64_t columnsBeside(int64_t keys) { return std::max<int64_t>(16, 8192 / keys); }

Chunk channelPart(TileBuilder &b, int64_t size, int64_t most, Value part) {
  if (size <= most)
    return paddedChannels(size);
  return {0, most, most, b.mul(part, b.i32(most)), size % most ? size : 0};
}

/// Sums of the decays, coarse and fine.
static std::pair<Value, Value> lowerDecaySums(Operation *op, const attn::RecurrenceOperands &its,
                                              StoredValues &stored) {
  constexpr int64_t most = 64;
  RecurrenceKernel kernel(op, its, {}, stored, "decay_sums");
  TileBuilder &b = kernel.b;
  attn::WholeTensorType type = its.byQueryHead(its.decay).withElement(b.getF32Type());
  TensorParameter coarseOut = kernel.frame.output(type), fineOut = kernel.frame.output(type);
  kernel.withChunk([&](Value chunk) {
    RowTile rows = kernel.rows(chunk);
    for (int64_t part = 0; part < channelParts(its.headSize(), most); ++part) {
      Chunk keys = channelPart(b, its.headSize(), most, b.i32(part));
      auto [coarse, fine] = splitDecay(b, kernel.tile(its.decay, rows, keys));
      kernel.store(coarseOut, rows, &keys, b.prefixSum(coarse));
      kernel.store(fineOut, rows, &keys, b.prefixSum(fine));
    }
  });
  SmallVector<Value> made = kernel.frame.finish({kernel.chunkGrid(), 4, 1});
  stored.recordAsValues(made);
  return {made[0], made[1]};
}

StoredDecays lowerDecays(Operation *op, const attn::RecurrenceOperands &its, StoredValues &stored, double scale,
                         int64_t parts) {
  StoredDecays storedDecays;
  // Pairs of f32 would take memory that a block has for queries and keys of wide heads.
  const bool fit = !its.queryType().getElementType().isF32();
  if (!its.decay || !(its.decaysByChannel() || (parts > 1 && fit)))
    return storedDecays;
  if (its.decaysByChannel())
    std::tie(storedDecays.coarse, storedDecays.fine) = lowerDecaySums(op, its, stored);
  RecurrenceKernel kernel(op, its, storedDecays, stored, "decayed_pairs");
  TileBuilder &b = kernel.b;
  SmallVector<StringAttr> dims(its.queryType().getDims());
  dims.back() = b.getStringAttr(std::to_string(kernel.side));
  TensorParameter output = kernel.frame.output(attn::WholeTensorType::get(dims, kernel.element)), coarse, fine;
  if (!storedDecays.coarse) {
    auto sums = attn::WholeTensorType::get(ArrayRef(dims).drop_back(), b.getF32Type());
    coarse = kernel.frame.output(sums), fine = kernel.frame.output(sums);
  }
  kernel.withChunk([&](Value chunk) {
    RowTile rows = kernel.rows(chunk);
    Chunk columns{0, kernel.side, kernel.side};
    Value pairs;
    if (its.decaysByChannel()) {
      pairs = kernel.pairsByChannel(rows);
    } else {
      Chunk keys = paddedChannels(its.headSize());
      ChunkDecays decays = kernel.decays(rows, keys);
      pairs = kernel.pairs(kernel.tile(its.query, rows, keys), kernel.tile(its.key, rows, keys), decays);
      kernel.store(coarse, rows, nullptr, decays.coarse);
      kernel.store(fine, rows, nullptr, decays.fine);
    }
    kernel.store(output, rows, &columns, b.mul(pairs, b.f32(scale)));
  });
  const int64_t warps = its.decaysByChannel() ? kernel.warps() : 4; // no more is held than a chunk's products
  SmallVector<Value> results = kernel.frame.finish({kernel.chunkGrid(), warps, 1});
  stored.recordAsValues(results);
  storedDecays.pairs = results[0];
  if (!its.decaysByChannel())
    storedDecays.coarse = results[1], storedDecays.fine = results[2];
  return storedDecays;
}

} // namespace weft
