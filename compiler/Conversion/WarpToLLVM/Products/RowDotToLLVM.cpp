// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile.row_dot: the products of 16 rows with themselves, of which the diagonal is wanted (PTX ISA 9.7.14.5).
//
// Both operands have the layout of an m16n8k16 instruction's A. Of such a fragment, the words of rows 0-7 are, as they
// lie in the lanes, the B fragment of those rows as columns, and likewise those of rows 8-15. So two instructions for
// every 16 channels give rows 0-7 of a against rows 0-7 of b, and rows 8-15 against rows 8-15; each has 8 sums that
// count. Row g's is in the lane of group g that has column g: the quad passes it around.

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Tile/IR/TileOps.h"

using namespace mlir;

namespace weft {
namespace {

/// The 32-bit words of an operand, two channels each, four for each instruction.
SmallVector<Value> wordsOf(Emitter &e, Value operand, Type word) {
  ArrayRef<Value> registers = e.registers(operand);
  SmallVector<Value> words;
  for (size_t first = 0; first < registers.size(); first += 2)
    words.push_back(e.bitcast(e.pack(registers.slice(first, 2)), word));
  return words;
}

LogicalResult lowerRowDot(tile::RowDotOp op, Emitter &e) {
  auto type = cast<RankedTensorType>(op.getA().getType());
  bool isHalf = type.getElementType().isF16();
  Type f32 = e.b.getF32Type(), word = isHalf ? Type(VectorType::get(2, e.b.getF16Type())) : Type(e.b.getI32Type());
  StringRef name = isHalf ? "llvm.nvvm.mma.m16n8k16.row.col.f32.f32" : "llvm.nvvm.mma.m16n8k16.row.col.bf16";
  SmallVector<Value> a = wordsOf(e, op.getA(), word), b = wordsOf(e, op.getB(), word);
  unsigned steps = type.getDimSize(1) / 16;
  if (a.size() % (4 * steps) != 0)
    return op.emitOpError("expected operands that fill whole matrix instructions, but got ") << type;
  Type sums = LLVM::LLVMStructType::getLiteral(e.b.getContext(), SmallVector<Type>(4, f32));
  // Of an accumulator, lane 4 g + t has rows g and g + 8, columns 2 t and 2 t + 1.
  Value group = LLVM::LShrOp::create(e.b, e.loc, e.lane(), e.i32(2));
  Value isOdd = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne,
                                     LLVM::AndOp::create(e.b, e.loc, group, e.i32(1)), e.i32(0));
  Value owner = LLVM::OrOp::create(e.b, e.loc, LLVM::AndOp::create(e.b, e.loc, e.lane(), e.i32(28)),
                                   LLVM::LShrOp::create(e.b, e.loc, group, e.i32(1)));
  Registers results;
  for (unsigned m = 0; m < a.size() / (4 * steps); ++m)
    for (unsigned half : {0, 1}) {
      SmallVector<Value> acc(4, e.zero(f32));
      for (unsigned k = 0; k < steps; ++k) {
        unsigned first = (m * steps + k) * 4;
        SmallVector<Value, 10> operands(ArrayRef(a).slice(first, 4));
        operands.append({b[first + half], b[first + 2 + half]});
        operands.append(acc);
        Value product = e.intrinsic(name, sums, operands);
        for (unsigned i = 0; i < 4; ++i)
          acc[i] = LLVM::ExtractValueOp::create(e.b, e.loc, product, i);
      }
      Value own = LLVM::SelectOp::create(e.b, e.loc, isOdd, acc[2 * half + 1], acc[2 * half]);
      results.push_back(e.shuffleIndex(own, owner));
    }
  e.bind(op.getResult(), results);
  return success();
}

} // namespace

void addRowDotLowerings(LoweringTable &table) { table.add<tile::RowDotOp>(lowerRowDot); }

} // namespace weft
