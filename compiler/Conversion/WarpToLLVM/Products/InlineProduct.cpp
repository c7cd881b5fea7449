// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/WarpToLLVM/Products/InlineProduct.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {

/// The constraint of a register in inline PTX.
static StringRef constraintOf(Type type) { return type.isF32() ? "f" : "r"; }

void Assembly::inOut(ArrayRef<Value> registers, bool fresh) {
  for (auto [index, value] : llvm::enumerate(registers)) {
    outputs += (outputs.empty() ? "=" : ",=") + constraintOf(value.getType()).str();
    types.push_back(value.getType());
    if (!fresh) {
      inputs += "," + std::to_string(index);
      operands.push_back(value);
    }
  }
  // Inputs that are outputs too have numbers of their own.
  next = registers.size() * (fresh ? 1 : 2);
}

std::string Assembly::in(Value value, StringRef kind) {
  inputs += "," + kind.str();
  operands.push_back(value);
  return "$" + std::to_string(next++);
}

SmallVector<Value> Assembly::emit(StringRef code) {
  std::string constraints = outputs + inputs + ",~{memory}";
  return e.inlineAsm(code, StringRef(constraints).ltrim(','), types, operands, /*sideEffects=*/true);
}

std::string InShared::step(StringRef operand, int64_t bytes) {
  if (!moves)
    return llvm::formatv("add.u32 l{0}, {1}, {2}; mov.b64 d{0}, {{l{0}, h{0}}; ", operand, name, bytes >> 4);
  std::string code;
  if (!at)
    code = llvm::formatv("mov.b64 d{0}, {{{1}, h{0}}; ", operand, name).str();
  if (int64_t distance = (bytes >> 4) - at.value_or(0))
    code += llvm::formatv("add.s64 d{0}, d{0}, {1}; ", operand, distance).str();
  at = bytes >> 4;
  return code;
}

Value groupNumber(Emitter &e, unsigned first, unsigned count) {
  constexpr unsigned groupWarps = 4;
  SmallVector<uint32_t> bases(llvm::Log2_32_Ceil(e.warps), 0);
  for (unsigned bit = 0; (1u << bit) < count; ++bit)
    bases[llvm::Log2_32(groupWarps * first) + bit] = 1u << bit;
  Value number = e.xorOfBits({}, bases);
  return e.atEntry([&] { return e.shuffleIndex(number, e.i32(0)); });
}

/// The address of a tile in two parts whose sum it is: bytes that no loop changes, and in units of 16 bytes where the
/// tile's stage begins in its ring, null where it is in none.
static std::pair<Value, Value> addressOf(Emitter &e, Value shared) {
  auto stage = tileViewed(shared).getDefiningOp<StageOp>();
  auto ring = stage ? stage.getRing().getDefiningOp<AllocOp>() : AllocOp();
  Value pointer = ring && ring.getOffset() ? e.sharedPointer(*ring.getOffset()) : e.scalar(shared);
  Value address = LLVM::PtrToIntOp::create(e.b, e.loc, e.b.getI32Type(), pointer);
  Value before = pointer == e.scalar(shared) ? Value() : bytesBefore(stage, e);
  return {address, before ? LLVM::LShrOp::create(e.b, e.loc, before, e.i32(4)).getResult() : Value()};
}

InShared descriptorOf(Emitter &e, Value shared, unsigned innerAxis, int64_t outer, Value group) {
  SharedType type = cast<SharedType>(shared.getType());
  unsigned bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  WgmmaOperand operand = *wgmmaOperand(type.linear(), innerAxis, bytes);
  auto [address, stage] = addressOf(e, shared);
  if (group) {
    Value distance = LLVM::MulOp::create(e.b, e.loc, group, e.i32(operand.offset(outer, 0)));
    address = LLVM::AddOp::create(e.b, e.loc, address, distance);
  }
  // Addresses in shared memory are below 2^18: the field of 14 bits holds them in units of 16 bytes.
  Value field = LLVM::LShrOp::create(e.b, e.loc, address, e.i32(4));
  Value low = LLVM::OrOp::create(e.b, e.loc, field, e.i32(static_cast<int32_t>(operand.descriptor())));
  if (stage)
    low = LLVM::AddOp::create(e.b, e.loc, low, stage);
  return {operand, low, "", stage != nullptr, std::nullopt};
}

StringRef nameOfOperand(Type type) {
  return llvm::TypeSwitch<Type, StringRef>(type)
      .Case([](Float16Type) { return "f16"; })
      .Case([](BFloat16Type) { return "bf16"; })
      .Case([](Float32Type) { return "tf32"; })
      .Case([](Float8E4M3FNType) { return "e4m3"; })
      .Case([](Float8E5M2Type) { return "e5m2"; })
      .Case([](IntegerType integer) { return integer.getWidth() == 8 ? "s8" : ""; })
      .Default([](Type) { return ""; });
}

} // namespace weft
