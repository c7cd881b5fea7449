// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Sums and products of 16-bit floats that are widened before and rounded right behind, as most kernels write them:
//
//   %a = arith.extf %x : f16 to f32
//   %b = arith.extf %y : f16 to f32
//   %c = arith.addf %a, %b : f32              -->      add.rn.f16x2 of two elements
//   %d = arith.truncf %c : f32 to f16
//
// The instruction gives the same bits: f32 has more than twice the bits and two, so that to round to it first changes
// nothing (S. Figueroa, When is double rounding innocuous?, 1995). Products of bf16 below f32's normal numbers are
// rounded once where they would have been rounded twice. Targets without arithmetic of bf16 have its fma (PTX ISA 9.7.4).

#include "compiler/Conversion/WarpToLLVM/Arithmetic/Casts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace weft {
namespace {

/// An operand in the narrow type: registers of a value that was widened, or a number that the type has.
struct NarrowOperand {
  Value widened;
  std::optional<APFloat> number;
};

std::optional<NarrowOperand> operandIn(Value wide, FloatType type) {
  if (auto extend = wide.getDefiningOp<arith::ExtFOp>()) {
    if (getElementTypeOrSelf(extend.getIn().getType()) != type)
      return std::nullopt;
    return NarrowOperand{extend.getIn(), std::nullopt};
  }
  APFloat number(0.0f);
  if (!matchPattern(wide, m_ConstantFloat(&number)) || number.isNaN())
    return std::nullopt;
  bool loses = false;
  number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
  return loses ? std::nullopt : std::optional(NarrowOperand{{}, number});
}

/// One instruction on a pair, or on one element.
struct NarrowInstruction {
  StringRef name; // add, sub, mul or fma
  bool isPair;
  FloatType type;

  std::string text(StringRef operands) const {
    return (name + ".rn." + (type.isF16() ? "f16" : "bf16") + (isPair ? "x2 $0, " : " $0, ") + operands + ";").str();
  }
};

class Narrow {
public:
  Narrow(FloatType type, Emitter &e) : type(type), e(e) {}

  /// Up to two neighbouring results of `op` for their operands.
  SmallVector<Value, 2> emit(Operation *op, ArrayRef<Value> a, ArrayRef<Value> b) const {
    const bool isPair = a.size() == 2;
    Value x = isPair ? word(a) : bits(a[0]), y = isPair ? word(b) : bits(b[0]);
    const bool native = type.isF16() || e.target.bf16Arithmetic;
    StringRef name = isa<arith::AddFOp>(op) ? "add" : isa<arith::SubFOp>(op) ? "sub" : "mul";
    Value result;
    if (native)
      result = run({name, isPair, type}, "$1, $2", {x, y});
    else if (isa<arith::AddFOp>(op))
      result = run({"fma", isPair, type}, "$1, $3, $2", {x, y, number(1.0, isPair)});
    else if (isa<arith::SubFOp>(op))
      result = run({"fma", isPair, type}, "$2, $3, $1", {x, y, number(-1.0, isPair)});
    else
      result = run({"fma", isPair, type}, "$1, $2, $3", {x, y, number(-0.0, isPair)});
    if (!isPair)
      return {e.bitcast(result, type)};
    return SmallVector<Value, 2>(e.unpack(result, type));
  }

  Value constant(const APFloat &value) const { return e.constant(FloatAttr::get(type, value)); }

private:
  Value word(ArrayRef<Value> parts) const {
    Value whole = e.unpackedFrom(parts);
    return whole ? whole : e.pack(parts);
  }
  Value bits(Value value) const { return e.bitcast(value, e.b.getI16Type()); }
  Value number(double value, bool isPair) const {
    APFloat narrow(value);
    bool loses = false;
    narrow.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    const uint64_t pattern = narrow.bitcastToAPInt().getZExtValue();
    if (isPair)
      return e.i32(static_cast<int32_t>(pattern << 16 | pattern));
    return e.constant(IntegerAttr::get(e.b.getI16Type(), static_cast<int16_t>(pattern)));
  }
  Value run(const NarrowInstruction &instruction, StringRef operands, ArrayRef<Value> in) const {
    const bool isPair = instruction.isPair;
    std::string constraints = isPair ? "=r" : "=h";
    for (size_t i = 0; i < in.size(); ++i)
      constraints += isPair ? ",r" : ",h";
    Type result = isPair ? e.b.getI32Type() : e.b.getI16Type();
    return e.inlineAsm(instruction.text(operands), constraints, result, in, /*sideEffects=*/false).front();
  }

  FloatType type;
  Emitter &e;
};

} // namespace

bool roundsWhatIsNarrow(arith::TruncFOp op, Emitter &e) {
  auto type = dyn_cast<FloatType>(getElementTypeOrSelf(op.getType()));
  Operation *made = op.getIn().getDefiningOp();
  if (!type || !(type.isF16() || type.isBF16()) || !getElementTypeOrSelf(op.getIn().getType()).isF32() ||
      !isa_and_nonnull<arith::AddFOp, arith::SubFOp, arith::MulFOp>(made) || !made->hasOneUse())
    return false;
  std::optional<NarrowOperand> a = operandIn(made->getOperand(0), type), b = operandIn(made->getOperand(1), type);
  if (!a || !b || (!a->widened && !b->widened))
    return false;
  const Narrow narrow(type, e);
  const size_t count = e.registers(op.getIn()).size();
  auto registersOf = [&](const NarrowOperand &operand) {
    return operand.widened ? Registers(e.registers(operand.widened))
                           : Registers(count, narrow.constant(*operand.number));
  };
  const Registers left = registersOf(*a), right = registersOf(*b);
  Registers results;
  for (size_t at = 0; at < count; at += 2) {
    const size_t size = std::min<size_t>(2, count - at);
    llvm::append_range(results, narrow.emit(made, ArrayRef(left).slice(at, size), ArrayRef(right).slice(at, size)));
  }
  e.bind(op.getResult(), results);
  return true;
}

} // namespace weft
