// Part of Weft. SPDX-License-Identifier: Apache-2.0
// atom and red (PTX ISA 9.7.13.5, 9.7.13.6): each lane in turn, by the host's own atomic instructions, since other
// blocks run at the same time.
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Simulator/Semantics/Atomic.h"
#include "runtime/Support/Format.h"

#include <optional>

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;
using ptx::Space;
using ptx::Type;

/// The value to store from the old one and the operands' bits.
using NewValue = uint64_t (*)(uint64_t old, uint64_t b, uint64_t c, bool global);

/// Record::aux. op[0]: result or noRef; op[1] + imm: address; op[2], op[3]: operands.
struct AtomicForm {
  Space space = Space::Generic;
  NewValue compute = nullptr;
  bool swaps = false; ///< cas
  /// Which bytes of the result are unwritten where a byte of what they are made of is.
  enum Mixing : uint8_t { None, Bytes, All } mixing = All; ///< exch; cas and bitwise operations; arithmetic
};

/// Exchanges the T at `at` by compute's result; returns what was there.
template <typename T> T change(std::byte *at, const AtomicForm &form, T b, T c, bool global, bool &changed) {
  auto *cell = reinterpret_cast<T *>(at);
  T old = __atomic_load_n(cell, __ATOMIC_SEQ_CST);
  T wanted;
  do
    wanted = T(form.compute(old, b, c, global));
  while (!__atomic_compare_exchange_n(cell, &old, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  changed |= wanted != old;
  return old;
}

/// The bytes of an operand that nothing wrote.
uint32_t unwrittenOf(const Warp &warp, Ref ref, unsigned lane, unsigned bytes) {
  uint32_t unwritten = 0;
  if (ref == noRef || !(poisonOf(warp, ref) >> lane & 1))
    return 0;
  const BytePoison poison = bytePoisonOf(warp, ref);
  for (unsigned i = 0; i < bytes; ++i)
    unwritten |= (poison[i] >> lane & 1) << i;
  return unwritten;
}

/// What a lane's atomic reads and leaves unwritten: `before`, of its `bytes`, nothing wrote.
struct Unwritten {
  uint32_t before = 0, after = 0, origin = 0;

  Unwritten(Warp &warp, const Record &record, const AtomicForm &form, unsigned lane, const Resolved &to,
            unsigned bytes) {
    const uint32_t whole = (1u << bytes) - 1;
    if (to.poison >> lane & 1)
      before = unwrittenBytes(warp, to.at[lane], bytes);
    const Ref value = form.swaps ? record.op[3] : record.op[2];
    const uint32_t operand = unwrittenOf(warp, value, lane, bytes);
    if (before)
      origin = originAt(warp, to.at[lane], bytes, before);
    else if (operand)
      origin = readNow(warp, originOf(warp, value, lane));
    // A compare-and-swap of a word that nothing wrote leaves what nobody knows; of a part of one, what it was given.
    after = form.mixing == AtomicForm::None    ? operand
            : form.mixing == AtomicForm::Bytes ? (form.swaps && before != whole ? operand : before | operand)
            : before | operand                 ? whole
                                               : 0;
  }
};

template <typename T> void runAtomic(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const AtomicForm *>(record.aux);
  LaneAddresses addresses(warp, record, record.op[1], record.wideAddress);
  warp.spun = true;
  Resolved to =
      form.space == Space::Shared   ? resolveShared(warp, record, mask, addresses.at, sizeof(T), AccessKind::Atomic)
      : form.space == Space::Global ? resolveGlobal(warp, record, mask, addresses.at, sizeof(T), AccessKind::Atomic)
                                    : resolveGeneric(warp, record, mask, addresses.at, sizeof(T), AccessKind::Atomic);
  const SlotOf<T> *b = warp.reg<const SlotOf<T>>(record.op[2]);
  const SlotOf<T> *c = record.op[3] == noRef ? b : warp.reg<const SlotOf<T>>(record.op[3]);
  SlotOf<T> results[laneCount] = {};
  BytePoison unread{};
  uint32_t origins[laneCount];
  const bool tracks = to.poison || (warp.anyPoison && warp.block->grid->options.checks.uninitialised);
  eachLane(to.mask, [&](unsigned lane) {
    const auto unwritten =
        tracks ? std::optional<Unwritten>(std::in_place, warp, record, form, lane, to, unsigned(sizeof(T)))
               : std::nullopt;
    bool shared = form.space == Space::Shared || addresses.at[lane] >> windowShift == sharedWindow >> windowShift;
    auto offset = uint32_t(addresses.at[lane] & windowOffsetMask);
    if (shared && tracksShared(warp))
      shadowWrite(warp, lane, offset, sizeof(T), nullptr, true);
    StrongAccess access(warp, record.order, orderKey(warp, addresses.at[lane], shared));
    bool changed = false;
    results[lane] = change<T>(to.at[lane], form, T(b[lane]), T(c[lane]), !shared, changed);
    warp.worker->changed |= changed;
    // A compare-and-swap that does not swap only reads.
    const bool writes = changed || !form.swaps || results[lane] == SlotOf<T>(T(b[lane]));
    access.done(true, writes, true);
    if (!unwritten)
      return;
    if (unwritten->before && !shared)
      markWritten(warp, to.at[lane], sizeof(T));
    const uint32_t left = writes ? unwritten->after : unwritten->before;
    for (unsigned i = 0; i < sizeof(T); ++i)
      unread[i] |= (unwritten->before >> i & 1) << lane;
    origins[lane] = unwritten->origin;
    if (!left)
      return;
    rememberOrigin(warp, to.at[lane], sizeof(T), left, unwritten->origin);
    if (!markUnwritten(warp, to.at[lane], sizeof(T), left))
      report(warp, FindingKind::Uninitialised, lane,
             unwritten->before ? "atomically changes memory that nothing wrote"
                               : "writes to memory a value that nothing wrote",
             describeOrigin(warp, unwritten->origin));
  });
  if (record.op[0] != noRef) {
    commit(warp.reg<SlotOf<T>>(record.op[0]), results, mask);
    poisonBytes(warp, record.op[0], unread);
    for (uint32_t byte : unread)
      eachLane(byte, [&](unsigned lane) { setOrigin(warp, record.op[0], 1u << lane, origins[lane]); });
  }
}

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

template <typename F> NewValue halfOp(Op op, bool packed) {
  if (op == Op::Add)
    return packed ? NewValue([](uint64_t old, uint64_t b, uint64_t, bool) {
      return uint64_t(sem::atomicAddHalf2<F>(uint32_t(old), uint32_t(b)));
    })
                  : NewValue([](uint64_t old, uint64_t b, uint64_t, bool) {
                      return uint64_t(sem::atomicAddHalf<F>(uint16_t(old), uint16_t(b)));
                    });
  return nullptr;
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

void bindAtomic(Binding &b) {
  bool returns = b.instruction.mnemonic == "atom";
  Type type = b.type();
  AtomicForm form;
  std::string_view space = b.modifier("space"), name = b.modifier("op");
  b.record.inCluster = space.empty() || space == "shared::cluster";
  form.space = space.starts_with("shared") ? Space::Shared : space == "global" ? Space::Global : Space::Generic;
  size_t at = 0;
  if (returns)
    b.setDestination(0, b.destination(b.operand(at++), type));
  AddressOperand address = b.decoder.address(b.frame, b.operand(at++));
  b.record.op[1] = address.base;
  b.record.imm = address.offset;
  b.record.wideAddress = address.wide;
  std::string_view order = b.modifier("order"), scope = b.modifier("scope");
  const bool both = order == "acq_rel";
  b.record.order =
      uint8_t(orderStrong | (both || order == "acquire" ? orderAcquire : 0) |
              (both || order == "release" ? orderRelease : 0) | orderOfScope(scope.empty() ? "gpu" : scope));
  b.site.addressOperand = 1;
  b.record.op[2] = b.source(b.operand(at++), type);
  if (name == "cas") {
    form.swaps = true;
    form.mixing = AtomicForm::Bytes;
    b.record.order |= orderSwap;
    b.record.op[3] = b.source(b.operand(at++), type);
    form.compute = [](uint64_t old, uint64_t compare, uint64_t value, bool) { return old == compare ? value : old; };
  } else {
    static constexpr std::string_view names[] = {"exch", "add", "min", "max", "inc", "dec", "and", "or", "xor"};
    for (unsigned i = 0; i < 9; ++i)
      if (names[i] == name)
        form.compute = operation(Op(i), type);
    if (name == "exch" || name == "and" || name == "or" || name == "xor")
      form.mixing = name == "exch" ? AtomicForm::None : AtomicForm::Bytes;
  }
  if (!form.compute)
    b.unsupported(format("'{}'", b.instruction.spelling()));
  b.decoder.noteAccess(form.space, ptx::typeBits(type) / 8);
  b.keep(form);
  unsigned bits = ptx::typeBits(type);
  b.record.run = bits == 16 ? runAtomic<uint16_t> : bits == 64 ? runAtomic<uint64_t> : runAtomic<uint32_t>;
}

#define WEFT_ATOMIC                                                                                                    \
  "order=relaxed|acquire|release|acq_rel? scope=cta|cluster|gpu|sys? "                                                 \
  "space=global|shared|shared::cta|shared::cluster? "
constexpr auto cls = InstructionClass::Atomic;

const Form forms[] = {
    {"atom", WEFT_ATOMIC "op=cas hint=L2::cache_hint? type=b16|b32|b64", "*", cls, bindAtomic},
    {"atom", WEFT_ATOMIC "op=exch hint=L2::cache_hint? type=b32|b64", "*", cls, bindAtomic},
    {"atom", WEFT_ATOMIC "op=and|or|xor hint=L2::cache_hint? type=b32|b64", "*", cls, bindAtomic},
    {"atom", WEFT_ATOMIC "op=inc|dec hint=L2::cache_hint? type=u32", "*", cls, bindAtomic},
    {"atom", WEFT_ATOMIC "op=add|min|max hint=L2::cache_hint? type=u32|s32|u64|s64", "*", cls, bindAtomic},
    {"atom", WEFT_ATOMIC "op=add hint=L2::cache_hint? type=f32|f64", "*", cls, bindAtomic},
    {"atom", WEFT_ATOMIC "op=add noftz hint=L2::cache_hint? type=f16|bf16|f16x2|bf16x2", "*", cls, bindAtomic},
    {"red", WEFT_ATOMIC "op=and|or|xor hint=L2::cache_hint? type=b32|b64", "*", cls, bindAtomic},
    {"red", WEFT_ATOMIC "op=inc|dec hint=L2::cache_hint? type=u32", "*", cls, bindAtomic},
    {"red", WEFT_ATOMIC "op=add|min|max hint=L2::cache_hint? type=u32|s32|u64|s64", "*", cls, bindAtomic},
    {"red", WEFT_ATOMIC "op=add hint=L2::cache_hint? type=f32|f64", "*", cls, bindAtomic},
    {"red", WEFT_ATOMIC "op=add noftz hint=L2::cache_hint? type=f16|bf16|f16x2|bf16x2", "*", cls, bindAtomic},
};

} // namespace

std::span<const Form> atomicForms() { return forms; }

} // namespace weft::simulator::machine
