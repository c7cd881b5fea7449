// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The kernel of an expansion. A program takes some tokens of one batch with all their heads, a few at a time.
//
// A value lives on the tile in one of two forms, both of whole matrix instructions for any number of heads:
//   signals  [tokens · D, heads of a piece]: rows are a token's channels. A convolution is a product for each tap: rows
//            shifted along the channels, times the tap's weights. Its sums have this form.
//   rows     [tokens · heads of a piece, channels of a chunk]. A linear map is a product of them; its sums have this
//            form and are the next one's operand without leaving their registers.
// Heads are cut into pieces of powers of two (36 = 32 + 4), channels into chunks, so that next to nothing is multiplied
// in vain. Sums stay in f32 from the first product to the store; operands are rounded to the source's element type.
// A residual is what a product's sums start from.
#include "compiler/Conversion/AttnToTile/Attend.h"
#include "compiler/Conversion/AttnToTile/Expansion.h"
#include "compiler/Conversion/AttnToTile/ScalarRegion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {
namespace {

/// A value on the tile: signals, one tile for each piece; or rows, one for each chunk of each piece.
struct Tiles {
  bool asRows = false;
  SmallVector<Value> tiles;
};

class ExpansionKernel {
public:
  ExpansionKernel(const Expansion &expansion, StoredValues &stored)
      : expansion(expansion), stored(stored), tiling(expansionTiling(expansion)), frame(expansion.ops.back(), "expand"),
        b(frame.b), type(wholeType(expansion.source)), element(type.getElementType()) {}
  void run();

private:
  void loadAllWeights();
  void computeTokens(Value first, Value count, const TensorParameter &output);

  const Tiles &compute(Value value);
  Tiles product(Operation *op, const Tiles *start);
  Tiles convolve(attn::HeadConvOp op, const Tiles *start);
  Tiles multiply(attn::LinearOp op, const Tiles *start);
  Tiles map(attn::MapOp op);
  /// The product that a map adds something to, if it does nothing else and the product can start from that.
  Operation *residualOf(attn::MapOp op, Value &added);

  /// The sums that a product's tile starts from.
  Value startOf(const Tiles *start, unsigned index, Value bias, ArrayRef<int64_t> shape);
  /// [tokens, D, width] of each piece, as operands are stored.
  SmallVector<Value> signals(Value value);
  Value operandOf(const ConvTerm &term, ArrayRef<Value> signals, ArrayRef<HeadPiece> pieces, int64_t taps);
  Value shifted(Value signal, int64_t tap, int64_t taps);
  Value firstHeads(Value signal, const HeadPiece &piece);
  /// A value's tiles as rows, those of signals of all channels; or in chunks, as sums of a linear map are.
  Tiles rowsOf(Value value);
  Tiles chunkedRowsOf(Value value);

  Tiles loadSource(bool asRows, bool wide);
  Value address(const TensorParameter &tensor, const HeadPiece &piece, const Chunk &chunk, ArrayRef<int64_t> order,
                int64_t heads);
  Value exists(const HeadPiece &piece, ArrayRef<int64_t> order, int64_t heads);
  void store(const TensorParameter &output, const Tiles &tiles);

  int64_t channels(Value value) const { return *wholeType(value).staticDim(3); }
  /// Whether a value's tiles are rows: of the source, for a linear map; else what is computed by one.
  bool comesAsRows(Value value) const;
  /// Chunks of a value's channels as rows: of signals, all at once.
  SmallVector<Chunk> chunksOfRows(Value value) const;
  SmallVector<HeadPiece> pieces(Value value) const { return headPieces(*wholeType(value).staticDim(1)); }
  bool isInside(Value value) const { return value != expansion.source; }

  const Expansion &expansion;
  StoredValues &stored;
  ExpansionTiling tiling;
  KernelFrame frame;
  TileBuilder &b;
  attn::WholeTensorType type;
  Type element;
  llvm::DenseMap<Operation *, ProductWeights> weights;
  std::map<void *, Tiles> known; // by value
  Value firstToken, tokensLeft;  // i32: of the tokens at hand
};

/// `vector` along `axis` of three.
Value alongOfThree(TileBuilder &b, Value vector, int64_t axis) {
  for (int64_t i = 0; i < 3; ++i)
    if (i != axis)
      vector = b.expand(vector, i);
  return vector;
}

Value permute(TileBuilder &b, Value value, ArrayRef<int32_t> order) {
  SmallVector<int64_t> shape;
  for (int32_t axis : order)
    shape.push_back(TileBuilder::shapeOf(value)[axis]);
  return tile::PermuteOp::create(b, RankedTensorType::get(shape, TileBuilder::elementOf(value)), value, order);
}

/// Tensors side by side on a new last axis: of four, [a, c] beside [b, d], whose row-major order is a, b, c, d.
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

// --- memory ---

// `order` says which of (token, head, channel) each axis of the tile is.
Value ExpansionKernel::address(const TensorParameter &tensor, const HeadPiece &piece, const Chunk &chunk,
                               ArrayRef<int64_t> order, int64_t heads) {
  Value pointer = tensor.pointer;
  auto move = [&](Value index, Value stride) {
    Value step = b.cast(index, b.getI64Type());
    pointer = b.addPtr(pointer, stride ? b.mul(step, stride) : step);
  };
  move(b.programId(tile::Axis::Z), tensor.strides[0]);
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
    if (what < 2)
      step = b.mul(step, b.cast(tensor.strides[what == 0 ? 2 : 1], b.getI32Type()));
    step = alongOfThree(b, step, axis);
    offset = offset ? b.add(offset, step) : step;
    shape.push_back(sizes[what]);
  }
  return b.addPtr(b.broadcast(pointer, shape), offset);
}

Value ExpansionKernel::exists(const HeadPiece &piece, ArrayRef<int64_t> order, int64_t heads) {
  Value mask;
  for (auto [axis, what] : llvm::enumerate(order)) {
    if (what == 2 || (what == 1 && piece.valid == heads))
      continue;
    Value inside = what == 0 ? b.less(b.range(tiling.tokens), tokensLeft) : b.less(b.range(heads), b.i32(piece.valid));
    inside = alongOfThree(b, inside, axis);
    mask = mask ? b.both(mask, inside) : inside;
  }
  return mask;
}

/// `wide`: with as many heads a piece as a product's sums have columns.
Tiles ExpansionKernel::loadSource(bool asRows, bool wide) {
  const TensorParameter tensor = frame.input(stored.lookup(expansion.source));
  Tiles loaded{asRows, {}};
  int64_t size = channels(expansion.source);
  for (const HeadPiece &piece : pieces(expansion.source)) {
    int64_t heads = wide ? piece.columns() : piece.width;
    const SmallVector<int64_t> order = {0, 1, 2};
    if (asRows) {
      for (const Chunk &chunk : channelChunks(size)) {
        Value tile = b.load(address(tensor, piece, chunk, order, heads), exists(piece, order, heads));
        loaded.tiles.push_back(b.reshape(tile, {tiling.tokens * heads, chunk.width}));
      }
      continue;
    }
    Value tile = b.load(address(tensor, piece, {0, size, size}, order, heads), exists(piece, order, heads));
    loaded.tiles.push_back(b.reshape(permute(b, tile, {0, 2, 1}), {tiling.tokens * size, heads}));
  }
  return loaded;
}

void ExpansionKernel::store(const TensorParameter &output, const Tiles &tiles) {
  int64_t size = channels(expansion.root);
  const auto *tile = tiles.tiles.begin();
  const SmallVector<int64_t> order = {0, 1, 2};
  for (const HeadPiece &piece : pieces(expansion.root)) {
    if (!tiles.asRows) {
      Value signal = b.reshape(b.cast(*tile++, output.type.getElementType()), {tiling.tokens, size, piece.columns()});
      Value rows = permute(b, firstHeads(signal, piece), {0, 2, 1});
      b.store(address(output, piece, {0, size, size}, order, piece.width), rows, exists(piece, order, piece.width));
      continue;
    }
    for (const Chunk &chunk : channelChunks(size)) {
      Value rows = b.reshape(b.cast(*tile++, output.type.getElementType()), {tiling.tokens, piece.width, chunk.width});
      b.store(address(output, piece, chunk, order, piece.width), rows, exists(piece, order, piece.width));
    }
  }
}

// --- changes of form ---

bool ExpansionKernel::comesAsRows(Value value) const {
  if (!isInside(value) || value.getDefiningOp<attn::LinearOp>())
    return true;
  auto map = value.getDefiningOp<attn::MapOp>();
  return map && llvm::any_of(map.getInputs(), [&](Value v) { return isInside(v) && comesAsRows(v); });
}

SmallVector<Chunk> ExpansionKernel::chunksOfRows(Value value) const {
  int64_t size = channels(value);
  return comesAsRows(value) ? channelChunks(size) : SmallVector<Chunk>{{0, size, size}};
}

/// The heads of a piece out of the columns of a product's sums.
Value ExpansionKernel::firstHeads(Value signal, const HeadPiece &piece) {
  SmallVector<int64_t> shape(TileBuilder::shapeOf(signal));
  if (shape[2] == piece.width)
    return signal;
  Value halves = permute(b, b.reshape(signal, {shape[0], shape[1], 2, piece.width}), {0, 1, 3, 2});
  auto half = RankedTensorType::get({shape[0], shape[1], piece.width}, TileBuilder::elementOf(signal));
  return tile::SplitOp::create(b, half, half, halves).getLhs();
}

SmallVector<Value> ExpansionKernel::signals(Value value) {
  SmallVector<Value> signals;
  const Tiles &tiles = compute(value);
  for (auto [piece, tile] : llvm::zip(pieces(value), tiles.tiles)) {
    int64_t heads = TileBuilder::shapeOf(tile)[1];
    Value signal = b.reshape(b.cast(tile, element), {tiling.tokens, channels(value), heads});
    signal = firstHeads(signal, piece);
    if (piece.valid < piece.width && isInside(value)) {
      // A map of a head that does not exist may be anything.
      Value heads = alongOfThree(b, b.less(b.range(piece.width), b.i32(piece.valid)), 2);
      signal = b.select(b.broadcast(heads, TileBuilder::shapeOf(signal)), signal,
                        b.full(TileBuilder::shapeOf(signal), 0, element));
    }
    signals.push_back(signal);
  }
  return signals;
}

Tiles ExpansionKernel::rowsOf(Value value) {
  if (!isInside(value))
    return loadSource(true, false);
  const Tiles &tiles = compute(value);
  if (tiles.asRows)
    return tiles;
  Tiles rows{true, {}};
  for (auto [piece, signal] : llvm::zip(pieces(value), signals(value)))
    rows.tiles.push_back(b.reshape(permute(b, signal, {0, 2, 1}), {tiling.tokens * piece.width, channels(value)}));
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
      tile::SplitOp::create(b, half, half, permute(b, b.reshape(tile, {shape[0], 2, shape[1] / 2}), {0, 2, 1}));
  cut(b, halves.getLhs(), width, chunks);
  cut(b, halves.getRhs(), width, chunks);
}

Tiles ExpansionKernel::chunkedRowsOf(Value value) {
  Tiles rows = rowsOf(value);
  if (comesAsRows(value))
    return rows;
  Tiles chunked{true, {}};
  for (Value tile : rows.tiles)
    cut(b, tile, channelChunks(channels(value)).front().width, chunked.tiles);
  return chunked;
}

// --- products ---

Value ExpansionKernel::startOf(const Tiles *start, unsigned index, Value bias, ArrayRef<int64_t> shape) {
  Value sums = bias ? b.broadcast(bias, shape) : b.zeros(shape);
  if (!start)
    return sums;
  Value from = b.cast(start->tiles[index], b.getF32Type());
  return bias ? b.add(from, sums) : from;
}

/// result[d] = signal[d + tap - (taps - 1) / 2], as rows.
Value ExpansionKernel::shifted(Value signal, int64_t tap, int64_t taps) {
  return tile::ShiftOp::create(b, signal.getType(), signal, b.getI32IntegerAttr(1),
                               b.getI32IntegerAttr((taps - 1) / 2 - tap));
}

Value ExpansionKernel::operandOf(const ConvTerm &term, ArrayRef<Value> signals, ArrayRef<HeadPiece> pieces,
                                 int64_t taps) {
  Value signal = signals[term.piece];
  ArrayRef<int64_t> shape = TileBuilder::shapeOf(signal);
  SmallVector<Value> moved;
  for (int64_t tap = term.firstTap; tap < term.firstTap + term.taps; ++tap)
    moved.push_back(tap < taps ? shifted(signal, tap, taps) : b.full(shape, 0, element));
  return b.reshape(joined(b, moved), {shape[0] * shape[1], pieces[term.piece].width * term.taps});
}

Tiles ExpansionKernel::convolve(attn::HeadConvOp op, const Tiles *start) {
  SmallVector<HeadPiece> from = pieces(op.getSource()), to = pieces(op.getResult());
  int64_t taps = *wholeType(op.getWeight()).staticDim(2);
  SmallVector<Value> source = signals(op.getSource());
  const ProductWeights &parts = weights[op];
  Tiles sums;
  for (auto [i, piece] : llvm::enumerate(to))
    sums.tiles.push_back(startOf(start, i, parts.bias[i], {tiling.tokens * channels(op.getResult()), piece.columns()}));
  for (auto [t, term] : llvm::enumerate(convTerms(from, taps))) {
    Value operand = operandOf(term, source, from, taps);
    for (unsigned i = 0; i < to.size(); ++i)
      sums.tiles[i] = b.dot(operand, parts.parts[t][i], sums.tiles[i], tile::Precision::TF32);
  }
  return sums;
}

Tiles ExpansionKernel::multiply(attn::LinearOp op, const Tiles *start) {
  Tiles source = rowsOf(op.getSource());
  const ProductWeights &parts = weights[op];
  SmallVector<Chunk> to = channelChunks(channels(op.getResult()));
  unsigned chunks = parts.parts.size();
  Tiles sums{true, {}};
  for (auto [p, piece] : llvm::enumerate(pieces(op.getResult()))) {
    for (auto [i, chunk] : llvm::enumerate(to)) {
      Value sum = startOf(start, p * to.size() + i, parts.bias[i], {tiling.tokens * piece.width, chunk.width});
      for (unsigned k = 0; k < chunks; ++k)
        sum = b.dot(b.cast(source.tiles[p * chunks + k], element), parts.parts[k][i], sum, tile::Precision::TF32);
      sums.tiles.push_back(sum);
    }
  }
  return sums;
}

Tiles ExpansionKernel::product(Operation *op, const Tiles *start) {
  if (auto conv = dyn_cast<attn::HeadConvOp>(op))
    return convolve(conv, start);
  return multiply(cast<attn::LinearOp>(op), start);
}

// --- maps ---

Operation *ExpansionKernel::residualOf(attn::MapOp op, Value &added) {
  Block &body = op.getBody().front();
  auto add = dyn_cast<arith::AddFOp>(body.front());
  if (op.getInputs().size() != 2 || !add || body.getOperations().size() != 2 || add.getLhs() == add.getRhs() ||
      !isa<BlockArgument>(add.getLhs()) || !isa<BlockArgument>(add.getRhs()))
    return nullptr;
  for (unsigned i : {0, 1}) {
    Operation *made = op.getInputs()[i].getDefiningOp();
    Value other = op.getInputs()[1 - i];
    if (!isInside(op.getInputs()[i]) || !weights.count(made) || !made->getResult(0).hasOneUse() || !isInside(other))
      continue;
    if (compute(other).asRows == isa<attn::LinearOp>(made)) {
      added = other;
      return made;
    }
  }
  return nullptr;
}

Tiles ExpansionKernel::map(attn::MapOp op) {
  Value added;
  if (Operation *made = residualOf(op, added)) {
    Tiles start = compute(added);
    return product(made, &start);
  }
  SmallVector<Tiles> inputs;
  bool asRows = llvm::any_of(op.getInputs(), [&](Value v) { return isInside(v) && compute(v).asRows; });
  for (Value input : op.getInputs()) {
    if (!isInside(input))
      inputs.push_back(loadSource(asRows, !asRows));
    else
      inputs.push_back(asRows ? chunkedRowsOf(input) : compute(input));
  }
  auto index = [](int64_t) { return Value(); };
  auto elementAt = [](Value, ValueRange) { return Value(); };
  Tiles results{asRows, {}};
  for (unsigned i = 0; i < inputs.front().tiles.size(); ++i) {
    SmallVector<Value> arguments;
    for (const Tiles &input : inputs)
      arguments.push_back(b.cast(input.tiles[i], b.getF32Type()));
    Value result = evaluateRegion(op.getBody(), arguments, {frame, elementAt, index, nullptr}).front();
    results.tiles.push_back(b.broadcast(result, TileBuilder::shapeOf(arguments.front())));
  }
  return results;
}

const Tiles &ExpansionKernel::compute(Value value) {
  auto found = known.find(value.getAsOpaquePointer());
  if (found != known.end())
    return found->second;
  Tiles tiles;
  if (!isInside(value))
    tiles = loadSource(false, false);
  else if (auto map = value.getDefiningOp<attn::MapOp>())
    tiles = this->map(map);
  else
    tiles = product(value.getDefiningOp(), nullptr);
  return known[value.getAsOpaquePointer()] = std::move(tiles);
}

// --- the whole ---

void ExpansionKernel::loadAllWeights() {
  for (Operation *op : expansion.ops) {
    if (auto conv = dyn_cast<attn::HeadConvOp>(op))
      weights[op] = loadWeights(frame, stored, conv, element);
    else if (auto linear = dyn_cast<attn::LinearOp>(op))
      weights[op] = loadWeights(frame, stored, linear, chunksOfRows(linear.getSource()), element);
  }
}

void ExpansionKernel::run() {
  loadAllWeights();
  TensorParameter output = frame.output(wholeType(expansion.root));
  Value length = frame.size(type.dim(2)), tokens = b.i32(tiling.tokens);
  Value begin = b.mul(b.programId(tile::Axis::X), b.i32(tiling.tokens * tiling.rounds));
  Value end = b.min(b.add(begin, b.i32(tiling.tokens * tiling.rounds)), length);
  auto loop = scf::ForOp::create(b, begin, end, tokens);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    firstToken = loop.getInductionVar();
    tokensLeft = b.sub(length, firstToken);
    store(output, compute(expansion.root));
  }
  std::string programs = tilesOf(type, tiling.tokens * tiling.rounds);
  stored[expansion.root] = frame.finish({{programs, "1", type.dim(0).str()}, tiling.warps, 1})[0];
}

} // namespace

void lowerExpansion(const Expansion &expansion, StoredValues &stored) { ExpansionKernel(expansion, stored).run(); }

} // namespace weft
