// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn.linear and the gradient of its weight in an expansion's kernel: products of rows, tokens of some heads, with
// chunks of channels.
#include "compiler/Conversion/AttnToTile/Expansions/ExpansionKernel.h"

using namespace mlir;

namespace weft {

static ProductWeights loadWeights(KernelFrame &frame, const StoredValues &stored, attn::LinearOp op,
                                  ArrayRef<Chunk> inner, Type element) {
  TileBuilder &b = frame.b;
  const TensorParameter weight = frame.input(stored.at(op.getWeight()));
  bool turned = op.getTransposed();
  ProductWeights weights;
  SmallVector<Chunk> to = channelChunks(*weight.type.staticDim(turned ? 1 : 0));
  for (const Chunk &out : to)
    weights.bias.push_back(loadBias(frame, stored, op.getBias(), {out.first, out.width, out.valid}));
  for (const Chunk &in : inner) {
    SmallVector<Value> &parts = weights.parts.emplace_back();
    for (const Chunk &out : to) {
      Span columns{out.first, out.width, out.valid}, rows{in.first, in.width, in.valid};
      parts.push_back(turned ? loadBlock(b, weight, {rows, columns}, element)
                             : b.transpose(loadBlock(b, weight, {columns, rows}, element)));
    }
  }
  return weights;
}

static ExpansionTiles multiply(attn::LinearOp op, ExpansionKernel &kernel, const ExpansionTiles *start) {
  TileBuilder &b = kernel.b;
  ExpansionTiles source = kernel.rowsOf(op.getSource());
  const ProductWeights &parts = kernel.weightsOf(op);
  SmallVector<Chunk> to = channelChunks(kernel.channels(op.getResult()));
  unsigned chunks = parts.parts.size();
  ExpansionTiles sums{true, {}};
  for (auto [p, piece] : llvm::enumerate(kernel.pieces(op.getResult()))) {
    for (auto [i, chunk] : llvm::enumerate(to)) {
      Value sum =
          kernel.startOf(start, p * to.size() + i, parts.bias[i], {kernel.tiling.tokens * piece.width, chunk.width});
      for (unsigned k = 0; k < chunks; ++k)
        sum =
            b.dot(b.cast(source.tiles[p * chunks + k], kernel.element), parts.parts[k][i], sum, tile::Precision::TF32);
      sums.tiles.push_back(sum);
    }
  }
  return sums;
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

namespace {
struct LinearProduct : ProductOpInterface::ExternalModel<LinearProduct, attn::LinearOp> {
  bool fitsExpansion(Operation *op) const {
    auto linear = cast<attn::LinearOp>(op);
    return isProductOperand(linear.getResult()) && isProductOperand(linear.getSource()) && !linear.getConcatenated();
  }
  ProductForm form(Operation *) const { return ProductForm::Rows; }
  int64_t multiplyAdds(Operation *op) const {
    auto linear = cast<attn::LinearOp>(op);
    attn::WholeTensorType weight = wholeType(linear.getWeight());
    return *wholeType(linear.getResult()).staticDim(1) * *weight.staticDim(0) * *weight.staticDim(1);
  }
  ProductWeights loadWeights(Operation *op, KernelFrame &frame, const StoredValues &stored, ArrayRef<Chunk> inner,
                             Type element) const {
    return weft::loadWeights(frame, stored, cast<attn::LinearOp>(op), inner, element);
  }
  ExpansionTiles multiply(Operation *op, ExpansionKernel &kernel, const ExpansionTiles *start) const {
    return weft::multiply(cast<attn::LinearOp>(op), kernel, start);
  }
};

struct LinearWeightGradProduct : ProductOpInterface::ExternalModel<LinearWeightGradProduct, attn::LinearWeightGradOp> {
  // The gradient's channels are the rows of the product's matrix instructions.
  bool fitsExpansion(Operation *op) const {
    auto grad = cast<attn::LinearWeightGradOp>(op);
    return isProductOperand(grad.getGradient()) && isProductOperand(grad.getSource()) && !grad.getConcatenated() &&
           *wholeType(grad.getGradient()).staticDim(3) % 16 == 0;
  }
  ProductForm form(Operation *) const { return ProductForm::Rows; }
  bool isWeightGradient(Operation *) const { return true; }
  SmallVector<GradientTile> gradientTiles(Operation *op) const { return tilesOf(cast<attn::LinearWeightGradOp>(op)); }
  void storeTile(Operation *op, TileBuilder &b, const GradientTile &tile, ArrayRef<TensorParameter> outputs, Value part,
                 Value sum) const {
    weft::storeTile(b, cast<attn::LinearWeightGradOp>(op), tile, outputs, part, sum);
  }
};
} // namespace

void attachLinearProducts(MLIRContext &context) {
  attn::LinearOp::attachInterface<LinearProduct>(context);
  attn::LinearWeightGradOp::attachInterface<LinearWeightGradProduct>(context);
}

} // namespace weft
