// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Atomics on device memory: one thread acts for each element, under its mask, and hands the old value to the others
// that hold the element.
//
//     { .reg .b32 undefined; mul.lo.s32 $0, undefined, 0; @$3 atom.acq_rel.gpu.global.add.u32 $0, [$1], $2; }
//
// They are PTX, since LLVM's back end leaves out the order of `atomicrmw`. What the target lacks (bf16 addition on
// sm_80) is a loop of compare-and-swap, between fences that make the order.
//
// That a whole program is ordered by one thread's atomic is the business of `warp-order-accesses`.

#include "compiler/Conversion/WarpToLLVM/HandRound.h"
#include "compiler/Conversion/WarpToLLVM/VectorAccess.h"
#include "compiler/Support/Remarks.h"
#include "dialects/Tile/IR/TileOps.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace weft {
namespace {

/// The operation and type of PTX's `atom` and `red` (PTX ISA 9.7.13.5) for values of `type`; empty where the target has
/// none.
std::string nativeOperation(tile::AtomicKind kind, Type type, const TargetInfo &target) {
  std::string bits = std::to_string(type.getIntOrFloatBitWidth());
  switch (kind) {
  case tile::AtomicKind::Add:
    return "add.u" + bits;
  case tile::AtomicKind::FAdd:
    if (type.isBF16())
      return target.bf16Arithmetic ? "add.noftz.bf16" : "";
    return type.isF16() ? "add.noftz.f16" : "add.f" + bits;
  case tile::AtomicKind::Max:
    return "max.s" + bits;
  case tile::AtomicKind::Min:
    return "min.s" + bits;
  case tile::AtomicKind::UMax:
    return "max.u" + bits;
  case tile::AtomicKind::UMin:
    return "min.u" + bits;
  case tile::AtomicKind::And:
    return "and.b" + bits;
  case tile::AtomicKind::Or:
    return "or.b" + bits;
  case tile::AtomicKind::Xor:
    return "xor.b" + bits;
  case tile::AtomicKind::Exchange:
    return "exch.b" + bits;
  }
  llvm_unreachable("every kind has its operation");
}

/// What an atomic is to do, but for where and with which numbers.
struct Atomic {
  std::string operation; // "add.u32"
  tile::MemoryOrder order;
  tile::MemoryScope scope;
  bool isRead;   // whether anything takes the old value
  bool isMasked; // whether the old value is asked for where nothing happens; it is undefined there
};

/// One PTX instruction where `condition` (null: everywhere) holds: the old value, or null when nothing reads it.
Value emitNative(const Atomic &atomic, Value pointer, ArrayRef<Value> values, Value condition, Emitter &e) {
  Type type = values.front().getType();
  Words words = wordsOf(bytesOf(type), bytesOf(type));
  std::string constraints, code;
  Registers operands;
  auto operand = [&](Value value, StringRef constraint) {
    constraints += (constraints.empty() ? "" : ",") + constraint.str();
    operands.push_back(value);
    return "$" + std::to_string(operands.size() - 1 + atomic.isRead);
  };
  if (atomic.isRead) {
    constraints = "=" + words.constraint().str();
    if (atomic.isMasked)
      code += words.undefinedCode();
  }
  std::string guard;
  // `red` neither acquires nor exchanges (PTX ISA 9.7.13.6).
  bool exchanges = StringRef(atomic.operation).starts_with("exch") || StringRef(atomic.operation).starts_with("cas");
  bool reduces = !atomic.isRead && !acquires(atomic.order) && !exchanges;
  std::string name = ((reduces ? "red." : "atom.") + stringifyMemoryOrder(atomic.order) + "." +
                      stringifyMemoryScope(atomic.scope) + ".global." + atomic.operation)
                         .str();
  std::string arguments = reduces ? "" : atomic.isRead ? "$0, " : "_, ";
  arguments += operand(pointer, "*m");
  for (Value value : toWords(values, {static_cast<unsigned>(values.size()), words.bits}, e))
    arguments += ", " + operand(value, words.constraint());
  if (condition)
    guard = "@" + operand(condition, "b") + " ";
  constraints += ",~{memory}";
  code = "{ " + code + guard + name + " " + arguments + "; }";
  SmallVector<Type, 1> results(atomic.isRead, words.type(e));
  Registers old = e.inlineAsm(code, constraints, results, operands, /*sideEffects=*/true);
  return atomic.isRead ? fromWords(old, words, 1, type, e).front() : Value();
}

/// LLVM's name of a scope.
StringRef syncScope(tile::MemoryScope scope) {
  return scope == tile::MemoryScope::CTA ? "block" : scope == tile::MemoryScope::GPU ? "device" : "";
}

/// An addition that the target has no instruction for, where `condition` holds: a loop of compare-and-swap of the
/// element's own 16 bits. (LLVM's loop swaps the word around it, which may reach past the end of an array.) The old
/// value; undefined elsewhere.
Value emitAddBySwaps(const Atomic &atomic, Value pointer, Value value, Value condition, Emitter &e) {
  Type type = value.getType(), bits = e.b.getI16Type();
  auto fence = [&](bool wanted) {
    if (wanted)
      LLVM::FenceOp::create(e.b, e.loc, LLVM::AtomicOrdering::acq_rel, syncScope(atomic.scope));
  };
  Region &body = e.function().getBody();
  OpBuilder::InsertPoint here = e.b.saveInsertionPoint();
  Block *begins = e.b.createBlock(&body, body.end()), *swaps = e.b.createBlock(&body, body.end(), bits, e.loc),
        *ends = e.b.createBlock(&body, body.end()), *joins = e.b.createBlock(&body, body.end(), type, e.loc);
  e.b.restoreInsertionPoint(here);
  Value nothing = atomic.isRead && atomic.isMasked ? undefinedValue(type, e) : e.zero(type);
  if (condition)
    LLVM::CondBrOp::create(e.b, e.loc, condition, begins, ValueRange(), joins, nothing);
  else
    LLVM::BrOp::create(e.b, e.loc, ValueRange(), begins);

  e.b.setInsertionPointToStart(begins);
  fence(releases(atomic.order));
  Value first = LLVM::LoadOp::create(e.b, e.loc, bits, pointer, /*alignment=*/2, /*isVolatile=*/false,
                                     /*isNonTemporal=*/false, /*isInvariant=*/false, /*isInvariantGroup=*/false,
                                     LLVM::AtomicOrdering::monotonic, syncScope(atomic.scope));
  LLVM::BrOp::create(e.b, e.loc, first, swaps);

  e.b.setInsertionPointToStart(swaps);
  Value old = swaps->getArgument(0), number = LLVM::BitcastOp::create(e.b, e.loc, type, old);
  Value sum = LLVM::FAddOp::create(e.b, e.loc, number, value);
  Atomic swap{"cas.b16", tile::MemoryOrder::Relaxed, atomic.scope, /*isRead=*/true, /*isMasked=*/false};
  Value seen = emitNative(swap, pointer, {old, LLVM::BitcastOp::create(e.b, e.loc, bits, sum)}, Value(), e);
  Value done = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::eq, seen, old);
  LLVM::CondBrOp::create(e.b, e.loc, done, ends, ValueRange(), swaps, seen);

  e.b.setInsertionPointToStart(ends);
  fence(acquires(atomic.order));
  LLVM::BrOp::create(e.b, e.loc, number, joins);
  e.b.setInsertionPointToStart(joins);
  return joins->getArgument(0);
}

/// One atomic for each element: `emit(register, condition)` under mask and ownership; binds the result of `op`.
LogicalResult lowerAtomic(Operation *op, Type pointerType, ArrayRef<Value> masks, Emitter &e,
                          llvm::function_ref<Value(unsigned, Value)> emit) {
  SmallVector<unsigned> holders =
      isa<RankedTensorType>(pointerType) ? firstHolders(layoutOf(pointerType)) : SmallVector<unsigned>{0};
  bool isRead = !op->getResult(0).use_empty();
  uint32_t threadBits = isRead ? sharedThreadBits(pointerType, e) : 0;
  Value owner = ownerOf(pointerType, e);
  if (isa<RankedTensorType>(pointerType))
    if (auto remark = remarks::decided(remarks::access, op))
      remark << remark::reason("a thread changes {0} by {1}, each of one element", tile::textOf(pointerType),
                               instructionsText(llvm::SmallSet<unsigned, 8>(holders.begin(), holders.end()).size()));
  Registers results;
  for (unsigned r = 0, n = *registerCount(pointerType); r < n; ++r) {
    if (holders[r] != r) {
      results.push_back(results[holders[r]]);
      continue;
    }
    Value condition = masks.empty() ? owner
                      : !owner      ? masks[r]
                                    : Value(LLVM::AndOp::create(e.b, e.loc, masks[r], owner));
    beforeHandingRound(threadBits, e);
    Value old = emit(r, condition);
    results.push_back(isRead ? handRound(old, threadBits, e) : e.zero(registerType(op->getResult(0).getType())));
  }
  e.bind(op->getResult(0), results);
  return success();
}

LogicalResult lowerRMW(tile::AtomicRMWOp op, Emitter &e) {
  ArrayRef<Value> values = e.registers(op.getValue());
  auto all = llvm::to_vector(llvm::seq<unsigned>(0, *registerCount(op.getPtr().getType())));
  Registers addresses = addressesOf(op, op.getPtr(), all, e);
  ArrayRef<Value> masks = op.getMask() ? e.registers(op.getMask()) : ArrayRef<Value>();
  Atomic atomic{nativeOperation(op.getKind(), registerType(op.getType()), e.target), op.getOrder(), op.getScope(),
                !op.use_empty(), !masks.empty()};
  return lowerAtomic(op, op.getPtr().getType(), masks, e, [&](unsigned r, Value condition) {
    return atomic.operation.empty() ? emitAddBySwaps(atomic, addresses[r], values[r], condition, e)
                                    : emitNative(atomic, addresses[r], values[r], condition, e);
  });
}

LogicalResult lowerCAS(tile::AtomicCASOp op, Emitter &e) {
  ArrayRef<Value> pointers = e.registers(op.getPtr()), values = e.registers(op.getValue()),
                  expected = e.registers(op.getCompare());
  std::string bits = std::to_string(8 * bytesOf(registerType(op.getType())));
  Atomic atomic{"cas.b" + bits, op.getOrder(), op.getScope(), !op.use_empty(), /*isMasked=*/false};
  return lowerAtomic(op, op.getPtr().getType(), {}, e, [&](unsigned r, Value condition) {
    return emitNative(atomic, pointers[r], {expected[r], values[r]}, condition, e);
  });
}

} // namespace

void addAtomicLowerings(LoweringTable &table) {
  table.add<tile::AtomicRMWOp>(lowerRMW);
  table.add<tile::AtomicCASOp>(lowerCAS);
}

} // namespace weft
