// Part of Weft. SPDX-License-Identifier: Apache-2.0
// f8 in software, for targets without conversions: the formats are cut from f32's bits.
//
// With m mantissa bits and exponent bias B, an f8's bits moved to f32's places read as the number times 2^(B-127),
// subnormals too; a multiplication puts that right. The other way, normal numbers are rounded on their bits; subnormal
// ones by adding a power of two whose last place is the f8's smallest number, so that the addition itself rounds to
// nearest even.

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

Value float8ToF32(Value bits, Type type, Emitter &e) {
  Format format = formatOf(type);
  OpBuilder &b = e.b;
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  Value word = LLVM::ZExtOp::create(b, e.loc, i32, bits);
  Value sign = LLVM::ShlOp::create(b, e.loc, LLVM::AndOp::create(b, e.loc, word, e.i32(0x80)), e.i32(24));
  Value size = LLVM::AndOp::create(b, e.loc, word, e.i32(0x7f));
  Value placed = LLVM::ShlOp::create(b, e.loc, size, e.i32(23 - format.mantissa));
  Value scaled =
      LLVM::FMulOp::create(b, e.loc, e.bitcast(placed, f32), e.bitcast(e.i32(powerOfTwo(127 - format.bias)), f32));
  Value special = e.i32(0x7fc00000);
  Value isSpecial = LLVM::ICmpOp::create(b, e.loc, LLVM::ICmpPredicate::ugt, size, e.i32(format.greatest));
  if (isa<Float8E5M2Type>(type)) { // 0x7c is infinity
    Value isInfinity = LLVM::ICmpOp::create(b, e.loc, LLVM::ICmpPredicate::eq, size, e.i32(0x7c));
    special = LLVM::SelectOp::create(b, e.loc, isInfinity, e.i32(0x7f800000), special);
  }
  Value magnitude = LLVM::SelectOp::create(b, e.loc, isSpecial, special, e.bitcast(scaled, i32));
  return e.bitcast(LLVM::OrOp::create(b, e.loc, magnitude, sign), f32);
}

Value f32ToFloat8(Value value, Type type, Emitter &e) {
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

} // namespace weft
