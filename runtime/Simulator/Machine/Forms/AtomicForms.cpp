// Part of Weft. SPDX-License-Identifier: Apache-2.0
// atom and red (PTX ISA 9.7.13.5, 9.7.13.6).
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Decoding/OperandRules.h"
#include "runtime/Simulator/Machine/Forms/Engines/Requirements.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/Running/Atomics.h"
#include "runtime/Simulator/Machine/State/Order.h"
#include "runtime/Simulator/Semantics/Atomic.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;
using ptx::Space;
using ptx::Type;

using Op = sem::AtomicOp;

template <typename T> NewValue integerOp(Op op) {
  switch (op) {
#define WEFT_CASE(o)                                                                                                   \
  case Op::o:                                                                                                          \
    return [](uint64_t old, uint64_t b, uint64_t, bool) { return uint64_t(sem::atomicResult<T>(Op::o, T(old), T(b))); };
    WEFT_CASE(Exchange)
    WEFT_CASE(Add)
    WEFT_CASE(Min)
    WEFT_CASE(Max)
    WEFT_CASE(Inc)
    WEFT_CASE(Dec)
    WEFT_CASE(And)
    WEFT_CASE(Or)
    WEFT_CASE(Xor)
#undef WEFT_CASE
  }
  return nullptr;
}

/// An operation of one 16-bit float, or of both of a pair.
template <uint16_t (*Of)(uint16_t, uint16_t)> NewValue halfValue(bool packed) {
  if (!packed)
    return [](uint64_t old, uint64_t b, uint64_t, bool) { return uint64_t(Of(uint16_t(old), uint16_t(b))); };
  return [](uint64_t old, uint64_t b, uint64_t, bool) {
    return uint64_t(sem::pack16(Of(uint16_t(old), uint16_t(b)), Of(uint16_t(old >> 16), uint16_t(b >> 16))));
  };
}

template <typename F> NewValue halfOp(Op op, bool packed) {
  switch (op) {
  case Op::Add:
    return halfValue<sem::atomicAddHalf<F>>(packed);
  case Op::Min:
    return halfValue<sem::atomicMinMaxHalf<F, false>>(packed);
  case Op::Max:
    return halfValue<sem::atomicMinMaxHalf<F, true>>(packed);
  default:
    return nullptr;
  }
}

NewValue operation(Op op, Type type) {
  switch (type) {
  case Type::U32:
  case Type::B32:
    return integerOp<uint32_t>(op);
  case Type::S32:
    return integerOp<int32_t>(op);
  case Type::U64:
  case Type::B64:
    return integerOp<uint64_t>(op);
  case Type::S64:
    return integerOp<int64_t>(op);
  case Type::B16:
    return integerOp<uint16_t>(op);
  case Type::F16:
    return halfOp<sem::HalfFormat>(op, false);
  case Type::F16x2:
    return halfOp<sem::HalfFormat>(op, true);
  case Type::BF16:
    return halfOp<sem::BfloatFormat>(op, false);
  case Type::BF16x2:
    return halfOp<sem::BfloatFormat>(op, true);
  case Type::F32:
    return [](uint64_t old, uint64_t b, uint64_t, bool global) {
      return uint64_t(std::bit_cast<uint32_t>(
          sem::atomicAdd(std::bit_cast<float>(uint32_t(old)), std::bit_cast<float>(uint32_t(b)), global)));
    };
  case Type::F64:
    return [](uint64_t old, uint64_t b, uint64_t, bool) {
      return std::bit_cast<uint64_t>(sem::atomicAdd(std::bit_cast<double>(old), std::bit_cast<double>(b)));
    };
  default:
    return nullptr;
  }
}

/// Space, order and scope; the address is operand `at`.
AtomicForm bindPlace(Binding &b, size_t at) {
  AtomicForm form;
  std::string_view space = b.modifier("space"), order = b.modifier("order"), scope = b.modifier("scope");
  form.returns = b.instruction.mnemonic == "atom";
  b.record.inCluster = space.empty() || space == "shared::cluster";
  form.space = space.starts_with("shared") ? Space::Shared : space == "global" ? Space::Global : Space::Generic;
  const AddressOperand address = addressIn(b, b.operand(at), form.space);
  b.record.op[1] = address.base;
  b.record.imm = address.offset;
  b.record.wideAddress = address.wide;
  const bool both = order == "acq_rel";
  b.record.order =
      uint8_t(orderStrong | (both || order == "acquire" ? orderAcquire : 0) |
              (both || order == "release" ? orderRelease : 0) | orderOfScope(scope.empty() ? "gpu" : scope));
  b.site.addressOperand = 1;
  return form;
}

/// What the instruction's `op` computes.
void bindOperation(Binding &b, AtomicForm &form) {
  const std::string_view name = b.modifier("op");
  if (name == "cas") {
    form.swaps = true;
    form.mixing = AtomicForm::Bytes;
    b.record.order |= orderSwap;
    form.compute = [](uint64_t old, uint64_t compare, uint64_t value, bool) { return old == compare ? value : old; };
    return;
  }
  static constexpr std::string_view names[] = {"exch", "add", "min", "max", "inc", "dec", "and", "or", "xor"};
  for (unsigned i = 0; i < 9; ++i)
    if (names[i] == name)
      form.compute = operation(Op(i), b.type());
  if (name == "exch" || name == "and" || name == "or" || name == "xor")
    form.mixing = name == "exch" ? AtomicForm::None : AtomicForm::Bytes;
  if (!form.compute)
    b.unsupported(format("'{}'", b.instruction.spelling()));
}

void bindAtomic(Binding &b) {
  const Type type = b.type();
  const size_t at = b.instruction.mnemonic == "atom" ? 1 : 0;
  if (at)
    b.setDestination(0, b.destinationOrNone(b.operand(0), type));
  AtomicForm form = bindPlace(b, at);
  bindOperation(b, form);
  b.record.op[2] = b.source(b.operand(at + 1), type);
  if (form.swaps)
    b.record.op[3] = b.source(b.operand(at + 2), type);
  b.decoder.noteAccess(form.space, ptx::typeBits(type) / 8);
  b.keep(form);
  unsigned bits = ptx::typeBits(type);
  b.record.run = bits == 16 ? runAtomic<uint16_t> : bits == 64 ? runAtomic<uint64_t> : runAtomic<uint32_t>;
}

void bindVector(Binding &b) {
  needsHopper(b);
  const Type type = b.type();
  const unsigned bits = ptx::typeBits(type), count = unsigned(b.modifier("vec")[1] - '0');
  if (bits * count > 128)
    b.fail(format("expected no more than 128 bits, but got {} of {}", count, bits));
  const size_t at = b.instruction.mnemonic == "atom" ? 1 : 0;
  std::vector<Ref> refs;
  auto add = [&](const ptx::Operand &operand, bool written) {
    if (operand.kind != ptx::OperandKind::Vector || operand.elements.size() != count)
      b.fail(operand, format("expected a vector of {} registers", count));
    for (const ptx::Operand &element : operand.elements)
      refs.push_back(written ? b.destinationElement(element, type) : b.sourceElement(element, type));
  };
  if (at)
    add(b.operand(0), true);
  AtomicForm form = bindPlace(b, at);
  form.space = Space::Global; // generic addresses must be of global memory
  bindOperation(b, form);
  add(b.operand(at + 1), false);
  b.setWide(std::move(refs), at * count);
  b.record.vector = uint8_t(count);
  b.decoder.noteAccess(form.space, bits / 8);
  b.keep(form);
  b.record.run = bits == 16 ? runAtomicVector<uint16_t> : runAtomicVector<uint32_t>;
}

void bindWide(Binding &b) {
  needsHopper(b);
  AtomicForm form = bindPlace(b, 1);
  form.swaps = b.modifier("op") == "cas";
  form.mixing = form.swaps ? AtomicForm::Bytes : AtomicForm::None;
  if (form.swaps)
    b.record.order |= orderSwap;
  std::vector<Ref> refs;
  const bool discards = b.operand(0).kind == ptx::OperandKind::Sink; // which ld and mov of b128 may not
  for (unsigned half = 0; half < 2 && discards; ++half)
    refs.push_back(b.decoder.destination(b.frame, b.operand(0), ptx::Type::B64, false));
  for (size_t i : {0, 2, 3})
    if ((i > 0 || !discards) && (i < 3 || form.swaps))
      for (Ref half : b.decoder.halves(b.frame, b.operand(i), i == 0))
        refs.push_back(half);
  b.setWide(std::move(refs), 2);
  b.decoder.noteAccess(form.space, sizeof(uint64_t));
  b.keep(form);
  b.record.run = runAtomicWide;
}

#define WEFT_ATOMIC                                                                                                    \
  "order=relaxed|acquire|release|acq_rel? scope=cta|cluster|gpu|sys? "                                                 \
  "space=global|shared|shared::cta|shared::cluster? "
#define WEFT_VECTOR                                                                                                    \
  "order=relaxed|acquire|release|acq_rel? scope=cta|cluster|gpu|sys? space=global? hint=L2::cache_hint? "
constexpr auto cls = InstructionClass::Atomic;

const Form forms[] = {
    {"atom", WEFT_ATOMIC "op=cas hint=L2::cache_hint? type=b16|b32|b64", "*", cls, bindAtomic},
    {"atom", WEFT_ATOMIC "op=cas|exch hint=L2::cache_hint? type=b128", "*", cls, bindWide},
    {"atom", WEFT_ATOMIC "op=exch hint=L2::cache_hint? type=b32|b64", "*", cls, bindAtomic},
    {"atom", WEFT_ATOMIC "op=and|or|xor hint=L2::cache_hint? type=b32|b64", "*", cls, bindAtomic},
    {"atom", WEFT_ATOMIC "op=inc|dec hint=L2::cache_hint? type=u32", "*", cls, bindAtomic},
    {"atom", WEFT_ATOMIC "op=add|min|max hint=L2::cache_hint? type=u32|s32|u64|s64", "*", cls, bindAtomic},
    {"atom", WEFT_ATOMIC "op=add hint=L2::cache_hint? type=f32|f64", "*", cls, bindAtomic},
    {"atom", WEFT_ATOMIC "op=add noftz hint=L2::cache_hint? type=f16|bf16|f16x2|bf16x2", "*", cls, bindAtomic},
    {"atom", WEFT_VECTOR "op=add vec=v2|v4 type=f32", "*", cls, bindVector},
    {"atom", WEFT_VECTOR "op=add|min|max noftz vec=v2|v4|v8 type=f16|bf16", "*", cls, bindVector},
    {"atom", WEFT_VECTOR "op=add|min|max noftz vec=v2|v4 type=f16x2|bf16x2", "*", cls, bindVector},
    {"red", WEFT_ATOMIC "op=and|or|xor hint=L2::cache_hint? type=b32|b64", "*", cls, bindAtomic},
    {"red", WEFT_ATOMIC "op=inc|dec hint=L2::cache_hint? type=u32", "*", cls, bindAtomic},
    {"red", WEFT_ATOMIC "op=add|min|max hint=L2::cache_hint? type=u32|s32|u64|s64", "*", cls, bindAtomic},
    {"red", WEFT_ATOMIC "op=add hint=L2::cache_hint? type=f32|f64", "*", cls, bindAtomic},
    {"red", WEFT_ATOMIC "op=add noftz hint=L2::cache_hint? type=f16|bf16|f16x2|bf16x2", "*", cls, bindAtomic},
    {"red", WEFT_VECTOR "op=add vec=v2|v4 type=f32", "*", cls, bindVector},
    {"red", WEFT_VECTOR "op=add|min|max noftz vec=v2|v4|v8 type=f16|bf16", "*", cls, bindVector},
    {"red", WEFT_VECTOR "op=add|min|max noftz vec=v2|v4 type=f16x2|bf16x2", "*", cls, bindVector},
};

} // namespace

std::span<const Form> atomicForms() { return forms; }

} // namespace weft::simulator::machine
