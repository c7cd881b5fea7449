// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See RowTile.h.
#include "compiler/Conversion/AttnToTile/Rows/RowTile.h"

using namespace mlir;

namespace weft {

std::optional<RowAxis> rowSpaceAxis(attn::WholeTensorType type, unsigned i, bool channels, bool oneToken) {
  auto axis = static_cast<RowAxis>(i + (channels ? 4 : 3) - type.getRank());
  if (type.dim(i) == "1" && !(axis == tokenAxis && oneToken))
    return std::nullopt;
  return axis;
}

bool hasAxis(attn::WholeTensorType type, RowAxis axis, bool channels, bool oneToken) {
  for (unsigned i = 0; i < type.getRank(); ++i)
    if (rowSpaceAxis(type, i, channels, oneToken) == axis)
      return true;
  return false;
}

/// How many of the tile's heads share one of a tensor with `heads` heads.
static int64_t sharing(const RowTile &rows, StringRef heads) { return attn::headGroup(rows.heads, heads).value_or(1); }

bool RowTile::tellsApart(StringRef heads) const { return member && heads != "1" && sharing(*this, heads) % packed; }

bool RowTile::tellsHeadsApart(attn::WholeTensorType type, bool channels) const {
  for (unsigned i = 0; i < type.getRank(); ++i)
    if (rowSpaceAxis(type, i, channels, /*oneToken=*/false) == headAxis)
      return tellsApart(type.dim(i));
  return false;
}

Value RowTile::firstHeadIn(TileBuilder &b, StringRef heads) const {
  int64_t group = sharing(*this, heads);
  if (heads == "1")
    return b.i32(0);
  return group == 1 ? head : b.div(head, b.i32(group));
}

Value RowTile::headsBeyond(TileBuilder &b, StringRef heads) const {
  if (!tellsApart(heads))
    return {};
  int64_t group = sharing(*this, heads);
  return group == 1 ? member : b.sub(b.div(b.add(member, head), b.i32(group)), firstHeadIn(b, heads));
}

Value RowTile::headIn(TileBuilder &b, StringRef heads, bool asColumn) const {
  if (!tellsApart(heads))
    return firstHeadIn(b, heads);
  Value each = headOfRow(b, asColumn);
  int64_t group = sharing(*this, heads);
  return group == 1 ? each : b.div(each, b.i32(group));
}

RowTile RowTile::of(attn::WholeTensorType space, Value batch, Value head) const {
  RowTile rows = *this;
  rows.batch = batch;
  rows.head = head;
  rows.heads = space.dim(1).str();
  rows.tokens = space.dim(2).str();
  return rows;
}

RowTile RowTile::anyRows(Value token, Value inside) const {
  RowTile rows = *this;
  rows.token = token;
  rows.inside = inside;
  rows.scalarStart = rows.offsets = rows.top = rows.left = rows.counts = Value();
  rows.isBlock = false;
  rows.lines = 1;
  rows.columns = rows.gridColumns = 0;
  return rows;
}

RowTile RowTile::anyPositions(Value position, Value inside) const {
  RowTile rows = anyRows(position, inside);
  rows.base = Value();
  return rows;
}

RowTile RowTile::movedBack(TileBuilder &b, int64_t by) const {
  RowTile rows = anyRows(b.sub(token, b.i32(by)), inside);
  if (offsets) {
    rows.scalarStart = scalarStart;
    rows.offsets = b.sub(offsets, b.i32(by));
  }
  return rows;
}

RowTile RowTile::clamped(TileBuilder &b, Value length, bool unread) const {
  Value last = b.sub(b.sub(length, scalarStart), b.i32(1));
  Value within = unread ? b.upTo(last, offsets) : b.min(offsets, last);
  RowTile rows = anyRows(b.add(scalarStart, within), {});
  rows.scalarStart = scalarStart;
  rows.offsets = within;
  return rows;
}

RowTile RowTile::onlyToken(TileBuilder &b, bool byHead) const {
  int64_t rowCount = byHead ? count : 1;
  RowTile rows = anyPositions(b.full({rowCount}, 0, b.getI32Type()), {});
  rows.count = rowCount;
  if (!byHead)
    rows.member = Value();
  rows.single = true;
  rows.tokens.clear();
  return rows;
}

std::string tilesOf(attn::WholeTensorType type, int64_t rows) {
  return "cdiv(" + type.dim(2).str() + ", " + std::to_string(rows) + ")";
}

RowTile rowsFrom(TileBuilder &b, Value start, int64_t count, Value length, bool bounded) {
  RowTile rows;
  rows.count = count;
  rows.scalarStart = start;
  rows.offsets = b.range(count);
  rows.token = b.add(start, rows.offsets);
  rows.columns = count;
  if (bounded)
    rows.inside = b.less(rows.token, length);
  return rows;
}

RowTile programRows(TileBuilder &b, attn::WholeTensorType type, Value start, int64_t count, Value end) {
  RowTile rows = rowsFrom(b, start, count, end, /*bounded=*/true);
  Value head = b.programId(tile::Axis::Y), batch = b.programId(tile::Axis::Z);
  return rows.of(type, batch, head);
}

RowTile partRows(TileBuilder &b, attn::WholeTensorType type, Value start, int64_t count, Value end) {
  RowTile rows = programRows(b, type, start, count, end);
  rows.columns = 0;
  return rows;
}

} // namespace weft
