// Part of Weft. SPDX-License-Identifier: Apache-2.0
// SIMD video instructions (PTX ISA 9.7.18 "vadd2, vadd4, ..., vset4") for one lane.
#pragma once

#include "runtime/Simulator/Semantics/Lane.h"

#include <array>
#include <cstdint>

namespace weft::simulator::semantics {

/// What a video instruction does to a pair of elements; Eq to Ge are vset's comparisons.
enum class VideoOp : uint8_t { Add, Sub, Average, AbsDiff, Min, Max, Eq, Ne, Lt, Le, Gt, Ge, Shl, Shr, Mad };

/// The qualifiers of one SIMD video instruction with N elements (2 halfwords or 4 bytes).
template <unsigned N> struct VideoForm {
  VideoOp op = VideoOp::Add;
  bool dSigned = false, aSigned = false, bSigned = false; ///< .s32, else .u32
  bool saturate = false;                                  ///< .sat: to the range of the destination's elements
  bool accumulate = false;                                ///< .add: c plus the chosen elements, else they go into c
  std::array<uint8_t, N> aSelect{}; ///< .asel: for each element, lowest first, which of the elements of b:a it is
  std::array<uint8_t, N> bSelect{}; ///< .bsel
  uint8_t mask = (1u << N) - 1;     ///< which elements of the destination are written or added

  /// The defaults: a's elements in order, then b's.
  constexpr VideoForm() {
    for (unsigned i = 0; i < N; ++i)
      aSelect[i] = uint8_t(i), bSelect[i] = uint8_t(N + i);
  }
};

/// One element's result before it is clamped, of the ops that SIMD and scalar instructions have; `Integer` holds it.
template <typename Integer> WEFT_LANE Integer videoElement(VideoOp op, Integer a, Integer b) {
  switch (op) {
  case VideoOp::Add:
    return a + b;
  case VideoOp::Sub:
    return a - b;
  case VideoOp::Average:
    return (a + b + (a + b >= 0)) >> 1;
  case VideoOp::AbsDiff:
    return a < b ? b - a : a - b;
  case VideoOp::Min:
    return a < b ? a : b;
  case VideoOp::Max:
    return a < b ? b : a;
  case VideoOp::Eq:
    return a == b;
  case VideoOp::Ne:
    return a != b;
  case VideoOp::Lt:
    return a < b;
  case VideoOp::Le:
    return a <= b;
  case VideoOp::Gt:
    return a > b;
  case VideoOp::Ge:
    return a >= b;
  case VideoOp::Shl:
  case VideoOp::Shr:
  case VideoOp::Mad:
    break; // of scalar instructions only
  }
  return 0;
}

/// d of `vop2` (N = 2) or `vop4` (N = 4).
template <unsigned N> WEFT_LANE uint32_t video(const VideoForm<N> &form, uint32_t a, uint32_t b, uint32_t c) {
  constexpr unsigned bits = 32 / N;
  constexpr uint32_t mask = (1u << bits) - 1;
  const uint64_t source = uint64_t(b) << 32 | a;
  const auto extract = [&](unsigned index, bool isSigned) {
    const uint32_t element = uint32_t(source >> index * bits) & mask;
    return isSigned ? int32_t(element << (32 - bits)) >> (32 - bits) : int32_t(element);
  };
  const int32_t high = form.dSigned ? int32_t(mask >> 1) : int32_t(mask), low = form.dSigned ? -high - 1 : 0;
  uint32_t result = c;
  for (unsigned i = 0; i < N; ++i) {
    if (!(form.mask >> i & 1))
      continue;
    int32_t value =
        videoElement(form.op, extract(form.aSelect[i], form.aSigned), extract(form.bSelect[i], form.bSigned));
    if (form.saturate)
      value = value < low ? low : value > high ? high : value;
    result = form.accumulate ? result + uint32_t(value)
                             : (result & ~(mask << i * bits)) | (uint32_t(value) & mask) << i * bits;
  }
  return result;
}

} // namespace weft::simulator::semantics
