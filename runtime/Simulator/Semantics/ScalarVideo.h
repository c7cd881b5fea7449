// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Scalar video instructions (PTX ISA 9.7.17 "vadd, vsub, vabsdiff, vmin, vmax, vshl, vshr, vmad, vset") for one lane.
#pragma once

#include "runtime/Simulator/Semantics/Video.h"

#include <cstdint>

namespace weft::simulator::semantics {

/// What becomes of the first operation's value: the result; or the result of a second one with c; or a part of c.
enum class VideoSecond : uint8_t { None, Add, Min, Max, Merge };

/// A byte, a halfword, or all of a word: `.b0` to `.b3`, `.h0`, `.h1`.
struct WordPart {
  uint8_t shift = 0, bits = 32;
};

/// The qualifiers of one scalar video instruction.
struct ScalarVideoForm {
  VideoOp op = VideoOp::Add;
  bool dSigned = false, aSigned = false, bSigned = false; ///< .s32, else .u32
  bool saturate = false;
  bool wraps = false; ///< shifts: .wrap, else .clamp
  VideoSecond second = VideoSecond::None;
  WordPart a, b, d; ///< d: what `Merge` writes
  // vmad.
  bool plusOne = false, negateProduct = false, negateAddend = false; ///< .po; -a or -b, but not both; -c
  uint8_t scale = 0;                                                 ///< bits: .shr7, .shr15
};

WEFT_LANE int64_t partOf(uint32_t word, WordPart part, bool isSigned) {
  const uint64_t field = uint64_t(word >> part.shift) & ((uint64_t{1} << part.bits) - 1);
  return isSigned ? int64_t(field << (64 - part.bits)) >> (64 - part.bits) : int64_t(field);
}

/// `value` limited to what `bits` bits hold.
WEFT_LANE int64_t clampTo(__int128 value, unsigned bits, bool isSigned) {
  const __int128 high = (__int128{1} << (isSigned ? bits - 1 : bits)) - 1, low = isSigned ? -high - 1 : 0;
  return int64_t(value < low ? low : value > high ? high : value);
}

/// The first operation, before saturation; shifted values have up to 64 bits.
WEFT_LANE __int128 scalarVideoValue(const ScalarVideoForm &form, int64_t a, int64_t b) {
  const int64_t by = form.wraps ? b & 31 : b > 32 ? 32 : b;
  switch (form.op) {
  case VideoOp::Shl:
    return __int128(a) * (__int128{1} << by);
  case VideoOp::Shr:
    return a >> by;
  default:
    return videoElement(form.op, a, b);
  }
}

/// vmad: ±(a·b) ± c (+ 1), shifted right, in 64 bits of which the low 32 are the result.
WEFT_LANE uint32_t videoMad(const ScalarVideoForm &form, int64_t a, int64_t b, uint32_t c) {
  const bool isSigned = form.aSigned || form.bSigned || form.negateProduct || form.negateAddend;
  const __int128 addend = isSigned ? __int128(int32_t(c)) : __int128(c);
  const __int128 product = __int128(a) * b;
  // Negation is that of two's complement; .po stands in place of one.
  const __int128 sum =
      (form.negateProduct ? -product : product) + (form.negateAddend ? -addend : addend) + (form.plusOne ? 1 : 0);
  const auto scaled = int64_t(sum >> form.scale);
  if (!form.saturate)
    return uint32_t(scaled);
  return uint32_t(isSigned ? clampTo(scaled, 32, true) : clampTo(uint64_t(scaled), 32, false));
}

WEFT_LANE uint32_t scalarVideo(const ScalarVideoForm &form, uint32_t aWord, uint32_t bWord, uint32_t c) {
  const int64_t a = partOf(aWord, form.a, form.aSigned), b = partOf(bWord, form.b, form.bSigned);
  if (form.op == VideoOp::Mad)
    return videoMad(form, a, b, c);
  const __int128 value = scalarVideoValue(form, a, b);
  const uint32_t first = form.saturate ? uint32_t(clampTo(value, form.d.bits, form.dSigned)) : uint32_t(value);
  const bool less = form.dSigned ? int32_t(first) < int32_t(c) : first < c;
  switch (form.second) {
  case VideoSecond::None:
    return first;
  case VideoSecond::Add:
    return first + c;
  case VideoSecond::Min:
    return less ? first : c;
  case VideoSecond::Max:
    return less ? c : first;
  case VideoSecond::Merge: {
    const auto field = uint32_t(((uint64_t{1} << form.d.bits) - 1) << form.d.shift);
    return (c & ~field) | (first << form.d.shift & field);
  }
  }
  return 0;
}

} // namespace weft::simulator::semantics
