// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn.rms_norm on tiles of rows.
#include "compiler/Conversion/AttnToTile/Rows/ChannelSums.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"

using namespace mlir;

namespace weft {

/// 1 / sqrt(mean of squares + eps) of each row, f32 [count]: once for all its chunks.
static Value factorOf(attn::RmsNormOp norm, Puller &puller, const RowTile &rows) {
  TileBuilder &b = puller.b;
  if (Value factor = puller.knownOfRows(norm.getResult(), rows, Puller::rowFactor))
    return factor;
  int64_t channels = *wholeType(norm.getResult()).staticDim(3);
  Value mean = b.mul(sumChannels(norm.getSource(), puller, rows, /*squares=*/true), b.f32(1.0 / channels));
  Value factor = b.rsqrt(b.add(mean, b.f32(norm.getEps().convertToDouble())));
  puller.provide(norm.getResult(), rows, Puller::rowFactor, factor);
  return factor;
}

namespace {
struct RmsNormRows : RowLocalOpInterface::ExternalModel<RmsNormRows, attn::RmsNormOp> {
  ChannelUse channelUse(Operation *) const { return ChannelUse::Sum; }
  Value pull(Operation *op, OpResult result, Puller &puller, const RowTile &rows, const Chunk *chunk) const {
    TileBuilder &b = puller.b;
    auto norm = cast<attn::RmsNormOp>(op);
    Value factor = factorOf(norm, puller, rows);
    Value x = b.mul(b.cast(puller.part(norm.getSource(), rows, chunk), b.getF32Type()), b.column(factor));
    if (Value gain = norm.getGain()) {
      // [H, D]: the tile's head, shared as heads are.
      TensorParameter tensor = puller.frame.input(puller.stored.at(gain));
      Value head = rows.headIn(b, tensor.type.dim(0), /*asColumn=*/true);
      Value offset =
          b.add(b.mul(b.cast(head, b.getI64Type()), tensor.strides[0]), b.cast(chunk->start(b), b.getI64Type()));
      Value pointers = b.addPtr(b.addPtr(tensor.pointer, offset), b.row(b.range(chunk->width)));
      Value inside = chunk->inside(b), mask = inside ? b.row(inside) : Value();
      x = b.mul(x, b.cast(b.load(pointers, mask), b.getF32Type()));
    }
    return b.cast(x, wholeType(result).getElementType());
  }
};
} // namespace

void attachRmsNormRows(MLIRContext &context) { attn::RmsNormOp::attachInterface<RmsNormRows>(context); }

} // namespace weft
