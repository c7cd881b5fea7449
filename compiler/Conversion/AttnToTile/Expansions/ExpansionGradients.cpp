// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Gradients of weights in an expansion's kernel (see ExpansionKernel.h): products of the gradient's and the source's
// tiles, which are there anyway, added up over the tokens of a program. Which products, the gradient says
// (ProductOpInterface::gradientTiles).
#include "compiler/Conversion/AttnToTile/Elements/Products.h"
#include "compiler/Conversion/AttnToTile/Expansions/ExpansionKernel.h"
#include "compiler/Conversion/AttnToTile/Rows/RowTile.h"
#include "compiler/Conversion/AttnToTile/Sequence/LowerSum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

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
  bool asRows = productForm(op) == ProductForm::Rows;
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

/// Whether a tile is of one tap of the same pieces as another.
static bool isNextTap(const GradientTile &tile, const GradientTile &before) {
  auto isOne = [](const GradientTile &each) {
    return each.right && each.leftMoves.size() == 1 && each.rightMoves.size() == 1 && !each.bias;
  };
  return isOne(tile) && isOne(before) && tile.left == before.left && tile.right == before.right &&
         tile.firstTap == before.firstTap + 1;
}

// Taps are neighbours in memory: the tiles of single ones are stored side by side, which fills sectors.
void ExpansionKernel::storeSums(Operation *op, ArrayRef<TensorParameter> outputs, ValueRange sums) {
  Value part = b.cast(b.programId(tile::Axis::X), b.getI64Type());
  auto product = cast<ProductOpInterface>(op);
  SmallVector<GradientTile> tiles = gradientTiles(op);
  for (size_t first = 0, end; first < tiles.size(); first = end) {
    for (end = first + 1; end < tiles.size() && isNextTap(tiles[end], tiles[end - 1]);)
      ++end;
    GradientTile tile = tiles[first];
    SmallVector<Value> taps(sums.slice(first, end - first));
    taps.resize(llvm::PowerOf2Ceil(taps.size()), taps.back());
    tile.rightMoves.resize(std::max(taps.size(), tile.rightMoves.size()));
    tile.columns *= taps.size();
    product.storeTile(b, tile, outputs, part, b.reshape(joined(b, taps), {tile.rows, tile.columns}));
  }
}

/// At most so many partial sums, as an expression: a part has `least` tiles of tokens to add up before it is stored.
static std::string partsOfTiles(StringRef tiles, int64_t least) {
  return "max(1, min(64, cdiv(" + tiles.str() + ", " + std::to_string(least) + ")))";
}

LogicalResult ExpansionKernel::runParts() {
  std::string tileCount = "(" + type.dim(0).str() + ") * " + tilesOf(type, tiling.tokens);
  if (expansion.byHead())
    tileCount = type.dim(1).str() + " * " + tileCount;
  // Four tiles of rows; or the tokens that have 256 channels, however many are taken at once.
  int64_t channelsAtOnce = tiling.tokens * channels(expansion.sources().front());
  std::string parts = partsOfTiles(tileCount, expansion.byHead() ? 4 : std::max<int64_t>(1, 256 / channelsAtOnce));
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
      stored.record(result, made);
    else if (failed(addParts(expansion.ops.back(), result, made, stored)))
      return failure();
  }
  return success();
}

} // namespace weft
