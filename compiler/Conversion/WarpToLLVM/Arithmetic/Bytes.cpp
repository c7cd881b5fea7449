// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Integers of 8 bits as f16 or bf16, four of a word at once, on the bits of halves: conversions of single integers run at a
// quarter of the rate, and their results would have to be put together.
//
// f16: a byte u below 0x64 is the number 1024 + u, since the last of f16's places is 1 there. A signed byte whose sign bit
// is turned is u = x + 128.
//
// bf16: a byte below 0x43 is 128 + m, of its lower 7 bits m; the byte's upper bit falls on the exponent's lowest, which is
// masked. By itself, with the rest of the exponent, that bit makes 256 of 128:
//
//   x = 0x85 (-123)   t = 0x4385   t & 0x437f = 0x4305 (133)   t & 0x4380 = 0x4380 (256)   133 - 256 = -123
//   x = 0x05 (5)      t = 0x4305   t & 0x437f = 0x4305 (133)   t & 0x4380 = 0x4300 (128)   133 - 128 = 5

#include "compiler/Conversion/WarpToLLVM/Arithmetic/Casts.h"

using namespace mlir;

namespace weft {

/// Bytes of a word below an upper byte, as two halves in a word.
static Value below(Value word, bool isUpper, int32_t byte, Emitter &e) {
  return e.intrinsic("llvm.nvvm.prmt", e.b.getI32Type(),
                     {word, e.i32(0x01010101 * byte), e.i32(isUpper ? 0x4342 : 0x4140)});
}

/// A pair of the same numbers.
static Value pairOf(double number, FloatType type, Emitter &e) {
  return e.constant(DenseElementsAttr::get(VectorType::get(2, type), e.b.getFloatAttr(type, number).getValue()));
}

static Value toF16(Value word, bool isUpper, bool isSigned, Emitter &e) {
  FloatType f16 = e.b.getF16Type();
  Value numbers = e.bitcast(below(word, isUpper, 0x64, e), VectorType::get(2, f16));
  return LLVM::FSubOp::create(e.b, e.loc, numbers, pairOf(isSigned ? 1024 + 128 : 1024, f16, e));
}

static Value signedToBF16(Value word, bool isUpper, Emitter &e) {
  FloatType bf16 = e.b.getBF16Type();
  Value bits = below(word, isUpper, 0x43, e);
  auto masked = [&](int32_t mask) {
    return e.bitcast(LLVM::AndOp::create(e.b, e.loc, bits, e.i32(mask << 16 | mask)), VectorType::get(2, bf16));
  };
  return LLVM::FMAOp::create(e.b, e.loc, masked(0x4380), pairOf(-1, bf16, e), masked(0x437f));
}

bool convertsBytes(Type to, bool isSigned) { return to.isF16() || (to.isBF16() && isSigned); }

SmallVector<Value, 4> bytesToHalves(Value word, Type to, bool isSigned, Emitter &e) {
  if (to.isF16() && isSigned)
    word = LLVM::XOrOp::create(e.b, e.loc, word, e.i32(static_cast<int32_t>(0x80808080)));
  SmallVector<Value, 4> halves;
  for (bool isUpper : {false, true}) {
    Value pair = to.isF16() ? toF16(word, isUpper, isSigned, e) : signedToBF16(word, isUpper, e);
    for (unsigned i = 0; i < 2; ++i)
      halves.push_back(LLVM::ExtractElementOp::create(e.b, e.loc, pair, e.i32(i)));
  }
  return halves;
}

} // namespace weft
