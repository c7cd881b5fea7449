// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a kernel prints, by vprintf, the function of CUDA's device runtime: assertions that fail, and values.
//
//   tile.print "x: ", %x : tensor<64xf32>
// becomes, in each thread that owns an element, a line for each register:
//   vprintf("pid (%d, %d, %d) idx (%d) x: %f\n", {ctaid.x, ctaid.y, ctaid.z, coordinate, register})

#include "compiler/Conversion/WarpToLLVM/Program.h"
#include "dialects/Tile/IR/TileProgramOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace weft {
namespace {

/// A constant text in the module, ended by a zero; a generic pointer to it.
Value textPointer(StringRef text, Emitter &e) {
  auto module = e.function()->getParentOfType<ModuleOp>();
  std::string name;
  for (unsigned i = 0;; ++i) {
    name = ("weft_text_" + Twine(i)).str();
    auto known = module.lookupSymbol<LLVM::GlobalOp>(name);
    if (known && known.getValueAttr() == e.b.getStringAttr(text))
      break;
    if (known)
      continue;
    OpBuilder b(module.getBodyRegion());
    LLVM::GlobalOp::create(b, module.getLoc(), LLVM::LLVMArrayType::get(b.getI8Type(), text.size()),
                           /*isConstant=*/true, LLVM::Linkage::Internal, name, b.getStringAttr(text), /*alignment=*/0,
                           /*addrSpace=*/1);
    break;
  }
  Value address = LLVM::AddressOfOp::create(e.b, e.loc, LLVM::LLVMPointerType::get(e.b.getContext(), 1), name);
  return LLVM::AddrSpaceCastOp::create(e.b, e.loc, LLVM::LLVMPointerType::get(e.b.getContext()), address);
}

/// vprintf, the device function that CUDA defines: (format, arguments in memory) -> count.
LLVM::LLVMFuncOp printFunction(Emitter &e) {
  auto module = e.function()->getParentOfType<ModuleOp>();
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>("vprintf"))
    return known;
  OpBuilder b(module.getBodyRegion());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  return LLVM::LLVMFuncOp::create(b, module.getLoc(), "vprintf",
                                  LLVM::LLVMFunctionType::get(b.getI32Type(), {pointer, pointer}));
}

/// A text as a part of a format.
std::string escaped(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '%' ? "%%" : std::string(1, c);
  return result;
}

/// Prints values of 4 or 8 bytes by a format that takes them; `arguments` has room for them.
void emitPrint(StringRef format, ArrayRef<Value> values, Value arguments, Emitter &e) {
  int64_t at = 0;
  for (Value value : values) {
    int64_t bytes = value.getType().getIntOrFloatBitWidth() / 8;
    at = llvm::alignTo(at, bytes);
    LLVM::StoreOp::create(e.b, e.loc, value, e.offset(arguments, at));
    at += bytes;
  }
  LLVM::CallOp::create(e.b, e.loc, printFunction(e),
                       ValueRange{textPointer((format + Twine('\0')).str(), e), arguments});
}

/// Room for `count` values of up to 8 bytes, on the thread's stack.
Value roomFor(unsigned count, Emitter &e) {
  return e.atEntry([&]() -> Value { // an alloca elsewhere would not be static
    return LLVM::AllocaOp::create(e.b, e.loc, LLVM::LLVMPointerType::get(e.b.getContext()),
                                  LLVM::LLVMArrayType::get(e.b.getI64Type(), count),
                                  LLVM::ConstantOp::create(e.b, e.loc, e.b.getI32Type(), e.b.getI32IntegerAttr(1)));
  });
}

Registers programIds(Emitter &e) {
  return {programId(tile::Axis::X, e), programId(tile::Axis::Y, e), programId(tile::Axis::Z, e)};
}

/// Emits `emit` where `condition` holds (null: everywhere), and goes on behind it.
void emitWhere(Value condition, Emitter &e, llvm::function_ref<void()> emit) {
  if (!condition)
    return emit();
  Block *inside, *after;
  {
    OpBuilder::InsertionGuard guard(e.b);
    Region &body = e.function().getBody();
    inside = e.b.createBlock(&body, body.end());
    after = e.b.createBlock(&body, body.end());
  }
  LLVM::CondBrOp::create(e.b, e.loc, condition, inside, after);
  e.b.setInsertionPointToStart(inside);
  emit();
  LLVM::BrOp::create(e.b, e.loc, after);
  e.b.setInsertionPointToStart(after);
}

LogicalResult lowerAssert(tile::AssertOp op, Emitter &e) {
  Value holds;
  for (Value condition : e.registers(op.getCondition()))
    holds = holds ? Value(LLVM::AndOp::create(e.b, e.loc, holds, condition)) : condition;
  Value fails = LLVM::XOrOp::create(e.b, e.loc, holds, e.i1(true));
  emitWhere(fails, e, [&] {
    emitPrint(escaped(op.getMessage()) + " (program %d, %d, %d)\n", programIds(e), roomFor(3, e), e);
    LLVM::Trap::create(e.b, e.loc); // does not return; the branch behind it keeps the flow structured
  });
  return success();
}

/// How printf spells a value of the op.
StringRef conversionOf(tile::PrintOp op) {
  Type element = tile::elementTypeOf(op.getValue().getType());
  if (isa<FloatType>(element))
    return "%f";
  bool wide = element.isInteger(64);
  if (op.getHex())
    return wide ? "0x%016llx" : "0x%08x";
  if (op.getIsUnsigned())
    return wide ? "%llu" : "%u";
  return wide ? "%lld" : "%d";
}

/// An element's index along an axis, from its coordinate in the tensor.
Value indexAt(tile::PrintOp op, unsigned axis, Value coordinate, Emitter &e) {
  int32_t first = op.getFirst().empty() ? 0 : op.getFirst()[axis];
  return first == 0 ? coordinate : Value(LLVM::AddOp::create(e.b, e.loc, coordinate, e.i32(first)));
}

LogicalResult lowerPrint(tile::PrintOp op, Emitter &e) {
  Value value = op.getValue();
  auto tensor = value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
  unsigned rank = tensor ? tensor.getRank() : 0;
  std::string format = "pid (%d, %d, %d)";
  for (unsigned axis = 0; axis < rank; ++axis)
    format += axis == 0 ? " idx (%d" : ", %d";
  format += (rank ? ")" : "") + escaped(op.getText()) + (value ? conversionOf(op).str() : "") + "\n";
  Value room = roomFor(4 + rank, e);
  Value owner = tensor ? ownerOf(tensor, e)
                       : Value(LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::eq, e.thread(), e.i32(0)));
  emitWhere(owner, e, [&] {
    Registers ids = programIds(e);
    for (unsigned r = 0, count = value ? e.registers(value).size() : 1; r < count; ++r) {
      Registers values(ids);
      for (unsigned axis = 0; axis < rank; ++axis)
        values.push_back(indexAt(op, axis, e.coordinate(layoutOf(tensor), axis, r), e));
      if (value) {
        Value each = e.registers(value)[r];
        values.push_back(each.getType().isF32() ? LLVM::FPExtOp::create(e.b, e.loc, e.b.getF64Type(), each) : each);
      }
      emitPrint(format, values, room, e);
    }
  });
  return success();
}

} // namespace

void addPrintLowerings(LoweringTable &table) {
  table.add<tile::AssertOp>(lowerAssert);
  table.add<tile::PrintOp>(lowerPrint);
}

} // namespace weft
