// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Comparison and selection (PTX ISA 9.7.6, 9.7.7).
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Forms/Arithmetic.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Semantics/Compare.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;

/// The lanes for which op[1] and op[2] compare so.
using Compare = uint32_t (*)(Warp &, const Record &);

/// Record::aux of setp and set: what is compared, and how that is combined. op[0]: result; op[1], op[2]: compared;
/// op[3]: predicate of .and, .or, .xor; op[4]: second result of setp.
struct Combination {
  Compare compare = nullptr;
  sem::BoolOp op = sem::BoolOp::None;
  bool negated = false; ///< `!p`
};

uint32_t combine(Warp &warp, const Record &record, uint32_t compared) {
  const auto &how = *static_cast<const Combination *>(record.aux);
  if (how.op == sem::BoolOp::None)
    return compared;
  uint32_t other = warp.predicate(record.op[3]) ^ (how.negated ? ~0u : 0u);
  return how.op == sem::BoolOp::And  ? compared & other
         : how.op == sem::BoolOp::Or ? compared | other
                                     : compared ^ other;
}

/// The lanes for which F(modifiers, a, b) holds.
template <auto F, typename T> [[gnu::always_inline]] inline uint32_t compareLanes(Warp &warp, const Record &record) {
  const SlotOf<T> *a = warp.reg<const SlotOf<T>>(record.op[1]), *b = warp.reg<const SlotOf<T>>(record.op[2]);
  uint32_t flags[laneCount];
  const auto options = uint32_t(record.imm);
  for (unsigned i = 0; i < laneCount; ++i)
    flags[i] = F(options, fromSlot<T>(a[i]), fromSlot<T>(b[i])) ? 1 : 0;
  return packBits(flags);
}

template <auto F, typename T> WEFT_WIDE_LANES uint32_t compareWide(Warp &warp, const Record &record) {
  return compareLanes<F, T>(warp, record);
}
template <auto F, typename T> uint32_t compareNarrow(Warp &warp, const Record &record) {
  return compareLanes<F, T>(warp, record);
}
template <auto F, typename T> Compare comparing() { return hostIsWide() ? compareWide<F, T> : compareNarrow<F, T>; }

uint32_t compared(Warp &warp, const Record &record) {
  return static_cast<const Combination *>(record.aux)->compare(warp, record);
}

void runSetp(Warp &warp, const Record &record, uint32_t mask) {
  const uint32_t lanes = compared(warp, record), first = combine(warp, record, lanes);
  if (record.op[4] != noRef) {
    const uint32_t second = combine(warp, record, ~lanes);
    commitPredicate(warp.predicate(record.op[0]), first, mask);
    commitPredicate(warp.predicate(record.op[4]), second, mask);
    return;
  }
  commitPredicate(warp.predicate(record.op[0]), first, mask);
}

/// set: bits 8.. of Record::imm hold the 32 bits that stand for true.
void runSet(Warp &warp, const Record &record, uint32_t mask) {
  const uint32_t lanes = combine(warp, record, compared(warp, record)), yes = uint32_t(record.imm >> 8);
  uint32_t values[laneCount];
  for (unsigned i = 0; i < laneCount; ++i)
    values[i] = (lanes >> i & 1) ? yes : 0;
  commit(warp.reg<uint32_t>(record.op[0]), values, mask);
}

using C = sem::Comparison;

template <typename T> Compare integerComparison(C c) {
  switch (c) {
  case C::Eq:
    return comparing<[](uint32_t, T a, T b) { return a == b; }, T>();
  case C::Ne:
    return comparing<[](uint32_t, T a, T b) { return a != b; }, T>();
  case C::Lt:
    return comparing<[](uint32_t, T a, T b) { return a < b; }, T>();
  case C::Le:
    return comparing<[](uint32_t, T a, T b) { return a <= b; }, T>();
  case C::Gt:
    return comparing<[](uint32_t, T a, T b) { return a > b; }, T>();
  case C::Ge:
    return comparing<[](uint32_t, T a, T b) { return a >= b; }, T>();
  default:
    return nullptr;
  }
}

template <C c, typename T>
constexpr auto floatCompare = [](uint32_t o, T a, T b)
                                  __attribute__((always_inline)) { return sem::compare<c>(a, b, (o & FlushBit) != 0); };
template <C c, typename F>
constexpr auto halfCompare =
    [](uint32_t o, uint16_t a, uint16_t b) { return sem::compareHalf<c, F>(a, b, (o & FlushBit) != 0); };

/// What pick.template operator()<c>() gives for the comparison that is known at run time; a default value for none.
template <typename Pick> auto forComparison(C comparison, Pick pick) -> decltype(pick.template operator()<C::Eq>()) {
  switch (comparison) {
#define WEFT_CASE(c)                                                                                                   \
  case C::c:                                                                                                           \
    return pick.template operator()<C::c>();
    WEFT_CASE(Eq)
    WEFT_CASE(Ne)
    WEFT_CASE(Lt)
    WEFT_CASE(Le)
    WEFT_CASE(Gt)
    WEFT_CASE(Ge)
    WEFT_CASE(Equ)
    WEFT_CASE(Neu)
    WEFT_CASE(Ltu)
    WEFT_CASE(Leu)
    WEFT_CASE(Gtu)
    WEFT_CASE(Geu)
    WEFT_CASE(Num)
    WEFT_CASE(NaN)
#undef WEFT_CASE
  }
  return {};
}

Compare comparison(C c, ptx::Type type) {
  switch (type) {
  case ptx::Type::U16:
  case ptx::Type::B16:
    return integerComparison<uint16_t>(c);
  case ptx::Type::S16:
    return integerComparison<int16_t>(c);
  case ptx::Type::U32:
  case ptx::Type::B32:
    return integerComparison<uint32_t>(c);
  case ptx::Type::S32:
    return integerComparison<int32_t>(c);
  case ptx::Type::U64:
  case ptx::Type::B64:
    return integerComparison<uint64_t>(c);
  case ptx::Type::S64:
    return integerComparison<int64_t>(c);
  case ptx::Type::F32:
    return forComparison(c, []<C k>() -> Compare { return comparing<floatCompare<k, float>, float>(); });
  case ptx::Type::F64:
    return forComparison(c, []<C k>() -> Compare { return comparing<floatCompare<k, double>, double>(); });
  case ptx::Type::F16:
    return forComparison(c, []<C k>() -> Compare { return comparing<halfCompare<k, sem::HalfFormat>, uint16_t>(); });
  case ptx::Type::BF16:
    return forComparison(c, []<C k>() -> Compare { return comparing<halfCompare<k, sem::BfloatFormat>, uint16_t>(); });
  default:
    return nullptr;
  }
}

C comparisonNamed(Binding &b, ptx::Type type) {
  static constexpr std::pair<std::string_view, C> names[] = {
      {"eq", C::Eq},   {"ne", C::Ne},   {"lt", C::Lt},   {"le", C::Le},   {"gt", C::Gt},   {"ge", C::Ge},
      {"lo", C::Lt},   {"ls", C::Le},   {"hi", C::Gt},   {"hs", C::Ge},   {"equ", C::Equ}, {"neu", C::Neu},
      {"ltu", C::Ltu}, {"leu", C::Leu}, {"gtu", C::Gtu}, {"geu", C::Geu}, {"num", C::Num}, {"nan", C::NaN}};
  for (auto [name, c] : names)
    if (name == b.modifier("cmp")) {
      if (!ptx::isFloat(type) && c > C::Ge)
        b.fail(format("expected a comparison of integers, but got '.{}'", name));
      return c;
    }
  b.fail("expected a comparison");
}

void bindCombination(Binding &b, size_t predicateAt, Compare compare = nullptr) {
  Combination how;
  how.compare = compare;
  std::string_view op = b.modifier("bool");
  how.op = op == "and"   ? sem::BoolOp::And
           : op == "or"  ? sem::BoolOp::Or
           : op == "xor" ? sem::BoolOp::Xor
                         : sem::BoolOp::None;
  if (how.op != sem::BoolOp::None) {
    const ptx::Operand &predicate = b.operand(predicateAt);
    how.negated = predicate.negated;
    b.record.op[3] = b.predicate(predicate);
  }
  b.keep(how);
}

void bindSetp(Binding &b) {
  ptx::Type type = b.type();
  b.record.imm = modifierBits(b);
  size_t at = 0;
  const ptx::Operand &first = b.operand(at++);
  b.setDestination(0, b.predicateDestinationOrNone(first));
  if (b.pair())
    b.setDestination(4, b.predicateDestinationOrNone(b.operand(at++)));
  b.record.op[1] = b.source(b.operand(at), type);
  b.record.op[2] = b.source(b.operand(at + 1), type);
  bindCombination(b, at + 2, comparison(comparisonNamed(b, type), type));
  b.record.run = runSetp;
}

void bindSet(Binding &b) {
  ptx::Type type = b.type("from"), to = b.type("to");
  uint64_t yes = to == ptx::Type::F32      ? 0x3f800000
                 : to == ptx::Type::F16    ? 0x3c00
                 : to == ptx::Type::BF16   ? 0x3f80
                 : ptx::typeBits(to) == 16 ? 0xffff
                                           : 0xffffffff;
  b.record.imm = int64_t(yes << 8 | modifierBits(b));
  b.setDestination(0, b.destination(b.operand(0), to));
  b.record.op[1] = b.source(b.operand(1), type);
  b.record.op[2] = b.source(b.operand(2), type);
  bindCombination(b, 3, comparison(comparisonNamed(b, type), type));
  b.record.run = runSet;
}

/// Lanes in which a half of two pairs compares as Record::imm says, combined; halves 0 and 1.
template <typename F> std::array<uint32_t, 2> comparePairs(Warp &warp, const Record &record, C which) {
  const uint32_t *a = warp.reg<const uint32_t>(record.op[1]), *b = warp.reg<const uint32_t>(record.op[2]);
  bool flush = record.imm & FlushBit;
  std::array<uint32_t, 2> lanes{};
  for (unsigned half = 0; half < 2; ++half) {
    uint32_t bits = 0;
    for (unsigned i = 0; i < laneCount; ++i) {
      float x = F::widen(sem::flushHalf<F>(uint16_t(a[i] >> 16 * half), flush)),
            y = F::widen(sem::flushHalf<F>(uint16_t(b[i] >> 16 * half), flush));
      bool value = forComparison(which, [&]<C c>() -> bool { return sem::compare<c>(x, y); });
      bits |= uint32_t(value) << i;
    }
    lanes[half] = combine(warp, record, bits);
  }
  return lanes;
}

/// setp.f16x2 compares both halves: two results.
template <typename F> void runSetpPacked(Warp &warp, const Record &record, uint32_t mask) {
  const std::array<uint32_t, 2> lanes = comparePairs<F>(warp, record, C(record.imm >> 8));
  commitPredicate(warp.predicate(record.op[0]), lanes[0], mask);
  commitPredicate(warp.predicate(record.op[4]), lanes[1], mask);
}

/// set.f16x2: Record::target holds the 16 bits that stand for true in a half.
template <typename F> void runSetPacked(Warp &warp, const Record &record, uint32_t mask) {
  const std::array<uint32_t, 2> lanes = comparePairs<F>(warp, record, C(record.imm >> 8));
  uint32_t results[laneCount];
  for (unsigned i = 0; i < laneCount; ++i)
    results[i] = ((lanes[0] >> i & 1) ? record.target : 0) | ((lanes[1] >> i & 1) ? record.target << 16 : 0);
  commit(warp.reg<uint32_t>(record.op[0]), results, mask);
}

void bindSetPacked(Binding &b) {
  const ptx::Type to = b.type("to");
  b.record.imm = modifierBits(b) | uint32_t(comparisonNamed(b, ptx::Type::F16)) << 8;
  b.record.target = to == ptx::Type::F16x2 ? 0x3c00 : to == ptx::Type::BF16x2 ? 0x3f80 : 0xffff;
  b.setDestination(0, b.destination(b.operand(0), to));
  b.record.op[1] = b.source(b.operand(1), b.type("from"));
  b.record.op[2] = b.source(b.operand(2), b.type("from"));
  bindCombination(b, 3);
  b.record.run = b.type("from") == ptx::Type::F16x2 ? runSetPacked<sem::HalfFormat> : runSetPacked<sem::BfloatFormat>;
}

void bindSetpPacked(Binding &b) {
  if (!b.pair())
    b.fail("expected two destinations 'p|q'");
  b.record.imm = modifierBits(b) | uint32_t(comparisonNamed(b, ptx::Type::F16)) << 8;
  b.setDestination(0, b.predicateDestinationOrNone(b.operand(0)));
  b.setDestination(4, b.predicateDestinationOrNone(b.operand(1)));
  b.record.op[1] = b.source(b.operand(2), b.type());
  b.record.op[2] = b.source(b.operand(3), b.type());
  bindCombination(b, 4);
  b.record.run = b.type() == ptx::Type::F16x2 ? runSetpPacked<sem::HalfFormat> : runSetpPacked<sem::BfloatFormat>;
}

void bindSelp(Binding &b) {
  constexpr auto pick = [](auto x, auto y, bool p) { return p ? x : y; };
  constexpr auto pickNot = [](auto x, auto y, bool p) { return p ? y : x; };
  bool negated = b.operand(3).negated;
  bool wide = ptx::typeBits(b.type()) == 64;
  for (size_t i = 0; i < 3; ++i)
    if (i == 0)
      b.setDestination(0, b.destination(b.operand(0), b.type()));
    else
      b.record.op[i] = b.source(b.operand(i), b.type());
  b.record.op[3] = b.predicate(b.operand(3));
  if (wide)
    b.record.run =
        negated ? lanes<pickNot, uint64_t, uint64_t, uint64_t, Bool> : lanes<pick, uint64_t, uint64_t, uint64_t, Bool>;
  else
    b.record.run =
        negated ? lanes<pickNot, uint32_t, uint32_t, uint32_t, Bool> : lanes<pick, uint32_t, uint32_t, uint32_t, Bool>;
}

void bindSlct(Binding &b) {
  constexpr auto byInteger = [](uint32_t, auto x, auto y, int32_t c) { return sem::slct(x, y, c); };
  constexpr auto byFloat = [](uint32_t o, auto x, auto y, float c) { return sem::slct(x, y, c, (o & FlushBit) != 0); };
  b.record.imm = modifierBits(b);
  bool wide = ptx::typeBits(b.type()) == 64, real = b.modifier("by") == "f32";
  if (wide)
    b.record.run = real ? lanesWith<byFloat, uint64_t, uint64_t, uint64_t, float>
                        : lanesWith<byInteger, uint64_t, uint64_t, uint64_t, int32_t>;
  else
    b.record.run = real ? lanesWith<byFloat, uint32_t, uint32_t, uint32_t, float>
                        : lanesWith<byInteger, uint32_t, uint32_t, uint32_t, int32_t>;
}

constexpr auto cls = InstructionClass::Compare;
#define WEFT_CMP "cmp=eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan bool=and|or|xor? ftz?"
#define WEFT_COMPARED "b16|b32|b64|u16|u32|u64|s16|s32|s64|f16|bf16|f32|f64"
#define WEFT_SELECTED "type=b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64"

const Form forms[] = {
    {"setp", WEFT_CMP " type=" WEFT_COMPARED, "*", cls, bindSetp},
    {"setp", WEFT_CMP " type=f16x2|bf16x2", "*", cls, bindSetpPacked},
    {"set", WEFT_CMP " to=u16|s16|u32|s32|f16|bf16|f32 from=" WEFT_COMPARED, "*", cls, bindSet},
    {"set", WEFT_CMP " to=f16x2|u32|s32 from=f16x2", "*", cls, bindSetPacked},
    {"set", WEFT_CMP " to=bf16x2|u32|s32 from=bf16x2", "*", cls, bindSetPacked},
    {"selp", WEFT_SELECTED, "*", cls, bindSelp},
    {"slct", "ftz? " WEFT_SELECTED " by=s32|f32", "d:type s:type s:type s:by", cls, bindSlct},
};

} // namespace

std::span<const Form> compareForms() { return forms; }

} // namespace weft::simulator::machine
