// Part of Weft. SPDX-License-Identifier: Apache-2.0
// scf.for, scf.if and scf.while as blocks whose arguments are the registers of the values that flow.
//
//   scf.for with a value v of two registers:      llvm.cond_br (lb < ub), ^body(lb, v0, v1), ^exit(v0, v1)
//                                               ^body(i, v0, v1): ...  llvm.cond_br (i + step < ub), ^body(i + step,
//                                               w0, w1), ^exit(w0, w1)
//
// Loops are emitted with their test at the end, as LLVM would rotate them.

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "compiler/Conversion/WarpToLLVM/VectorAccess.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {
namespace {

/// The registers of several values, one after the other.
Registers flatten(Emitter &e, ValueRange values) {
  Registers all;
  for (Value value : values)
    llvm::append_range(all, e.registers(value));
  return all;
}

/// A block at the end of the kernel with one argument for each register of `values`, which are bound to them. Insertion
/// point unchanged.
Block *blockFor(Emitter &e, ValueRange values, TypeRange leading = {}) {
  OpBuilder::InsertionGuard guard(e.b);
  Block *block = e.b.createBlock(&e.function().getBody(), e.function().getBody().end());
  for (Type type : leading)
    block->addArgument(type, e.loc);
  for (Value value : values) {
    Registers registers;
    for (unsigned i = 0, n = registerCount(value.getType()).value_or(0); i < n; ++i)
      registers.push_back(block->addArgument(registerType(value.getType()), e.loc));
    e.bind(value, registers);
  }
  return block;
}

/// Moves `block` behind all others and goes on there.
void continueIn(Emitter &e, Block *block) {
  Region &body = e.function().getBody();
  block->moveBefore(&body, body.end());
  e.b.setInsertionPointToStart(block);
}

/// How many elements of a carried value share a word of 32 bits: those of words that a load gives for the next
/// iteration stay together.
unsigned elementsAWord(Value yielded) {
  auto type = dyn_cast<RankedTensorType>(yielded.getType());
  auto load = yielded.getDefiningOp<tile::LoadOp>();
  if (!type || !load || !type.getElementType().isIntOrFloat())
    return 1;
  unsigned bits = type.getElementTypeBitWidth(), each = bits == 8 || bits == 16 ? 32 / bits : 1;
  return vectorsOf(load, load.getPtr(), each).width == each ? each : 1;
}

/// The registers of `value`, `each` of them as one word.
Registers packed(Emitter &e, Value value, unsigned each) {
  ArrayRef<Value> registers = e.registers(value);
  if (each == 1)
    return Registers(registers);
  Registers words;
  for (; !registers.empty(); registers = registers.drop_front(each))
    words.push_back(e.pack(registers.take_front(each)));
  return words;
}

/// The values that a loop carries, as the registers or words that go round it.
class Carried {
public:
  Carried(scf::ForOp loop, Emitter &e) : e(e) {
    for (Value yielded : loop.getYieldedValues())
      each.push_back(elementsAWord(yielded));
  }
  Registers of(ValueRange values) const {
    Registers all;
    for (auto [value, each] : llvm::zip_equal(values, each))
      llvm::append_range(all, packed(e, value, each));
    return all;
  }
  /// A block at the end of the kernel with an argument for each of them.
  Block *block(ValueRange values, TypeRange leading) const {
    OpBuilder::InsertionGuard guard(e.b);
    Block *block = e.b.createBlock(&e.function().getBody(), e.function().getBody().end());
    for (Type type : leading)
      block->addArgument(type, e.loc);
    for (auto [value, each] : llvm::zip_equal(values, each))
      for (unsigned i = 0, n = registerCount(value.getType()).value_or(0); i < n; i += each)
        block->addArgument(each == 1 ? registerType(value.getType()) : e.b.getI32Type(), e.loc);
    return block;
  }
  /// Binds `values` to a block's arguments, in that block.
  void bind(ValueRange values, ValueRange arguments) const {
    for (auto [value, each] : llvm::zip_equal(values, each)) {
      Registers registers;
      for (unsigned i = 0, n = registerCount(value.getType()).value_or(0); i < n; i += each) {
        if (each == 1)
          registers.push_back(arguments.front());
        else
          llvm::append_range(registers, e.unpack(arguments.front(), registerType(value.getType())));
        arguments = arguments.drop_front();
      }
      e.bind(value, registers);
    }
  }

private:
  Emitter &e;
  SmallVector<unsigned> each;
};

LogicalResult lowerFor(scf::ForOp op, Emitter &e) {
  Value lower = e.scalar(op.getLowerBound()), upper = e.scalar(op.getUpperBound()), step = e.scalar(op.getStep());
  auto predicate = op.getUnsignedCmp() ? LLVM::ICmpPredicate::ult : LLVM::ICmpPredicate::slt;
  Carried values(op, e);
  Registers initial{lower};
  llvm::append_range(initial, values.of(op.getInitArgs()));

  Block *body = values.block(op.getRegionIterArgs(), lower.getType());
  Block *exit = values.block(op.getResults(), {});
  e.bind(op.getInductionVar(), body->getArgument(0));
  Value enters = LLVM::ICmpOp::create(e.b, e.loc, predicate, lower, upper);
  LLVM::CondBrOp::create(e.b, e.loc, enters, body, initial, exit, ArrayRef(initial).drop_front());

  e.b.setInsertionPointToStart(body);
  values.bind(op.getRegionIterArgs(), body->getArguments().drop_front());
  if (failed(e.lowerBody(*op.getBody())))
    return failure();
  Value next = LLVM::AddOp::create(e.b, e.loc, body->getArgument(0), step);
  Value again = LLVM::ICmpOp::create(e.b, e.loc, predicate, next, upper);
  Registers carried{next};
  llvm::append_range(carried, values.of(op.getBody()->getTerminator()->getOperands()));
  LLVM::CondBrOp::create(e.b, e.loc, again, body, carried, exit, ArrayRef(carried).drop_front());
  continueIn(e, exit);
  values.bind(op.getResults(), exit->getArguments());
  return success();
}

LogicalResult lowerBranch(Region &region, Block *start, Block *join, Emitter &e) {
  continueIn(e, start);
  if (failed(e.lowerBody(region.front())))
    return failure();
  LLVM::BrOp::create(e.b, e.loc, flatten(e, region.front().getTerminator()->getOperands()), join);
  return success();
}

LogicalResult lowerIf(scf::IfOp op, Emitter &e) {
  Block *join = blockFor(e, op.getResults()), *then = blockFor(e, {});
  Block *otherwise = op.getElseRegion().empty() ? join : blockFor(e, {});
  DenseI32ArrayAttr weights;
  if (op->hasAttr(warp::mostlyHoldsAttrName))
    weights = e.b.getDenseI32ArrayAttr({15, 1}); // a frequency, which decides what a block falls through to
  LLVM::CondBrOp::create(e.b, e.loc, e.scalar(op.getCondition()), ValueRange(), ValueRange(), weights, nullptr, then,
                         otherwise);
  if (failed(lowerBranch(op.getThenRegion(), then, join, e)))
    return failure();
  if (otherwise != join && failed(lowerBranch(op.getElseRegion(), otherwise, join, e)))
    return failure();
  continueIn(e, join);
  return success();
}

LogicalResult lowerWhile(scf::WhileOp op, Emitter &e) {
  Block *before = blockFor(e, op.getBeforeArguments()), *after = blockFor(e, op.getAfterArguments());
  Block *exit = blockFor(e, op.getResults());
  LLVM::BrOp::create(e.b, e.loc, flatten(e, op.getInits()), before);

  continueIn(e, before);
  if (failed(e.lowerBody(*op.getBeforeBody())))
    return failure();
  scf::ConditionOp condition = op.getConditionOp();
  Registers passed = flatten(e, condition.getArgs());
  LLVM::CondBrOp::create(e.b, e.loc, e.scalar(condition.getCondition()), after, passed, exit, passed);

  continueIn(e, after);
  if (failed(e.lowerBody(*op.getAfterBody())))
    return failure();
  LLVM::BrOp::create(e.b, e.loc, flatten(e, op.getYieldOp().getOperands()), before);
  continueIn(e, exit);
  return success();
}

} // namespace

void addControlFlowLowerings(LoweringTable &table) {
  table.add<scf::ForOp>(lowerFor);
  table.add<scf::IfOp>(lowerIf);
  table.add<scf::WhileOp>(lowerWhile);
}

} // namespace weft
