// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What sm_100 and newer add to f32 arithmetic. Mixed precision (PTX ISA 9.7.5, PTX 8.6): the first operands are f16 or
// bf16, which are widened, exactly; nothing is flushed. Pairs (9.7.3, PTX 8.6): two f32 in a register of 64 bits, the first
// in the lower half. The least or greatest of three (9.7.3, PTX 8.8).
#include "runtime/Simulator/Machine/Forms/Arithmetic.h"
#include "runtime/Simulator/Machine/Forms/Engines/Requirements.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Semantics/Float.h"
#include "runtime/Simulator/Semantics/Half.h"

#include <bit>

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;

[[gnu::always_inline]] inline sem::FloatOptions options(uint32_t bits) {
  return {(bits & FlushBit) != 0, (bits & SaturateBit) != 0};
}

/// Binds `Near` for rounding to nearest, else `Directed`, for the type of the slot "narrow". Both are lane functions of
/// (modifiers, N narrow values as f32, an f32).
template <auto Near, auto Directed, size_t N> void bindMixed(Binding &b) {
  bool near = bindRounding(b) == sem::Rounding::NearestEven;
  auto with = [&]<typename Format, auto F>() {
    if constexpr (N == 1) {
      constexpr auto each = [](uint32_t o, uint16_t a, float c) { return F(o, Format::widen(a), c); };
      b.record.run = lanesWith<each, float, uint16_t, float>;
    } else {
      constexpr auto each = [](uint32_t o, uint16_t a, uint16_t x, float c) {
        return F(o, Format::widen(a), Format::widen(x), c);
      };
      b.record.run = lanesWith<each, float, uint16_t, uint16_t, float>;
    }
  };
  auto of = [&]<typename Format>(Format) {
    if (near)
      with.template operator()<Format, Near>();
    else
      with.template operator()<Format, Directed>();
  };
  if (b.type("narrow") == ptx::Type::F16)
    of(sem::HalfFormat());
  else
    of(sem::BfloatFormat());
}

constexpr auto addNear = [](uint32_t o, float a, float c) { return sem::add(a, c, options(o)); };
constexpr auto subNear = [](uint32_t o, float a, float c) { return sem::sub(a, c, options(o)); };
constexpr auto fmaNear = [](uint32_t o, float a, float b, float c) {
  return sem::finish(__builtin_elementwise_fma(a, b, c), options(o));
};
constexpr auto addDirected = [](uint32_t o, float a, float c) {
  return sem::addRounded(rounding(o), a, c, options(o));
};
constexpr auto subDirected = [](uint32_t o, float a, float c) {
  return sem::subRounded(rounding(o), a, c, options(o));
};
constexpr auto fmaDirected = [](uint32_t o, float a, float b, float c) {
  return sem::fmaRounded(rounding(o), a, b, c, options(o));
};

[[gnu::always_inline]] inline float lower(uint64_t pair) { return std::bit_cast<float>(uint32_t(pair)); }
[[gnu::always_inline]] inline float upper(uint64_t pair) { return std::bit_cast<float>(uint32_t(pair >> 32)); }

/// Binds F, a lane function of (modifiers, N f32s), for both halves of pairs.
template <auto F, size_t N> void bindPairs(Binding &b) {
  needsTarget(b, 100);
  bindRounding(b);
  constexpr auto both = [](uint32_t o, auto... pairs) {
    return uint64_t(std::bit_cast<uint32_t>(F(o, upper(pairs)...))) << 32 |
           std::bit_cast<uint32_t>(F(o, lower(pairs)...));
  };
  b.record.run = repeatedWith<both, uint64_t, uint64_t, N>();
}

constexpr auto mul = [](uint32_t o, float a, float b) { return sem::mulRounded(rounding(o), a, b, options(o)); };

/// A bit of Record::imm beside those of Arithmetic.h: magnitudes are compared, and one of them is the result.
constexpr uint32_t magnitudeBit = 1 << 16;

template <auto F>
constexpr auto ofThree = [](uint32_t o, float a, float b, float c) {
  const sem::MinMaxOptions how{(o & FlushBit) != 0, (o & PropagateNaNBit) != 0, false};
  const auto given = [&](float value) { return o & magnitudeBit ? sem::abs(value, false) : value; };
  return F(F(given(a), given(b), how), given(c), how);
};
constexpr auto smaller = [](float a, float b, const sem::MinMaxOptions &o) { return sem::min(a, b, o); };
constexpr auto larger = [](float a, float b, const sem::MinMaxOptions &o) { return sem::max(a, b, o); };

template <auto F> void bindOfThree(Binding &b) {
  needsTarget(b, 100);
  b.record.imm = modifierBits(b) | (b.has("abs") ? magnitudeBit : 0);
  b.record.run = lanesWith<ofThree<F>, float, float, float, float>;
}

constexpr std::string_view three = "d:type s:type s:type s:type";
#define WEFT_MIXED " sat? type=f32 narrow=f16|bf16"
#define WEFT_PAIRS "ftz? f32x2"

const Form forms[] = {
    {"add", "rnd=rn|rz|rm|rp?" WEFT_MIXED, "d:type s:narrow s:type", InstructionClass::Float,
     bindMixed<addNear, addDirected, 1>},
    {"sub", "rnd=rn|rz|rm|rp?" WEFT_MIXED, "d:type s:narrow s:type", InstructionClass::Float,
     bindMixed<subNear, subDirected, 1>},
    {"fma", "rnd=rn|rz|rm|rp" WEFT_MIXED, "d:type s:narrow s:narrow s:type", InstructionClass::Float,
     bindMixed<fmaNear, fmaDirected, 2>},
    {"add", "rnd=rn|rz|rm|rp? " WEFT_PAIRS, "d:b64 s:b64 s:b64", InstructionClass::Float, bindPairs<addDirected, 2>},
    {"sub", "rnd=rn|rz|rm|rp? " WEFT_PAIRS, "d:b64 s:b64 s:b64", InstructionClass::Float, bindPairs<subDirected, 2>},
    {"mul", "rnd=rn|rz|rm|rp? " WEFT_PAIRS, "d:b64 s:b64 s:b64", InstructionClass::Float, bindPairs<mul, 2>},
    {"fma", "rnd=rn|rz|rm|rp " WEFT_PAIRS, "d:b64 s:b64 s:b64 s:b64", InstructionClass::Float,
     bindPairs<fmaDirected, 3>},
    {"min", "ftz? NaN? abs? type=f32", three, InstructionClass::Float, bindOfThree<smaller>},
    {"max", "ftz? NaN? abs? type=f32", three, InstructionClass::Float, bindOfThree<larger>},
};

} // namespace

std::span<const Form> mixedForms() { return forms; }

} // namespace weft::simulator::machine
