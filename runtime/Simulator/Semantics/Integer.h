// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Integer arithmetic (PTX ISA 9.7.1 "Integer Arithmetic Instructions") for one lane: T is the instruction's type, as
// uint16_t, int16_t, ... int64_t. Everything wraps where PTX does not saturate, and no input is undefined.
#pragma once

#include "runtime/Simulator/Semantics/Lane.h"

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace weft::simulator::semantics {

/// The unsigned type in which T's arithmetic wraps: at least 32 bits, so that nothing promotes to signed int.
template <typename T> using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

/// The signed or unsigned type of twice the bits.
template <typename T> struct WideType;
template <> struct WideType<uint16_t> {
  using type = uint32_t;
};
template <> struct WideType<int16_t> {
  using type = int32_t;
};
template <> struct WideType<uint32_t> {
  using type = uint64_t;
};
template <> struct WideType<int32_t> {
  using type = int64_t;
};
template <> struct WideType<uint64_t> {
  using type = unsigned __int128;
};
template <> struct WideType<int64_t> {
  using type = __int128;
};
template <typename T> using Wide = WideType<T>::type;

/// `value` clamped to T's range (.sat, and cvt to a narrower integer).
template <typename T, typename From> WEFT_LANE T clampTo(From value) {
  constexpr From low = From(std::numeric_limits<T>::min()), high = From(std::numeric_limits<T>::max());
  return T(value < low ? low : value > high ? high : value);
}

/// PTX ISA "add" and "sub"; with `saturate` (.sat, s32 only in PTX) clamped instead of wrapped.
template <std::integral T> WEFT_LANE T add(T a, T b, bool saturate = false) {
  if (saturate)
    return clampTo<T>(Wide<T>(a) + Wide<T>(b));
  return T(Wrapping<T>(a) + Wrapping<T>(b));
}
template <std::integral T> WEFT_LANE T sub(T a, T b, bool saturate = false) {
  if (saturate)
    return clampTo<T>(Wide<T>(a) - Wide<T>(b));
  return T(Wrapping<T>(a) - Wrapping<T>(b));
}

/// PTX ISA "mul": .lo, .hi and .wide.
template <typename T> WEFT_LANE T mulLo(T a, T b) { return T(Wrapping<T>(a) * Wrapping<T>(b)); }
template <typename T> WEFT_LANE Wide<T> mulWide(T a, T b) { return Wide<T>(a) * Wide<T>(b); }
template <typename T> WEFT_LANE T mulHi(T a, T b) { return T(mulWide(a, b) >> (sizeof(T) * 8)); }

/// PTX ISA "mad": .lo, .hi (with .sat for s32) and .wide.
template <typename T> WEFT_LANE T madLo(T a, T b, T c) { return add(mulLo(a, b), c); }
template <typename T> WEFT_LANE T madHi(T a, T b, T c, bool saturate = false) { return add(mulHi(a, b), c, saturate); }
template <typename T> WEFT_LANE Wide<T> madWide(T a, T b, Wide<T> c) { return add<Wide<T>>(mulWide(a, b), c); }

/// The low 24 bits, sign- or zero-extended to T (uint32_t or int32_t).
template <typename T> WEFT_LANE T low24(T a) { return T(T(uint32_t(a) << 8) >> 8); }

/// PTX ISA "mul24" and "mad24": .lo gives bits 31:0 of the 48-bit product, .hi bits 47:16.
template <typename T> WEFT_LANE T mul24Lo(T a, T b) { return mulLo(low24(a), low24(b)); }
template <typename T> WEFT_LANE T mul24Hi(T a, T b) { return T(mulWide(low24(a), low24(b)) >> 16); }
template <typename T> WEFT_LANE T mad24Lo(T a, T b, T c) { return add(mul24Lo(a, b), c); }
template <typename T> WEFT_LANE T mad24Hi(T a, T b, T c, bool saturate = false) {
  return add(mul24Hi(a, b), c, saturate);
}

/// PTX ISA "sad": c + |a - b|.
template <typename T> WEFT_LANE T sad(T a, T b, T c) {
  return T(Wrapping<T>(c) + (a < b ? Wrapping<T>(b) - Wrapping<T>(a) : Wrapping<T>(a) - Wrapping<T>(b)));
}

/// PTX ISA "div" and "rem". PTX leaves division by zero open; here, as GPUs do, div gives all ones and rem gives a.
/// The most negative number divided by -1 wraps.
template <std::integral T> WEFT_LANE T div(T a, T b) {
  if (b == 0)
    return T(~T(0));
  if constexpr (std::is_signed_v<T>)
    if (b == -1)
      return sub(T(0), a);
  return T(a / b);
}
template <std::integral T> WEFT_LANE T rem(T a, T b) {
  if (b == 0)
    return a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1)
      return 0;
  return T(a % b);
}

/// PTX ISA "abs" and "neg": the most negative number stays.
template <std::signed_integral T> WEFT_LANE T neg(T a) { return T(Wrapping<T>(0) - Wrapping<T>(a)); }
template <std::signed_integral T> WEFT_LANE T abs(T a) { return a < 0 ? neg(a) : a; }

/// PTX ISA "min" and "max", with `relu` never below zero.
template <std::integral T> WEFT_LANE T min(T a, T b, bool relu = false) {
  const T value = b < a ? b : a;
  return relu && value < T(0) ? T(0) : value;
}
template <std::integral T> WEFT_LANE T max(T a, T b, bool relu = false) {
  const T value = a < b ? b : a;
  return relu && value < T(0) ? T(0) : value;
}

/// A sum and the carry flag CC.CF that it leaves.
template <typename T> struct Carried {
  T value;
  bool carry;
  constexpr bool operator==(const Carried &) const = default;
};

/// PTX ISA 9.7.2 "add.cc", "addc": T unsigned; `carry` is the flag before (false for add.cc).
template <std::unsigned_integral T> WEFT_LANE Carried<T> addCarry(T a, T b, bool carry) {
  const T partial = a + b, sum = partial + T(carry);
  return {sum, partial < a || sum < partial};
}

/// PTX ISA 9.7.2 "sub.cc", "subc": a + ~b + 1, or + CC.CF. GPUs leave the carry of that sum in CC.CF: 1 where nothing
/// was borrowed. nvcc's 128-bit division reads it by "addc" after "subc.cc".
template <std::unsigned_integral T> WEFT_LANE Carried<T> subCarry(T a, T b, bool carry) {
  return addCarry<T>(a, T(~b), carry);
}

/// PTX ISA 9.7.2 "mad.cc", "madc": the low or high half of the product (signed or not) plus c plus the flag.
template <typename T, bool High> WEFT_LANE Carried<std::make_unsigned_t<T>> madCarry(T a, T b, T c, bool carry) {
  using U = std::make_unsigned_t<T>;
  return addCarry<U>(U(High ? mulHi(a, b) : mulLo(a, b)), U(c), carry);
}

/// Byte `index` of `word`, sign-extended where `isSigned`.
WEFT_LANE int32_t byteOf(uint32_t word, unsigned index, bool isSigned) {
  const uint32_t byte = word >> index * 8 & 0xff;
  return isSigned ? int32_t(int8_t(byte)) : int32_t(byte);
}

/// PTX ISA "dp4a": c plus the dot product of four bytes.
WEFT_LANE uint32_t dp4a(uint32_t a, bool aSigned, uint32_t b, bool bSigned, uint32_t c) {
  uint32_t sum = c;
  for (unsigned i = 0; i < 4; ++i)
    sum += uint32_t(byteOf(a, i, aSigned) * byteOf(b, i, bSigned));
  return sum;
}

/// PTX ISA "dp2a": c plus two 16-bit parts of a times the low or high two bytes of b.
WEFT_LANE uint32_t dp2a(uint32_t a, bool aSigned, uint32_t b, bool bSigned, uint32_t c, bool high) {
  uint32_t sum = c;
  for (unsigned i = 0; i < 2; ++i) {
    const uint32_t part = a >> i * 16 & 0xffff;
    sum +=
        uint32_t(aSigned ? int32_t(int16_t(part)) : int32_t(part)) * uint32_t(byteOf(b, i + (high ? 2 : 0), bSigned));
  }
  return sum;
}

} // namespace weft::simulator::semantics
