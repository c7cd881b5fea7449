// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Logic, shifts and bit fields (PTX ISA 9.7.8, and the bit instructions of 9.7.1).
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Decoding/OperandRules.h"
#include "runtime/Simulator/Machine/Forms/Arithmetic.h"
#include "runtime/Simulator/Machine/Forms/Engines/Requirements.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/State/Cluster.h"
#include "runtime/Simulator/Semantics/Bits.h"

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;

/// An `and` that keeps all but bit 24, and bits that are 0: of an address of shared memory, which has a block's rank there,
/// the same of the even block of its pair. So kernels name the mbarrier on which the loads of both blocks complete.
void runMaskRank(Warp &warp, const Record &record, uint32_t mask) {
  const uint32_t *left = warp.reg<const uint32_t>(record.op[1]), *right = warp.reg<const uint32_t>(record.op[2]);
  uint32_t results[laneCount];
  for (unsigned lane = 0; lane < laneCount; ++lane) {
    const uint32_t value = left[lane] & right[lane], rank = left[lane] >> rankShift;
    const uint32_t own = rank ? rank - 1 : warp.block->rank;
    const bool isAddress = (left[lane] & rankOffsetMask) < warp.block->shared.size() && own % 2 &&
                           own < warp.block->cluster->blocks.size();
    results[lane] = isAddress && warp.kernel->usesPairs ? (value & rankOffsetMask) | own << rankShift : value;
  }
  commit(warp.reg<uint32_t>(record.op[0]), results, mask);
}

void bindAnd(Binding &b) {
  bindBits<[](auto x, auto y) { return x & y; }, 2>(b);
  const ptx::Operand &by = b.operand(2);
  const bool masks = by.kind == ptx::OperandKind::Integer && uint32_t(by.bits) >> rankShift == 0xfe;
  if (masks && b.modifier("type") == "b32" && hasTensorMemory(b))
    b.record.run = runMaskRank;
}

template <auto F> void runPredicate(Warp &warp, const Record &record, uint32_t mask) {
  commitPredicate(warp.predicate(record.op[0]), F(warp.predicate(record.op[1]), warp.predicate(record.op[2])), mask);
}
void runPredicateNot(Warp &warp, const Record &record, uint32_t mask) {
  commitPredicate(warp.predicate(record.op[0]), ~warp.predicate(record.op[1]), mask);
}

template <auto F> void bindPredicate(Binding &b) { b.record.run = runPredicate<F>; }
void bindPredicateNot(Binding &b) { b.record.run = runPredicateNot; }

/// A shift's amount is 32 bits wide whatever the type.
template <auto F> void bindShift(Binding &b) {
  switch (b.type()) {
  case ptx::Type::U16:
  case ptx::Type::B16:
    b.record.run = lanes<F, uint16_t, uint16_t, uint32_t>;
    break;
  case ptx::Type::S16:
    b.record.run = lanes<F, int16_t, int16_t, uint32_t>;
    break;
  case ptx::Type::U32:
  case ptx::Type::B32:
    b.record.run = lanes<F, uint32_t, uint32_t, uint32_t>;
    break;
  case ptx::Type::S32:
    b.record.run = lanes<F, int32_t, int32_t, uint32_t>;
    break;
  case ptx::Type::U64:
  case ptx::Type::B64:
    b.record.run = lanes<F, uint64_t, uint64_t, uint32_t>;
    break;
  default:
    b.record.run = lanes<F, int64_t, int64_t, uint32_t>;
    break;
  }
}

void bindFunnel(Binding &b) {
  constexpr auto left = [](uint32_t wrap, uint32_t lo, uint32_t hi, uint32_t by) {
    return sem::shfLeft(lo, hi, by, wrap);
  };
  constexpr auto right = [](uint32_t wrap, uint32_t lo, uint32_t hi, uint32_t by) {
    return sem::shfRight(lo, hi, by, wrap);
  };
  b.record.imm = b.modifier("mode") == "wrap";
  b.record.run = b.modifier("direction") == "l" ? lanesWith<left, uint32_t, uint32_t, uint32_t, uint32_t>
                                                : lanesWith<right, uint32_t, uint32_t, uint32_t, uint32_t>;
}

void bindLop3(Binding &b) {
  if (b.operandCount() != 5 || b.operand(4).kind != ptx::OperandKind::Integer || b.operand(4).bits > 255)
    b.fail("expected a destination, three sources and a table from 0 to 255");
  b.setDestination(0, b.destination(b.operand(0), ptx::Type::B32));
  for (size_t i = 1; i < 4; ++i)
    b.record.op[i] = b.source(b.operand(i), ptx::Type::B32);
  b.record.imm = int64_t(b.operand(4).bits);
  constexpr auto lop3 = [](uint32_t table, uint32_t x, uint32_t y, uint32_t z) {
    return sem::lop3(x, y, z, uint8_t(table));
  };
  b.record.run = lanesWith<lop3, uint32_t, uint32_t, uint32_t, uint32_t>;
}

/// lop3.and|or d|p, a, b, c, table, q: p says whether d is not 0, combined with q. op[4]: p; op[5]: q.
/// Record::imm: the table, 256 for .or, 512 for a negated q.
void runLop3Predicate(Warp &warp, const Record &record, uint32_t mask) {
  const uint32_t *x = warp.reg<const uint32_t>(record.op[1]), *y = warp.reg<const uint32_t>(record.op[2]),
                 *z = warp.reg<const uint32_t>(record.op[3]);
  uint32_t results[laneCount], set = 0, other = warp.predicate(record.op[5]) ^ ((record.imm & 512) ? ~0u : 0u);
  for (unsigned i = 0; i < laneCount; ++i) {
    results[i] = sem::lop3(x[i], y[i], z[i], uint8_t(record.imm));
    set |= uint32_t(results[i] != 0) << i;
  }
  if (record.op[0] != noRef)
    commit(warp.reg<uint32_t>(record.op[0]), results, mask);
  commitPredicate(warp.predicate(record.op[4]), (record.imm & 256) ? set | other : set & other, mask);
}

void bindLop3Predicate(Binding &b) {
  if (!b.pair() || b.operandCount() != 7 || b.operand(5).kind != ptx::OperandKind::Integer)
    b.fail("expected the operands d|p, a, b, c, a table and q");
  if (b.operand(0).kind != ptx::OperandKind::Sink)
    b.setDestination(0, b.destination(b.operand(0), ptx::Type::B32));
  b.setDestination(4, b.predicateDestinationOrNone(b.operand(1)));
  for (size_t i = 1; i < 4; ++i)
    b.record.op[i] = b.source(b.operand(i + 1), ptx::Type::B32);
  b.record.op[5] = b.predicate(b.operand(6));
  b.record.imm =
      int64_t((b.operand(5).bits & 255) | (b.modifier("bool") == "or" ? 256 : 0) | (b.operand(6).negated ? 512 : 0));
  b.record.run = runLop3Predicate;
}

/// Where a field begins and how long it is: one byte each.
void expectField(Binding &b, size_t position) {
  expectAtMost(b, b.operand(position), 255);
  expectAtMost(b, b.operand(position + 1), 255);
}

void bindBfe(Binding &b) {
  expectField(b, 2);
  constexpr auto bfe = [](auto a, uint32_t position, uint32_t length) { return sem::bfe(a, position, length); };
  switch (b.type()) {
  case ptx::Type::U32:
    b.record.run = lanes<bfe, uint32_t, uint32_t, uint32_t, uint32_t>;
    break;
  case ptx::Type::S32:
    b.record.run = lanes<bfe, int32_t, int32_t, uint32_t, uint32_t>;
    break;
  case ptx::Type::U64:
    b.record.run = lanes<bfe, uint64_t, uint64_t, uint32_t, uint32_t>;
    break;
  default:
    b.record.run = lanes<bfe, int64_t, int64_t, uint32_t, uint32_t>;
    break;
  }
}

void bindBfi(Binding &b) {
  expectField(b, 3);
  constexpr auto bfi = [](auto a, auto c, uint32_t position, uint32_t length) {
    return sem::bfi(a, c, position, length);
  };
  b.record.run = b.type() == ptx::Type::B32 ? lanes<bfi, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>
                                            : lanes<bfi, uint64_t, uint64_t, uint64_t, uint32_t, uint32_t>;
}

void bindPrmt(Binding &b) {
  static constexpr std::string_view modes[] = {"", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
  for (int64_t i = 0; i < 7; ++i)
    if (modes[i] == b.modifier("mode"))
      b.record.imm = i;
  constexpr auto prmt = [](uint32_t mode, uint32_t x, uint32_t y, uint32_t c) {
    return sem::prmt(x, y, c, sem::PermuteMode(mode));
  };
  b.record.run = lanesWith<prmt, uint32_t, uint32_t, uint32_t, uint32_t>;
}

void bindMaskOf(Binding &b) {
  b.record.imm = b.modifier("mode") == "wrap";
  b.record.run = lanesWith<[](uint32_t wrap, uint32_t at, uint32_t n) { return sem::bmsk(at, n, wrap); }, uint32_t,
                           uint32_t, uint32_t>;
}

void bindExtend(Binding &b) {
  b.record.imm = b.modifier("mode") == "wrap";
  constexpr auto extend = [](uint32_t wrap, auto a, uint32_t n) { return sem::szext(a, n, wrap); };
  b.record.run = b.type() == ptx::Type::S32 ? lanesWith<extend, int32_t, int32_t, uint32_t>
                                            : lanesWith<extend, uint32_t, uint32_t, uint32_t>;
}

constexpr auto integer = InstructionClass::Integer;
constexpr auto predicate = InstructionClass::Predicate;
#define WEFT_BITS "type=b16|b32|b64"

const Form forms[] = {
    {"and", WEFT_BITS, "d:type s:type s:type", integer, bindAnd},
    {"or", WEFT_BITS, "d:type s:type s:type", integer, bindBits<[](auto a, auto b) { return a | b; }, 2>},
    {"xor", WEFT_BITS, "d:type s:type s:type", integer, bindBits<[](auto a, auto b) { return a ^ b; }, 2>},
    {"not", WEFT_BITS, "d:type s:type", integer, bindBits<[](auto a) { return ~a; }, 1>},
    {"cnot", WEFT_BITS, "d:type s:type", integer, bindBits<[](auto a) { return sem::cnot(a); }, 1>},
    {"and", "pred", "D p p", predicate, bindPredicate<[](uint32_t a, uint32_t b) { return a & b; }>},
    {"or", "pred", "D p p", predicate, bindPredicate<[](uint32_t a, uint32_t b) { return a | b; }>},
    {"xor", "pred", "D p p", predicate, bindPredicate<[](uint32_t a, uint32_t b) { return a ^ b; }>},
    {"not", "pred", "D p", predicate, bindPredicateNot},
    {"lop3", "type=b32", "*", integer, bindLop3},
    {"lop3", "bool=and|or type=b32", "*", integer, bindLop3Predicate},
    {"shl", WEFT_BITS, "d:type s:type s:u32", integer,
     bindShift<[](auto a, uint32_t by) { return sem::shl(std::make_unsigned_t<decltype(a)>(a), by); }>},
    {"shr", "type=b16|b32|b64|u16|u32|u64|s16|s32|s64", "d:type s:type s:u32", integer,
     bindShift<[](auto a, uint32_t by) { return sem::shr(a, by); }>},
    {"shf", "direction=l|r mode=wrap|clamp type=b32", "d:type s:type s:type s:u32", integer, bindFunnel},
    {"bfe", "type=u32|s32|u64|s64", "d:type s:type s:u32 s:u32", integer, bindBfe},
    {"bfi", "type=b32|b64", "d:type s:type s:type s:u32 s:u32", integer, bindBfi},
    {"brev", "type=b32", "d:type s:type", integer,
     bindLanes<[](uint32_t a) { return sem::brev(a); }, uint32_t, uint32_t>},
    {"brev", "type=b64", "d:type s:type", integer,
     bindLanes<[](uint64_t a) { return sem::brev(a); }, uint64_t, uint64_t>},
    {"fns", "type=b32", "d:b32 s:b32 s:b32 s:s32", integer,
     bindLanes<[](uint32_t m, uint32_t base, int32_t n) { return sem::fns(m, base, n); }, uint32_t, uint32_t, uint32_t,
               int32_t>},
    {"prmt", "type=b32 mode=f4e|b4e|rc8|ecl|ecr|rc16?", "d:b32 s:b32 s:b32 s:b32", integer, bindPrmt},
    {"bmsk", "mode=clamp|wrap type=b32", "d:b32 s:u32 s:u32", integer, bindMaskOf},
    {"szext", "mode=clamp|wrap type=u32|s32", "d:b32 s:b32 s:b32", integer, bindExtend},
};

} // namespace

std::span<const Form> logicForms() { return forms; }

} // namespace weft::simulator::machine
