// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn.paged on tiles of rows: rows are loaded from where the table says that they are. Of a block of 32 keys from 64 on:
//
//   pages of 64    table[b, 1], once for the block: its rows follow one another there
//   pages of 16    table[b, 4] for the first half of the rows, table[b, 5] for the other
//   pages of 1     table[b, 64] .. table[b, 95], one for each row
#include "compiler/Conversion/AttnToTile/Kernel/ScalarRegion.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft {

/// The most pages of a block whose entries are loaded one by one.
static constexpr int64_t mostScalarPages = 4;

namespace {
/// The addresses of rows in pages.
class PagedRowsAt {
public:
  PagedRowsAt(attn::PagedOp op, Puller &puller, const RowTile &rows)
      : op(op), puller(puller), b(puller.b), rows(rows), pages(puller.frame.input(puller.stored.at(op.getPages()))),
        table(puller.frame.input(puller.stored.at(op.getTable()))), size(*pages.type.staticDim(1)) {}

  Value load(const Chunk &chunk) {
    Value start = b.addPtr(pages.pointer, b.mul(b.cast(head(), b.getI64Type()), pages.strides[2]));
    if (chunk.base)
      start = b.addPtr(start, b.cast(chunk.base, b.getI64Type()));
    if (chunk.first)
      start = b.addPtr(start, b.i64(chunk.first));
    auto [uniform, each] = offsets();
    if (uniform)
      start = b.addPtr(start, uniform);
    SmallVector<int64_t> shape{rows.count, chunk.width};
    Value channels = b.cast(b.row(b.range(chunk.width)), TileBuilder::elementOf(each));
    Value address = b.addPtr(b.broadcast(start, shape), b.broadcast(b.add(each, channels), shape));
    return b.load(address, exists(chunk));
  }

private:
  /// Offsets of the rows from the first page's first row: a scalar (may be null), and [count, 1].
  struct Offsets {
    Value uniform, each;
  };

  Value head() { return rows.firstHeadIn(b, pages.type.dim(2)); }

  Offsets offsets() {
    if (rows.isBlock && size % rows.count == 0) {
      Value slot = b.rem(rows.scalarStart, b.i32(size));
      Value first = b.add(offsetOf(entryAt(b.div(rows.scalarStart, b.i32(size)), /*isInside=*/true)),
                          b.mul(b.cast(slot, b.getI64Type()), pages.strides[1]));
      return {first, b.column(b.mul(rows.offsets, b.cast(pages.strides[1], b.getI32Type())))};
    }
    // Entries become offsets where their rows' addresses are, so that what crosses threads is 32 bits, once for keys and
    // values.
    if (rows.isBlock && rows.count % size == 0 && rows.count / size <= mostScalarPages) {
      Value number = b.div(rows.scalarStart, b.i32(size));
      Value entries = b.broadcast(entryAt(number, /*isInside=*/true), {rows.count});
      for (int64_t page = 1; page < rows.count / size; ++page) {
        Value before = b.less(rows.offsets, b.i32(page * size));
        Value its = entryAt(b.add(number, b.i32(page)));
        entries = b.select(before, entries, b.broadcast(its, {rows.count}));
      }
      return {{}, b.add(offsetOf(b.column(entries)), slotOffset(b.column(b.rem(rows.offsets, b.i32(size)))))};
    }
    Value position = rows.position(b);
    if (size == 1)
      return {{}, offsetOf(b.column(entryAt(position)))};
    Value number = b.div(position, b.i32(size));
    Value slot = b.sub(position, b.mul(number, b.i32(size)));
    return {{}, b.add(offsetOf(b.column(entryAt(number))), slotOffset(b.column(slot)))};
  }

  Value slotOffset(Value slot) { return b.mul(b.cast(slot, b.getI64Type()), pages.strides[1]); }
  Value offsetOf(Value entry) { return b.mul(b.cast(entry, b.getI64Type()), pages.strides[0]); }

  /// The page that the table names at `number` (i32, scalar or [count]): one that there is, whatever it says. `isInside`
  /// where the table is known to have that place.
  Value entryAt(Value number, bool isInside = false) {
    TileBuilder &b = this->b;
    if (!isInside)
      number = atMost(number, b.sub(puller.frame.size(table.type.dim(1)), b.i32(1)));
    Value place = b.cast(number, b.getI64Type());
    Value row = b.addPtr(table.pointer, b.mul(b.cast(rows.batch, b.getI64Type()), table.strides[0]));
    bool scalar = !isa<RankedTensorType>(number.getType());
    Value address = scalar ? b.addPtr(row, place) : b.addPtr(b.broadcastLike(row, place), place);
    Value entry = b.load(address, scalar ? Value() : rows.inside);
    return atMost(entry, b.sub(puller.frame.size(pages.type.dim(0)), b.i32(1)));
  }

  /// A number from 0 to `most`: itself where it is one.
  Value atMost(Value number, Value most) {
    return arith::MinUIOp::create(b, number, b.broadcastLike(most, number)).getResult();
  }

  Value exists(const Chunk &chunk) {
    Value mask = puller.exists(rows, &chunk);
    if (rows.counts == op.getLengths())
      return mask;
    SmallVector<Value> place{rows.batch, head()};
    place.resize(cast<attn::WholeTensorType>(op.getLengths().getType()).getRank());
    Value length = loadElement(puller.frame, puller.stored.at(op.getLengths()), place);
    Value below = b.column(b.less(rows.position(b), length));
    return mask ? b.both(mask, below) : below;
  }

  attn::PagedOp op;
  Puller &puller;
  TileBuilder &b;
  const RowTile &rows;
  const TensorParameter pages, table;
  int64_t size; // rows of a page
};

struct PagedRows : RowLocalOpInterface::ExternalModel<PagedRows, attn::PagedOp> {
  // A table says where a row is.
  bool readsByRow(Operation *, unsigned) const { return false; }
  RowsRead rowsRead(Operation *) const { return RowsRead::Anywhere; }
  Value pull(Operation *op, OpResult, Puller &puller, const RowTile &rows, const Chunk *chunk) const {
    return PagedRowsAt(cast<attn::PagedOp>(op), puller, rows).load(*chunk);
  }
};
} // namespace

void attachPagedRows(MLIRContext &context) { attn::PagedOp::attachInterface<PagedRows>(context); }

} // namespace weft
