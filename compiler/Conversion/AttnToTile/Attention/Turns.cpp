// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Turns.h.
#include "compiler/Conversion/AttnToTile/Attention/Turns.h"
#include "dialects/Attn/Pattern/Scattered.h"
#include "dialects/Attn/Pattern/Segments.h"
#include "dialects/Attn/Pattern/Transpose.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

bool canTakeTurns(const Attend &attend) {
  Attribute pattern = attn::withoutScattered(attend.patterns[0]);
  return attend.keys.size() == 1 && attend.counts.empty() && !attn::hasSpan(pattern) && attn::hasSegments(pattern) &&
         attn::hasSegments(attn::transposePattern(pattern));
}

static Value addAtomically(TileBuilder &b, Value pointer, int64_t number, tile::MemoryOrder order) {
  return tile::AtomicRMWOp::create(b, b.getI32Type(), tile::AtomicKind::Add, pointer, b.i32(number), Value(), order);
}

/// The place of an element of which the last axis has stride 1.
static Value elementPointer(TileBuilder &b, const TensorParameter &tensor, ArrayRef<Value> indices) {
  Value pointer = tensor.pointer;
  for (auto [index, stride] : llvm::zip(indices, tensor.strides))
    pointer = b.addPtr(pointer, b.mul(b.cast(index, b.getI64Type()), stride));
  return b.addPtr(pointer, indices.back());
}

Turns::Turns(BackwardKernel &kernel) : kernel(kernel), b(kernel.b) {
  attn::WholeTensorType queries = kernel.attend.queryType(), keys = kernel.attend.keyType(0);
  auto tickets = attn::WholeTensorType::get(keys.getDims().take_front(2), b.getI32Type());
  SmallVector<StringAttr> dims(queries.getDims().take_front(2));
  std::string blocks = tilesOf(queries, kernel.schedule.getColumns());
  if (kernel.attend.form.isPacked) // Each packed sequence may add one block that is only partly filled.
    blocks += " + " + wholeType(kernel.attend.cuSeqlens[0]).dim(0).str();
  dims.push_back(b.getStringAttr(blocks));
  TensorParameter next = kernel.frame.output(tickets, /*zeroed=*/true);
  turns = kernel.frame.output(attn::WholeTensorType::get(dims, b.getI32Type()), /*zeroed=*/true);
  Value pointer = elementPointer(b, next, {b.programId(tile::Axis::Z), b.programId(tile::Axis::Y)});
  place = addAtomically(b, pointer, 1, tile::MemoryOrder::Relaxed);
  kernel.descending = true;
}

Value Turns::pointerTo(const RowTile &queries) {
  Value block = b.div(queries.scalarStart, b.i32(queries.count));
  if (queries.base)
    block = b.add(block, b.add(b.div(queries.base, b.i32(queries.count)), kernel.standing.sequence));
  return elementPointer(b, turns, {queries.batch, queries.head, block});
}

/// How many of the programs before this one meet a block of queries.
Value Turns::countBefore(const RowTile &queries) {
  const Standing &standing = kernel.standing;
  Value length = standing.queryLength, end = b.min(b.add(queries.scalarStart, b.i32(queries.count)), length);
  attn::RowBlock<EmitArithmetic> block{queries.scalarStart,    end,          queries.head, length,
                                       standing.keyLengths[0], queries.batch};
  auto segments = attn::rowSegments(kernel.arithmetic, attn::withoutScattered(kernel.attend.patterns[0]), block,
                                    kernel.schedule.getRows());
  Value count = b.i32(0);
  for (const auto &segment : *segments)
    count = b.add(count, b.max(b.sub(b.min(segment.end, standing.tile), segment.begin), b.i32(0)));
  return count;
}

void Turns::wait(const RowTile &queries) {
  Value pointer = pointerTo(queries), before = countBefore(queries);
  auto loop = scf::WhileOp::create(b, TypeRange(), ValueRange());
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&loop.getBefore());
  Value passed = addAtomically(b, pointer, 0, tile::MemoryOrder::Acquire);
  scf::ConditionOp::create(b, b.less(passed, before), ValueRange());
  b.createBlock(&loop.getAfter());
  scf::YieldOp::create(b);
}

void Turns::pass(const RowTile &queries) {
  tile::BarrierOp::create(b);
  addAtomically(b, pointerTo(queries), 1, tile::MemoryOrder::Release);
}

} // namespace weft
