// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Atomics on device memory: one thread acts for each element, under its mask; where others hold the same element, they
// get the old value through a piece of shared memory of the op's own.
//
// LLVM's atomics are used, so that types the target lacks (f16 and bf16 addition on sm_80) become loops of
// compare-and-swap.

#include "compiler/Conversion/WarpToLLVM/VectorAccess.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using weft::warp::InDim;

namespace weft {
namespace {

/// The scope of atomics: the device, `.gpu`.
constexpr StringLiteral deviceScope = "device";

LLVM::AtomicOrdering orderingOf(tile::MemoryOrder order) {
  switch (order) {
  case tile::MemoryOrder::Relaxed:
    return LLVM::AtomicOrdering::monotonic;
  case tile::MemoryOrder::Acquire:
    return LLVM::AtomicOrdering::acquire;
  case tile::MemoryOrder::Release:
    return LLVM::AtomicOrdering::release;
  case tile::MemoryOrder::AcqRel:
    return LLVM::AtomicOrdering::acq_rel;
  }
  llvm_unreachable("every order has its LLVM ordering");
}

LLVM::AtomicBinOp operationOf(tile::AtomicKind kind) {
  switch (kind) {
  case tile::AtomicKind::Add:
    return LLVM::AtomicBinOp::add;
  case tile::AtomicKind::FAdd:
    return LLVM::AtomicBinOp::fadd;
  case tile::AtomicKind::Max:
    return LLVM::AtomicBinOp::max;
  case tile::AtomicKind::Min:
    return LLVM::AtomicBinOp::min;
  case tile::AtomicKind::UMax:
    return LLVM::AtomicBinOp::umax;
  case tile::AtomicKind::UMin:
    return LLVM::AtomicBinOp::umin;
  case tile::AtomicKind::And:
    return LLVM::AtomicBinOp::_and;
  case tile::AtomicKind::Or:
    return LLVM::AtomicBinOp::_or;
  case tile::AtomicKind::Xor:
    return LLVM::AtomicBinOp::_xor;
  case tile::AtomicKind::Exchange:
    return LLVM::AtomicBinOp::xchg;
  }
  llvm_unreachable("every kind has its LLVM operation");
}

/// What `emit` gives where `condition` holds (null: everywhere), zero elsewhere.
Value emitWhere(Value condition, Type type, Emitter &e, llvm::function_ref<Value()> emit) {
  if (!condition)
    return emit();
  Value nothing = e.zero(type);
  Region &body = e.function().getBody();
  OpBuilder::InsertPoint here = e.b.saveInsertionPoint();
  Block *acts = e.b.createBlock(&body, body.end()), *joins = e.b.createBlock(&body, body.end(), type, e.loc);
  e.b.restoreInsertionPoint(here);
  LLVM::CondBrOp::create(e.b, e.loc, condition, acts, ValueRange(), joins, nothing);
  e.b.setInsertionPointToStart(acts);
  LLVM::BrOp::create(e.b, e.loc, emit(), joins);
  e.b.setInsertionPointToStart(joins);
  return joins->getArgument(0);
}

/// Shared memory of the module that atomics hand old values round in: eight bytes a thread of the largest block.
Value exchangePointer(Emitter &e) {
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

/// The threads that hold the same element as this one differ from it in these bits of the thread index.
uint32_t sharedThreadBits(Type type, Emitter &e) {
  uint32_t all = 32 * e.warps - 1;
  if (!isa<RankedTensorType>(type))
    return all;
  const warp::LinearLayout &layout = layoutOf(type);
  warp::Place free = layout.freeBits();
  uint32_t missingWarps = (e.warps - 1) & ~(layout.size(InDim::Warp) - 1);
  return free[InDim::Lane] | (free[InDim::Warp] | missingWarps) << 5;
}

/// The value that the acting thread got, in every thread that holds the element.
Value handRound(Value value, uint32_t threadBits, Emitter &e) {
  if (threadBits == 0)
    return value;
  Value actor = LLVM::AndOp::create(e.b, e.loc, e.thread(), e.i32(~threadBits));
  if (threadBits < 32)
    return e.shuffleIndex(value, LLVM::AndOp::create(e.b, e.loc, actor, e.i32(31)));
  Value base = exchangePointer(e);
  auto slot = [&](Value thread) { return e.offset(base, LLVM::ShlOp::create(e.b, e.loc, thread, e.i32(3))); };
  e.barrier(); // the last exchange has been read
  LLVM::StoreOp::create(e.b, e.loc, value, slot(e.thread()));
  e.barrier();
  return LLVM::LoadOp::create(e.b, e.loc, value.getType(), slot(actor));
}

/// One atomic for each element: `emit(register)` under mask and ownership; binds the result of `op`.
LogicalResult lowerAtomic(Operation *op, Type pointerType, ArrayRef<Value> masks, Emitter &e,
                          llvm::function_ref<Value(unsigned)> emit) {
  Type type = registerType(op->getResult(0).getType());
  SmallVector<unsigned> holders =
      isa<RankedTensorType>(pointerType) ? firstHolders(layoutOf(pointerType)) : SmallVector<unsigned>{0};
  uint32_t threadBits = sharedThreadBits(pointerType, e);
  Value owner = ownerOf(pointerType, e);
  Registers results;
  for (unsigned r = 0, n = *registerCount(pointerType); r < n; ++r) {
    if (holders[r] != r) {
      results.push_back(results[holders[r]]);
      continue;
    }
    Value condition = masks.empty() ? owner
                      : !owner      ? masks[r]
                                    : Value(LLVM::AndOp::create(e.b, e.loc, masks[r], owner));
    Value old = emitWhere(condition, type, e, [&] { return emit(r); });
    results.push_back(op->getResult(0).use_empty() ? old : handRound(old, threadBits, e));
  }
  e.bind(op->getResult(0), results);
  return success();
}

LogicalResult lowerRMW(tile::AtomicRMWOp op, Emitter &e) {
  ArrayRef<Value> pointers = e.registers(op.getPtr()), values = e.registers(op.getValue());
  ArrayRef<Value> masks = op.getMask() ? e.registers(op.getMask()) : ArrayRef<Value>();
  return lowerAtomic(op, op.getPtr().getType(), masks, e, [&](unsigned r) -> Value {
    return LLVM::AtomicRMWOp::create(e.b, e.loc, operationOf(op.getKind()), pointers[r], values[r],
                                     orderingOf(op.getOrder()), deviceScope);
  });
}

LogicalResult lowerCAS(tile::AtomicCASOp op, Emitter &e) {
  ArrayRef<Value> pointers = e.registers(op.getPtr()), values = e.registers(op.getValue()),
                  expected = e.registers(op.getCompare());
  Type type = registerType(op.getType());
  bool isFloat = !isa<IntegerType, LLVM::LLVMPointerType>(type);
  Type bits = isFloat ? Type(e.b.getIntegerType(type.getIntOrFloatBitWidth())) : type;
  // A failed exchange reads only: it cannot release.
  bool acquires = op.getOrder() == tile::MemoryOrder::Acquire || op.getOrder() == tile::MemoryOrder::AcqRel;
  auto onFailure = acquires ? LLVM::AtomicOrdering::acquire : LLVM::AtomicOrdering::monotonic;
  return lowerAtomic(op, op.getPtr().getType(), {}, e, [&](unsigned r) -> Value {
    Value pair =
        LLVM::AtomicCmpXchgOp::create(e.b, e.loc, pointers[r], e.bitcast(expected[r], bits), e.bitcast(values[r], bits),
                                      orderingOf(op.getOrder()), onFailure, deviceScope);
    return e.bitcast(LLVM::ExtractValueOp::create(e.b, e.loc, pair, 0), type);
  });
}

} // namespace

void addAtomicLowerings(LoweringTable &table) {
  table.add<tile::AtomicRMWOp>(lowerRMW);
  table.add<tile::AtomicCASOp>(lowerCAS);
}

} // namespace weft
