// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp.mma: the product of two tensors in fragment layouts as matrix instructions of each warp (PTX ISA 9.7.14.5).
//
// Registers of an operand, packed into 32-bit words, or as they are where they have 64, are in the order that MmaLayouts.h gives them: the words of one
// instruction first, then its neighbours along K, then along the other axis.

#include "compiler/Conversion/WarpToLLVM/Arithmetic/Casts.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/TF32.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

/// One kind of matrix instruction: its intrinsic, the types of its operands, and how many words a lane gives of a and
/// b.
struct Instruction {
  StringRef intrinsic;
  Type word;        // of a and b
  Type accumulator; // of c and d
  unsigned aWords = 4, bWords = 2;
};

/// How an f32 operand goes into tf32: the part that is kept, and, for three products, what that part lost, and what it is
/// multiplied by.
struct Split {
  SmallVector<Value> high, low, beside;
};

/// What a product of f32 by three of tf32 does with the products with rests.
enum class Rests {
  None,  // there are none
  Apart, // they have a sum of their own
  Among, // they are added to the whole sum: there are no registers for another
};

/// Those of f64, by shape.
std::optional<Instruction> doubles(ArrayRef<int32_t> shape, Type f64) {
  if (shape[0] == 8)
    return Instruction{"llvm.nvvm.mma.m8n8k4.row.col.f64", f64, f64, 1, 1};
  if (shape[2] == 4)
    return Instruction{"llvm.nvvm.mma.m16n8k4.row.col.f64", f64, f64, 2, 1};
  if (shape[2] == 8)
    return Instruction{"llvm.nvvm.mma.m16n8k8.row.col.f64", f64, f64, 4, 2};
  return Instruction{"llvm.nvvm.mma.m16n8k16.row.col.f64", f64, f64, 8, 4};
}

std::optional<Instruction> instructionFor(MmaOp op, OpBuilder &b) {
  Type element = cast<RankedTensorType>(op.getA().getType()).getElementType();
  Type accumulator = cast<RankedTensorType>(op.getAcc().getType()).getElementType();
  Type halves = VectorType::get(2, b.getF16Type()), word = b.getI32Type(), f32 = b.getF32Type();
  if (cast<RankedTensorType>(op.getA().getType()).getDimSize(1) == 8 && element.getIntOrFloatBitWidth() == 16) {
    if (element.isF16() && accumulator.isF32())
      return Instruction{"llvm.nvvm.mma.m16n8k8.row.col.f32.f32", halves, f32, 2, 1};
    if (element.isF16() && accumulator.isF16())
      return Instruction{"llvm.nvvm.mma.m16n8k8.row.col.f16.f16", halves, halves, 2, 1};
    if (element.isBF16() && accumulator.isF32())
      return Instruction{"llvm.nvvm.mma.m16n8k8.row.col.bf16", word, f32, 2, 1};
  }
  if (element.isF16() && accumulator.isF32())
    return Instruction{"llvm.nvvm.mma.m16n8k16.row.col.f32.f32", halves, f32};
  if (element.isF16() && accumulator.isF16())
    return Instruction{"llvm.nvvm.mma.m16n8k16.row.col.f16.f16", halves, halves};
  if (element.isBF16() && accumulator.isF32())
    return Instruction{"llvm.nvvm.mma.m16n8k16.row.col.bf16", word, f32};
  if (element.isF32() && accumulator.isF32())
    return Instruction{"llvm.nvvm.mma.m16n8k8.row.col.tf32", word, f32};
  if (element.isF64() && accumulator.isF64())
    return doubles(op.getShape(), element);
  if (element.isInteger(8) && accumulator.isInteger(32))
    return Instruction{"llvm.nvvm.mma.m16n8k32.row.col.s8", word, word};
  if (isa<Float8E4M3FNType>(element))
    return accumulator.isF32() ? Instruction{"llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32", word, f32}
                               : Instruction{"llvm.nvvm.mma.m16n8k32.row.col.f16.e4m3.e4m3.f16", word, halves};
  if (isa<Float8E5M2Type>(element))
    return accumulator.isF32() ? Instruction{"llvm.nvvm.mma.m16n8k32.row.col.f32.e5m2.e5m2.f32", word, f32}
                               : Instruction{"llvm.nvvm.mma.m16n8k32.row.col.f16.e5m2.e5m2.f16", word, halves};
  return std::nullopt;
}

/// How many registers of an operand are one word.
unsigned packedIn(ArrayRef<Value> registers) {
  return std::max(1u, 32 / registers.front().getType().getIntOrFloatBitWidth());
}

/// The registers of an operand as words of `type`.
SmallVector<Value> packWords(Emitter &e, ArrayRef<Value> registers, Type type) {
  if (type.isF64())
    return SmallVector<Value>(registers);
  unsigned packed = packedIn(registers);
  SmallVector<Value> words;
  for (size_t first = 0; first < registers.size(); first += packed)
    words.push_back(e.bitcast(e.pack(registers.slice(first, packed)), type));
  return words;
}

/// A number, or 0 where it is not finite.
Value finiteOrZero(Value number, Emitter &e) {
  Value infinity = e.constant(e.b.getF32FloatAttr(std::numeric_limits<float>::infinity()));
  Value magnitude = LLVM::FAbsOp::create(e.b, e.loc, number.getType(), number);
  Value isFinite = LLVM::FCmpOp::create(e.b, e.loc, LLVM::FCmpPredicate::olt, magnitude, infinity);
  return LLVM::SelectOp::create(e.b, e.loc, isFinite, number, e.constant(e.b.getF32FloatAttr(0.0f)));
}

/// A number, or some finite one where it is not finite: `max` and `min` take the other of two of which one is none.
Value finiteOf(Value number, Emitter &e) {
  constexpr float most = std::numeric_limits<float>::max();
  auto constant = [&](float x) { return e.constant(e.b.getF32FloatAttr(x)); };
  Value above = LLVM::MaxNumOp::create(e.b, e.loc, number, constant(-most));
  return LLVM::MinNumOp::create(e.b, e.loc, above, constant(most));
}

/// f32 values rounded to the nearest tf32; for three products also what the rounding lost, rounded likewise. Nothing is,
/// and no rest is there, where `exact`. Where rests are added to the whole sum, parts of finite numbers are multiplied.
Split splitTF32(Emitter &e, ArrayRef<Value> registers, Rests rests, bool exact) {
  if (exact) {
    Split split{packWords(e, registers, e.b.getI32Type()), {}, {}};
    split.beside = split.high;
    if (rests == Rests::Among)
      for (Value &word : split.beside)
        word = e.bitcast(finiteOrZero(e.bitcast(word, e.b.getF32Type()), e), word.getType());
    return split;
  }
  struct Parts {
    Value high, low, beside;
  };
  llvm::DenseMap<Value, Parts> known; // a value that several registers repeat is rounded once
  Split split;
  for (Value value : registers) {
    Parts &parts = known[value];
    if (!parts.high) {
      parts.high = parts.beside = roundToTF32(value, e);
      Value finite = value;
      if (rests == Rests::Among) {
        finite = finiteOrZero(value, e);
        parts.beside = roundToTF32(finite, e);
      }
      if (rests != Rests::None)
        parts.low = roundToTF32(LLVM::FSubOp::create(e.b, e.loc, finite, e.bitcast(parts.beside, value.getType())), e);
    }
    split.high.push_back(parts.high);
    split.beside.push_back(parts.beside);
    if (parts.low)
      split.low.push_back(parts.low);
  }
  return split;
}

/// How many products a warp has, and how many instructions each has along each axis.
struct Extents {
  unsigned batch, m, n, k;
};

/// Accumulates the k-th step of a · b onto `acc`, whose registers are as many for each instruction tile.
void emitStep(Emitter &e, const Instruction &instruction, Extents extents, unsigned k, ArrayRef<Value> a,
              ArrayRef<Value> b, SmallVectorImpl<Value> &acc) {
  unsigned aWords = instruction.aWords, bWords = instruction.bWords;
  unsigned perTile = acc.size() / (extents.batch * extents.m * extents.n);
  Type result = LLVM::LLVMStructType::getLiteral(e.b.getContext(), SmallVector<Type>(perTile, instruction.accumulator));
  for (unsigned column = 0; column < extents.batch * extents.n; ++column)
    for (unsigned row = 0; row < extents.m; ++row) {
      unsigned product = column / extents.n, n = column % extents.n, m = product * extents.m + row;
      SmallVector<Value, 10> operands;
      llvm::append_range(operands, a.slice((m * extents.k + k) * aWords, aWords));
      llvm::append_range(operands, b.slice((column * extents.k + k) * bWords, bWords));
      MutableArrayRef<Value> tile = MutableArrayRef(acc).slice((m * extents.n + n) * perTile, perTile);
      llvm::append_range(operands, tile);
      Value sums = e.intrinsic(instruction.intrinsic, result, operands);
      for (unsigned i = 0; i < perTile; ++i)
        tile[i] = LLVM::ExtractValueOp::create(e.b, e.loc, sums, i);
    }
}

/// Accumulates a · b of f32 as TF32 onto `acc`: step by step, as registers hold what rounding lost of no more than one.
/// Beside the large products' much of the rests' would be lost, so that those have a sum of their own, or come first; where
/// there are infinities they have other ones or none, which must not meet those of the large products.
void emitTF32(Emitter &e, const Instruction &instruction, Extents extents, const Split &a, const Split &b, Rests rests,
              SmallVectorImpl<Value> &acc) {
  SmallVector<Value> own(acc.size(), e.constant(e.b.getF32FloatAttr(0.0f)));
  SmallVectorImpl<Value> &small = rests == Rests::Apart ? static_cast<SmallVectorImpl<Value> &>(own) : acc;
  for (unsigned k = 0; k < extents.k; ++k) {
    if (!a.low.empty())
      emitStep(e, instruction, extents, k, a.low, b.beside, small);
    if (!b.low.empty())
      emitStep(e, instruction, extents, k, a.beside, b.low, small);
    emitStep(e, instruction, extents, k, a.high, b.high, acc);
  }
  if (rests == Rests::Apart && !(a.low.empty() && b.low.empty()))
    for (auto [sum, rest] : llvm::zip_equal(acc, small))
      sum = LLVM::FAddOp::create(e.b, e.loc, sum, finiteOf(rest, e));
}

LogicalResult lowerMma(MmaOp op, Emitter &e) {
  std::optional<Instruction> instruction = instructionFor(op, e.b);
  if (!instruction)
    return op.emitOpError("has no matrix instruction for ") << op.getA().getType() << " and " << op.getAcc().getType();
  ArrayRef<Value> aRegisters = e.registers(op.getA()), bRegisters = e.registers(op.getB());
  bool halves = isa<VectorType>(instruction->accumulator);
  SmallVector<Value> acc(e.registers(op.getAcc()));
  unsigned packed = packedIn(aRegisters);
  unsigned aWords = instruction->aWords, bWords = instruction->bWords;
  unsigned k = cast<RankedTensorType>(op.getA().getType()).getDimSize(1) / (4 * bWords * packed);
  unsigned rows = aRegisters.size() / packed / aWords / k, columns = bRegisters.size() / packed / bWords / k;
  unsigned n = acc.size() / (op.getShape()[0] / 4 * rows), batch = columns / n;
  assert(k * rows * aWords * packed == aRegisters.size() && k * columns * bWords * packed == bRegisters.size() &&
         acc.size() == op.getShape()[0] / 4 * rows * n && columns == batch * n && rows % batch == 0 &&
         "the op's verifier asks for fragments of whole instructions");
  Extents extents{batch, rows / batch, n, k};
  if (halves)
    acc = packWords(e, acc, instruction->accumulator);

  if (aRegisters.front().getType().isF32()) {
    Rests rests = op.getPrecision() != tile::Precision::TF32x3 ? Rests::None
                  : acc.size() <= mostSumsWithRests            ? Rests::Apart
                                                               : Rests::Among;
    Split a = splitTF32(e, aRegisters, rests, isTF32(op.getA()));
    Split b = splitTF32(e, bRegisters, rests, isTF32(op.getB()));
    emitTF32(e, *instruction, extents, a, b, rests, acc);
  } else {
    SmallVector<Value> a = packWords(e, aRegisters, instruction->word), b = packWords(e, bRegisters, instruction->word);
    for (unsigned step = 0; step < extents.k; ++step)
      emitStep(e, *instruction, extents, step, a, b, acc);
  }

  if (halves) {
    Registers unpacked;
    for (Value word : acc)
      llvm::append_range(unpacked, e.unpack(e.bitcast(word, e.b.getI32Type()), e.b.getF16Type()));
    e.bind(op.getResult(), unpacked);
    return success();
  }
  e.bind(op.getResult(), acc);
  return success();
}

} // namespace

void addMatrixLowerings(LoweringTable &table) { table.add<MmaOp>(lowerMma); }

} // namespace weft
