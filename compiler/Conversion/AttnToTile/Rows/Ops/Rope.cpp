// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn.rope on tiles of rows: pairs of neighbouring channels turned by their token's position.
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "compiler/Conversion/AttnToTile/Rows/Sequences.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace weft {

/// The position that turns each pair of channels of a chunk, as a tile [count, pairs] or [count, 1] of i32.
static Value positionsOf(attn::RopeOp op, Puller &puller, const RowTile &rows, const Chunk &chunk) {
  TileBuilder &b = puller.b;
  Value token = rows.position(b);
  if (op.getCuSeqlens())
    token = b.sub(token, sequencesOf(puller, op.getCuSeqlens(), rows, wholeType(op.getResult())).first);
  if (!op.getWindow())
    return b.column(token);
  ArrayRef<int64_t> window = *op.getWindow();
  if (!op.getGrid())
    return b.column(b.rem(token, b.i32(window[0])));
  Value columns = b.i32((*op.getGrid())[1]);
  Value y = b.rem(b.div(token, columns), b.i32(window[0])), x = b.rem(b.rem(token, columns), b.i32(window[1]));
  if (op.getForm() == attn::RopeForm::Line)
    return b.column(b.add(b.mul(y, b.i32(window[1])), x));
  int64_t channels = *wholeType(op.getResult()).staticDim(3);
  Value pair = b.row(b.add(b.range(chunk.width / 2), b.div(chunk.start(b), b.i32(2))));
  return b.select(b.less(pair, b.i32(channels / 4)), b.column(y), b.column(x));
}

/// A chunk of the source, its pairs turned.
static Value turn(attn::RopeOp op, Puller &puller, const RowTile &rows, const Chunk &chunk) {
  TileBuilder &b = puller.b;
  attn::WholeTensorType type = wholeType(op.getResult());
  int64_t channels = *type.staticDim(3), pairs = chunk.width / 2;
  bool axial = op.getForm() == attn::RopeForm::Axial;
  Value x = b.cast(puller.part(op.getSource(), rows, &chunk), b.getF32Type());
  // The frequency of pair i is base^(-2i/D); in the axial form each half counts its pairs from 0 and has D/4 of them.
  Value pair = b.add(b.range(pairs), b.div(chunk.start(b), b.i32(2)));
  if (axial)
    pair = b.select(b.less(pair, b.i32(channels / 4)), pair, b.sub(pair, b.i32(channels / 4)));
  double step = -std::log2(op.getBase().convertToDouble()) / (axial ? channels / 4 : channels / 2);
  Value frequency = b.exp2(b.mul(b.cast(pair, b.getF32Type()), b.f32(step)));
  Value angle = b.mul(b.cast(positionsOf(op, puller, rows, chunk), b.getF32Type()), b.row(frequency));
  // Frequencies are at most 1, so an angle is at most as large as its position.
  auto small = op.getBase().convertToDouble() >= 1 ? arith::FastMathFlags::afn : arith::FastMathFlags::none;
  Value cosine = math::CosOp::create(b, angle, small), sine = math::SinOp::create(b, angle, small);
  if (op.getInverse())
    sine = b.sub(b.zeros({1, 1}), sine);
  auto half = RankedTensorType::get({rows.count, pairs}, b.getF32Type());
  auto split = tile::SplitOp::create(b, half, half, b.reshape(x, {rows.count, pairs, 2}));
  Value even = split.getLhs(), odd = split.getRhs();
  Value turned =
      tile::JoinOp::create(b, RankedTensorType::get({rows.count, pairs, 2}, b.getF32Type()),
                           b.sub(b.mul(even, cosine), b.mul(odd, sine)), b.add(b.mul(even, sine), b.mul(odd, cosine)));
  return b.cast(b.reshape(turned, {rows.count, chunk.width}), type.getElementType());
}

namespace {
struct RopeRows : RowLocalOpInterface::ExternalModel<RopeRows, attn::RopeOp> {
  ChannelUse channelUse(Operation *) const { return ChannelUse::Neighbours; }
  Value pull(Operation *op, OpResult, Puller &puller, const RowTile &rows, const Chunk *chunk) const {
    return turn(cast<attn::RopeOp>(op), puller, rows, *chunk);
  }
};
} // namespace

void attachRopeRows(MLIRContext &context) { attn::RopeOp::attachInterface<RopeRows>(context); }

} // namespace weft
