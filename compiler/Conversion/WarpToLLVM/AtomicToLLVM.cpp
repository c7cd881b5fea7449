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

using namespace mlir;

namespace weft {
namespace {

/// The operation and type of PTX's `atom` and `red` (PTX ISA 9.7.13.5) for `count` neighbours of `type`; empty where
/// the target has none.
std::string nativeOperation(tile::AtomicKind kind, Type type, unsigned count, const TargetInfo &target) {
  std::string bits = std::to_string(type.getIntOrFloatBitWidth());
  switch (kind) {
  case tile::AtomicKind::Add:
    return "add.u" + bits;
  case tile::AtomicKind::FAdd:
    if (type.isBF16() && !target.bf16Arithmetic)
      return "";
    return type.isBF16() || type.isF16()
               ? std::string("add.noftz.") + (type.isBF16() ? "bf16" : "f16") + (count == 2 ? "x2" : "")
               : "add.f" + bits;
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

/// One PTX instruction where `condition` (null: everywhere) holds. `operands` follow the address, each the neighbours
/// that one word holds. Their old values, or none when nothing reads them.
Registers emitNative(const Atomic &atomic, Value pointer, ArrayRef<ArrayRef<Value>> given, Value condition,
                     Emitter &e) {
  Type type = given.front().front().getType();
  const unsigned count = given.front().size();
  Words words = wordsOf(count * bytesOf(type), bytesOf(type));
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
  for (ArrayRef<Value> values : given)
    arguments += ", " + operand(toWords(values, words, e).front(), words.constraint());
  if (condition)
    guard = "@" + operand(condition, "b") + " ";
  constraints += ",~{memory}";
  code = "{ " + code + guard + name + " " + arguments + "; }";
  SmallVector<Type, 1> results(atomic.isRead, words.type(e));
  Registers old = e.inlineAsm(code, constraints, results, operands, /*sideEffects=*/true);
  return atomic.isRead ? fromWords(old, words, count, type, e) : Registers();
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
  Value wanted = LLVM::BitcastOp::create(e.b, e.loc, bits, sum);
  Value seen = emitNative(swap, pointer, {old, wanted}, Value(), e).front();
  Value done = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::eq, seen, old);
  LLVM::CondBrOp::create(e.b, e.loc, done, ends, ValueRange(), swaps, seen);

  e.b.setInsertionPointToStart(ends);
  fence(acquires(atomic.order));
  LLVM::BrOp::create(e.b, e.loc, number, joins);
  e.b.setInsertionPointToStart(joins);
  return joins->getArgument(0);
}

/// One atomic for each vector: `emit(first register, condition)` under mask and ownership gives the old values of its
/// elements, or nothing; binds the result of `op`.
LogicalResult lowerAtomic(Operation *op, Type pointerType, const Vectors &vectors, ArrayRef<Value> masks, Emitter &e,
                          llvm::function_ref<Registers(unsigned, Value)> emit) {
  if (isa<RankedTensorType>(pointerType))
    if (auto remark = remarks::decided(remarks::access, op))
      remark << remark::reason("a thread changes {0} by {1}, each of {2}", tile::textOf(pointerType),
                               instructionsText(vectors.firstRegister.size()),
                               vectors.width == 1 ? "one element" : "two elements");
  bool isRead = !op->getResult(0).use_empty();
  uint32_t threadBits = isRead ? sharedThreadBits(pointerType, e) : 0;
  Value owner = ownerOf(pointerType, e);
  Registers results(*registerCount(pointerType));
  for (unsigned first : vectors.firstRegister) {
    Value condition = masks.empty() ? owner
                      : !owner      ? masks[first]
                                    : Value(LLVM::AndOp::create(e.b, e.loc, masks[first], owner));
    beforeHandingRound(threadBits, e);
    llvm::copy(handRound(emit(first, condition), threadBits, e), results.begin() + first);
  }
  Value nothing = isRead ? Value() : e.zero(registerType(op->getResult(0).getType()));
  for (auto [result, holder] : llvm::zip_equal(results, vectors.holders))
    result = isRead ? results[holder] : nothing;
  e.bind(op->getResult(0), results);
  return success();
}

LogicalResult lowerRMW(tile::AtomicRMWOp op, Emitter &e) {
  ArrayRef<Value> values = e.registers(op.getValue());
  Type element = registerType(op.getType());
  bool adds = op.getKind() == tile::AtomicKind::FAdd;
  Vectors vectors = vectorsOf(op, op.getPtr(), adds ? e.target.elementsOfAtomicAdd(element) : 1);
  Registers addresses = addressesOf(op, op.getPtr(), vectors.firstRegister, e);
  ArrayRef<Value> masks = op.getMask() ? e.registers(op.getMask()) : ArrayRef<Value>();
  Atomic atomic{nativeOperation(op.getKind(), element, vectors.width, e.target), op.getOrder(), op.getScope(),
                !op.use_empty(), !masks.empty()};
  const Value *address = addresses.begin();
  return lowerAtomic(op, op.getPtr().getType(), vectors, masks, e, [&](unsigned first, Value condition) {
    Value pointer = *address++;
    return atomic.operation.empty() ? Registers{emitAddBySwaps(atomic, pointer, values[first], condition, e)}
                                    : emitNative(atomic, pointer, {values.slice(first, vectors.width)}, condition, e);
  });
}

LogicalResult lowerCAS(tile::AtomicCASOp op, Emitter &e) {
  ArrayRef<Value> pointers = e.registers(op.getPtr()), values = e.registers(op.getValue()),
                  expected = e.registers(op.getCompare());
  std::string bits = std::to_string(8 * bytesOf(registerType(op.getType())));
  Atomic atomic{"cas.b" + bits, op.getOrder(), op.getScope(), !op.use_empty(), /*isMasked=*/false};
  return lowerAtomic(op, op.getPtr().getType(), vectorsOf(op, op.getPtr(), 1), {}, e, [&](unsigned r, Value condition) {
    return emitNative(atomic, pointers[r], {expected[r], values[r]}, condition, e);
  });
}

} // namespace

void addAtomicLowerings(LoweringTable &table) {
  table.add<tile::AtomicRMWOp>(lowerRMW);
  table.add<tile::AtomicCASOp>(lowerCAS);
}

} // namespace weft
