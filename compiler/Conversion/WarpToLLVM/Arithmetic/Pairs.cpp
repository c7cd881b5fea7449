// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Pairs.h.
#include "compiler/Conversion/WarpToLLVM/Arithmetic/Pairs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {

bool computesPairs(Operation *op) {
  if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()))
    return false;
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  return (element.isF16() || element.isBF16()) &&
         isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp,
             arith::MaxNumFOp, arith::MinNumFOp, math::FmaOp>(op);
}

bool computesFloat32Pairs(Operation *op, const TargetInfo &target) {
  constexpr unsigned worthwhile = 8;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return target.float32Pairs && type && type.getElementType().isF32() &&
         registerCount(type).value_or(0) >= worthwhile &&
         isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, math::FmaOp>(op);
}

Value fusedPair(Operation *op, ArrayRef<Value> in, Emitter &e) {
  auto type = cast<VectorType>(in[0].getType());
  if (!type.getElementType().isBF16() || e.target.bf16Arithmetic)
    return {};
  auto fused = [&](Value x, double by, Value plus) -> Value {
    auto number = DenseElementsAttr::get(type, Attribute(e.b.getFloatAttr(type.getElementType(), by)));
    return LLVM::FMAOp::create(e.b, e.loc, x, e.constant(number), plus);
  };
  if (isa<arith::AddFOp>(op))
    return fused(in[0], 1.0, in[1]);
  if (isa<arith::SubFOp>(op))
    return fused(in[1], -1.0, in[0]);
  if (!isa<arith::MulFOp>(op))
    return {};
  auto zero = DenseElementsAttr::get(type, Attribute(e.b.getFloatAttr(type.getElementType(), -0.0)));
  return LLVM::FMAOp::create(e.b, e.loc, in[0], in[1], e.constant(zero));
}

Value pairedUp(Value first, Value second, Emitter &e) {
  Value pair = LLVM::PoisonOp::create(e.b, e.loc, VectorType::get(2, first.getType()));
  pair = LLVM::InsertElementOp::create(e.b, e.loc, pair, first, e.i32(0));
  return LLVM::InsertElementOp::create(e.b, e.loc, pair, second, e.i32(1));
}

/// Two neighbours as one value; null where they would have to be put together. Registers of f32 need only lie side by side.
static Value pairOf(Value first, Value second, Emitter &e) {
  if (first.getType().isF32())
    return pairedUp(first, second, e);
  if (Value word = e.unpackedFrom({first, second}))
    return e.bitcast(word, VectorType::get(2, first.getType()));
  return first == second ? pairedUp(first, second, e) : Value();
}

/// The pairs of an op's operands at `r`; none where it takes no fewer instructions than two ops: several operands would have
/// to be put together, one instruction each, or all are numbers.
static SmallVector<Value, 3> pairsAt(ArrayRef<ArrayRef<Value>> operands, size_t r, Emitter &e) {
  auto differs = [&](ArrayRef<Value> operand) { return operand[r] != operand[r + 1]; };
  if (r + 1 >= operands.front().size() || llvm::none_of(operands, differs))
    return {};
  SmallVector<Value, 3> pairs;
  llvm::SmallSetVector<std::pair<Value, Value>, 3> apart;
  for (ArrayRef<Value> operand : operands) {
    pairs.push_back(pairOf(operand[r], operand[r + 1], e));
    if (!pairs.back())
      apart.insert({operand[r], operand[r + 1]});
  }
  if (apart.size() > 1)
    return {};
  if (!apart.empty())
    llvm::replace(pairs, Value(), pairedUp(apart.front().first, apart.front().second, e));
  return pairs;
}

LogicalResult perPair(Operation *op, Emitter &e, function_ref<Value(ArrayRef<Value>)> pair,
                      function_ref<Value(ArrayRef<Value>)> single) {
  SmallVector<ArrayRef<Value>, 3> operands;
  for (Value operand : op->getOperands())
    operands.push_back(e.registers(operand));
  Registers results;
  const size_t count = operands.front().size();
  for (size_t r = 0; r < count;) {
    if (SmallVector<Value, 3> pairs = pairsAt(operands, r, e); !pairs.empty()) {
      Value both = pair(pairs);
      for (unsigned i = 0; i < 2; ++i)
        results.push_back(LLVM::ExtractElementOp::create(e.b, e.loc, both, e.i32(i)));
      r += 2;
      continue;
    }
    results.push_back(single(llvm::map_to_vector<3>(operands, [&](ArrayRef<Value> operand) { return operand[r]; })));
    ++r;
  }
  e.bind(op->getResult(0), results);
  return success();
}

} // namespace weft
