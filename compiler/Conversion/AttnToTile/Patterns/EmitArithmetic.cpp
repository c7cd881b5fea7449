// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See EmitArithmetic.h.
#include "compiler/Conversion/AttnToTile/Patterns/EmitArithmetic.h"
#include "compiler/Conversion/AttnToTile/Patterns/Attend.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

EmitArithmetic EmitArithmetic::of(KernelFrame &frame, const Attend &attend, StoredValues &stored) {
  auto outside = llvm::map_to_vector(attend.patternOperands, [&](Value value) { return stored.at(value); });
  return {frame, outside, attend.masks, &stored, attend.queryType().dim(1).str()};
}

Value EmitArithmetic::xor32(Value x, Value y) {
  TileBuilder &b = frame.b;
  bool tile = isa<RankedTensorType>(x.getType());
  return b.createOrFold<arith::XOrIOp>(b.broadcastLike(x, tile ? x : y), tile ? b.broadcastLike(y, x) : y);
}

Value EmitArithmetic::mulHigh32(Value x, Value y) {
  TileBuilder &b = frame.b;
  Type wide = b.getI64Type();
  // The cast extends by the sign: masking makes that a zero extension.
  Value mask = b.i64(0xffffffff);
  auto extended = [&](Value value) { return b.both(b.cast(value, wide), mask); };
  Value product = b.mul(extended(x), extended(y));
  Value shift = b.broadcastLike(b.i64(32), product);
  return b.cast(b.createOrFold<arith::ShRUIOp>(product, shift), b.getI32Type());
}

void EmitArithmetic::holdSpans(Attribute pattern, Value batch, Value head, const RowTile &rows) {
  pattern.walk([&](attn::SpanAttr span) {
    for (int64_t table : {span.getLower(), span.getUpper()}) {
      Value bounds = operand(table, {batch, tableHead(table, head), rows.token}, rows.inside);
      held.push_back({table, rows.token, bounds});
    }
  });
}

Value EmitArithmetic::operand(int64_t index, ArrayRef<Value> indices, Value inside) {
  if (auto expanded = indices.back().getDefiningOp<tile::ExpandDimsOp>())
    for (const HeldTable &table : llvm::reverse(held))
      if (table.operand == index && table.token == expanded.getSource())
        return frame.b.expand(table.bounds, expanded.getAxis());
  int64_t rank = cast<attn::WholeTensorType>(operands[index].getType()).getRank();
  return frame.b.cast(loadElement(frame, operands[index], indices.take_back(rank), inside), frame.b.getI32Type());
}

Value EmitArithmetic::number(int64_t index, int64_t place) {
  Value &loaded = numbers[{index, place}];
  if (!loaded)
    loaded = frame.atEntry([&] { return loadElement(frame, operands[index], frame.b.i32(place)); });
  return loaded;
}

Value EmitArithmetic::tableHead(int64_t index, Value h) {
  StringRef own = cast<attn::WholeTensorType>(operands[index].getType()).dim(1);
  int64_t group = attn::headGroup(heads, own).value_or(1);
  return group == 1 ? h : frame.b.div(h, frame.b.i32(group));
}

Value EmitArithmetic::listed(int64_t index, int64_t count, Value batch, Value head, Value row, Value column,
                             Value inside) {
  TileBuilder &b = frame.b;
  Value entries = frame.size(cast<attn::WholeTensorType>(operands[index].getType()).dim(3));
  Value used = operand(count, {batch, head, row}, rowMask(inside, row));
  Value none = b.cast(b.both(inside, b.i1(false)), b.getI32Type());
  auto loop = scf::ForOp::create(b, b.i32(0), entries, b.i32(1), ValueRange(none));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar();
    Value entry = operand(index, {batch, head, row, i}, rowMask(inside, row));
    Value here = b.both(b.both(eq(entry, column), b.less(i, used)), inside);
    scf::YieldOp::create(b, ValueRange(b.either(loop.getRegionIterArg(0), b.cast(here, b.getI32Type()))));
  }
  return b.compareInt(arith::CmpIPredicate::ne, loop.getResult(0), b.i32(0));
}

/// Which of `row`'s elements lie inside for some column: what may be loaded. (A row's places are loaded once, not once
/// a pair.)
Value EmitArithmetic::rowMask(Value inside, Value row) {
  TileBuilder &b = frame.b;
  if (!isa<RankedTensorType>(inside.getType()) || TileBuilder::shapeOf(inside) == TileBuilder::shapeOf(row))
    return inside;
  Value some = b.reduceMax(b.cast(inside, b.getI32Type()), TileBuilder::shapeOf(row)[0] == 1 ? 0 : 1);
  return b.compareInt(arith::CmpIPredicate::ne, TileBuilder::shapeOf(row)[0] == 1 ? b.row(some) : b.column(some),
                      b.i32(0));
}

} // namespace weft
