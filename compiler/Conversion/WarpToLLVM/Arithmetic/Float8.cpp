// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Conversions of 8-bit floats, by pairs: cvt where the target has it, else on the bits of wider floats.
//
// Every f8 is an f16. An e5m2 is the upper byte of one: infinities, NaN and subnormals too. An e4m3's exponent and
// mantissa moved to f16's places, one to the right, read as the number times 2^(7-15), subnormals too; a multiplication
// puts that right, but for its only NaN, which would be 480, where the largest number is 448. Added to a number near
// f16's largest, 480 alone gives infinity, and 0 times infinity is NaN:
//
//   0x38 (1.0)  in the upper byte 0x3800   moved 0x1c00 (2^-8)   times 2^8: 0x3c00 (1.0)
//   0x7e (448)                    0x7e00         0x3f00 (1.75)   448 + 65056 = 65504, times -0: -0
//   0x7f (NaN)                    0x7f00         0x3f80 (1.875)  480 + 65056 = inf,   times -0: NaN
//
// -0 and not 0, since x + -0 is x for both zeros.
//
// The other way, normal numbers are rounded on f32's bits; subnormal ones by adding a power of two whose last place is
// the f8's smallest number, so that the addition itself rounds to nearest even.

#include "compiler/Conversion/WarpToLLVM/Arithmetic/Casts.h"

using namespace mlir;

namespace weft {
namespace {

struct Format {
  int mantissa;      // bits
  int bias;          // of the exponent
  uint32_t greatest; // bits of the largest finite number
  uint32_t nan;      // bits of a NaN without its sign
};

Format formatOf(Type type) { return isa<Float8E5M2Type>(type) ? Format{2, 15, 0x7b, 0x7f} : Format{3, 7, 0x7e, 0x7f}; }

/// 2^exponent as the bits of an f32.
uint32_t powerOfTwo(int exponent) { return static_cast<uint32_t>(exponent + 127) << 23; }

} // namespace

static Value float8ToF16ByBits(Value word, bool isUpper, Type type, Emitter &e) {
  OpBuilder &b = e.b;
  Type halves = VectorType::get(2, b.getF16Type());
  // Bytes of the word, and of zeros (4), from the lowest on: each f8 is the upper byte of a half.
  Value pair = e.intrinsic("llvm.nvvm.prmt", b.getI32Type(), {word, e.i32(0), e.i32(isUpper ? 0x3424 : 0x1404)});
  if (isa<Float8E5M2Type>(type))
    return e.bitcast(pair, halves);
  auto splat = [&](float value) {
    llvm::APFloat half(value);
    bool losesInfo = false;
    half.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return e.constant(DenseElementsAttr::get(cast<ShapedType>(halves), half));
  };
  Value size = LLVM::LShrOp::create(b, e.loc, LLVM::AndOp::create(b, e.loc, pair, e.i32(0x7f007f00)), e.i32(1));
  // What is taken from a half has no more bits than it has: nothing is borrowed from the other.
  Value moved = e.bitcast(LLVM::SubOp::create(b, e.loc, pair, size), halves), scale = splat(256);
  Value sum = LLVM::FMAOp::create(b, e.loc, e.bitcast(size, halves), scale, splat(65056));
  Value nanOrZero = LLVM::FMulOp::create(b, e.loc, sum, splat(-0.0f));
  return LLVM::FMAOp::create(b, e.loc, moved, scale, nanOrZero);
}

Value float8ToF16(Value word, bool isUpper, Type type, Emitter &e) {
  if (!e.target.float8Conversions)
    return float8ToF16ByBits(word, isUpper, type, e);
  OpBuilder &b = e.b;
  Value shifted = isUpper ? Value(LLVM::LShrOp::create(b, e.loc, word, e.i32(16))) : word;
  Value pair = LLVM::TruncOp::create(b, e.loc, b.getI16Type(), shifted);
  StringRef name = isa<Float8E5M2Type>(type) ? "llvm.nvvm.e5m2x2.to.f16x2.rn" : "llvm.nvvm.e4m3x2.to.f16x2.rn";
  return e.intrinsic(name, VectorType::get(2, b.getF16Type()), pair);
}

static Value f32ToFloat8ByBits(Value value, Type type, Emitter &e) {
  Format format = formatOf(type);
  OpBuilder &b = e.b;
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  int drop = 23 - format.mantissa, least = 1 - format.bias; // least: exponent of the smallest normal number
  Value word = e.bitcast(value, i32);
  Value size = LLVM::AndOp::create(b, e.loc, word, e.i32(0x7fffffff));

  // Normal: add half of the last place kept, less one unless that place is odd; then cut and move the exponent's bias.
  Value odd = LLVM::AndOp::create(b, e.loc, LLVM::LShrOp::create(b, e.loc, size, e.i32(drop)), e.i32(1));
  Value raised = LLVM::AddOp::create(b, e.loc, LLVM::AddOp::create(b, e.loc, size, e.i32((1 << (drop - 1)) - 1)), odd);
  Value normal = LLVM::SubOp::create(b, e.loc, LLVM::LShrOp::create(b, e.loc, raised, e.i32(drop)),
                                     e.i32((127 - format.bias) << format.mantissa));
  Value tooLarge = LLVM::ICmpOp::create(b, e.loc, LLVM::ICmpPredicate::sgt, normal, e.i32(format.greatest));
  normal = LLVM::SelectOp::create(b, e.loc, tooLarge, e.i32(format.greatest), normal);

  // Subnormal: the sum's last place is 2^(least - mantissa).
  uint32_t anchor = powerOfTwo(least - format.mantissa + 23);
  Value sum = LLVM::FAddOp::create(b, e.loc, e.bitcast(size, f32), e.bitcast(e.i32(anchor), f32));
  Value subnormal = LLVM::SubOp::create(b, e.loc, e.bitcast(sum, i32), e.i32(anchor));
  Value isSmall = LLVM::ICmpOp::create(b, e.loc, LLVM::ICmpPredicate::ult, size, e.i32(powerOfTwo(least)));
  Value result = LLVM::SelectOp::create(b, e.loc, isSmall, subnormal, normal);

  Value isNan = LLVM::ICmpOp::create(b, e.loc, LLVM::ICmpPredicate::ugt, size, e.i32(0x7f800000));
  result = LLVM::SelectOp::create(b, e.loc, isNan, e.i32(format.nan), result);
  Value sign = LLVM::AndOp::create(b, e.loc, LLVM::LShrOp::create(b, e.loc, word, e.i32(24)), e.i32(0x80));
  return LLVM::TruncOp::create(b, e.loc, b.getI8Type(), LLVM::OrOp::create(b, e.loc, result, sign));
}

std::array<Value, 2> f32ToFloat8(Value first, Value second, Type type, Emitter &e) {
  if (!e.target.float8Conversions)
    return {f32ToFloat8ByBits(first, type, e), f32ToFloat8ByBits(second, type, e)};
  OpBuilder &b = e.b;
  StringRef name = isa<Float8E5M2Type>(type) ? "llvm.nvvm.ff.to.e5m2x2.rn" : "llvm.nvvm.ff.to.e4m3x2.rn";
  Value pair = e.intrinsic(name, b.getI16Type(), {second, first}); // the first operand becomes the upper byte
  Value upper = LLVM::LShrOp::create(b, e.loc, pair, e.constant(b.getI16IntegerAttr(8)));
  return {LLVM::TruncOp::create(b, e.loc, b.getI8Type(), pair), LLVM::TruncOp::create(b, e.loc, b.getI8Type(), upper)};
}

} // namespace weft
