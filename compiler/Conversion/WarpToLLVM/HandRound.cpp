// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See HandRound.h.

#include "compiler/Conversion/WarpToLLVM/HandRound.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace weft {

/// Shared memory of the module for what is handed round: eight bytes a thread of the largest block.
static Value exchangePointer(Emitter &e) {
  constexpr StringLiteral name = "weft_atomic_exchange";
  auto module = e.function()->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol<LLVM::GlobalOp>(name)) {
    OpBuilder b(module.getBodyRegion());
    auto type = LLVM::LLVMArrayType::get(b.getI64Type(), e.target.maxWarps * e.target.warpSize);
    LLVM::GlobalOp::create(b, module.getLoc(), type, /*isConstant=*/false, LLVM::Linkage::Internal, name, Attribute(),
                           /*alignment=*/8, /*addrSpace=*/3);
  }
  return LLVM::AddressOfOp::create(e.b, e.loc, LLVM::LLVMPointerType::get(e.b.getContext(), 3), name);
}

uint32_t sharedThreadBits(Type type, Emitter &e) { return warp::repeatedThreadBits(type, e.warps); }

void beforeHandingRound(uint32_t threadBits, Emitter &e) {
  if (threadBits >= 32)
    e.barrier();
}

Value handRound(Value value, uint32_t threadBits, Emitter &e) {
  if (threadBits == 0)
    return value;
  Value actor = LLVM::AndOp::create(e.b, e.loc, e.thread(), e.i32(~threadBits));
  if (threadBits < 32)
    return e.shuffleIndex(value, LLVM::AndOp::create(e.b, e.loc, actor, e.i32(31)));
  Value base = exchangePointer(e);
  auto slot = [&](Value thread) { return e.offset(base, LLVM::ShlOp::create(e.b, e.loc, thread, e.i32(3))); };
  LLVM::StoreOp::create(e.b, e.loc, value, slot(e.thread()));
  e.barrier();
  return LLVM::LoadOp::create(e.b, e.loc, value.getType(), slot(actor));
}

} // namespace weft
