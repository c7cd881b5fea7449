// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Tangents.h.
#include "compiler/Differentiate/Tangents.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weft;
using Scalars = SmallVector<Value>;

Tangents::Tangents(func::FuncOp program, func::FuncOp linearised)
    : b(program.getLoc(), OpBuilder::atBlockEnd(&linearised.front())) {
  for (auto [from, to] : llvm::zip(program.getArguments(), linearised.getArguments()))
    mapping.map(from, to);
}

Value Tangents::getOrZero(Value value) {
  if (Value known = get(value))
    return known;
  auto zero = [](ImplicitLocOpBuilder &b, ValueRange) -> Scalars {
    return {arith::ConstantOp::create(b, b.getF32FloatAttr(0))};
  };
  return attn::MapOp::create(b, value.getType(), ValueRange(), zero).getResult(0);
}

void Tangents::set(Value value, Value tangent) {
  assert((!tangent || tangent.getType() == value.getType()) && "a tangent has the type of its value");
  if (tangent)
    tangents[value] = tangent;
}

Value Tangents::sum(ArrayRef<Value> parts) {
  if (parts.size() <= 1)
    return parts.empty() ? Value() : parts.front();
  auto add = [](ImplicitLocOpBuilder &b, ValueRange x) -> Scalars {
    Value sum = x.front();
    for (Value each : x.drop_front())
      sum = arith::AddFOp::create(b, sum, each);
    return {sum};
  };
  return attn::MapOp::create(b, parts.front().getType(), parts, add).getResult(0);
}

void Tangents::setSum(Operation *op, ArrayRef<Operation *> terms) {
  for (OpResult result : op->getResults())
    set(result, sum(llvm::map_to_vector(
                    terms, [&](Operation *term) -> Value { return term->getResult(result.getResultNumber()); })));
}

bool Tangents::reads(Operation *op) const {
  auto has = [&](Value value) { return tangents.contains(value); };
  if (llvm::any_of(op->getOperands(), has))
    return true;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return llvm::any_of(captured, has);
}

Value Tangents::primal(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), read);
  for (Value each : read)
    primal(each);
  b.clone(*op, mapping); // also maps the results
  return mapping.lookup(value);
}

SmallVector<Value> Tangents::primals(ValueRange values) {
  return llvm::map_to_vector(values, [&](Value value) { return primal(value); });
}

void Tangents::usePrimals(Region &region) {
  Block *here = b.getInsertionBlock();
  region.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (isa<attn::WholeTensorType>(operand.get().getType()) && operand.get().getParentBlock() != here)
        operand.set(primal(operand.get()));
  });
}

Operation *Tangents::cloneWithTangent(Operation *op, unsigned number) {
  Value tangent = get(op->getOperand(number));
  if (!tangent)
    return nullptr;
  SmallVector<Value> operands = primals(op->getOperands());
  operands[number] = tangent;
  Operation *clone = op->clone();
  clone->setOperands(operands);
  return b.insert(clone);
}
