// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See HandRound.h.

#include "compiler/Conversion/WarpToLLVM/HandRound.h"
#include "compiler/Conversion/WarpToLLVM/SharedAccess.h"
#include "compiler/Conversion/WarpToLLVM/VectorAccess.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using llvm::Log2_32;

namespace weft {

/// Bytes of one value that is handed round.
constexpr unsigned slotBytes = 8;

/// Shared memory of the module for what is handed round, of as many slots as the exchange that has most of them.
static Value exchangePointer(unsigned slots, Emitter &e) {
  constexpr StringLiteral name = "weft_atomic_exchange";
  auto module = e.function()->getParentOfType<ModuleOp>();
  OpBuilder b(module.getBodyRegion());
  auto type = LLVM::LLVMArrayType::get(b.getI64Type(), slots);
  auto global = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!global)
    LLVM::GlobalOp::create(b, module.getLoc(), type, /*isConstant=*/false, LLVM::Linkage::Internal, name, Attribute(),
                           /*alignment=*/slotBytes, /*addrSpace=*/3);
  else if (cast<LLVM::LLVMArrayType>(global.getGlobalType()).getNumElements() < slots)
    global.setGlobalType(type);
  return LLVM::AddressOfOp::create(e.b, e.loc, LLVM::LLVMPointerType::get(e.b.getContext(), 3), name);
}

uint32_t sharedThreadBits(Type type, Emitter &e) { return warp::repeatedThreadBits(type, e.warps); }

void beforeHandingRound(uint32_t threadBits, Emitter &e) {
  if (threadBits >= 32)
    e.barrier();
}

Registers handRound(ArrayRef<Value> values, uint32_t threadBits, Emitter &e) {
  Registers handed(values);
  if (threadBits == 0 || values.empty())
    return handed;
  Value actor = LLVM::AndOp::create(e.b, e.loc, e.thread(), e.i32(~threadBits));
  if (threadBits < 32) {
    Value lane = LLVM::AndOp::create(e.b, e.loc, actor, e.i32(31));
    for (Value &value : handed)
      value = e.shuffleIndex(value, lane);
    return handed;
  }
  // All in one exchange: with a slot for several, the next would be written before the last has been read.
  const unsigned threads = e.warps * e.target.warpSize, actors = ((threads - 1) & ~threadBits) + 1;
  Value base = exchangePointer(values.size() * actors, e);
  Value slots = actors == 1 ? base : e.offset(base, LLVM::ShlOp::create(e.b, e.loc, actor, e.i32(Log2_32(slotBytes))));
  Value acts = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::eq, actor, e.thread());
  auto slot = [&](size_t i) { return e.offset(slots, e.i32(i * actors * slotBytes)); };
  for (auto [i, value] : llvm::enumerate(values)) {
    const bool isPointer = isa<LLVM::LLVMPointerType>(value.getType());
    Value bits = isPointer ? Value(LLVM::PtrToIntOp::create(e.b, e.loc, e.b.getI64Type(), value)) : value;
    predicatedStore(e, bits, slot(i), bytesOf(value.getType()), acts);
  }
  e.barrier();
  for (auto [i, value] : llvm::enumerate(handed))
    value = LLVM::LoadOp::create(e.b, e.loc, value.getType(), slot(i));
  return handed;
}

} // namespace weft
