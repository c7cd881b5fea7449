// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile.inline_asm: the code once for every `pack` registers of a thread. Narrow elements travel together:
//
//   pack 4 of i8:   %0 = bitcast <4 x i8> to i32; asm "...", "=r,r"(%0); bitcast i32 to <4 x i8>
//
// Where a thread holds fewer elements than `pack`, its last one fills the rest.

#include "compiler/Conversion/WarpToLLVM/Program.h"
#include "dialects/Tile/IR/TileProgramOps.h"

using namespace mlir;

namespace weft {
namespace {

using Constraint = tile::InlineAsmOp::Constraint;

Type typeOf(const Constraint &constraint, Emitter &e) {
  if (constraint.kind == 'f')
    return e.b.getF32Type();
  return constraint.kind == 'd' ? Type(e.b.getF64Type()) : Type(e.b.getIntegerType(constraint.bits));
}

Value resized(Value value, unsigned bits, Emitter &e) {
  unsigned own = value.getType().getIntOrFloatBitWidth();
  Type type = e.b.getIntegerType(bits);
  if (own == bits)
    return value;
  return own < bits ? Value(LLVM::ZExtOp::create(e.b, e.loc, type, value))
                    : Value(LLVM::TruncOp::create(e.b, e.loc, type, value));
}

/// The bits of a value, at least 8 of them.
Value bitsOf(Value value, Emitter &e) {
  unsigned bits = value.getType().getIntOrFloatBitWidth();
  return resized(e.bitcast(value, e.b.getIntegerType(bits)), std::max(bits, 8u), e);
}

/// Elements in one register of the code, the first in the lowest bits.
Value packed(ArrayRef<Value> elements, const Constraint &constraint, Emitter &e) {
  if (constraint.isImmediate()) // as it is: what computes it would make it a register
    return elements.front();
  SmallVector<Value> parts = llvm::map_to_vector(elements, [&](Value each) { return bitsOf(each, e); });
  Value whole = parts.front();
  if (unsigned count = parts.size(); count > 1) {
    unsigned bits = whole.getType().getIntOrFloatBitWidth();
    Value vector = LLVM::PoisonOp::create(e.b, e.loc, VectorType::get(count, whole.getType()));
    for (auto [i, part] : llvm::enumerate(parts))
      vector = LLVM::InsertElementOp::create(e.b, e.loc, vector, part, e.i32(i));
    whole = e.bitcast(vector, e.b.getIntegerType(bits * count));
  }
  return e.bitcast(resized(whole, constraint.bits, e), typeOf(constraint, e));
}

/// The elements of a register of the code.
void unpack(Value whole, unsigned count, Type element, const Constraint &constraint, Emitter &e, Registers &into) {
  unsigned own = element.getIntOrFloatBitWidth(), bits = std::max(own, 8u);
  whole = resized(e.bitcast(whole, e.b.getIntegerType(constraint.bits)), bits * count, e);
  if (count == 1) {
    into.push_back(e.bitcast(resized(whole, own, e), element));
    return;
  }
  Value vector = e.bitcast(whole, VectorType::get(count, e.b.getIntegerType(bits)));
  for (unsigned i = 0; i < count; ++i) {
    Value part = LLVM::ExtractElementOp::create(e.b, e.loc, vector, e.i32(i));
    into.push_back(e.bitcast(resized(part, own, e), element));
  }
}

/// `constraints` as LLVM reads them: without spaces.
std::string spelled(StringRef constraints) {
  std::string result(constraints);
  llvm::erase_if(result, [](char c) { return c == ' ' || c == '\n' || c == '\t'; });
  return result;
}

LogicalResult lowerInlineAsm(tile::InlineAsmOp op, Emitter &e) {
  SmallVector<Constraint> constraints = *op.parseConstraints([](const Twine &) {}); // as the verifier has found
  unsigned pack = op.getPack(), count = *registerCount(op.getResult(0).getType());
  std::string spelling = spelled(op.getConstraints());
  SmallVector<Registers> results(op.getNumResults());
  for (unsigned first = 0; first < count; first += pack) {
    unsigned next = 0;
    SmallVector<Type> types;
    for (Type type : op.getResultTypes())
      for (unsigned i = 0; i < pack / op.elementsPerOperand(type); ++i)
        types.push_back(typeOf(constraints[next++], e));
    SmallVector<Value> operands;
    for (Value operand : op.getOperands()) {
      unsigned each = op.elementsPerOperand(operand.getType());
      for (unsigned i = 0; i < pack; i += each) {
        SmallVector<Value> elements;
        for (unsigned k = 0; k < each; ++k)
          elements.push_back(e.registers(operand)[std::min(first + i + k, count - 1)]);
        const Constraint &constraint = constraints[next++];
        operands.push_back(packed(elements, constraint, e));
        if (constraint.isImmediate() && !matchPattern(operands.back(), m_Constant()))
          return op.emitOpError() << "expected a constant, which the constraint '" << Twine(constraint.kind)
                                  << "' puts into the code as a number, but got a value that is known when the kernel "
                                     "runs; make it a constexpr, or constrain it by 'r'";
      }
    }
    SmallVector<Value> made = e.inlineAsm(op.getCode(), spelling, types, operands, !op.getPure());
    next = 0;
    for (auto [result, registers] : llvm::zip(op.getResults(), results)) {
      unsigned each = op.elementsPerOperand(result.getType());
      for (unsigned i = 0; i < pack; i += each, ++next)
        unpack(made[next], each, registerType(tile::elementTypeOf(result.getType())), constraints[next], e, registers);
    }
  }
  for (auto [result, registers] : llvm::zip(op.getResults(), results))
    e.bind(result, ArrayRef(registers).take_front(count));
  return success();
}

LogicalResult lowerMap(tile::MapOp op, Emitter &e) {
  unsigned pack = op.getPack(), count = *registerCount(op.getResult(0).getType());
  SmallVector<Registers> results(op.getNumResults());
  for (unsigned first = 0; first < count; first += pack) {
    SmallVector<Value> arguments;
    for (Value source : op.getSources())
      for (unsigned i = 0; i < pack; ++i) // a thread that holds fewer gives its last again
        arguments.push_back(e.registers(source)[std::min(first + i, count - 1)]);
    std::optional<Registers> made = e.inlineBlock(op.getBody().front(), arguments);
    if (!made)
      return failure();
    for (auto [index, value] : llvm::enumerate(*made))
      results[index / pack].push_back(value);
  }
  for (auto [result, registers] : llvm::zip(op.getResults(), results))
    e.bind(result, ArrayRef(registers).take_front(count));
  return success();
}

} // namespace

void addInlineAsmLowerings(LoweringTable &table) {
  table.add<tile::InlineAsmOp>(lowerInlineAsm);
  table.add<tile::MapOp>(lowerMap);
}

} // namespace weft
