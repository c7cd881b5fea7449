// Part of Weft. SPDX-License-Identifier: Apache-2.0
// math, on scalars and on tensors. f16 and bf16 are computed in f32; f64 has what PTX has.

#include "compiler/Conversion/WarpToLLVM/Arithmetic/Casts.h"
#include "compiler/Conversion/WarpToLLVM/Arithmetic/MathF32.h"
#include "compiler/Conversion/WarpToLLVM/Arithmetic/Pairs.h"
#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "dialects/Warp/Transforms/Accesses/UndefinedElements.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace weft {
namespace {

/// Lowers an op by a function of one f32; narrower types go through f32, f64 by `Wide` unless that is void.
template <typename Wide, typename Op> LogicalResult lowerF32(Op op, Emitter &e, Value (*function)(Value, Emitter &)) {
  Type type = registerType(op.getType());
  if (type.isF64() && std::is_void_v<Wide>)
    return op.emitOpError("is not available for f64; cast to f32 before");
  return e.perRegister(op, [&](ArrayRef<Value> in) -> Value {
    if constexpr (!std::is_void_v<Wide>)
      if (type.isF64())
        return Wide::create(e.b, e.loc, type, in[0]);
    return truncateFromF32(function(extendToF32(in[0], e), e), type, e);
  });
}

template <typename Op, typename Wide = void> void addF32(LoweringTable &table, Value (*function)(Value, Emitter &)) {
  table.add<Op>([function](Op op, Emitter &e) { return lowerF32<Wide>(op, e, function); });
}

/// Powers of two: by the unit for special functions, or a share of them by polynomials.
LogicalResult lowerExp2(math::Exp2Op op, Emitter &e) {
  auto share = op->getAttrOfType<IntegerAttr>(warp::byPolynomialAttrName);
  if (!share || !registerType(op.getType()).isF32())
    return lowerF32<void>(op, e, f32::exp2);
  ArrayRef<Value> in = e.registers(op.getOperand());
  Registers results;
  while (results.size() < in.size()) {
    const size_t next = results.size();
    if (int64_t(next % warp::polynomialGroup) + 1 >= share.getInt() || next + 1 == in.size()) {
      results.push_back(f32::exp2(in[next], e));
      continue;
    }
    Value both = f32::exp2OfPair(pairedUp(in[next], in[next + 1], e), e);
    for (unsigned i = 0; i < 2; ++i)
      results.push_back(LLVM::ExtractElementOp::create(e.b, e.loc, both, e.i32(i)));
  }
  e.bind(op.getResult(), results);
  return success();
}

/// Lowers a function of angles.
template <typename Source> void addAngle(LoweringTable &table, Value (*function)(Value x, bool isSmall, Emitter &e)) {
  table.add<Source>([function](Source op, Emitter &e) {
    Type type = registerType(op.getType());
    return e.perRegister(op, [&](ArrayRef<Value> in) -> Value {
      return truncateFromF32(function(extendToF32(in[0], e), warp::isOfSmallAngle(op), e), type, e);
    });
  });
}

/// Lowers `Source` to an LLVM op that takes an i1 besides: whether the extreme input is poison.
template <typename Source, typename Target> void addWithPoisonFlag(LoweringTable &table) {
  table.add<Source>([](Source op, Emitter &e) {
    Type type = registerType(op.getType());
    return e.perRegister(op,
                         [&](ArrayRef<Value> in) -> Value { return Target::create(e.b, e.loc, type, in[0], false); });
  });
}

/// 1 / sqrt(x) in f64.
LogicalResult lowerRsqrt(math::RsqrtOp op, Emitter &e) {
  Type type = registerType(op.getType());
  return e.perRegister(op, [&](ArrayRef<Value> in) -> Value {
    if (!type.isF64())
      return truncateFromF32(f32::rsqrt(extendToF32(in[0], e), e), type, e);
    Value root = LLVM::SqrtOp::create(e.b, e.loc, type, in[0]);
    return LLVM::FDivOp::create(e.b, e.loc, e.constant(e.b.getF64FloatAttr(1)), root);
  });
}

LogicalResult lowerPower(math::PowFOp op, Emitter &e) {
  Type type = registerType(op.getType());
  if (type.isF64())
    return op.emitOpError("is not available for f64; cast to f32 before");
  return e.perRegister(op, [&](ArrayRef<Value> in) -> Value {
    return truncateFromF32(f32::pow(extendToF32(in[0], e), extendToF32(in[1], e), e), type, e);
  });
}

/// Absolute values: of floats of 8 and 16 bits, without their signs' bits, as many at once as a word holds.
LogicalResult lowerAbs(math::AbsFOp op, Emitter &e) {
  const unsigned bits = getElementTypeOrSelf(op.getType()).getIntOrFloatBitWidth(), size = 32 / bits;
  if (bits >= 32)
    return e.perRegister(
        op, [&](ArrayRef<Value> in) -> Value { return LLVM::FAbsOp::create(e.b, e.loc, in[0].getType(), in[0]); });
  const APInt kept = APInt::getSplat(32, APInt::getSignedMaxValue(bits));
  Registers results;
  for (ArrayRef<Value> source = e.registers(op.getOperand()); !source.empty();) {
    ArrayRef<Value> in = source.take_front(std::min<size_t>(size, source.size()));
    source = source.drop_front(in.size());
    SmallVector<Value, 4> whole(in);
    whole.resize(size, in.back());
    Value word = in.size() == size ? e.unpackedFrom(in) : Value();
    word = LLVM::AndOp::create(e.b, e.loc, word ? word : e.pack(whole),
                               e.constant(e.b.getIntegerAttr(e.b.getI32Type(), kept)));
    llvm::append_range(results, ArrayRef(e.unpack(word, in[0].getType())).take_front(in.size()));
  }
  e.bind(op.getResult(), results);
  return success();
}

} // namespace

void addMathLowerings(LoweringTable &table) {
  addF32<math::ExpOp>(table, f32::exp);
  table.add<math::Exp2Op>(lowerExp2);
  addF32<math::LogOp>(table, f32::log);
  addF32<math::Log2Op>(table, f32::log2);
  addF32<math::Log1pOp>(table, f32::log1p);
  addF32<math::ExpM1Op>(table, f32::expm1);
  table.add<math::PowFOp>(lowerPower);
  addF32<math::SqrtOp, LLVM::SqrtOp>(table, f32::sqrt);
  addAngle<math::SinOp>(table, f32::sin);
  addAngle<math::CosOp>(table, f32::cos);
  addF32<math::TanhOp>(table, f32::tanh);
  addF32<math::ErfOp>(table, f32::erf);
  table.add<math::RsqrtOp>(lowerRsqrt);
  addPaired<math::FmaOp, LLVM::FMAOp>(table);
  table.add<math::AbsFOp>(lowerAbs);
  addDirect<math::CopySignOp, LLVM::CopySignOp>(table);
  addDirect<math::FloorOp, LLVM::FFloorOp>(table);
  addDirect<math::CeilOp, LLVM::FCeilOp>(table);
  addDirect<math::TruncOp, LLVM::FTruncOp>(table);
  addDirect<math::RoundOp, LLVM::RoundOp>(table);
  addDirect<math::RoundEvenOp, LLVM::RoundEvenOp>(table);
  addDirect<math::CtPopOp, LLVM::CtPopOp>(table);
  addWithPoisonFlag<math::AbsIOp, LLVM::AbsOp>(table);
  addWithPoisonFlag<math::CountLeadingZerosOp, LLVM::CountLeadingZerosOp>(table);
  addWithPoisonFlag<math::CountTrailingZerosOp, LLVM::CountTrailingZerosOp>(table);
}

} // namespace weft
