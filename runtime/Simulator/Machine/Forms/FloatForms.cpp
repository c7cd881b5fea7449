// Part of Weft. SPDX-License-Identifier: Apache-2.0
// f32 and f64 arithmetic (PTX ISA 9.7.3), approximate functions included.
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Forms/Arithmetic.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Semantics/Approximate.h"
#include "runtime/Simulator/Semantics/Float.h"

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;

[[gnu::always_inline]] inline sem::FloatOptions options(uint32_t bits) {
  return {(bits & FlushBit) != 0, (bits & SaturateBit) != 0};
}
[[gnu::always_inline]] inline sem::MinMaxOptions minMaxOptions(uint32_t bits) {
  return {(bits & FlushBit) != 0, (bits & PropagateNaNBit) != 0, (bits & XorSignBit) != 0};
}

/// Binds `Near` for rounding to nearest, else `Directed`, which reads the direction from Record::imm.
template <auto Near, auto Directed, size_t N> void bindRounded(Binding &b) {
  bool near = bindRounding(b) == sem::Rounding::NearestEven;
  if (b.type() == ptx::Type::F64)
    b.record.run = near ? repeatedWith<Near, double, double, N>() : repeatedWith<Directed, double, double, N>();
  else
    b.record.run = near ? repeatedWith<Near, float, float, N>() : repeatedWith<Directed, float, float, N>();
}

/// Either float type, modifiers read at run time.
template <auto F, size_t N> void bindFloat(Binding &b) {
  b.record.imm = modifierBits(b);
  b.record.run = b.type() == ptx::Type::F64 ? repeatedWith<F, double, double, N>() : repeatedWith<F, float, float, N>();
}

void bindTestp(Binding &b) {
  static constexpr std::string_view tests[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  for (int64_t i = 0; i < 6; ++i)
    if (tests[i] == b.modifier("test"))
      b.record.imm = i;
  constexpr auto test = [](uint32_t which, auto a) { return sem::testp(sem::FloatClass(which), a); };
  b.record.run = b.type() == ptx::Type::F64 ? lanesWith<test, Bool, double> : lanesWith<test, Bool, float>;
}

constexpr auto addNear = [](uint32_t o, auto a, auto b) { return sem::add(a, b, options(o)); };
constexpr auto subNear = [](uint32_t o, auto a, auto b) { return sem::sub(a, b, options(o)); };
constexpr auto mulNear = [](uint32_t o, auto a, auto b) { return sem::mul(a, b, options(o)); };
/// The builtin becomes one instruction in the wide compilation.
constexpr auto fmaNear = [](uint32_t o, auto a, auto b, auto c) {
  bool flush = (o & FlushBit) != 0;
  return sem::finish(__builtin_elementwise_fma(sem::flush(a, flush), sem::flush(b, flush), sem::flush(c, flush)),
                     options(o));
};
constexpr auto divNear = [](uint32_t o, auto a, auto b) { return sem::div(a, b, options(o)); };
constexpr auto rcpNear = [](uint32_t o, auto a) { return sem::rcp(a, options(o)); };
constexpr auto sqrtNear = [](uint32_t o, auto a) { return sem::sqrt(a, options(o)); };
constexpr auto addDirected = [](uint32_t o, auto a, auto b) { return sem::addRounded(rounding(o), a, b, options(o)); };
constexpr auto subDirected = [](uint32_t o, auto a, auto b) { return sem::subRounded(rounding(o), a, b, options(o)); };
constexpr auto mulDirected = [](uint32_t o, auto a, auto b) { return sem::mulRounded(rounding(o), a, b, options(o)); };
constexpr auto fmaDirected = [](uint32_t o, auto a, auto b, auto c) {
  return sem::fmaRounded(rounding(o), a, b, c, options(o));
};
constexpr auto divDirected = [](uint32_t o, auto a, auto b) { return sem::divRounded(rounding(o), a, b, options(o)); };
constexpr auto rcpDirected = [](uint32_t o, auto a) { return sem::rcpRounded(rounding(o), a, options(o)); };
constexpr auto sqrtDirected = [](uint32_t o, auto a) { return sem::sqrtRounded(rounding(o), a, options(o)); };

/// Binds the approximate function `Close`, or, where the launch asks for that, what it may give at worst.
template <auto Close, auto Farthest, typename... A> void bindApproximate(Binding &b) {
  constexpr auto close = [](uint32_t o, A... a) { return Close(a..., (o & FlushBit) != 0); };
  constexpr auto loose = [](uint32_t o, A... a) {
    const bool flushed = (o & FlushBit) != 0;
    return sem::flush(Farthest(Close(a..., flushed), sem::flush(a, flushed)...), flushed);
  };
  b.record.imm = modifierBits(b);
  b.record.run = b.decoder.program().approximations == Approximations::Loose ? lanesWith<loose, float, A...>
                                                                             : lanesWith<close, float, A...>;
}
constexpr auto tangent = [](float a, bool) { return sem::tanhApprox(a); };
constexpr auto inverseRoot = [](float a, bool flushed) { return sem::rsqrtApprox(a, flushed); };

constexpr auto absolute = [](uint32_t o, auto a) { return sem::abs(a, (o & FlushBit) != 0); };
constexpr auto negated = [](uint32_t o, auto a) { return sem::neg(a, (o & FlushBit) != 0); };
constexpr auto smaller = [](uint32_t o, auto a, auto b) { return sem::min(a, b, minMaxOptions(o)); };
constexpr auto larger = [](uint32_t o, auto a, auto b) { return sem::max(a, b, minMaxOptions(o)); };
constexpr auto signOf = [](uint32_t, auto a, auto b) { return sem::copysign(a, b); };

constexpr auto fp32 = InstructionClass::Float;
constexpr auto fp64 = InstructionClass::Double;
constexpr auto sfu = InstructionClass::Special;

#define WEFT_ROUNDED32 "rnd=rn|rz|rm|rp? ftz? sat? type=f32"
#define WEFT_ROUNDED64 "rnd=rn|rz|rm|rp? type=f64"
#define WEFT_MUST32 "rnd=rn|rz|rm|rp ftz? sat? type=f32"
#define WEFT_MUST64 "rnd=rn|rz|rm|rp type=f64"
#define WEFT_MINMAX "ftz? NaN? xorsign? abs? type=f32"

const Form forms[] = {
    {"add", WEFT_ROUNDED32, "d:type s:type s:type", fp32, bindRounded<addNear, addDirected, 2>},
    {"add", WEFT_ROUNDED64, "d:type s:type s:type", fp64, bindRounded<addNear, addDirected, 2>},
    {"sub", WEFT_ROUNDED32, "d:type s:type s:type", fp32, bindRounded<subNear, subDirected, 2>},
    {"sub", WEFT_ROUNDED64, "d:type s:type s:type", fp64, bindRounded<subNear, subDirected, 2>},
    {"mul", WEFT_ROUNDED32, "d:type s:type s:type", fp32, bindRounded<mulNear, mulDirected, 2>},
    {"mul", WEFT_ROUNDED64, "d:type s:type s:type", fp64, bindRounded<mulNear, mulDirected, 2>},
    {"fma", WEFT_MUST32, "d:type s:type s:type s:type", fp32, bindRounded<fmaNear, fmaDirected, 3>},
    {"fma", WEFT_MUST64, "d:type s:type s:type s:type", fp64, bindRounded<fmaNear, fmaDirected, 3>},
    {"mad", WEFT_MUST32, "d:type s:type s:type s:type", fp32, bindRounded<fmaNear, fmaDirected, 3>},
    {"mad", WEFT_MUST64, "d:type s:type s:type s:type", fp64, bindRounded<fmaNear, fmaDirected, 3>},
    {"div", "rnd=rn|rz|rm|rp ftz? type=f32", "d:type s:type s:type", fp32, bindRounded<divNear, divDirected, 2>},
    {"div", WEFT_MUST64, "d:type s:type s:type", fp64, bindRounded<divNear, divDirected, 2>},
    {"rcp", "rnd=rn|rz|rm|rp ftz? type=f32", "d:type s:type", fp32, bindRounded<rcpNear, rcpDirected, 1>},
    {"rcp", WEFT_MUST64, "d:type s:type", fp64, bindRounded<rcpNear, rcpDirected, 1>},
    {"sqrt", "rnd=rn|rz|rm|rp ftz? type=f32", "d:type s:type", fp32, bindRounded<sqrtNear, sqrtDirected, 1>},
    {"sqrt", WEFT_MUST64, "d:type s:type", fp64, bindRounded<sqrtNear, sqrtDirected, 1>},
    {"abs", "ftz? type=f32", "d:type s:type", fp32, bindFloat<absolute, 1>},
    {"abs", "type=f64", "d:type s:type", fp64, bindFloat<absolute, 1>},
    {"neg", "ftz? type=f32", "d:type s:type", fp32, bindFloat<negated, 1>},
    {"neg", "type=f64", "d:type s:type", fp64, bindFloat<negated, 1>},
    {"min", WEFT_MINMAX, "d:type s:type s:type", fp32, bindFloat<smaller, 2>},
    {"min", "type=f64", "d:type s:type s:type", fp64, bindFloat<smaller, 2>},
    {"max", WEFT_MINMAX, "d:type s:type s:type", fp32, bindFloat<larger, 2>},
    {"max", "type=f64", "d:type s:type s:type", fp64, bindFloat<larger, 2>},
    {"copysign", "type=f32", "d:type s:type s:type", fp32, bindFloat<signOf, 2>},
    {"copysign", "type=f64", "d:type s:type s:type", fp64, bindFloat<signOf, 2>},
    {"testp", "test=finite|infinite|number|notanumber|normal|subnormal type=f32|f64", "D s:type", fp32, bindTestp},
    {"ex2", "approx ftz? type=f32", "d:type s:type", sfu, bindApproximate<sem::ex2Approx, sem::ex2Farthest, float>},
    {"lg2", "approx ftz? type=f32", "d:type s:type", sfu, bindApproximate<sem::lg2Approx, sem::lg2Farthest, float>},
    {"sin", "approx ftz? type=f32", "d:type s:type", sfu, bindApproximate<sem::sinApprox, sem::sinFarthest, float>},
    {"cos", "approx ftz? type=f32", "d:type s:type", sfu, bindApproximate<sem::cosApprox, sem::cosFarthest, float>},
    {"tanh", "approx type=f32", "d:type s:type", sfu, bindApproximate<tangent, sem::tanhFarthest, float>},
    {"rcp", "approx ftz? type=f32", "d:type s:type", sfu, bindApproximate<sem::rcpApprox, sem::rcpFarthest, float>},
    {"rsqrt", "approx ftz? type=f32", "d:type s:type", sfu, bindApproximate<inverseRoot, sem::rsqrtFarthest, float>},
    {"sqrt", "approx ftz? type=f32", "d:type s:type", sfu, bindApproximate<sem::sqrtApprox, sem::sqrtFarthest, float>},
    {"div", "approx ftz? type=f32", "d:type s:type s:type", sfu,
     bindApproximate<sem::divApprox, sem::divFarthest, float, float>},
    {"div", "full ftz? type=f32", "d:type s:type s:type", sfu,
     bindApproximate<sem::divFull, sem::divFarthest, float, float>},
    {"rcp", "approx ftz type=f64", "d:type s:type", sfu,
     bindLanes<[](double a) { return sem::rcpGross(a); }, double, double>},
    {"rsqrt", "approx ftz type=f64", "d:type s:type", sfu,
     bindLanes<[](double a) { return sem::rsqrtGross(a); }, double, double>},
    {"rsqrt", "approx type=f64", "d:type s:type", sfu,
     bindLanes<[](double a) { return sem::rsqrtApprox(a); }, double, double>},
};

} // namespace

std::span<const Form> floatForms() { return forms; }

} // namespace weft::simulator::machine
