// Part of Weft. SPDX-License-Identifier: Apache-2.0
// f16 and bf16 arithmetic, scalar and packed (PTX ISA 9.7.4).
#include "runtime/Simulator/Machine/Forms/Arithmetic.h"
#include "runtime/Simulator/Machine/Forms/Engines/Requirements.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Semantics/Approximate.h"
#include "runtime/Simulator/Semantics/Half.h"

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;

[[gnu::always_inline]] inline sem::MinMaxOptions minMaxOptions(uint32_t bits) {
  return {(bits & FlushBit) != 0, (bits & PropagateNaNBit) != 0, (bits & XorSignBit) != 0};
}

/// F is a lane function of (format, modifiers, values ...); bound for f16, bf16 and their packed forms.
template <auto F, size_t N> void bindHalf(Binding &b) {
  b.record.imm = modifierBits(b);
  auto with = [&]<typename Format>(Format) {
    constexpr auto one = [](uint32_t o, auto... values) { return uint16_t(F(Format(), o, uint16_t(values)...)); };
    constexpr auto both = [](uint32_t o, auto... values) {
      return sem::pack16(uint16_t(F(Format(), o, sem::low16(values)...)),
                         uint16_t(F(Format(), o, sem::high16(values)...)));
    };
    bool packed = ptx::typeBits(b.type()) == 32;
    b.record.run = packed ? repeatedWith<both, uint32_t, uint32_t, N>() : repeatedWith<one, uint16_t, uint16_t, N>();
  };
  if (b.type() == ptx::Type::F16 || b.type() == ptx::Type::F16x2)
    with(sem::HalfFormat());
  else
    with(sem::BfloatFormat());
}

constexpr auto add = []<typename F>(F, uint32_t o, uint16_t a, uint16_t b) {
  return sem::addHalf<F>(a, b, o & FlushBit, o & SaturateBit);
};
constexpr auto sub = []<typename F>(F, uint32_t o, uint16_t a, uint16_t b) {
  return sem::subHalf<F>(a, b, o & FlushBit, o & SaturateBit);
};
constexpr auto mul = []<typename F>(F, uint32_t o, uint16_t a, uint16_t b) {
  return sem::mulHalf<F>(a, b, o & FlushBit, o & SaturateBit);
};
constexpr auto fma = []<typename F>(F, uint32_t o, uint16_t a, uint16_t b, uint16_t c) {
  return sem::fmaHalf<F>(a, b, c, o & FlushBit, o & SaturateBit, o & ReluBit);
};
constexpr auto fmaOutside = []<typename F>(F, uint32_t o, uint16_t a, uint16_t b, uint16_t c) {
  return sem::fmaOutsideHalf<F>(a, b, c, o & ReluBit);
};
constexpr auto smaller = []<typename F>(F, uint32_t o, uint16_t a, uint16_t b) {
  return sem::minHalf<F>(a, b, minMaxOptions(o));
};
constexpr auto larger = []<typename F>(F, uint32_t o, uint16_t a, uint16_t b) {
  return sem::maxHalf<F>(a, b, minMaxOptions(o));
};
constexpr auto negated = []<typename F>(F, uint32_t o, uint16_t a) {
  return sem::negHalf(sem::flushHalf<F>(a, o & FlushBit));
};
constexpr auto absolute = []<typename F>(F, uint32_t o, uint16_t a) {
  return sem::absHalf(sem::flushHalf<F>(a, o & FlushBit));
};
constexpr auto power = []<typename F>(F, uint32_t o, uint16_t a) { return sem::ex2ApproxHalf<F>(a, o & FlushBit); };
constexpr auto tangent = []<typename F>(F, uint32_t, uint16_t a) { return sem::tanhApproxHalf<F>(a); };

void bindOutside(Binding &b) {
  needsHopper(b);
  bindHalf<fmaOutside, 3>(b);
}

constexpr auto half = InstructionClass::Half;
#define WEFT_HALVES "type=f16|f16x2|bf16|bf16x2"

const Form forms[] = {
    {"add", "rn? ftz? sat? " WEFT_HALVES, "d:type s:type s:type", half, bindHalf<add, 2>},
    {"sub", "rn? ftz? sat? " WEFT_HALVES, "d:type s:type s:type", half, bindHalf<sub, 2>},
    {"mul", "rn? ftz? sat? " WEFT_HALVES, "d:type s:type s:type", half, bindHalf<mul, 2>},
    {"fma", "rn ftz? sat? relu? " WEFT_HALVES, "d:type s:type s:type s:type", half, bindHalf<fma, 3>},
    {"fma", "rn oob relu? " WEFT_HALVES, "d:type s:type s:type s:type", half, bindOutside},
    {"min", "ftz? NaN? xorsign? abs? " WEFT_HALVES, "d:type s:type s:type", half, bindHalf<smaller, 2>},
    {"max", "ftz? NaN? xorsign? abs? " WEFT_HALVES, "d:type s:type s:type", half, bindHalf<larger, 2>},
    {"neg", "ftz? " WEFT_HALVES, "d:type s:type", half, bindHalf<negated, 1>},
    {"abs", "ftz? " WEFT_HALVES, "d:type s:type", half, bindHalf<absolute, 1>},
    {"ex2", "approx ftz? " WEFT_HALVES, "d:type s:type", InstructionClass::Special, bindHalf<power, 1>},
    {"tanh", "approx " WEFT_HALVES, "d:type s:type", InstructionClass::Special, bindHalf<tangent, 1>},
};

} // namespace

std::span<const Form> halfForms() { return forms; }

} // namespace weft::simulator::machine
