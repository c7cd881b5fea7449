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

/// The first of a tile of positions that follow one another from a multiple of `length` on, and are no more; null where
/// that is not known.
static Value startOfRun(Value positions, int64_t length) {
  while (auto expanded = positions.getDefiningOp<tile::ExpandDimsOp>())
    positions = expanded.getSource();
  auto sum = positions.getDefiningOp<arith::AddIOp>();
  for (bool swapped : {false, true}) {
    auto start = sum ? sum->getOperand(swapped).getDefiningOp<tile::SplatOp>() : nullptr;
    auto range = sum ? sum->getOperand(!swapped).getDefiningOp<tile::MakeRangeOp>() : nullptr;
    if (!start || !range || range.getStart() != 0 || length % range.getEnd() != 0)
      continue;
    auto product = start.getSource().getDefiningOp<arith::MulIOp>();
    std::optional<int64_t> step = product ? TileBuilder::constantOf(product.getRhs()) : std::nullopt;
    if (step && *step % range.getEnd() == 0)
      return start.getSource();
  }
  return {};
}

Value EmitArithmetic::floorDiv(Value a, Value b) {
  std::optional<int64_t> length = TileBuilder::constantOf(b);
  Value start = length ? startOfRun(a, *length) : Value();
  return frame.b.div(start ? start : a, b);
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

Value EmitArithmetic::listed(int64_t index, int64_t count, Value batch, Value head, Value row, Value column) {
  TileBuilder &b = frame.b;
  Value entries = frame.size(cast<attn::WholeTensorType>(operands[index].getType()).dim(3));
  Value used = operand(count, {batch, head, row});
  Value none = b.cast(b.both(eq(row, column), b.i1(false)), b.getI32Type());
  auto loop = scf::ForOp::create(b, b.i32(0), entries, b.i32(1), ValueRange(none));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar();
    Value here = b.both(eq(operand(index, {batch, head, row, i}), column), b.less(i, used));
    scf::YieldOp::create(b, ValueRange(b.either(loop.getRegionIterArg(0), b.cast(here, b.getI32Type()))));
  }
  return b.compareInt(arith::CmpIPredicate::ne, loop.getResult(0), b.i32(0));
}

} // namespace weft
