// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Program indices, barriers and assertions.

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace weft {
namespace {

/// The special register of an axis: %ctaid or %nctaid (PTX ISA 10.6, 10.7).
template <typename X, typename Y, typename Z> Value readRegister(tile::Axis axis, Emitter &e) {
  Type i32 = e.b.getI32Type();
  switch (axis) {
  case tile::Axis::X:
    return X::create(e.b, e.loc, i32);
  case tile::Axis::Y:
    return Y::create(e.b, e.loc, i32);
  case tile::Axis::Z:
    return Z::create(e.b, e.loc, i32);
  }
  llvm_unreachable("every axis has a register");
}

Value programId(tile::Axis axis, Emitter &e) {
  return readRegister<NVVM::BlockIdXOp, NVVM::BlockIdYOp, NVVM::BlockIdZOp>(axis, e);
}

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

/// What is printed when an assertion fails: its message, which says where it stands, and a format for the program's
/// three indices.
std::string assertionText(tile::AssertOp op) {
  std::string escaped;
  for (char c : op.getMessage())
    escaped += c == '%' ? "%%" : std::string(1, c);
  return escaped + " (program %d, %d, %d)\n" + '\0';
}

/// Prints `text` with the program's indices.
void emitPrint(StringRef text, Emitter &e) {
  Type i32 = e.b.getI32Type();
  Value arguments = e.atEntry([&]() -> Value { // an alloca elsewhere would not be static
    return LLVM::AllocaOp::create(e.b, e.loc, LLVM::LLVMPointerType::get(e.b.getContext()),
                                  LLVM::LLVMArrayType::get(i32, 3),
                                  LLVM::ConstantOp::create(e.b, e.loc, i32, e.b.getI32IntegerAttr(1)));
  });
  constexpr std::array axes{tile::Axis::X, tile::Axis::Y, tile::Axis::Z};
  for (auto [i, axis] : llvm::enumerate(axes))
    LLVM::StoreOp::create(e.b, e.loc, programId(axis, e), e.offset(arguments, 4 * static_cast<int64_t>(i)));
  LLVM::CallOp::create(e.b, e.loc, printFunction(e), ValueRange{textPointer(text, e), arguments});
}

LogicalResult lowerAssert(tile::AssertOp op, Emitter &e) {
  Value holds;
  for (Value condition : e.registers(op.getCondition()))
    holds = holds ? Value(LLVM::AndOp::create(e.b, e.loc, holds, condition)) : condition;
  Block *fails, *goesOn;
  {
    OpBuilder::InsertionGuard guard(e.b);
    Region &body = e.function().getBody();
    fails = e.b.createBlock(&body, body.end());
    goesOn = e.b.createBlock(&body, body.end());
  }
  LLVM::CondBrOp::create(e.b, e.loc, holds, goesOn, fails);
  e.b.setInsertionPointToStart(fails);
  emitPrint(assertionText(op), e);
  LLVM::Trap::create(e.b, e.loc);
  LLVM::BrOp::create(e.b, e.loc, goesOn); // trap does not return; a branch keeps the flow structured
  e.b.setInsertionPointToStart(goesOn);
  return success();
}

} // namespace

void addProgramLowerings(LoweringTable &table) {
  table.add<tile::ProgramIdOp>([](tile::ProgramIdOp op, Emitter &e) {
    e.bind(op.getResult(), programId(op.getAxis(), e));
    return success();
  });
  table.add<tile::NumProgramsOp>([](tile::NumProgramsOp op, Emitter &e) {
    e.bind(op.getResult(), readRegister<NVVM::GridDimXOp, NVVM::GridDimYOp, NVVM::GridDimZOp>(op.getAxis(), e));
    return success();
  });
  table.add<tile::BarrierOp>([](tile::BarrierOp, Emitter &e) {
    e.barrier();
    return success();
  });
  table.add<tile::AssertOp>(lowerAssert);
}

} // namespace weft
