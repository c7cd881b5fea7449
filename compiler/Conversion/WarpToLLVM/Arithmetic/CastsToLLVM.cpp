// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Casts of arith. f32 to f16 and bf16 goes by pairs of registers, `cvt.rn.f16x2.f32` (PTX ISA 9.7.9.21).

#include "compiler/Conversion/WarpToLLVM/Arithmetic/Casts.h"
#include "compiler/Conversion/WarpToLLVM/Arithmetic/Pairs.h"
#include "compiler/Conversion/WarpToLLVM/Arithmetic/WithNumber.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/ScratchLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace weft {

static bool isFloat8(Type type) { return isa<Float8E4M3FNType, Float8E5M2Type>(type); }

Value extendToF32(Value value, Type type, Emitter &e) {
  return type.isF32() ? value : Value(LLVM::FPExtOp::create(e.b, e.loc, e.b.getF32Type(), value));
}

Value truncateFromF32(Value value, Type type, Emitter &e) {
  return type.isF32() ? value : Value(LLVM::FPTruncOp::create(e.b, e.loc, type, value));
}

Value resizeInteger(Value value, Type type, bool isSigned, Emitter &e) {
  unsigned from = value.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  if (from == to)
    return value;
  if (from > to)
    return LLVM::TruncOp::create(e.b, e.loc, type, value);
  return isSigned ? Value(LLVM::SExtOp::create(e.b, e.loc, type, value))
                  : Value(LLVM::ZExtOp::create(e.b, e.loc, type, value));
}

namespace {

template <typename Source, typename Target> void addCast(LoweringTable &table) {
  table.add<Source>([](Source op, Emitter &e) {
    Type type = registerType(op.getType());
    return e.perRegister(op, [&](ArrayRef<Value> in) -> Value { return Target::create(e.b, e.loc, type, in[0]); });
  });
}

/// An integer in more bits: that of what the threads differ in, and a number.
LogicalResult lowerSignExtension(arith::ExtSIOp op, Emitter &e) {
  Type type = registerType(op.getType());
  return e.perRegister(op, [&](ArrayRef<Value> in) -> Value {
    WithNumber parts(in[0]);
    if (parts.wraps)
      return LLVM::SExtOp::create(e.b, e.loc, type, in[0]);
    Value base = LLVM::SExtOp::create(e.b, e.loc, type, parts.base);
    return WithNumber::plus(base, parts.number.sext(type.getIntOrFloatBitWidth()), e);
  });
}

/// What `convert` makes of each `size` neighbouring registers; of fewer at the end, where they do not divide by it.
template <typename Convert> LogicalResult perGroup(Operation *op, size_t size, Emitter &e, Convert convert) {
  ArrayRef<Value> source = e.registers(op->getOperand(0));
  Registers results;
  for (; !source.empty(); source = source.drop_front(std::min(size, source.size())))
    llvm::append_range(results, convert(source.take_front(size)));
  e.bind(op->getResult(0), results);
  return success();
}

/// An f16 as an f64, f32 or bf16, of which each holds every f8.
Value extendHalf(Value half, Type to, Emitter &e) {
  if (to.isF16())
    return half;
  if (!to.isBF16())
    return LLVM::FPExtOp::create(e.b, e.loc, to, half);
  return truncateFromF32(extendToF32(half, e), to, e);
}

/// Up to two f16 or bf16 as f32. bf16 has the upper half of an f32's bits: of two in one word each takes one instruction,
/// where the upper by itself takes one more to be cut out.
SmallVector<Value, 2> extendPair(ArrayRef<Value> in, Emitter &e) {
  auto extended = [&](Value bits) { return e.bitcast(bits, e.b.getF32Type()); };
  Value word = in.size() == 2 && in[0].getType().isBF16() ? e.unpackedFrom(in) : Value();
  if (!word)
    return llvm::map_to_vector<2>(in, [&](Value value) { return extendToF32(value, e); });
  return {extended(LLVM::ShlOp::create(e.b, e.loc, word, e.i32(16))),
          extended(LLVM::AndOp::create(e.b, e.loc, word, e.i32(static_cast<int32_t>(0xffff0000))))};
}

/// An absolute value, widened: of f32, whose instructions take their operands' absolute values for nothing.
LogicalResult extendAbsolute(arith::ExtFOp op, math::AbsFOp absolute, Emitter &e) {
  ArrayRef<Value> source = e.registers(absolute.getOperand());
  Registers results;
  for (; !source.empty(); source = source.drop_front(std::min<size_t>(2, source.size())))
    for (Value each : extendPair(source.take_front(2), e))
      results.push_back(LLVM::FAbsOp::create(e.b, e.loc, each.getType(), each));
  e.bind(op.getResult(), results);
  return success();
}

/// Elements of 8 bits that are converted at once: a word of memory, as a rule.
constexpr size_t wordOfBytes = 4;

/// Up to four f8s as f16s.
SmallVector<Value, wordOfBytes> halvesOf(ArrayRef<Value> in, Type type, Emitter &e) {
  SmallVector<Value, wordOfBytes> bytes(in), halves;
  bytes.resize(wordOfBytes, in.back());
  Value word = e.pack(bytes), pair;
  for (size_t i = 0; i < in.size(); ++i) {
    if (i % 2 == 0)
      pair = float8ToF16(word, /*isUpper=*/i == 2, type, e);
    halves.push_back(LLVM::ExtractElementOp::create(e.b, e.loc, pair, e.i32(i % 2)));
  }
  return halves;
}

LogicalResult lowerExtF(arith::ExtFOp op, Emitter &e) {
  Type from = getElementTypeOrSelf(op.getIn().getType()), to = getElementTypeOrSelf(op.getType());
  auto absolute = op.getIn().getDefiningOp<math::AbsFOp>();
  if (absolute && (from.isF16() || from.isBF16()) && to.isF32())
    return extendAbsolute(op, absolute, e);
  if (from.isBF16() && to.isF32())
    return perGroup(op, 2, e, [&](ArrayRef<Value> in) { return extendPair(in, e); });
  if (!isFloat8(from))
    return e.perRegister(op, [&](ArrayRef<Value> in) { return LLVM::FPExtOp::create(e.b, e.loc, to, in[0]); });
  return perGroup(op, wordOfBytes, e, [&](ArrayRef<Value> in) {
    return llvm::map_to_vector<wordOfBytes>(halvesOf(in, from, e), [&](Value half) { return extendHalf(half, to, e); });
  });
}

/// Whether an op takes neighbouring registers of 16 bits as one word: products, arithmetic of pairs, stores of neighbouring
/// elements, and ways through shared memory on which these stay together.
bool takesPairs(Operation *op) {
  if (isa<warp::MmaOp>(op) || computesPairs(op))
    return true;
  if (auto convert = dyn_cast<warp::ConvertLayoutOp>(op)) {
    const warp::LinearLayout &from = layoutOf(convert.getSource().getType()),
                             &to = layoutOf(convert.getResult().getType());
    if (to.registerPermutation(from))
      return false;
    warp::SharedAccess write = warp::accessOf(from, warp::scratchLayout(from, to, 2), 2);
    return !write.pieceBits.empty() && write.pieceBits.front() == 0;
  }
  auto width = op->getAttrOfType<IntegerAttr>(warp::contiguityAttrName);
  return isa<tile::StoreOp>(op) && width && width.getInt() > 1;
}

/// Two neighbouring registers at once. Where one of several takers has the pair, and another its elements, LLVM would make
/// two of a plain truncation: then by an instruction of its own.
LogicalResult truncatePairs(arith::TruncFOp op, Type type, Emitter &e) {
  ArrayRef<Value> source = e.registers(op.getIn());
  Type wide = VectorType::get(2, source[0].getType()), narrow = VectorType::get(2, type);
  bool isShared = !op->hasOneUse() && llvm::any_of(op->getUsers(), takesPairs);
  StringRef name = type.isF16() ? "llvm.nvvm.ff2f16x2.rn" : "llvm.nvvm.ff2bf16x2.rn";
  Registers results;
  for (unsigned r = 0; r < source.size(); r += 2) {
    Value pair;
    if (!isShared) {
      pair = LLVM::PoisonOp::create(e.b, e.loc, wide);
      for (unsigned i = 0; i < 2; ++i)
        pair = LLVM::InsertElementOp::create(e.b, e.loc, pair, source[r + i], e.i32(i));
      pair = LLVM::FPTruncOp::create(e.b, e.loc, narrow, pair);
    } else {
      pair = e.intrinsic(name, narrow, {source[r + 1], source[r]});
    }
    for (unsigned i = 0; i < 2; ++i)
      results.push_back(LLVM::ExtractElementOp::create(e.b, e.loc, pair, e.i32(i)));
  }
  e.bind(op.getResult(), results);
  return success();
}

/// An f64 cut to an f32 whose last bit is set where bits were lost: rounded once more, to fewer bits, it is as if it had
/// been rounded only then.
Value cutToF32(Value value, Emitter &e) {
  Value cut = e.intrinsic("llvm.nvvm.d2f.rz", e.b.getF32Type(), value);
  Value back = LLVM::FPExtOp::create(e.b, e.loc, value.getType(), cut);
  Value lost = LLVM::FCmpOp::create(e.b, e.loc, LLVM::FCmpPredicate::une, back, value);
  Value sticky = LLVM::ZExtOp::create(e.b, e.loc, e.b.getI32Type(), lost);
  return e.bitcast(LLVM::OrOp::create(e.b, e.loc, e.bitcast(cut, e.b.getI32Type()), sticky), e.b.getF32Type());
}

LogicalResult lowerTruncF(arith::TruncFOp op, Emitter &e) {
  if (roundsWhatIsNarrow(op, e))
    return success();
  Type from = getElementTypeOrSelf(op.getIn().getType()), to = getElementTypeOrSelf(op.getType());
  ArrayRef<Value> source = e.registers(op.getIn());
  if (from.isF32() && (to.isF16() || to.isBF16()) && source.size() % 2 == 0)
    return truncatePairs(op, to, e);
  if (!isFloat8(to))
    return e.perRegister(op, [&](ArrayRef<Value> in) { return LLVM::FPTruncOp::create(e.b, e.loc, to, in[0]); });
  return perGroup(op, wordOfBytes, e, [&](ArrayRef<Value> in) {
    return toFloat8(llvm::map_to_vector(in, [&](Value x) { return from.isF64() ? cutToF32(x, e) : x; }), to, e);
  });
}

/// An integer of 32 or 64 bits as an f32 that rounds to bf16 or f8 as the integer itself does: towards zero, and the last
/// place set where that has lost anything. (To the nearest f32 and then to the nearest bf16 it would be rounded twice.)
Value roundToOdd(Value integer, bool isSigned, Emitter &e) {
  Type f32 = e.b.getF32Type(), type = integer.getType();
  bool isWide = type.isInteger(64);
  StringRef name = isSigned ? (isWide ? "llvm.nvvm.ll2f.rz" : "llvm.nvvm.i2f.rz")
                            : (isWide ? "llvm.nvvm.ull2f.rz" : "llvm.nvvm.ui2f.rz");
  Value cut = e.intrinsic(name, f32, integer);
  Value back = isSigned ? Value(LLVM::FPToSIOp::create(e.b, e.loc, type, cut))
                        : Value(LLVM::FPToUIOp::create(e.b, e.loc, type, cut));
  Value lost = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne, back, integer);
  Value sticky = LLVM::ZExtOp::create(e.b, e.loc, e.b.getI32Type(), lost);
  return e.bitcast(LLVM::OrOp::create(e.b, e.loc, e.bitcast(cut, e.b.getI32Type()), sticky), f32);
}

/// A cast of integers to floats, each rounded once.
template <typename Source, typename Target, bool isSigned> LogicalResult lowerIntegerToFloat(Source op, Emitter &e) {
  Type type = getElementTypeOrSelf(op.getType());
  auto isWide = [](Value integer) { return integer.getType().getIntOrFloatBitWidth() >= 32; };
  if (isFloat8(type)) {
    auto single = [&](Value x) -> Value {
      return isWide(x) ? roundToOdd(x, isSigned, e) : Value(Target::create(e.b, e.loc, e.b.getF32Type(), x));
    };
    return perGroup(op, wordOfBytes, e,
                    [&](ArrayRef<Value> in) { return toFloat8(llvm::map_to_vector(in, single), type, e); });
  }
  auto single = [&](Value x) -> Value {
    if (type.isBF16() && isWide(x))
      return truncateFromF32(roundToOdd(x, isSigned, e), type, e);
    return Target::create(e.b, e.loc, type, x);
  };
  bool isOfBytes = getElementTypeOrSelf(op.getIn().getType()).isInteger(8) && convertsBytes(type, isSigned);
  return perGroup(op, isOfBytes ? wordOfBytes : 1, e, [&](ArrayRef<Value> in) -> SmallVector<Value, wordOfBytes> {
    Value word = in.size() == wordOfBytes ? e.unpackedFrom(in) : Value();
    return word ? bytesToHalves(word, type, isSigned, e) : llvm::map_to_vector<wordOfBytes>(in, single);
  });
}

/// A cast of floats to integers. An f8 is an f16 first, which holds it.
template <typename Source, typename Target> LogicalResult lowerFloatToInteger(Source op, Emitter &e) {
  Type from = getElementTypeOrSelf(op.getIn().getType()), type = registerType(op.getType());
  auto convert = [&](Value x) -> Value { return Target::create(e.b, e.loc, type, x); };
  if (!isFloat8(from))
    return e.perRegister(op, [&](ArrayRef<Value> in) { return convert(in[0]); });
  return perGroup(op, wordOfBytes, e,
                  [&](ArrayRef<Value> in) { return llvm::map_to_vector<wordOfBytes>(halvesOf(in, from, e), convert); });
}

LogicalResult lowerBitcast(arith::BitcastOp op, Emitter &e) {
  Type type = registerType(op.getType());
  return e.perRegister(op, [&](ArrayRef<Value> in) { return e.bitcast(in[0], type); });
}

} // namespace

Value roundToTF32(Value value, Emitter &e) {
  StringRef name = e.target.roundsTF32ToEven ? "llvm.nvvm.f2tf32.rn" : "llvm.nvvm.f2tf32.rna";
  return e.intrinsic(name, e.b.getI32Type(), {value});
}

void addCastLowerings(LoweringTable &table) {
  addCast<arith::ExtUIOp, LLVM::ZExtOp>(table);
  table.add<arith::ExtSIOp>(lowerSignExtension);
  addCast<arith::TruncIOp, LLVM::TruncOp>(table);
  table.add<arith::SIToFPOp>(lowerIntegerToFloat<arith::SIToFPOp, LLVM::SIToFPOp, true>);
  table.add<arith::UIToFPOp>(lowerIntegerToFloat<arith::UIToFPOp, LLVM::UIToFPOp, false>);
  table.add<arith::FPToSIOp>(lowerFloatToInteger<arith::FPToSIOp, LLVM::FPToSIOp>);
  table.add<arith::FPToUIOp>(lowerFloatToInteger<arith::FPToUIOp, LLVM::FPToUIOp>);
  table.add<arith::ExtFOp>(lowerExtF);
  table.add<arith::TruncFOp>(lowerTruncF);
  table.add<arith::BitcastOp>(lowerBitcast);
}

} // namespace weft
