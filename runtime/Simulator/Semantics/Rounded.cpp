// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Arithmetic under the host's rounding modes. Operands and results are volatile, so that no computation moves across
// the change of mode or is folded at compile time.
#include "runtime/Simulator/Semantics/Rounded.h"

#include <cfenv>
#include <cmath>

namespace weft::simulator::semantics {
namespace {

int modeOf(Rounding rounding) {
  switch (rounding) {
  case Rounding::Zero:
    return FE_TOWARDZERO;
  case Rounding::Down:
    return FE_DOWNWARD;
  case Rounding::Up:
    return FE_UPWARD;
  case Rounding::NearestEven:
  case Rounding::NearestAway:
    return FE_TONEAREST;
  }
  return FE_TONEAREST;
}

/// `operation` of the flushed operands in the mode of `rounding`.
template <typename T, typename Operation, typename... Operands>
T inMode(Rounding rounding, FloatOptions options, Operation operation, Operands... operands) {
  const int before = std::fegetround();
  std::fesetround(modeOf(rounding));
  const volatile T values[] = {flush(operands, options.flush)...};
  volatile T result = operation(values);
  std::fesetround(before);
  return finish(T(result), options);
}

} // namespace

template <std::floating_point T> T addRounded(Rounding rounding, T a, T b, FloatOptions options) {
  return inMode<T>(rounding, options, [](const volatile T *v) { return T(v[0]) + T(v[1]); }, a, b);
}
template <std::floating_point T> T subRounded(Rounding rounding, T a, T b, FloatOptions options) {
  return inMode<T>(rounding, options, [](const volatile T *v) { return T(v[0]) - T(v[1]); }, a, b);
}
template <std::floating_point T> T mulRounded(Rounding rounding, T a, T b, FloatOptions options) {
  return inMode<T>(rounding, options, [](const volatile T *v) { return T(v[0]) * T(v[1]); }, a, b);
}
template <std::floating_point T> T fmaRounded(Rounding rounding, T a, T b, T c, FloatOptions options) {
  return inMode<T>(rounding, options, [](const volatile T *v) { return std::fma(T(v[0]), T(v[1]), T(v[2])); }, a, b, c);
}
template <std::floating_point T> T divRounded(Rounding rounding, T a, T b, FloatOptions options) {
  return inMode<T>(rounding, options, [](const volatile T *v) { return T(v[0]) / T(v[1]); }, a, b);
}
template <std::floating_point T> T rcpRounded(Rounding rounding, T a, FloatOptions options) {
  return divRounded(rounding, T(1), a, options);
}
template <std::floating_point T> T sqrtRounded(Rounding rounding, T a, FloatOptions options) {
  return inMode<T>(rounding, options, [](const volatile T *v) { return squareRoot(T(v[0])); }, a);
}

#define WEFT_INSTANTIATE(T)                                                                                            \
  template T addRounded<T>(Rounding, T, T, FloatOptions);                                                              \
  template T subRounded<T>(Rounding, T, T, FloatOptions);                                                              \
  template T mulRounded<T>(Rounding, T, T, FloatOptions);                                                              \
  template T fmaRounded<T>(Rounding, T, T, T, FloatOptions);                                                           \
  template T divRounded<T>(Rounding, T, T, FloatOptions);                                                              \
  template T rcpRounded<T>(Rounding, T, FloatOptions);                                                                 \
  template T sqrtRounded<T>(Rounding, T, FloatOptions);
WEFT_INSTANTIATE(float)
WEFT_INSTANTIATE(double)
#undef WEFT_INSTANTIATE

} // namespace weft::simulator::semantics
