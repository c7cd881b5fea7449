// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Where tiles hold zeros: rows past the end of a sequence, and channels past the last, hold f(0) of what is computed,
// which is not 0 for every f. Here they are selected away, once for all who add them up, where ops do not say that they
// are 0.
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"

using namespace mlir;

namespace weft {

namespace {
/// What values of a kernel hold past the end of one axis of the row space.
class PaddingQuery {
public:
  /// `promised`: what values hold at channels.
  PaddingQuery(const StoredValues &stored, const DenseMap<Value, attn::Padding> &promised, RowAxis axis, bool oneToken)
      : stored(stored), promised(promised), axis(axis), oneToken(oneToken) {}

  attn::Padding of(Value value, bool channels) {
    auto [found, isNew] = known.try_emplace(value, attn::Padding::Unknown);
    if (!isNew)
      return found->second;
    attn::Padding padding = find(value, channels);
    return known[value] = padding;
  }

private:
  attn::Padding find(Value value, bool channels) {
    attn::WholeTensorType type = wholeType(value);
    if (!hasAxis(type, axis, channels, oneToken))
      return attn::Padding::Repeated;
    if (auto found = promised.find(value); found != promised.end() && axis == channelAxis)
      return found->second;
    if (stored.contains(value)) // Partial sums are the same for every row.
      return axis == tokenAxis && stored.isInParts(value) ? attn::Padding::Repeated : attn::Padding::Zero;
    Operation *op = value.getDefiningOp();
    auto padded = isRowLocal(op) ? dyn_cast<attn::PaddingOpInterface>(op) : attn::PaddingOpInterface();
    if (!padded)
      return attn::Padding::Unknown;
    bool inner = channels || sumsChannels(op);
    auto operands = llvm::map_to_vector(op->getOperands(), [&](Value operand) { return of(operand, inner); });
    return padded.paddingOf(cast<OpResult>(value).getResultNumber(), axis + type.getRank() - (channels ? 4 : 3),
                            operands);
  }

  const StoredValues &stored;
  const DenseMap<Value, attn::Padding> &promised;
  RowAxis axis;
  bool oneToken;
  DenseMap<Value, attn::Padding> known;
};
} // namespace

attn::Padding Puller::rowPadding(Value value, const RowTile &rows, bool channels) {
  return PaddingQuery(stored, promised, tokenAxis, rows.isOneToken()).of(value, channels);
}

attn::Padding Puller::channelPadding(Value value) {
  return PaddingQuery(stored, promised, channelAxis, /*oneToken=*/false).of(value, /*channels=*/true);
}

Value Puller::pull(Value value, const RowTile &rows, const Chunk &chunk, Zeros zeros) {
  Value tile = part(value, rows, &chunk), exists;
  bool ofRows = zeros == Zeros::Everywhere || zeros == Zeros::Rows;
  bool ofChannels = zeros == Zeros::Everywhere || zeros == Zeros::Channels;
  if (ofRows && rows.inside && rowPadding(value, rows, /*channels=*/true) != attn::Padding::Zero)
    exists = b.column(rows.inside);
  if (ofChannels && !chunk.isWhole() && channelPadding(value) != attn::Padding::Zero)
    exists = exists ? b.both(exists, b.row(chunk.inside(b))) : b.row(chunk.inside(b));
  if (!exists)
    return tile;
  SmallVector<int64_t> shape(TileBuilder::shapeOf(exists));
  for (auto [size, its] : llvm::zip_equal(shape, TileBuilder::shapeOf(tile)))
    size = std::max(size, its);
  return b.select(exists, b.broadcast(tile, shape), b.full(shape, 0, TileBuilder::elementOf(tile)));
}

Value Puller::pullRow(Value value, const RowTile &rows, Zeros zeros) {
  Value tile = part(value, rows, nullptr);
  bool ofRows = zeros == Zeros::Everywhere || zeros == Zeros::Rows;
  if (!ofRows || !rows.inside || rowPadding(value, rows, /*channels=*/false) == attn::Padding::Zero)
    return tile;
  return b.select(rows.inside, b.broadcast(tile, {rows.count}), b.full({rows.count}, 0, TileBuilder::elementOf(tile)));
}

} // namespace weft
