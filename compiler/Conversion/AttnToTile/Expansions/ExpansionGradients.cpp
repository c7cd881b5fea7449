// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Gradients of weights in an expansion's kernel (see ExpansionKernel.h): products of the gradient's and the source's
// tiles, which are there anyway, added up over the tokens of a program. Each value is read once for all taps: it is
// moved along its channels on the tile.
//
//   weight[o, h, j] = Σ gradient[o, d] · source[h, d + j - centre] = Σ gradient[o, d - j + centre] · source[h, d]
//
// Pieces of fewer heads than an instruction has rows make up a tile's rows with several taps: then the gradient is the
// one that is moved.
#include "compiler/Conversion/AttnToTile/Elements/Products.h"
#include "compiler/Conversion/AttnToTile/Expansions/ExpansionKernel.h"
#include "compiler/Conversion/AttnToTile/Rows/RowTile.h"
#include "compiler/Conversion/AttnToTile/Sequence/LowerSum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

/// Rows and columns of a matrix instruction.
static constexpr int64_t instructionRows = 16, instructionColumns = 8;

/// Columns of a product such that each of some warps has some of them.
static constexpr int64_t usualColumns = 32;

/// The products of pieces of the source at all taps: several taps of few heads make up enough columns.
static SmallVector<ConvTerm> gradientTerms(ArrayRef<HeadPiece> pieces, int64_t taps) {
  SmallVector<ConvTerm> terms;
  for (auto [index, piece] : llvm::enumerate(pieces))
    for (int64_t tap = 0; tap < taps; tap += terms.back().taps) {
      int64_t most = piece.width < instructionRows ? usualColumns / piece.width : 1;
      int64_t least = piece.columns() / piece.width;
      int64_t together = std::clamp<int64_t>(llvm::PowerOf2Ceil(taps - tap), least, most);
      terms.push_back({static_cast<unsigned>(index), tap, together});
    }
  return terms;
}

/// Moves by taps from `first` on, times `sign`; past the last one none.
static Moves movesBy(int64_t sign, int64_t first, int64_t count, int64_t taps) {
  Moves moves;
  for (int64_t tap = first; tap < first + count; ++tap)
    moves.push_back(tap < taps ? std::optional(sign * (tap - (taps - 1) / 2)) : std::nullopt);
  return moves;
}

/// The tiles of a piece of the gradient.
static SmallVector<GradientTile> tilesOfPiece(unsigned index, const HeadPiece &left, ArrayRef<HeadPiece> rights,
                                              int64_t taps, bool bias) {
  SmallVector<GradientTile> tiles;
  auto addBias = [&](const Moves &moves, int64_t firstTap, unsigned from, int64_t rows) {
    // A column of ones, where one is left over; else a product of its own.
    for (GradientTile &tile : llvm::drop_begin(tiles, from))
      if (!tile.rightMoves.back()) {
        tile.bias = true;
        return;
      }
    tiles.push_back({index, std::nullopt, moves, {}, firstTap, true, rows, instructionColumns});
  };
  if (left.width >= instructionRows) {
    for (const ConvTerm &term : gradientTerms(rights, taps)) {
      Moves moves = movesBy(1, term.firstTap, term.taps, taps);
      tiles.push_back(
          {index, term.piece, {0}, moves, term.firstTap, false, left.width, rights[term.piece].width * term.taps});
    }
    if (bias)
      addBias({0}, 0, 0, left.width);
    return tiles;
  }
  int64_t together = instructionRows / left.width, centre = (taps - 1) / 2;
  for (int64_t first = 0; first < taps; first += together) {
    unsigned from = tiles.size();
    Moves moves = movesBy(-1, first, together, taps);
    for (auto [r, right] : llvm::enumerate(rights)) {
      Moves still(right.columns() / right.width);
      still.front() = 0;
      tiles.push_back({index, r, moves, still, first, false, instructionRows, right.columns()});
    }
    if (bias && first <= centre && centre < first + together)
      addBias(moves, first, from, instructionRows);
  }
  return tiles;
}

static SmallVector<GradientTile> tilesOf(attn::HeadConvWeightGradOp op) {
  attn::WholeTensorType weight = wholeType(op.getResult());
  SmallVector<HeadPiece> rights = headPieces(*weight.staticDim(1));
  SmallVector<GradientTile> tiles;
  for (auto [index, left] : llvm::enumerate(headPieces(*weight.staticDim(0))))
    tiles.append(tilesOfPiece(index, left, rights, *weight.staticDim(2), static_cast<bool>(op.getBias())));
  return tiles;
}

static SmallVector<GradientTile> tilesOf(attn::LinearWeightGradOp op) {
  attn::WholeTensorType weight = wholeType(op.getResult());
  SmallVector<GradientTile> tiles;
  for (auto [l, left] : llvm::enumerate(channelChunks(*weight.staticDim(0)))) {
    unsigned index = l;
    for (auto [r, right] : llvm::enumerate(channelChunks(*weight.staticDim(1))))
      tiles.push_back({index, r, {}, {}, 0, false, left.width, right.width});
    if (op.getBias())
      tiles.push_back({index, std::nullopt, {}, {}, 0, true, left.width, instructionColumns});
  }
  return tiles;
}

SmallVector<GradientTile> gradientTiles(Operation *op) {
  if (auto conv = dyn_cast<attn::HeadConvWeightGradOp>(op))
    return tilesOf(conv);
  if (auto linear = dyn_cast<attn::LinearWeightGradOp>(op))
    return tilesOf(linear);
  return {};
}

SmallVector<Value> ExpansionKernel::zeroSums() {
  SmallVector<Value> sums;
  for (Operation *op : expansion.ops)
    for (const GradientTile &tile : gradientTiles(op))
      sums.push_back(b.zeros({tile.rows, tile.columns}));
  return sums;
}

Value ExpansionKernel::ofTokens(Value tile) {
  ArrayRef<int64_t> shape = TileBuilder::shapeOf(tile);
  Value inside = along(b.less(b.range(tiling.tokens), tokensLeft), 0, shape.size());
  return b.select(b.broadcast(inside, shape), tile, b.full(shape, 0, TileBuilder::elementOf(tile)));
}

SmallVector<Value> ExpansionKernel::addGradients(Operation *op, ValueRange sums) {
  SmallVector<GradientTile> tiles = gradientTiles(op);
  if (tiles.empty())
    return {};
  bool asRows = isa<attn::LinearWeightGradOp>(op);
  Value source = op->getOperand(0), gradient = op->getOperand(1);
  // Of tokens that do not exist one factor has to be zero and the other a number.
  attn::Padding gradientThere = paddingOf(expansion, gradient, tokenAxis),
                sourceThere = paddingOf(expansion, source, tokenAxis);
  auto partsOf = [&](Value value, bool mask) {
    SmallVector<Value> parts = asRows ? rowsOf(value).tiles : signals(value);
    for (Value &part : parts) {
      part = b.cast(part, element);
      part = mask ? ofTokens(part) : part;
    }
    return parts;
  };
  SmallVector<Value> lefts = partsOf(gradient, gradientThere != attn::Padding::Zero),
                     rights = partsOf(source, sourceThere == attn::Padding::Unknown), next;
  for (const GradientTile &tile : tiles) {
    Value left = asRows ? lefts[tile.left] : operandOf(lefts[tile.left], tile.leftMoves, 1);
    Value right;
    if (!tile.right)
      right = b.full({TileBuilder::shapeOf(left)[0], tile.columns}, 1, element);
    else
      right = asRows ? rights[*tile.right] : operandOf(rights[*tile.right], tile.rightMoves, 1);
    next.push_back(b.dot(b.transpose(left), right, sums[next.size()], tile::Precision::TF32));
  }
  return next;
}

namespace {
/// An axis of a tile of sums: the step in memory that it takes, or null for 1, from the place at `start` on; of its
/// places those from `begin` to `end` are stored.
struct SumAxis {
  int64_t size, begin, end;
  Value stride;
  int64_t start = 0;
};
} // namespace

/// Stores what of a tile of sums is at the product of the axes' places, into part `part` of an output.
static void storeAxes(TileBuilder &b, const TensorParameter &output, Value part, ArrayRef<SumAxis> axes, Value sum) {
  Value pointer = b.addPtr(output.pointer, b.mul(part, output.strides[0])), offset, mask;
  SmallVector<int64_t> shape;
  for (auto [number, axis] : llvm::enumerate(axes)) {
    shape.push_back(axis.size);
    if (axis.start)
      pointer = b.addPtr(pointer, axis.stride ? b.mul(b.i64(axis.start), axis.stride) : b.i64(axis.start));
    auto along = [&, number = number](Value vector) {
      for (unsigned i = 0; i < axes.size(); ++i)
        if (i != number)
          vector = b.expand(vector, i);
      return vector;
    };
    Value range = b.range(axis.size);
    Value step = along(axis.stride ? b.mul(range, b.cast(axis.stride, b.getI32Type())) : range);
    offset = offset ? b.add(offset, step) : step;
    auto where = [&](Value condition) {
      condition = along(condition);
      mask = mask ? b.both(mask, condition) : condition;
    };
    if (axis.begin)
      where(b.compareInt(arith::CmpIPredicate::sge, range, b.i32(axis.begin)));
    if (axis.end < axis.size)
      where(b.less(range, b.i32(axis.end)));
  }
  b.store(b.addPtr(b.broadcast(pointer, shape), b.broadcast(offset, shape)), b.reshape(sum, shape), mask);
}

/// A tile of a convolution's sums is (heads, taps) times (heads, taps), where one of the two has more taps than one; of
/// the bias it is the first head's column of ones, at the centre tap.
static void storeTile(TileBuilder &b, attn::HeadConvWeightGradOp op, const GradientTile &tile,
                      ArrayRef<TensorParameter> outputs, Value part, Value sum) {
  attn::WholeTensorType weight = wholeType(op.getResult());
  int64_t taps = *weight.staticDim(2), left = tile.leftMoves.size(), right = tile.rightMoves.size();
  HeadPiece rows = headPieces(*weight.staticDim(0))[tile.left];
  HeadPiece columns{0, tile.columns, 1};
  if (tile.right)
    columns = headPieces(*weight.staticDim(1))[*tile.right];
  if (tile.right) {
    int64_t those = left > 1 ? 1 : std::min(right, taps - tile.firstTap);
    storeAxes(b, outputs[0], part,
              {{rows.width, 0, rows.valid, outputs[0].strides[1], rows.first},
               {left, 0, std::min(left, taps - tile.firstTap), {}, tile.firstTap},
               {columns.width, 0, columns.valid, outputs[0].strides[2], columns.first},
               {right, 0, those, {}}},
              sum);
  }
  if (tile.bias) {
    int64_t centre = left > 1 ? (taps - 1) / 2 - tile.firstTap : 0, one = std::max<int64_t>(1, right);
    storeAxes(b, outputs[1], part,
              {{rows.width, 0, rows.valid, {}, rows.first},
               {left, centre, centre + 1, b.i64(0)},
               {columns.width, 0, 1, b.i64(0)},
               {one, one - 1, one, b.i64(0)}},
              sum);
  }
}

static void storeTile(TileBuilder &b, attn::LinearWeightGradOp op, const GradientTile &tile,
                      ArrayRef<TensorParameter> outputs, Value part, Value sum) {
  attn::WholeTensorType weight = wholeType(op.getResult());
  Chunk rows = channelChunks(*weight.staticDim(0))[tile.left];
  if (!tile.right) {
    storeAxes(b, outputs[1], part, {{rows.width, 0, rows.width, {}, rows.first}, {tile.columns, 0, 1, b.i64(0)}}, sum);
    return;
  }
  Chunk columns = channelChunks(*weight.staticDim(1))[*tile.right];
  storeAxes(b, outputs[0], part,
            {{rows.width, 0, rows.width, outputs[0].strides[1], rows.first},
             {columns.width, 0, columns.width, {}, columns.first}},
            sum);
}

void ExpansionKernel::storeSums(Operation *op, ArrayRef<TensorParameter> outputs, ValueRange sums) {
  Value part = b.cast(b.programId(tile::Axis::X), b.getI64Type());
  for (auto [tile, sum] : llvm::zip(gradientTiles(op), sums)) {
    if (auto conv = dyn_cast<attn::HeadConvWeightGradOp>(op))
      storeTile(b, conv, tile, outputs, part, sum);
    else
      storeTile(b, cast<attn::LinearWeightGradOp>(op), tile, outputs, part, sum);
  }
}

/// At most so many partial sums, as an expression: a part has some tiles of tokens to add up before it is stored.
static std::string partsOf(StringRef tiles) { return "max(1, min(64, cdiv(" + tiles.str() + ", 4)))"; }

LogicalResult ExpansionKernel::runParts() {
  std::string tileCount = "(" + type.dim(0).str() + ") * " + tilesOf(type, tiling.tokens);
  if (expansion.byHead())
    tileCount = type.dim(1).str() + " * " + tileCount;
  std::string parts = partsOf(tileCount);
  SmallVector<TensorParameter> outputs;
  for (Value root : expansion.roots)
    outputs.push_back(frame.output(wholeType(root)));
  Value length = frame.size(type.dim(2)), tilesOfTokens = b.ceilDiv(length, tiling.tokens);
  auto loop = scf::ForOp::create(b, b.programId(tile::Axis::X), frame.size(tileCount), frame.size(parts), zeroSums());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value lead = b.div(loop.getInductionVar(), tilesOfTokens);
    firstToken = b.mul(b.sub(loop.getInductionVar(), b.mul(lead, tilesOfTokens)), b.i32(tiling.tokens));
    tokensLeft = b.sub(length, firstToken);
    batch = lead;
    if (expansion.byHead()) {
      Value heads = b.i32(*type.staticDim(1));
      batch = b.div(lead, heads);
      head = b.sub(lead, b.mul(batch, heads));
    }
    scf::YieldOp::create(b, computeTokens(outputs, loop.getRegionIterArgs()));
  }
  SmallVector<Value> results(expansion.roots);
  ValueRange sums = loop.getResults();
  for (Operation *op : expansion.ops) {
    unsigned count = gradientTiles(op).size();
    if (!count)
      continue;
    SmallVector<TensorParameter> partial;
    for (Value result : op->getResults()) {
      partial.push_back(frame.output(partsType(result, parts)));
      results.push_back(result);
    }
    storeSums(op, partial, sums.take_front(count));
    sums = sums.drop_front(count);
  }
  auto launched = frame.finish({{parts, "1", "1"}, tiling.warps, 2});
  for (auto [result, made] : llvm::zip(results, launched)) {
    if (llvm::is_contained(expansion.roots, result))
      stored[result] = made;
    else if (failed(addParts(expansion.ops.back(), result, made, stored)))
      return failure();
  }
  return success();
}

} // namespace weft
