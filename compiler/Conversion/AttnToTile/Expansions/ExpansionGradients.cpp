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

void ExpansionKernel::storeSums(Operation *op, ArrayRef<TensorParameter> outputs, ValueRange sums) {
  Value part = b.cast(b.programId(tile::Axis::X), b.getI64Type());
  auto product = cast<ProductOpInterface>(op);
  for (auto [tile, sum] : llvm::zip(gradientTiles(op), sums))
    product.storeTile(b, tile, outputs, part, sum);
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
      stored.record(result, made);
    else if (failed(addParts(expansion.ops.back(), result, made, stored)))
      return failure();
  }
  return success();
}

} // namespace weft
