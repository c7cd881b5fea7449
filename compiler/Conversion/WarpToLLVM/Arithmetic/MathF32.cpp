// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See MathF32.h. The coefficients are minimax fits, by iteratively reweighted least squares in f64, of the remainders
// that each function names.

#include "compiler/Conversion/WarpToLLVM/Arithmetic/MathF32.h"
#include "compiler/Conversion/WarpToLLVM/Arithmetic/LargeArguments.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace weft::f32 {
namespace {

/// f32 arithmetic in short. Constants are created at the kernel's entry.
struct Builder {
  Emitter &e;
  Type type = e.b.getF32Type();

  Value number(double value) { return e.constant(e.b.getF32FloatAttr(static_cast<float>(value))); }
  Value add(Value x, Value y) { return LLVM::FAddOp::create(e.b, e.loc, x, y); }
  Value sub(Value x, Value y) { return LLVM::FSubOp::create(e.b, e.loc, x, y); }
  Value mul(Value x, Value y) { return LLVM::FMulOp::create(e.b, e.loc, x, y); }
  Value fma(Value x, Value y, Value z) { return LLVM::FMAOp::create(e.b, e.loc, x, y, z); }
  Value abs(Value x) { return LLVM::FAbsOp::create(e.b, e.loc, x); }
  Value select(Value condition, Value yes, Value no) { return LLVM::SelectOp::create(e.b, e.loc, condition, yes, no); }
  Value compare(LLVM::FCmpPredicate predicate, Value x, double y) {
    return LLVM::FCmpOp::create(e.b, e.loc, predicate, x, number(y));
  }
  Value copySign(Value magnitude, Value sign) { return LLVM::CopySignOp::create(e.b, e.loc, magnitude, sign); }
  Value bits(Value x) { return e.bitcast(x, e.b.getI32Type()); }
  Value fromBits(Value x) { return e.bitcast(x, type); }
  /// c[0] + c[1] x + ..., by Horner's rule.
  Value polynomial(Value x, ArrayRef<double> c) {
    Value sum = number(c.back());
    for (double coefficient : llvm::reverse(c.drop_back()))
      sum = fma(sum, x, number(coefficient));
    return sum;
  }
};

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double log2OfE = 1.4426950408889634;
constexpr double ln2 = 0.6931471805599453;

/// x mod pi/2 in [-pi/4, pi/4], and how many quarter turns were taken off.
struct Reduced {
  Value angle, quarter;
};

Reduced reduceAngle(Value x, bool isSmall, Emitter &e) {
  OpBuilder &b = e.b;
  auto number = [&](double value) { return e.constant(b.getF64FloatAttr(value)); };
  Value wide = isSmall ? LLVM::FPExtOp::create(b, e.loc, b.getF64Type(), x).getResult() : withinTurns(x, e);
  Value turns = LLVM::RoundEvenOp::create(b, e.loc, LLVM::FMulOp::create(b, e.loc, wide, number(0.6366197723675814)));
  Value minus = LLVM::FNegOp::create(b, e.loc, turns);
  Value angle = LLVM::FMAOp::create(b, e.loc, minus, number(1.5707963267948966), wide);
  angle = LLVM::FMAOp::create(b, e.loc, minus, number(6.123233995736766e-17), angle);
  return {LLVM::FPTruncOp::create(b, e.loc, b.getF32Type(), angle),
          LLVM::TruncOp::create(b, e.loc, b.getI32Type(), LLVM::FPToSIOp::create(b, e.loc, b.getI64Type(), turns))};
}

/// Sine of x plus `shift` quarter turns.
Value sinShifted(Value x, bool isSmall, int shift, Emitter &e) {
  Builder f{e};
  auto [angle, quarter] = reduceAngle(x, isSmall, e);
  if (shift)
    quarter = LLVM::AddOp::create(e.b, e.loc, quarter, e.i32(shift));
  Value square = f.mul(angle, angle);
  Value sine = f.fma(f.mul(angle, square),
                     f.polynomial(square, {-0.16666667, 0.008333332, -0.00019840087, 2.7250014e-06}), angle);
  Value cosine =
      f.fma(f.mul(square, square), f.polynomial(square, {0.041666668, -0.0013888888, 2.4800602e-05, -2.7301016e-07}),
            f.fma(square, f.number(-0.5), f.number(1)));
  Value odd = LLVM::TruncOp::create(e.b, e.loc, e.b.getI1Type(), quarter);
  Value sign = LLVM::ShlOp::create(e.b, e.loc, LLVM::AndOp::create(e.b, e.loc, quarter, e.i32(2)), e.i32(30));
  return f.fromBits(LLVM::XOrOp::create(e.b, e.loc, f.bits(f.select(odd, cosine, sine)), sign));
}

} // namespace

Value exp2(Value x, Emitter &e) { return e.intrinsic("llvm.nvvm.ex2.approx.ftz.f32", x.getType(), x); }

Value exp2OfPair(Value x, Emitter &e) {
  auto pair = cast<VectorType>(x.getType());
  Type i64 = e.b.getI64Type(), words = VectorType::get(2, e.b.getI32Type());
  auto both = [&](double value) { return e.constant(DenseElementsAttr::get(pair, static_cast<float>(value))); };
  // From 2^-127, which is 0, to 2^128, which is infinite. What is no number stays so, and its product with any power.
  x = LLVM::MaximumOp::create(e.b, e.loc, x, both(-127));
  x = LLVM::MinimumOp::create(e.b, e.loc, x, both(128));
  // Rounded down to a whole number, in the lowest bits of a number whose last place is 1.
  constexpr double lastPlaceOne = 12582912; // 1.5 · 2^23
  Value shifted = e.bitcast(e.inlineAsm("add.rm.f32x2 $0, $1, $2;", "=l,l,l", i64,
                                        {e.bitcast(x, i64), e.bitcast(both(lastPlaceOne), i64)}, /*sideEffects=*/false)
                                .front(),
                            pair);
  Value whole = LLVM::FAddOp::create(e.b, e.loc, shifted, both(-lastPlaceOne));
  Value fraction = LLVM::FSubOp::create(e.b, e.loc, x, whole);
  // 2^f of 0 to 1, exactly 1 at 0, and at 1 near enough to 2 that its neighbours do not pass the next power.
  constexpr double coefficients[] = {
      1, 0.6931533813476562, 0.24014431238174438, 0.05586095526814461, 0.008944107219576836, 0.0018971447134390473};
  Value sum = both(coefficients[5]);
  for (double coefficient : llvm::reverse(ArrayRef(coefficients).drop_back()))
    sum = LLVM::FMAOp::create(e.b, e.loc, sum, fraction, both(coefficient));
  auto word = [&](int32_t value) { return e.constant(DenseElementsAttr::get(cast<ShapedType>(words), value)); };
  Value bits = LLVM::ShlOp::create(e.b, e.loc, e.bitcast(shifted, words), word(23));
  Value power = e.bitcast(LLVM::AddOp::create(e.b, e.loc, bits, word(0x3f800000)), pair);
  return LLVM::FMulOp::create(e.b, e.loc, sum, power);
}

Value exp(Value x, Emitter &e) {
  Builder f{e};
  return exp2(f.mul(x, f.number(log2OfE)), e);
}

Value log2(Value x, Emitter &e) { return e.intrinsic("llvm.nvvm.lg2.approx.f", x.getType(), x); }
Value sqrt(Value x, Emitter &e) { return e.intrinsic("llvm.nvvm.sqrt.approx.f", x.getType(), x); }
Value rsqrt(Value x, Emitter &e) { return e.intrinsic("llvm.nvvm.rsqrt.approx.f", x.getType(), x); }

// x = 2^k (1 + r) with 1 + r between sqrt(1/2) and sqrt(2); log(1 + r) = r + r² P(r). In f32's bits k stands at 2^23.
Value log(Value x, Emitter &e) {
  Builder f{e};
  constexpr int32_t sqrtHalf = 0x3f3504f3, infinityBits = 0x7f800000;
  Value tiny = f.compare(LLVM::FCmpPredicate::olt, x, 1.17549435e-38);
  Value scaled = f.select(tiny, f.mul(x, f.number(8388608)), x);
  Value word = f.bits(scaled);
  Value exponent = LLVM::AndOp::create(e.b, e.loc, LLVM::SubOp::create(e.b, e.loc, word, e.i32(sqrtHalf)),
                                       e.i32(static_cast<int32_t>(0xff800000)));
  Value mantissa = f.fromBits(LLVM::SubOp::create(e.b, e.loc, word, exponent));
  Value k = f.fma(LLVM::SIToFPOp::create(e.b, e.loc, f.type, exponent), f.number(0x1p-23),
                  f.select(tiny, f.number(-23), f.number(0)));
  Value r = f.sub(mantissa, f.number(1));
  Value rest = f.polynomial(
      r, {-0.5, 0.33333316, -0.25000808, 0.20002286, -0.16624595, 0.14181218, -0.13128418, 0.1288138, -0.07860141});
  Value result = f.fma(k, f.number(ln2), f.fma(f.mul(rest, r), r, r));
  // Infinity stays, and what is negative or NaN becomes NaN: as unsigned numbers their bits are the largest.
  Value other = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::uge, word, e.i32(infinityBits));
  result = f.select(other, f.fma(scaled, f.number(infinity), f.number(infinity)), result);
  return f.select(f.compare(LLVM::FCmpPredicate::oeq, scaled, 0), f.number(-infinity), result);
}

// Near 0 Taylor's series, whose next term is 2^-25 of the sum at 0.35: there exp(x) - 1 would cancel.
Value expm1(Value x, Emitter &e) {
  Builder f{e};
  Value rest = f.polynomial(x, {1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040});
  Value small = f.fma(f.mul(x, x), rest, x);
  return f.select(f.compare(LLVM::FCmpPredicate::olt, f.abs(x), 0.35), small, f.sub(exp(x, e), f.number(1)));
}

// The sign is that of x where y is odd. 1^y and x^0 are 1, of NaN and infinities too.
Value pow(Value x, Value y, Emitter &e) {
  Builder f{e};
  using P = LLVM::FCmpPredicate;
  auto both = [&](Value a, Value b) { return LLVM::AndOp::create(e.b, e.loc, a, b); };
  auto floorIs = [&](P predicate, Value a) {
    return LLVM::FCmpOp::create(e.b, e.loc, predicate, LLVM::FFloorOp::create(e.b, e.loc, a), a);
  };
  Value magnitude = exp2(f.mul(y, log2(f.abs(x), e)), e);
  Value odd = both(floorIs(P::oeq, y), floorIs(P::une, f.mul(y, f.number(0.5))));
  Value result = f.select(odd, f.copySign(magnitude, x), magnitude);
  Value undefined = both(f.compare(P::olt, x, 0), floorIs(P::une, y));
  result = f.select(undefined, f.number(std::numeric_limits<double>::quiet_NaN()), result);
  Value one = LLVM::OrOp::create(e.b, e.loc, f.compare(P::oeq, x, 1), f.compare(P::oeq, y, 0));
  return f.select(one, f.number(1), result);
}

// With u = 1 + x rounded, log(1 + x) = log(u) + (x - (u - 1)) / u up to the square of the rounding error.
Value log1p(Value x, Emitter &e) {
  Builder f{e};
  Value u = f.add(x, f.number(1));
  Value missing = f.sub(x, f.sub(u, f.number(1)));
  Value correction = e.intrinsic("llvm.nvvm.div.full", f.type, {missing, u});
  Value ordinary = f.compare(LLVM::FCmpPredicate::olt, f.abs(correction), 1);
  return f.add(log(u, e), f.select(ordinary, correction, f.number(0)));
}

Value sin(Value x, bool isSmall, Emitter &e) { return sinShifted(x, isSmall, 0, e); }
Value cos(Value x, bool isSmall, Emitter &e) { return sinShifted(x, isSmall, 1, e); }

// Small: x + x³ P(x²). Else 1 - 2 / (e^2x + 1).
Value tanh(Value x, Emitter &e) {
  Builder f{e};
  Value size = f.abs(x), square = f.mul(x, x);
  Value small = f.fma(f.mul(x, square),
                      f.polynomial(square, {-0.3333333, 0.13332933, -0.053876318, 0.021121453, -0.006283665}), x);
  Value power = exp2(f.mul(size, f.number(2 * log2OfE)), e);
  Value quotient = e.intrinsic("llvm.nvvm.div.full", f.type, {f.number(-2), f.add(power, f.number(1))});
  Value large = f.copySign(f.add(quotient, f.number(1)), x);
  return f.select(f.compare(LLVM::FCmpPredicate::olt, size, 0.6), small, large);
}

// Small: x P(x²). Else 1 - 2^Q(|x|), Q the base-2 logarithm of erfc; from 4 on it is 1 in f32.
Value erf(Value x, Emitter &e) {
  Builder f{e};
  Value size = f.abs(x), square = f.mul(x, x);
  Value small = f.mul(x, f.polynomial(square, {1.1283791, -0.37612626, 0.112836, -0.026854444, 0.005189535,
                                               -0.0008020841, 7.889119e-05}));
  Value bounded = LLVM::MinimumOp::create(e.b, e.loc, size, f.number(4));
  Value exponent = f.polynomial(bounded, {0.0002712847, -1.6296372, -0.9135432, -0.15641494, 0.036367826, -0.0060659004,
                                          0.0006367138, -3.128751e-05});
  Value large = f.copySign(f.sub(f.number(1), exp2(exponent, e)), x);
  return f.select(f.compare(LLVM::FCmpPredicate::olt, size, 1), small, large);
}

} // namespace weft::f32
