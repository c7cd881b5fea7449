// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Conversions against searches in tables of every value of the format, and against 128-bit integers.
#include "runtime/Simulator/Semantics/Convert.h"
#include "test/Unit/Simulator/Random.h"
#include "test/Unit/Simulator/SmallFloats.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weft::simulator::semantics {
namespace {

constexpr Rounding directions[] = {Rounding::NearestEven, Rounding::Zero, Rounding::Down, Rounding::Up};

/// The magnitude that |x| rounds to; one past the largest stands for overflow.
unsigned roundedMagnitude(const test::SmallFloats &table, double x, Rounding rounding) {
  const double magnitude = std::fabs(x);
  const unsigned low = table.below(std::min(magnitude, table.past));
  const bool exact = table.at(low) == magnitude;
  switch (rounding) {
  case Rounding::NearestEven:
    return table.nearest(magnitude);
  case Rounding::NearestAway:
    return table.nearestAway(magnitude);
  case Rounding::Zero:
    return low;
  case Rounding::Down:
    return std::signbit(x) && !exact ? low + 1 : low;
  case Rounding::Up:
    return std::signbit(x) || exact ? low : low + 1;
  }
  return 0;
}

struct Target {
  const char *name;
  const test::SmallFloats &table;
  uint32_t (*convert)(double, ConvertOptions);
  uint32_t sign, infinity, nan;
};

const test::SmallFloats &e4m3() {
  static const test::SmallFloats table(4, 3, 0x7e);
  return table;
}
const test::SmallFloats &e5m2() {
  static const test::SmallFloats table(5, 2, 0x7b);
  return table;
}
const test::SmallFloats &tf32() {
  static const test::SmallFloats table(8, 10, 0x3fbff);
  return table;
}

uint32_t toHalf(double x, ConvertOptions options) { return convertToHalf(x, options); }
uint32_t toBfloat(double x, ConvertOptions options) { return convertToBfloat(x, options); }
uint32_t toTF32(double x, ConvertOptions options) { return convertToTF32(float(x), options) >> 13; }

double anyFloat(test::Random &random) {
  for (;;)
    if (const float x = random.real(); !std::isnan(x))
      return x;
}

TEST(Convert, FloatsInEveryDirection) {
  test::Random random;
  const Target targets[] = {{"f16", test::halfs(), toHalf, 0x8000, 0x7c00, 0x7fff},
                            {"bf16", test::bfloats(), toBfloat, 0x8000, 0x7f80, 0x7fff},
                            {"tf32", tf32(), toTF32, 0x40000, 0x3fc00, 0x3ffff}};
  for (const Target &target : targets) {
    SCOPED_TRACE(target.name);
    for (int i = 0; i < 300000; ++i) {
      const double x = anyFloat(random);
      const Rounding rounding = i % 5 == 4 ? Rounding::NearestAway : directions[i % 5];
      const uint32_t sign = std::signbit(x) ? target.sign : 0, largest = uint32_t(target.table.values.size() - 1);
      uint32_t want = std::isinf(x) ? target.infinity : roundedMagnitude(target.table, x, rounding);
      ASSERT_EQ(target.convert(x, {.rounding = rounding}), want | sign) << x << " rounding " << int(rounding);
      ASSERT_EQ(target.convert(x, {.rounding = rounding, .satfinite = true}), std::min(want, largest) | sign) << x;
      const uint32_t relu = target.convert(x, {.rounding = rounding, .relu = true});
      ASSERT_EQ(relu, sign ? 0 : want) << x;
    }
    EXPECT_EQ(target.convert(NAN, {}), target.nan);
    EXPECT_EQ(target.convert(NAN, {.satfinite = true, .relu = true}), target.nan);
  }
}

/// The fast paths agree with the general one.
TEST(Convert, NearestHalfIsFloatToHalf) {
  test::Random random;
  for (int i = 0; i < 500000; ++i) {
    const float x = random.real();
    ASSERT_EQ(convertToHalf(x), floatToHalf(x));
    ASSERT_EQ(convertToBfloat(x), floatToBfloat(x));
    ASSERT_EQ(convertToHalf(x, {.saturate = true}), x > 0.0f ? floatToHalf(std::fmin(x, 1.0f)) : 0);
  }
}

/// f64 to f16 rounds once: a f64 just beyond a tie of f16 must not become the tie first.
TEST(Convert, DoubleToHalfRoundsOnce) {
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {
    const double tie = (test::halfs().at(bits) + test::halfs().at(bits + 1)) / 2;
    EXPECT_EQ(convertToHalf(std::nextafter(tie, 0.0)), bits);
    EXPECT_EQ(convertToHalf(std::nextafter(tie, INFINITY)), bits + 1);
    EXPECT_EQ(convertToHalf(tie), bits % 2 ? bits + 1 : bits);
  }
}

TEST(Convert, EightBitFloats) {
  test::Random random;
  for (unsigned bits = 0; bits < 256; ++bits) {
    const unsigned magnitude = bits & 0x7f;
    const double sign = bits & 0x80 ? -1 : 1;
    if (magnitude < 0x7f) {
      const double value = sign * e4m3().at(magnitude);
      EXPECT_EQ(double(halfToFloat(halfFromE4M3(uint8_t(bits)))), value);
      EXPECT_EQ(convertToE4M3(value), bits);
    }
    if (magnitude < 0x7c) {
      const double value = sign * e5m2().at(magnitude);
      EXPECT_EQ(double(halfToFloat(halfFromE5M2(uint8_t(bits)))), value);
      EXPECT_EQ(convertToE5M2(value), bits);
    }
  }
  EXPECT_EQ(halfFromE4M3(0x7f), 0x7fff);
  EXPECT_EQ(halfFromE5M2(0xfc), 0xfc00);
  EXPECT_EQ(halfFromE5M2(0x7d), 0x7fff);
  EXPECT_EQ(convertToE4M3(NAN), 0x7f);
  EXPECT_EQ(convertToE4M3(-INFINITY), 0xfe);
  EXPECT_EQ(convertToE5M2(INFINITY), 0x7b);
  EXPECT_EQ(convertToE5M2(-3.0, true), 0);
  for (int i = 0; i < 300000; ++i) {
    const double x = anyFloat(random);
    const unsigned sign = std::signbit(x) ? 0x80 : 0;
    ASSERT_EQ(convertToE4M3(x), std::min(e4m3().nearest(std::fabs(x)), 0x7eu) | sign) << x;
    ASSERT_EQ(convertToE5M2(x), std::min(e5m2().nearest(std::fabs(x)), 0x7bu) | sign) << x;
  }
}

TEST(Convert, DoubleToFloat) {
  test::Random random;
  for (int i = 0; i < 500000; ++i) {
    const double x = anyFloat(random) * (1 + double(random.below(1000)) * 0x1p-40);
    const float down = convertToFloat(x, {.rounding = Rounding::Down}),
                up = convertToFloat(x, {.rounding = Rounding::Up});
    ASSERT_TRUE(double(down) <= x && double(up) >= x) << x;
    ASSERT_TRUE(down == up || std::nextafter(down, INFINITY) == up) << x;
    ASSERT_EQ(convertToFloat(x, {.rounding = Rounding::Zero}), x > 0 ? down : up);
    ASSERT_EQ(convertToFloat(x), float(x));
  }
  EXPECT_EQ(convertToFloat(0x1p-140, {.flush = true}), 0.0f);
  EXPECT_EQ(convertToFloat(7.5, {.saturate = true}), 1.0f);
  EXPECT_EQ(std::bit_cast<uint32_t>(convertToFloat(NAN)), 0x7fffffffu);
  EXPECT_EQ(convertToDouble(0x1p-140f, {.flush = true}), 0.0);
}

template <typename T> class ConvertInteger : public testing::Test {};
using Integers = testing::Types<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>;
TYPED_TEST_SUITE(ConvertInteger, Integers);

/// `x` rounded and clamped, by the C library and 128 bits.
template <typename T> T toInteger(Rounding rounding, double x) {
  const double rounded = rounding == Rounding::NearestEven ? std::nearbyint(x)
                         : rounding == Rounding::Zero      ? std::trunc(x)
                         : rounding == Rounding::Down      ? std::floor(x)
                                                           : std::ceil(x);
  const __int128 low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  if (std::fabs(rounded) > 0x1p100)
    return rounded < 0 ? T(low) : T(high);
  const auto value = __int128(rounded);
  return T(value < low ? low : value > high ? high : value);
}

TYPED_TEST(ConvertInteger, FromFloats) {
  using T = TypeParam;
  test::Random random;
  for (int i = 0; i < 200000; ++i) {
    const int width = sizeof(T) * 8;
    const double near = std::ldexp(double(int64_t(random.bits())), int(random.below(unsigned(width + 3))) - 63);
    const float narrow = random.below(3) ? float(near) : random.real();
    for (Rounding rounding : directions) {
      ASSERT_EQ(convertToInteger<T>(rounding, near), toInteger<T>(rounding, near)) << near;
      if (!std::isnan(narrow)) {
        ASSERT_EQ(convertToInteger<T>(rounding, narrow), toInteger<T>(rounding, narrow)) << narrow;
      }
    }
  }
  // PTX ISA "cvt": NaN gives zero, or the top bit alone where a 64-bit type takes part
  const T top = T(std::make_unsigned_t<T>(1) << (sizeof(T) * 8 - 1));
  EXPECT_EQ(convertToInteger<T>(Rounding::Zero, double(NAN)), top);
  EXPECT_EQ(convertToInteger<T>(Rounding::Zero, std::numeric_limits<float>::quiet_NaN()), sizeof(T) == 8 ? top : T(0));
  EXPECT_EQ(convertToInteger<T>(Rounding::Up, 0x1p-140f), T(1));
  EXPECT_EQ(convertToInteger<T>(Rounding::Up, 0x1p-140f, true), T(0));
}

TYPED_TEST(ConvertInteger, ToFloats) {
  using T = TypeParam;
  test::Random random;
  for (int i = 0; i < 100000; ++i) {
    const T value = T(random.bits() >> random.below(64));
    const __float128 exact = value;
    for (Rounding rounding : directions) {
      const auto check = [&]<typename F>(F got) {
        const F below = std::nextafter(got, F(-INFINITY)), above = std::nextafter(got, F(INFINITY));
        const bool down = rounding == Rounding::Down || (rounding == Rounding::Zero && value > 0);
        if (rounding == Rounding::NearestEven) {
          ASSERT_TRUE(exact - got <= above - __float128(got) - (exact - got) &&
                      got - exact <= got - __float128(below) - (got - exact));
        } else {
          ASSERT_TRUE(down ? got <= exact && exact < above : got >= exact && exact > below);
        }
      };
      check(integerToFloat(rounding, value));
      check(integerToDouble(rounding, value));
      if (testing::Test::HasFatalFailure())
        FAIL() << "rounding " << int(rounding);
      const double sticky = integerToOddDouble(value);
      const uint32_t magnitude = roundedMagnitude(test::bfloats(), double(sticky), rounding);
      ASSERT_EQ(convertToBfloat(sticky, {.rounding = rounding}), magnitude | (value < 0 ? 0x8000u : 0u));
    }
  }
}

TEST(Convert, IntegerToBfloatRoundsOnce) {
  // 2^63 + 2^55 is a tie of bf16 (8 bits); one more must break it, though no f64 holds the sum.
  const uint64_t tie = (uint64_t(1) << 63) + (uint64_t(1) << 55);
  EXPECT_EQ(convertToBfloat(integerToOddDouble(tie)), 0x5f00);
  EXPECT_EQ(convertToBfloat(integerToOddDouble(tie + 1)), 0x5f01);
}

TEST(Convert, Integers) {
  EXPECT_EQ((convertInteger<int8_t, int32_t>(300, true)), 127);
  EXPECT_EQ((convertInteger<int8_t, int32_t>(300, false)), 44);
  EXPECT_EQ((convertInteger<uint8_t, int32_t>(-5, true)), 0);
  EXPECT_EQ((convertInteger<uint64_t, int64_t>(-5, true)), 0u);
  EXPECT_EQ((convertInteger<int64_t, uint64_t>(~0ull, true)), INT64_MAX);
  EXPECT_EQ((convertInteger<uint32_t, uint64_t>(1ull << 40, true)), UINT32_MAX);
  EXPECT_EQ((convertInteger<int32_t, uint32_t>(~0u, true)), INT32_MAX);
  EXPECT_EQ((convertInteger<int64_t, int32_t>(-1, false)), -1);
  EXPECT_EQ(convertPack(40000, -40000, 0, 16, true), 0x7fff8000u);
  EXPECT_EQ(convertPack(300, -1, 0x12345678, 8, false), 0x5678ff00u);
  EXPECT_EQ(convertPack(7, -9, 0xab, 4, true), 0xab78u);
}

TEST(Convert, ToIntegral) {
  EXPECT_EQ(roundToIntegral(Rounding::NearestEven, 2.5f), 2.0f);
  EXPECT_EQ(roundToIntegral(Rounding::NearestEven, -3.5), -4.0);
  EXPECT_EQ(roundToIntegral(Rounding::Zero, -3.5f), -3.0f);
  EXPECT_EQ(roundToIntegral(Rounding::Down, -3.5f), -4.0f);
  EXPECT_EQ(roundToIntegral(Rounding::Up, 0x1p-140f), 1.0f);
  EXPECT_TRUE(std::signbit(roundToIntegral(Rounding::Up, -0.5f)));
  EXPECT_EQ(roundToIntegral(Rounding::NearestEven, 0x1p60f), 0x1p60f);
}

} // namespace
} // namespace weft::simulator::semantics
