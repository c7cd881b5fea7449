// Part of Weft. SPDX-License-Identifier: Apache-2.0
// f32 arithmetic whose first operands are f16 or bf16 (PTX ISA 9.7.5, mixed precision: PTX 8.6, sm_100 and newer). They
// are widened, which is exact; nothing is flushed.
#include "runtime/Simulator/Machine/Forms/Arithmetic.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Semantics/Float.h"
#include "runtime/Simulator/Semantics/Half.h"

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;

[[gnu::always_inline]] inline sem::FloatOptions options(uint32_t bits) { return {false, (bits & SaturateBit) != 0}; }

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

#define WEFT_MIXED " sat? type=f32 narrow=f16|bf16"

const Form forms[] = {
    {"add", "rnd=rn|rz|rm|rp?" WEFT_MIXED, "d:type s:narrow s:type", InstructionClass::Float,
     bindMixed<addNear, addDirected, 1>},
    {"sub", "rnd=rn|rz|rm|rp?" WEFT_MIXED, "d:type s:narrow s:type", InstructionClass::Float,
     bindMixed<subNear, subDirected, 1>},
    {"fma", "rnd=rn|rz|rm|rp" WEFT_MIXED, "d:type s:narrow s:narrow s:type", InstructionClass::Float,
     bindMixed<fmaNear, fmaDirected, 2>},
};

} // namespace

std::span<const Form> mixedForms() { return forms; }

} // namespace weft::simulator::machine
