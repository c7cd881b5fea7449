// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Integer arithmetic (PTX ISA 9.7.1) and extended precision (9.7.2).
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Forms/Arithmetic.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Semantics/Bits.h"
#include "runtime/Simulator/Semantics/Integer.h"

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;

template <auto F, size_t N> void bindWide(Binding &b) {
  auto run = [&]<typename T, typename W>(T, W) {
    if constexpr (N == 2)
      b.record.run = lanes<F, W, T, T>;
    else
      b.record.run = lanes<F, W, T, T, W>;
  };
  switch (b.type()) {
  case ptx::Type::U16:
    return run(uint16_t(), uint32_t());
  case ptx::Type::S16:
    return run(int16_t(), int32_t());
  case ptx::Type::U32:
    return run(uint32_t(), uint64_t());
  default:
    return run(int32_t(), int64_t());
  }
}

/// The destination and last source of mul.wide and mad.wide are twice as wide as the type says.
template <auto F, size_t N> void bindWideOperands(Binding &b) {
  ptx::Type type = b.type();
  ptx::Type wide = ptx::typeBits(type) == 16 ? ptx::Type::U32 : ptx::Type::U64;
  if (b.operandCount() != N + 1)
    b.fail("expected " + std::to_string(N + 1) + " operands");
  b.setDestination(0, b.destination(b.operand(0), wide));
  b.record.op[1] = b.source(b.operand(1), type);
  b.record.op[2] = b.source(b.operand(2), type);
  if constexpr (N == 3)
    b.record.op[3] = b.source(b.operand(3), wide);
  bindWide<F, N>(b);
}

/// Sources of `type`, result of 32 bits.
template <auto F> void bindCount(Binding &b) {
  bool wide = ptx::typeBits(b.type()) == 64;
  if (ptx::isSigned(b.type()))
    b.record.run = wide ? lanesWith<F, uint32_t, int64_t> : lanesWith<F, uint32_t, int32_t>;
  else
    b.record.run = wide ? lanesWith<F, uint32_t, uint64_t> : lanesWith<F, uint32_t, uint32_t>;
  b.record.imm = b.has("shiftamt");
}

template <auto F, size_t N> void bindPacked(Binding &b) {
  auto each = [&]<typename T>(T) {
    constexpr auto both = [](auto... args) {
      auto low = uint16_t(F(T(uint16_t(args))...)), high = uint16_t(F(T(uint16_t(args >> 16))...));
      return uint32_t(low) | uint32_t(high) << 16;
    };
    b.record.run = repeated<both, uint32_t, uint32_t, N>();
  };
  if (b.type() == ptx::Type::S16x2)
    each(int16_t());
  else
    each(uint16_t());
}

/// Carry chains. The flag CC.CF is one more register of the thread: op[4] where it is read, op[5] where it is written.
/// Record::imm: what stands for it in sub.cc, which reads none.
template <typename T, auto F, size_t N> void runCarry(Warp &warp, const Record &record, uint32_t mask) {
  uint32_t before = record.op[4] == noRef ? uint32_t(record.imm) : warp.predicate(record.op[4]), after = 0;
  using S = SlotOf<T>;
  S results[laneCount];
  const S *a = warp.reg<S>(record.op[1]), *b = warp.reg<S>(record.op[2]), *c = N == 3 ? warp.reg<S>(record.op[3]) : b;
  for (unsigned i = 0; i < laneCount; ++i) {
    auto result = F(T(a[i]), T(b[i]), T(c[i]), bool(before >> i & 1));
    results[i] = S(result.value);
    after |= uint32_t(result.carry) << i;
  }
  commit(warp.reg<S>(record.op[0]), results, mask);
  if (record.op[5] != noRef)
    commitPredicate(warp.predicate(record.op[5]), after, mask);
}

template <auto F, size_t N> void bindCarry(Binding &b) {
  switch (b.type()) {
  case ptx::Type::U32:
    b.record.run = runCarry<uint32_t, F, N>;
    break;
  case ptx::Type::S32:
    b.record.run = runCarry<int32_t, F, N>;
    break;
  case ptx::Type::U64:
    b.record.run = runCarry<uint64_t, F, N>;
    break;
  default:
    b.record.run = runCarry<int64_t, F, N>;
    break;
  }
  b.record.imm = b.instruction.mnemonic == "sub" ? ~uint32_t{0} : 0;
  if (b.instruction.mnemonic.ends_with('c')) // addc, subc, madc
    b.record.op[4] = b.decoder.carryFlag();
  if (b.has("cc"))
    b.setDestination(5, b.decoder.carryFlag());
}

constexpr auto addCarry = [](auto a, auto b, auto, bool c) {
  using U = std::make_unsigned_t<decltype(a)>;
  return sem::addCarry<U>(U(a), U(b), c);
};
constexpr auto subCarry = [](auto a, auto b, auto, bool c) {
  using U = std::make_unsigned_t<decltype(a)>;
  return sem::subCarry<U>(U(a), U(b), c);
};
constexpr auto madLoCarry = [](auto a, auto b, auto c, bool f) {
  return sem::madCarry<decltype(a), false>(a, b, c, f);
};
constexpr auto madHiCarry = [](auto a, auto b, auto c, bool f) { return sem::madCarry<decltype(a), true>(a, b, c, f); };

void bindDp(Binding &b) {
  bool aSigned = b.modifier("at") == "s32", bSigned = b.modifier("bt") == "s32",
       four = b.instruction.mnemonic == "dp4a";
  b.record.imm = (aSigned ? 1 : 0) | (bSigned ? 2 : 0) | (b.modifier("half") == "hi" ? 4 : 0);
  constexpr auto dp4a = [](uint32_t o, uint32_t x, uint32_t y, uint32_t z) { return sem::dp4a(x, o & 1, y, o & 2, z); };
  constexpr auto dp2a = [](uint32_t o, uint32_t x, uint32_t y, uint32_t z) {
    return sem::dp2a(x, o & 1, y, o & 2, z, o & 4);
  };
  b.record.run = four ? lanesWith<dp4a, uint32_t, uint32_t, uint32_t, uint32_t>
                      : lanesWith<dp2a, uint32_t, uint32_t, uint32_t, uint32_t>;
}

#define WEFT_INTEGERS "type=u16|u32|u64|s16|s32|s64"
#define WEFT_CARRIED "cc? type=u32|s32|u64|s64"
constexpr auto integer = InstructionClass::Integer;

constexpr auto popcount = [](uint32_t, auto a) { return sem::popc(std::make_unsigned_t<decltype(a)>(a)); };
constexpr auto leading = [](uint32_t, auto a) { return sem::clz(std::make_unsigned_t<decltype(a)>(a)); };
constexpr auto highest = [](uint32_t amount, auto a) { return sem::bfind(a, amount != 0); };

const Form forms[] = {
    {"add", "sat type=s32", "d:type s:type s:type", integer,
     bindLanes<[](int32_t a, int32_t b) { return sem::add(a, b, true); }, int32_t, int32_t, int32_t>},
    {"sub", "sat type=s32", "d:type s:type s:type", integer,
     bindLanes<[](int32_t a, int32_t b) { return sem::sub(a, b, true); }, int32_t, int32_t, int32_t>},
    {"add", WEFT_INTEGERS, "d:type s:type s:type", integer, bindBits<[](auto a, auto b) { return sem::add(a, b); }, 2>},
    {"sub", WEFT_INTEGERS, "d:type s:type s:type", integer, bindBits<[](auto a, auto b) { return sem::sub(a, b); }, 2>},
    {"add", "type=u16x2|s16x2", "d:type s:type s:type", integer,
     bindPacked<[](auto a, auto b) { return sem::add(a, b); }, 2>},
    {"add", "cc type=u32|s32|u64|s64", "d:type s:type s:type", integer, bindCarry<addCarry, 2>},
    {"addc", WEFT_CARRIED, "d:type s:type s:type", integer, bindCarry<addCarry, 2>},
    {"sub", "cc type=u32|s32|u64|s64", "d:type s:type s:type", integer, bindCarry<subCarry, 2>},
    {"subc", WEFT_CARRIED, "d:type s:type s:type", integer, bindCarry<subCarry, 2>},
    {"mad", "lo cc type=u32|s32|u64|s64", "d:type s:type s:type s:type", integer, bindCarry<madLoCarry, 3>},
    {"mad", "hi cc type=u32|s32|u64|s64", "d:type s:type s:type s:type", integer, bindCarry<madHiCarry, 3>},
    {"madc", "lo " WEFT_CARRIED, "d:type s:type s:type s:type", integer, bindCarry<madLoCarry, 3>},
    {"madc", "hi " WEFT_CARRIED, "d:type s:type s:type s:type", integer, bindCarry<madHiCarry, 3>},
    {"mul", "lo " WEFT_INTEGERS, "d:type s:type s:type", integer,
     bindBits<[](auto a, auto b) { return sem::mulLo(a, b); }, 2>},
    {"mul", "hi " WEFT_INTEGERS, "d:type s:type s:type", integer,
     bindInteger<[](auto a, auto b) { return sem::mulHi(a, b); }, 2>},
    {"mul", "wide type=u16|s16|u32|s32", "*", integer,
     bindWideOperands<[](auto a, auto b) { return sem::mulWide(a, b); }, 2>},
    {"mad", "lo " WEFT_INTEGERS, "d:type s:type s:type s:type", integer,
     bindBits<[](auto a, auto b, auto c) { return sem::madLo(a, b, c); }, 3>},
    {"mad", "hi sat type=s32", "d:type s:type s:type s:type", integer,
     bindLanes<[](int32_t a, int32_t b, int32_t c) { return sem::madHi(a, b, c, true); }, int32_t, int32_t, int32_t,
               int32_t>},
    {"mad", "hi " WEFT_INTEGERS, "d:type s:type s:type s:type", integer,
     bindInteger<[](auto a, auto b, auto c) { return sem::madHi(a, b, c); }, 3>},
    {"mad", "wide type=u16|s16|u32|s32", "*", integer,
     bindWideOperands<[](auto a, auto b, auto c) { return sem::madWide(a, b, c); }, 3>},
    {"mul24", "lo type=u32", "d:type s:type s:type", integer,
     bindLanes<[](uint32_t a, uint32_t b) { return sem::mul24Lo(a, b); }, uint32_t, uint32_t, uint32_t>},
    {"mul24", "lo type=s32", "d:type s:type s:type", integer,
     bindLanes<[](int32_t a, int32_t b) { return sem::mul24Lo(a, b); }, int32_t, int32_t, int32_t>},
    {"mul24", "hi type=u32", "d:type s:type s:type", integer,
     bindLanes<[](uint32_t a, uint32_t b) { return sem::mul24Hi(a, b); }, uint32_t, uint32_t, uint32_t>},
    {"mul24", "hi type=s32", "d:type s:type s:type", integer,
     bindLanes<[](int32_t a, int32_t b) { return sem::mul24Hi(a, b); }, int32_t, int32_t, int32_t>},
    {"mad24", "lo type=u32", "d:type s:type s:type s:type", integer,
     bindLanes<[](uint32_t a, uint32_t b, uint32_t c) { return sem::mad24Lo(a, b, c); }, uint32_t, uint32_t, uint32_t,
               uint32_t>},
    {"mad24", "lo type=s32", "d:type s:type s:type s:type", integer,
     bindLanes<[](int32_t a, int32_t b, int32_t c) { return sem::mad24Lo(a, b, c); }, int32_t, int32_t, int32_t,
               int32_t>},
    {"mad24", "hi sat type=s32", "d:type s:type s:type s:type", integer,
     bindLanes<[](int32_t a, int32_t b, int32_t c) { return sem::mad24Hi(a, b, c, true); }, int32_t, int32_t, int32_t,
               int32_t>},
    {"mad24", "hi type=u32", "d:type s:type s:type s:type", integer,
     bindLanes<[](uint32_t a, uint32_t b, uint32_t c) { return sem::mad24Hi(a, b, c); }, uint32_t, uint32_t, uint32_t,
               uint32_t>},
    {"mad24", "hi type=s32", "d:type s:type s:type s:type", integer,
     bindLanes<[](int32_t a, int32_t b, int32_t c) { return sem::mad24Hi(a, b, c); }, int32_t, int32_t, int32_t,
               int32_t>},
    {"sad", WEFT_INTEGERS, "d:type s:type s:type s:type", integer,
     bindInteger<[](auto a, auto b, auto c) { return sem::sad(a, b, c); }, 3>},
    {"div", WEFT_INTEGERS, "d:type s:type s:type", integer,
     bindInteger<[](auto a, auto b) { return sem::div(a, b); }, 2>},
    {"rem", WEFT_INTEGERS, "d:type s:type s:type", integer,
     bindInteger<[](auto a, auto b) { return sem::rem(a, b); }, 2>},
    {"neg", "type=s16", "d:type s:type", integer, bindLanes<[](int16_t a) { return sem::neg(a); }, int16_t, int16_t>},
    {"neg", "type=s32", "d:type s:type", integer, bindLanes<[](int32_t a) { return sem::neg(a); }, int32_t, int32_t>},
    {"neg", "type=s64", "d:type s:type", integer, bindLanes<[](int64_t a) { return sem::neg(a); }, int64_t, int64_t>},
    {"abs", "type=s16", "d:type s:type", integer, bindLanes<[](int16_t a) { return sem::abs(a); }, int16_t, int16_t>},
    {"abs", "type=s32", "d:type s:type", integer, bindLanes<[](int32_t a) { return sem::abs(a); }, int32_t, int32_t>},
    {"abs", "type=s64", "d:type s:type", integer, bindLanes<[](int64_t a) { return sem::abs(a); }, int64_t, int64_t>},
    {"min", WEFT_INTEGERS, "d:type s:type s:type", integer,
     bindInteger<[](auto a, auto b) { return sem::min(a, b); }, 2>},
    {"max", WEFT_INTEGERS, "d:type s:type s:type", integer,
     bindInteger<[](auto a, auto b) { return sem::max(a, b); }, 2>},
    {"min", "relu type=s32", "d:type s:type s:type", integer,
     bindLanes<[](int32_t a, int32_t b) { return sem::min(a, b, true); }, int32_t, int32_t, int32_t>},
    {"max", "relu type=s32", "d:type s:type s:type", integer,
     bindLanes<[](int32_t a, int32_t b) { return sem::max(a, b, true); }, int32_t, int32_t, int32_t>},
    {"min", "type=u16x2|s16x2", "d:type s:type s:type", integer,
     bindPacked<[](auto a, auto b) { return sem::min(a, b); }, 2>},
    {"max", "type=u16x2|s16x2", "d:type s:type s:type", integer,
     bindPacked<[](auto a, auto b) { return sem::max(a, b); }, 2>},
    {"min", "relu type=s16x2", "d:type s:type s:type", integer,
     bindPacked<[](auto a, auto b) { return sem::min(a, b, true); }, 2>},
    {"max", "relu type=s16x2", "d:type s:type s:type", integer,
     bindPacked<[](auto a, auto b) { return sem::max(a, b, true); }, 2>},
    {"popc", "type=b32|b64", "d:u32 s:type", integer, bindCount<popcount>},
    {"clz", "type=b32|b64", "d:u32 s:type", integer, bindCount<leading>},
    {"bfind", "shiftamt? type=u32|s32|u64|s64", "d:u32 s:type", integer, bindCount<highest>},
    {"dp4a", "at=u32|s32 bt=u32|s32", "d:u32 s:u32 s:u32 s:u32", integer, bindDp},
    {"dp2a", "half=lo|hi at=u32|s32 bt=u32|s32", "d:u32 s:u32 s:u32 s:u32", integer, bindDp},
};

} // namespace

std::span<const Form> integerForms() { return forms; }

} // namespace weft::simulator::machine
