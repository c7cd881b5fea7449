// Part of Weft. SPDX-License-Identifier: Apache-2.0
// f32 and f64 arithmetic in a rounding direction (PTX ISA 9.7.3, .rz .rm .rp): by the host's rounding mode, so
// exact but slow. Inputs are flushed before and results finished after, as in Float.h.
#pragma once

#include "runtime/Simulator/Semantics/Float.h"

namespace weft::simulator::semantics {

/// Where a result that does not fit goes: PTX's .rn, .rz, .rm, .rp; .rna (ties away from zero) for tf32 only.
enum class Rounding : uint8_t { NearestEven, Zero, Down, Up, NearestAway };

/// Each operation with its result rounded in `rounding`, which is no NearestAway.
template <std::floating_point T> T addRounded(Rounding rounding, T a, T b, FloatOptions options = {});
template <std::floating_point T> T subRounded(Rounding rounding, T a, T b, FloatOptions options = {});
template <std::floating_point T> T mulRounded(Rounding rounding, T a, T b, FloatOptions options = {});
template <std::floating_point T> T fmaRounded(Rounding rounding, T a, T b, T c, FloatOptions options = {});
template <std::floating_point T> T divRounded(Rounding rounding, T a, T b, FloatOptions options = {});
template <std::floating_point T> T rcpRounded(Rounding rounding, T a, FloatOptions options = {});
template <std::floating_point T> T sqrtRounded(Rounding rounding, T a, FloatOptions options = {});

} // namespace weft::simulator::semantics
