// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn.map on tiles of rows: its region, evaluated on tiles of its inputs.
#include "compiler/Conversion/AttnToTile/Kernel/Numbers.h"
#include "compiler/Conversion/AttnToTile/Kernel/ScalarRegion.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"

using namespace mlir;

namespace weft {

/// A tile of any element type as the scalar type that regions compute on.
static Value asScalars(TileBuilder &b, Value tile) {
  Type element = TileBuilder::elementOf(tile);
  if (isa<FloatType>(element))
    return b.cast(tile, b.getF32Type());
  return element.isInteger(1) ? tile : b.cast(tile, b.getI32Type());
}

static Value mapRows(attn::MapOp map, Value value, Puller &puller, const RowTile &rows, const Chunk *chunk) {
  TileBuilder &b = puller.b;
  SmallVector<Value> arguments;
  for (Value input : map.getInputs())
    arguments.push_back(asScalars(b, puller.part(input, rows, chunk)));
  // A value of one channel is a tile of one column.
  attn::WholeTensorType made = wholeType(map.getResult(0));
  int64_t width = !chunk ? 0 : made.dim(made.getRank() - 1) == "1" ? 1 : chunk->width;
  auto index = [&](int64_t axis) -> Value {
    auto type = wholeType(value);
    switch (axis + (chunk ? 4 : 3) - type.getRank()) {
    case 0:
      return type.dim(axis) == "1" ? b.i32(0) : rows.batch;
    case 1:
      return rows.headIn(b, type.dim(axis), chunk);
    case 2:
      return chunk ? b.column(rows.position(b)) : rows.position(b);
    default:
      return b.row(b.add(b.range(width), chunk->start(b)));
    }
  };
  // Elements are read for the rows and channels that exist, as far as the indices tell them apart.
  auto element = [&](Value tensor, ValueRange indices) {
    bool byRow = false, byChannel = false;
    for (Value each : indices) {
      auto shape = TileBuilder::shapeOf(each);
      byRow |= !shape.empty() && shape[0] == rows.count && rows.count > 1;
      byChannel |= width > 1 && shape.size() == 2 && shape[1] == width;
    }
    Value inside;
    if (byRow && rows.inside)
      inside = chunk ? b.column(rows.inside) : rows.inside;
    if (Value channels = byChannel ? chunk->inside(b) : Value())
      inside = inside ? b.both(inside, b.row(channels)) : b.row(channels);
    return elementOf(puller.frame, puller.stored, tensor, indices, inside);
  };
  SmallVector<Value> results = evaluateRegion(map.getBody(), arguments, {puller.frame, element, index, nullptr});
  Value kept;
  for (auto [result, tile] : llvm::zip(map.getResults(), results)) {
    auto type = wholeType(result);
    SmallVector<int64_t> shape{rows.count};
    if (chunk)
      shape.push_back(width);
    Value rounded = b.cast(b.broadcast(tile, shape), type.getElementType());
    puller.provide(result, rows, chunk ? chunk->first : 0, rounded, chunk ? chunk->base : Value());
    if (result == value)
      kept = rounded;
  }
  return kept;
}

namespace {
struct MapRows : RowLocalOpInterface::ExternalModel<MapRows, attn::MapOp> {
  bool readsByRow(Operation *, unsigned) const { return true; }
  Value pull(Operation *op, OpResult result, Puller &puller, const RowTile &rows, const Chunk *chunk) const {
    return mapRows(cast<attn::MapOp>(op), result, puller, rows, chunk);
  }
};
} // namespace

void attachMapRows(MLIRContext &context) { attn::MapOp::attachInterface<MapRows>(context); }

} // namespace weft
