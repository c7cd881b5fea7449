// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn.sum over channels on tiles of rows, and the sums that norms take.
#include "compiler/Conversion/AttnToTile/Rows/ChannelSums.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft {

/// Whether a map is the square of its only input.
static bool squares(attn::MapOp map) {
  Block &body = map.getBody().front();
  auto product = dyn_cast<arith::MulFOp>(body.front());
  return map.getInputs().size() == 1 && product && product.getLhs() == body.getArgument(0) &&
         product.getRhs() == body.getArgument(0) && body.getTerminator()->getOperands() == product->getResults();
}

attn::SumOp sumOfSquares(Value value) {
  for (Operation *user : value.getUsers())
    if (auto map = dyn_cast<attn::MapOp>(user);
        map && squares(map) && wholeType(map.getResult(0)).getElementType().isF32())
      for (Operation *sum : map.getResult(0).getUsers())
        if (auto found = dyn_cast<attn::SumOp>(sum);
            found && isRowLocal(found) && wholeType(found.getResult()).getElementType().isF32())
          return found;
  return {};
}

/// A value of 16 bits that lies in memory and that `source` is, whatever its type; null where there is none.
static Value storedHalves(Value source, const StoredValues &stored) {
  while (!stored.contains(source)) {
    auto map = source.getDefiningOp<attn::MapOp>();
    if (!map || map.getInputs().size() != 1 || !llvm::hasSingleElement(map.getBody().front()) ||
        map.getBody().front().getTerminator()->getOperand(0) != map.getBody().getArgument(0) ||
        wholeType(map.getInputs()[0]).getDims() != wholeType(source).getDims())
      return {};
    source = map.getInputs()[0];
  }
  Type element = wholeType(source).getElementType();
  return element.isF16() || element.isBF16() ? source : Value();
}

/// Rows' products with themselves, by matrix instructions: those of 16-bit elements are exact.
static Value sumSquaresOfHalves(Value source, Puller &puller, const RowTile &rows) {
  TileBuilder &b = puller.b;
  Value sum;
  for (const Chunk &chunk : chunksOf(*wholeType(source).staticDim(3), puller.widestChunk())) {
    Value x = puller.pull(source, rows, chunk, Zeros::Channels);
    Value term = tile::RowDotOp::create(b, RankedTensorType::get({rows.count}, b.getF32Type()), x, x);
    sum = sum ? b.add(sum, term) : term;
  }
  return sum;
}

Value sumChannels(Value source, Puller &puller, const RowTile &rows, bool squares) {
  TileBuilder &b = puller.b;
  if (attn::SumOp same = squares ? sumOfSquares(source) : attn::SumOp();
      same && puller.stored.contains(same.getResult())) {
    bool lastIsThere = wholeType(same.getResult()).getRank() == 4; // its size is 1
    Chunk only{0, 1, 1};
    Value sum = puller.part(same.getResult(), rows, lastIsThere ? &only : nullptr);
    return lastIsThere ? b.reduceSum(sum, 1) : sum;
  }
  // With fewer rows some warp would not have the 16 of a matrix instruction.
  if (Value halves = squares && rows.count >= 64 ? storedHalves(source, puller.stored) : Value())
    return sumSquaresOfHalves(halves, puller, rows);
  // Chunks of one width are added before their lanes are.
  Value terms, sum;
  auto addUp = [&] {
    Value part = b.reduceSum(terms, 1);
    sum = sum ? b.add(sum, part) : part;
  };
  int64_t channels = *wholeType(source).staticDim(3);
  for (const Chunk &each : chunksOf(channels, puller.widestChunk())) {
    Value x = b.cast(puller.pull(source, rows, each, Zeros::Channels), b.getF32Type());
    Value term = squares ? b.mul(x, x) : x;
    bool fits = terms && TileBuilder::shapeOf(terms) == TileBuilder::shapeOf(term);
    if (terms && !fits)
      addUp();
    terms = fits ? b.add(terms, term) : term;
  }
  addUp();
  return sum;
}

namespace {
struct SumRows : RowLocalOpInterface::ExternalModel<SumRows, attn::SumOp> {
  // Over channels alone: the result is [B, H, N, 1] or [B, H, N]; [H, N, 1], of a batch of 1, is neither.
  bool isRowLocal(Operation *op) const {
    auto sum = cast<attn::SumOp>(op);
    attn::WholeTensorType from = wholeType(sum.getSource()), result = wholeType(sum.getResult());
    attn::WholeTensorType to = sum.resultAtSourceRank();
    bool rows = result.getRank() == 4 || (result.getRank() == 3 && sum.getAway() == ArrayRef<int64_t>{3});
    return rows && from.getRank() == 4 && from.staticDim(3) && to.dim(3) == "1" &&
           from.getDims().take_front(3) == to.getDims().take_front(3);
  }
  ChannelUse channelUse(Operation *) const { return ChannelUse::Sum; }
  Value pull(Operation *op, OpResult result, Puller &puller, const RowTile &rows, const Chunk *chunk) const {
    TileBuilder &b = puller.b;
    Value sum = puller.knownOfRows(result, rows, Puller::rowFactor);
    if (!sum) {
      sum = b.cast(sumChannels(op->getOperand(0), puller, rows, /*squares=*/false), wholeType(result).getElementType());
      puller.provide(result, rows, Puller::rowFactor, sum);
    }
    return chunk ? b.column(sum) : sum;
  }
};
} // namespace

void attachSumRows(MLIRContext &context) { attn::SumOp::attachInterface<SumRows>(context); }

} // namespace weft
