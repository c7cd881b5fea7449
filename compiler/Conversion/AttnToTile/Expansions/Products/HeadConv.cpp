// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn.head_conv and the gradient of its weight in an expansion's kernel. A convolution is a product for each tap: rows
// of a signal shifted along the channels, times the tap's weights. Its weight's gradient reads each value once for all
// taps: it is moved along its channels on the tile.
//
//   weight[o, h, j] = Σ gradient[o, d] · source[h, d + j - centre] = Σ gradient[o, d - j + centre] · source[h, d]
//
// Pieces of fewer heads than an instruction has rows make up a tile's rows with several taps: then the gradient is the
// one that is moved.
#include "compiler/Conversion/AttnToTile/Expansions/ExpansionKernel.h"

using namespace mlir;

namespace weft {

/// Convolutions shift rows of D channels: a power of two, so that tokens and channels make whole tiles.
static bool canShift(Value signal, int64_t taps) {
  int64_t channels = isProductOperand(signal) ? *wholeType(signal).staticDim(3) : 0;
  return channels >= 16 && channels <= 128 && llvm::isPowerOf2_64(channels) && taps <= 15;
}

/// One product of a convolution with a part of its weight: heads of one piece at `taps` taps from `firstTap` on, those
/// past the last one 0. More than one tap where a piece has fewer heads than a matrix instruction's inner size: index
/// (head, tap) of the inner axis.
struct ConvTerm {
  unsigned piece;
  int64_t firstTap, taps;
};
static SmallVector<ConvTerm> convTerms(ArrayRef<HeadPiece> pieces, int64_t taps) {
  SmallVector<ConvTerm> terms;
  for (auto [index, piece] : llvm::enumerate(pieces))
    for (int64_t tap = 0; tap < taps; tap += terms.back().taps) {
      // Two taps of four heads fill an instruction.
      int64_t left = llvm::alignTo(taps - tap, 2);
      int64_t together = piece.width >= 8 ? 1 : std::min<int64_t>(8, llvm::bit_floor(uint64_t(left)));
      terms.push_back({static_cast<unsigned>(index), tap, together});
    }
  return terms;
}

/// The slices of the last axis, whose size is a power of two, in order.
static SmallVector<Value> slices(TileBuilder &b, Value tensor) {
  SmallVector<int64_t> shape(TileBuilder::shapeOf(tensor));
  int64_t count = shape.back();
  shape.pop_back();
  if (count == 1)
    return {b.reshape(tensor, shape)};
  shape.append({count / 2, 2});
  auto halves = tile::SplitOp::create(
      b, RankedTensorType::get(ArrayRef(shape).drop_back(), TileBuilder::elementOf(tensor)),
      RankedTensorType::get(ArrayRef(shape).drop_back(), TileBuilder::elementOf(tensor)), b.reshape(tensor, shape));
  SmallVector<Value> even = slices(b, halves.getLhs()), odd = slices(b, halves.getRhs()), all;
  for (auto [first, second] : llvm::zip(even, odd))
    all.append({first, second});
  return all;
}

// Taps are neighbours in memory: all of a block's are read at once, and taken apart once. A weight is read as it is
// stored, from [to, from] heads or channels; transposed, [from, to].
static ProductWeights loadWeights(KernelFrame &frame, const StoredValues &stored, attn::HeadConvOp op, Type element) {
  TileBuilder &b = frame.b;
  const TensorParameter weight = frame.input(stored.at(op.getWeight()));
  bool turned = op.getTransposed();
  int64_t taps = *weight.type.staticDim(2), allTaps = llvm::PowerOf2Ceil(taps);
  SmallVector<HeadPiece> from = headPieces(*weight.type.staticDim(turned ? 0 : 1)),
                         to = headPieces(*weight.type.staticDim(turned ? 1 : 0));
  SmallVector<ConvTerm> terms = convTerms(from, taps);
  ProductWeights weights;
  weights.parts.resize(terms.size());
  for (const HeadPiece &out : to) {
    Span columns{out.first, out.columns(), out.valid};
    weights.bias.push_back(loadBias(frame, stored, op.getBias(), columns));
    auto block = [&](Span heads, Span taps) {
      SmallVector<Span> spans{columns, heads, taps};
      if (turned)
        std::swap(spans[0], spans[1]);
      return loadBlock(b, weight, spans, element);
    };
    SmallVector<Value> apart; // of the piece that single taps are taken from
    for (auto [term, parts] : llvm::zip(terms, weights.parts)) {
      const HeadPiece &in = from[term.piece];
      Span heads{in.first, in.width, in.valid};
      if (term.taps == 1) {
        if (term.firstTap == 0)
          apart = slices(b, block(heads, {0, allTaps, taps}));
        Value part = apart[term.firstTap];
        parts.push_back(turned ? part : b.transpose(part));
        continue;
      }
      Value part = block(heads, {term.firstTap, term.taps, std::min(term.taps, taps - term.firstTap)});
      if (turned) {
        auto order = tile::PermuteOp::create(b, RankedTensorType::get({heads.size, term.taps, columns.size}, element),
                                             part, ArrayRef<int32_t>{0, 2, 1});
        parts.push_back(b.reshape(order, {heads.size * term.taps, columns.size}));
      } else {
        parts.push_back(b.transpose(b.reshape(part, {columns.size, heads.size * term.taps})));
      }
    }
  }
  return weights;
}

/// Where a convolution reads what it multiplies by its taps from `first` on; nothing past the last one.
static Moves movesOf(attn::HeadConvOp op, const ConvTerm &term) {
  int64_t taps = *wholeType(op.getWeight()).staticDim(2), centre = (taps - 1) / 2;
  Moves moves;
  for (int64_t tap = term.firstTap; tap < term.firstTap + term.taps; ++tap)
    moves.push_back(tap >= taps          ? std::nullopt
                    : op.getTransposed() ? std::optional(centre - tap)
                                         : std::optional(tap - centre));
  return moves;
}

static ExpansionTiles convolve(attn::HeadConvOp op, ExpansionKernel &kernel, const ExpansionTiles *start) {
  SmallVector<HeadPiece> from = kernel.pieces(op.getSource()), to = kernel.pieces(op.getResult());
  int64_t taps = *wholeType(op.getWeight()).staticDim(2);
  SmallVector<Value> source = kernel.signals(op.getSource());
  const ProductWeights &parts = kernel.weightsOf(op);
  ExpansionTiles sums;
  for (auto [i, piece] : llvm::enumerate(to))
    sums.tiles.push_back(kernel.startOf(start, i, parts.bias[i],
                                        {kernel.tiling.tokens * kernel.channels(op.getResult()), piece.columns()}));
  for (auto [t, term] : llvm::enumerate(convTerms(from, taps))) {
    Value operand = kernel.operandOf(source[term.piece], movesOf(op, term));
    for (unsigned i = 0; i < to.size(); ++i)
      sums.tiles[i] = kernel.b.dot(operand, parts.parts[t][i], sums.tiles[i], tile::Precision::TF32);
  }
  return sums;
}

/// Rows of a matrix instruction.
static constexpr int64_t instructionRows = 16;

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
  // As many taps as there are, up to twice the rows of an instruction: warps would repeat one another in less.
  int64_t least = instructionRows / left.width, centre = (taps - 1) / 2;
  int64_t together = std::clamp<int64_t>(llvm::PowerOf2Ceil(taps), least, 2 * least), rows = together * left.width;
  for (int64_t first = 0; first < taps; first += together) {
    unsigned from = tiles.size();
    Moves moves = movesBy(-1, first, together, taps);
    for (auto [r, right] : llvm::enumerate(rights)) {
      Moves still(right.columns() / right.width);
      still.front() = 0;
      tiles.push_back({index, r, moves, still, first, false, rows, right.columns()});
    }
    if (bias && first <= centre && centre < first + together)
      addBias(moves, first, from, rows);
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

namespace {
struct HeadConvProduct : ProductOpInterface::ExternalModel<HeadConvProduct, attn::HeadConvOp> {
  bool fitsExpansion(Operation *op) const {
    auto conv = cast<attn::HeadConvOp>(op);
    return isProductOperand(conv.getResult()) && canShift(conv.getSource(), *wholeType(conv.getWeight()).staticDim(2));
  }
  ProductForm form(Operation *) const { return ProductForm::Signals; }
  int64_t multiplyAdds(Operation *op) const {
    auto conv = cast<attn::HeadConvOp>(op);
    attn::WholeTensorType weight = wholeType(conv.getWeight());
    return *wholeType(conv.getResult()).staticDim(3) * *weight.staticDim(0) * *weight.staticDim(1) *
           *weight.staticDim(2);
  }
  ProductWeights loadWeights(Operation *op, KernelFrame &frame, const StoredValues &stored, ArrayRef<Chunk>,
                             Type element) const {
    return weft::loadWeights(frame, stored, cast<attn::HeadConvOp>(op), element);
  }
  ExpansionTiles multiply(Operation *op, ExpansionKernel &kernel, const ExpansionTiles *start) const {
    return convolve(cast<attn::HeadConvOp>(op), kernel, start);
  }
};

struct HeadConvWeightGradProduct
    : ProductOpInterface::ExternalModel<HeadConvWeightGradProduct, attn::HeadConvWeightGradOp> {
  bool fitsExpansion(Operation *op) const {
    auto grad = cast<attn::HeadConvWeightGradOp>(op);
    return isProductOperand(grad.getGradient()) &&
           canShift(grad.getSource(), *wholeType(grad.getResult()).staticDim(2));
  }
  ProductForm form(Operation *) const { return ProductForm::Signals; }
  bool isWeightGradient(Operation *) const { return true; }
  SmallVector<GradientTile> gradientTiles(Operation *op) const { return tilesOf(cast<attn::HeadConvWeightGradOp>(op)); }
  void storeTile(Operation *op, TileBuilder &b, const GradientTile &tile, ArrayRef<TensorParameter> outputs, Value part,
                 Value sum) const {
    weft::storeTile(b, cast<attn::HeadConvWeightGradOp>(op), tile, outputs, part, sum);
  }
};
} // namespace

void attachHeadConvProducts(MLIRContext &context) {
  attn::HeadConvOp::attachInterface<HeadConvProduct>(context);
  attn::HeadConvWeightGradOp::attachInterface<HeadConvWeightGradProduct>(context);
}

} // namespace weft
