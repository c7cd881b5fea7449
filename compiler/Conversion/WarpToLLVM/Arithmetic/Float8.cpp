// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Conversions of 8-bit floats, by pairs: cvt where the target has it, else on the bits of wider floats. An e5m2 becomes an
// f16 on its bits everywhere: that is one instruction too, and needs no half of the word apart.
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
// The other way goes through f16 too, whose 11 bits are enough to round once: an f32 is cut to fewer bits, of which the last
// is set where any was lost ("rounded to odd"), then to an f16, exactly, and there rounded to nearest even on the bits of two
// halves at once. An e4m3 is 2^-8 of itself there, as above. What is too large for the f8 is clamped before.

#include "compiler/Conversion/WarpToLLVM/Arithmetic/Casts.h"

using namespace mlir;

namespace weft {
namespace {

/// An f8 as an f16 in whose bits it stands. For an e4m3 this is 2^-8 of the number, whose bits are one place too low.
struct Float8Format {
  int dropped;   // bits of a half's mantissa that the f8 has not
  float largest; // finite number
  int sticky; // bit of an f32 that says whether any from there on was set: a bit of the half of all that is at least half
              // of the f8's smallest number, and of none that the f8 has or rounds by
};

bool isE5M2(Type type) { return isa<Float8E5M2Type>(type); }
Float8Format formatOf(Type type) { return isE5M2(type) ? Float8Format{8, 57344, 16} : Float8Format{7, 1.75, 17}; }

/// A pair of the same halves.
Value splat(float value, Emitter &e) {
  llvm::APFloat half(value);
  bool losesInfo = false;
  half.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return e.constant(DenseElementsAttr::get(VectorType::get(2, e.b.getF16Type()), half));
}

} // namespace

static Value float8ToF16ByBits(Value word, bool isUpper, Type type, Emitter &e) {
  OpBuilder &b = e.b;
  Type halves = VectorType::get(2, b.getF16Type());
  // Bytes of the word, and of zeros (4), from the lowest on: each f8 is the upper byte of a half.
  Value pair = e.intrinsic("llvm.nvvm.prmt", b.getI32Type(), {word, e.i32(0), e.i32(isUpper ? 0x3424 : 0x1404)});
  if (isE5M2(type))
    return e.bitcast(pair, halves);
  Value size = LLVM::LShrOp::create(b, e.loc, LLVM::AndOp::create(b, e.loc, pair, e.i32(0x7f007f00)), e.i32(1));
  // What is taken from a half has no more bits than it has: nothing is borrowed from the other.
  Value moved = e.bitcast(LLVM::SubOp::create(b, e.loc, pair, size), halves), scale = splat(256, e);
  Value sum = LLVM::FMAOp::create(b, e.loc, e.bitcast(size, halves), scale, splat(65056, e));
  Value nanOrZero = LLVM::FMulOp::create(b, e.loc, sum, splat(-0.0f, e));
  return LLVM::FMAOp::create(b, e.loc, moved, scale, nanOrZero);
}

Value float8ToF16(Value word, bool isUpper, Type type, Emitter &e) {
  if (!e.target.float8Conversions || isE5M2(type))
    return float8ToF16ByBits(word, isUpper, type, e);
  Value pair = e.unpack(word, e.b.getI16Type())[isUpper];
  return e.intrinsic("llvm.nvvm.e4m3x2.to.f16x2.rn", VectorType::get(2, e.b.getF16Type()), pair);
}

/// Two f32s as halves, rounded to odd (-0 and NaN too); for an e4m3, 2^-8 of them.
static Value f32ToOddHalves(Value first, Value second, Type type, Emitter &e) {
  OpBuilder &b = e.b;
  Type i32 = b.getI32Type();
  int sticky = 1 << formatOf(type).sticky;
  auto odd = [&](Value value) {
    if (!isE5M2(type))
      value = LLVM::FMulOp::create(b, e.loc, value, e.constant(b.getF32FloatAttr(0x1p-8f)));
    Value word = e.bitcast(value, i32);
    // A carry into the bit says that some below it are set; its own is kept by the or (0xf8: a | (b & c)).
    Value carry = LLVM::AddOp::create(b, e.loc, word, e.i32(sticky - 1));
    std::string code = "lop3.b32 $0, $1, $2, " + std::to_string(sticky) + ", 0xf8;";
    return e.bitcast(e.inlineAsm(code, "=r,r,r", i32, {word, carry}, /*sideEffects=*/false).front(), b.getF32Type());
  };
  Type halves = VectorType::get(2, b.getF16Type());
  Value upper = odd(second); // the first operand becomes the upper half
  return e.intrinsic("llvm.nvvm.ff2f16x2.rz", halves, {upper, odd(first)});
}

/// Two halves, rounded to odd or exact, as f8s in the upper byte of each half: a word.
static Value halvesToFloat8(Value halves, Type type, Emitter &e) {
  Float8Format format = formatOf(type);
  OpBuilder &b = e.b;
  Type i32 = b.getI32Type();
  auto both = [&](int32_t bits) { return e.i32(bits << 16 | bits); };
  // 1.0 (0x3c00) for a NaN, 0 for a number. The clamp makes a NaN the largest number, and this makes that one a NaN again.
  Value isNan = e.inlineAsm("set.nan.f16x2.f16x2 $0, $1, $1;", "=r,r", i32, e.bitcast(halves, i32), false).front();
  halves = LLVM::MinNumOp::create(b, e.loc, halves, splat(format.largest, e));
  halves = LLVM::MaxNumOp::create(b, e.loc, halves, splat(-format.largest, e));
  // Half of the last place kept, less one unless that place is odd: no half is large enough to carry into its sign.
  Value word = e.bitcast(halves, i32);
  Value last = LLVM::AndOp::create(b, e.loc, LLVM::LShrOp::create(b, e.loc, word, e.i32(format.dropped)), both(1));
  word = LLVM::AddOp::create(b, e.loc, word, both((1 << (format.dropped - 1)) - 1));
  word = LLVM::AddOp::create(b, e.loc, word, last);
  if (isE5M2(type)) // 0x7b, the largest number, and 0x3c: 0x7f
    return LLVM::OrOp::create(b, e.loc, word, isNan);
  // 0x3f80 has all bits of an e4m3's NaN, 0x3c00 moved by 6 its last.
  word = LLVM::OrOp::create(b, e.loc, word, LLVM::LShrOp::create(b, e.loc, isNan, e.i32(6)));
  return LLVM::AddOp::create(b, e.loc, word, LLVM::AndOp::create(b, e.loc, word, both(0x7fff)));
}

/// The upper bytes of four halves, or of two, in one word.
static Value upperBytes(ArrayRef<Value> pairs, Emitter &e) {
  return e.intrinsic("llvm.nvvm.prmt", e.b.getI32Type(), {pairs.front(), pairs.back(), e.i32(0x7531)});
}

SmallVector<Value> toFloat8(ArrayRef<Value> values, Type type, Emitter &e) {
  OpBuilder &b = e.b;
  bool fromHalves = values.front().getType().isF16(), byBits = !e.target.float8Conversions;
  auto single = [&](Value value) { return extendToF32(value, e); };
  SmallVector<Value, 2> pairs;
  for (size_t i = 0; i < values.size(); i += 2) {
    Value first = values[i], second = values[std::min(i + 1, values.size() - 1)];
    if (byBits && fromHalves && isE5M2(type)) {
      pairs.push_back(halvesToFloat8(e.bitcast(e.pack({first, second}), VectorType::get(2, b.getF16Type())), type, e));
    } else if (byBits) {
      pairs.push_back(halvesToFloat8(f32ToOddHalves(single(first), single(second), type, e), type, e));
    } else {
      StringRef name = isE5M2(type) ? "llvm.nvvm.ff.to.e5m2x2.rn" : "llvm.nvvm.ff.to.e4m3x2.rn";
      pairs.push_back(e.intrinsic(name, b.getI16Type(), {single(second), single(first)})); // the first: the upper byte
    }
  }
  Value word = byBits ? upperBytes(pairs, e) : e.pack({pairs.front(), pairs.back()});
  SmallVector<Value> bytes = e.unpack(word, b.getI8Type());
  bytes.resize(values.size());
  return bytes;
}

} // namespace weft
