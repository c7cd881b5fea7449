// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What an expansion's values are where tokens do not exist. A tile's last tokens may be past the end; their sources are
// read as zeros, and what adds up tokens must not see them. Adjoints are linear in the gradient: they stay zero, and
// then it is enough that what they are multiplied by is a number.
#include "compiler/Conversion/AttnToTile/ExpansionKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace weft {

/// Of an op on numbers, from those of its operands.
static Absent absentOfScalar(Operation &op, ArrayRef<Absent> operands) {
  bool finite = llvm::all_of(operands, [](Absent each) { return each != Absent::Any; });
  bool zero = llvm::all_of(operands, [](Absent each) { return each == Absent::Zero; });
  Attribute constant;
  if (matchPattern(&op, m_Constant(&constant))) {
    auto number = dyn_cast<FloatAttr>(constant);
    return number && number.getValue().isZero()      ? Absent::Zero
           : !number || number.getValue().isFinite() ? Absent::Finite
                                                     : Absent::Any;
  }
  if (isa<arith::CmpFOp>(op))
    return Absent::Finite;
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return std::max(operands[1], operands[2]);
  if (isa<arith::MulFOp>(op) && finite)
    return *llvm::min_element(operands);
  bool keepsZeros = isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp,
                        arith::ExtFOp, arith::TruncFOp>(op);
  if (!keepsZeros || !finite)
    return Absent::Any;
  return zero ? Absent::Zero : Absent::Finite;
}

static Absent absentOfMap(const Expansion &expansion, attn::MapOp map) {
  llvm::DenseMap<Value, Absent> known;
  Block &body = map.getBody().front();
  for (auto [argument, input] : llvm::zip(body.getArguments(), map.getInputs()))
    known[argument] = absentOf(expansion, input);
  for (Operation &op : body.without_terminator()) {
    Absent all = absentOfScalar(op, llvm::map_to_vector(op.getOperands(), [&](Value v) { return known.lookup(v); }));
    for (Value result : op.getResults())
      known[result] = all;
  }
  Value result = body.getTerminator()->getOperand(0);
  auto found = known.find(result);
  return found == known.end() ? Absent::Any : found->second;
}

Absent absentOf(const Expansion &expansion, Value value) {
  Operation *op = value.getDefiningOp();
  if (!expansion.has(op))
    return Absent::Zero;
  if (auto map = dyn_cast<attn::MapOp>(op))
    return absentOfMap(expansion, map);
  auto conv = dyn_cast<attn::HeadConvOp>(op);
  bool bias = conv ? static_cast<bool>(conv.getBias()) : static_cast<bool>(cast<attn::LinearOp>(op).getBias());
  Absent source = absentOf(expansion, op->getOperand(0));
  return bias ? std::max(source, Absent::Finite) : source;
}

} // namespace weft
