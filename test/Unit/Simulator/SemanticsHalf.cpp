// Part of Weft. SPDX-License-Identifier: Apache-2.0
// f16 and bf16 against tables of every value, and arithmetic against f64 and 113-bit sums rounded by search.
#include "runtime/Simulator/Semantics/Half.h"
#include "test/Unit/Simulator/Random.h"
#include "test/Unit/Simulator/SmallFloats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weft::simulator::semantics {
namespace {

using Quad = __float128;

struct F16 {
  using Format = HalfFormat;
  static const test::SmallFloats &table() { return test::halfs(); }
};
struct BF16 {
  using Format = BfloatFormat;
  static const test::SmallFloats &table() { return test::bfloats(); }
};

template <typename P> class Half : public testing::Test {
public:
  using F = typename P::Format;
  test::Random random;

  /// The bits that an exact value rounds to.
  static uint16_t rounded(Quad exact, bool negativeZero = false) {
    const bool negative = exact < 0 || (exact == 0 && negativeZero);
    const Quad magnitude = exact < 0 ? -exact : exact;
    const auto &table = P::table();
    if (magnitude >= table.past)
      return uint16_t(F::infinity | negative << 15);
    unsigned low = table.below(double(magnitude)); // one too high where the conversion rounded up to a table value
    if (Quad(table.at(low)) > magnitude)
      --low;
    const Quad under = magnitude - table.at(low), over = Quad(table.at(low + 1)) - magnitude;
    return uint16_t((under < over || (under == over && low % 2 == 0) ? low : low + 1) | negative << 15);
  }
  static double value(uint16_t bits) {
    const double magnitude = (bits & 0x7fff) == F::infinity ? INFINITY : P::table().at(bits & 0x7fff);
    return bits & 0x8000 ? -magnitude : magnitude;
  }
  static bool isFinite(uint16_t bits) { return (bits & 0x7fff) < F::infinity; }
  /// Any bits, or bits near another value's so that sums cancel.
  uint16_t bits() { return random.below(3) ? uint16_t(random.word()) : uint16_t(F::one + random.below(64) - 32); }
};
using Formats = testing::Types<F16, BF16>;
TYPED_TEST_SUITE(Half, Formats);

TYPED_TEST(Half, EveryValueWidensAndComesBack) {
  using F = typename TypeParam::Format;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float wide = F::widen(uint16_t(bits));
    if ((bits & 0x7fff) > F::infinity) {
      EXPECT_TRUE(std::isnan(wide));
      EXPECT_EQ(F::narrow(wide), 0x7fff);
    } else {
      ASSERT_EQ(double(wide), this->value(uint16_t(bits))) << bits;
      ASSERT_EQ(std::signbit(wide), bool(bits & 0x8000));
      ASSERT_EQ(F::narrow(wide), bits);
    }
  }
}

TYPED_TEST(Half, NarrowsToNearestEven) {
  using F = typename TypeParam::Format;
  for (unsigned i = 0; i < 2000000; ++i) {
    const float x = this->random.real();
    if (!std::isnan(x)) {
      ASSERT_EQ(F::narrow(x), std::isinf(x) ? uint16_t(F::infinity | (x < 0) << 15) : this->rounded(x, std::signbit(x)))
          << x;
    }
  }
  for (unsigned bits = 0; bits < F::infinity; ++bits) { // the ties, and their neighbours
    const float tie = float((this->value(uint16_t(bits)) + TypeParam::table().at(bits + 1)) / 2);
    for (float x : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, INFINITY)})
      ASSERT_EQ(F::narrow(x), this->rounded(x)) << x;
  }
}

TYPED_TEST(Half, ArithmeticRoundsOnce) {
  using F = typename TypeParam::Format;
  for (unsigned i = 0; i < 500000; ++i) {
    const uint16_t a = this->bits(), b = this->bits(), c = this->bits();
    if (!this->isFinite(a) || !this->isFinite(b) || !this->isFinite(c))
      continue;
    const Quad x = this->value(a), y = this->value(b), z = this->value(c);
    const bool productSign = (a ^ b) >> 15;
    ASSERT_EQ(addHalf<F>(a, b), this->rounded(x + y, (a & b) >> 15)) << a << ' ' << b;
    ASSERT_EQ(subHalf<F>(a, b), this->rounded(x - y, (a & ~b & 0x8000))) << a << ' ' << b;
    ASSERT_EQ(mulHalf<F>(a, b), this->rounded(x * y, productSign)) << a << ' ' << b;
    const bool bothNegative = productSign && c >> 15;
    // x * y + z is exact in 113 bits for f16; a bf16 sum is skipped where it is not
    const Quad sum = x * y + z;
    if (sum - x * y == z && sum - z == x * y) {
      ASSERT_EQ(fmaHalf<F>(a, b, c), this->rounded(sum, x * y == 0 && z == 0 ? bothNegative : false))
          << a << ' ' << b << ' ' << c;
    }
  }
}

/// A sum whose low part decides a tie: rounding twice would lose it.
TEST(HalfEdges, FmaDoesNotRoundTwice) {
  // The product is 2^-11 (1 - 2^-20), just less than half an ulp of c = 1 + 2^-10: f32 would round the sum to the tie,
  // and the tie to the even 1 + 2^-9.
  const uint16_t a = floatToHalf(0x1p-11f + 0x1p-21f), b = floatToHalf(1.0f - 0x1p-10f),
                 c = floatToHalf(1.0f + 0x1p-10f);
  EXPECT_EQ(fmaHalf<HalfFormat>(a, b, c), c);
  EXPECT_EQ(fmaHalf<HalfFormat>(a, floatToHalf(1.0f), c), c + 1);
}

TYPED_TEST(Half, ModifiersAndNaN) {
  using F = typename TypeParam::Format;
  const uint16_t one = F::one, two = uint16_t(F::one + (F::one == 0x3c00 ? 0x400 : 0x80)),
                 minus = 0xffff & (one | 0x8000);
  EXPECT_EQ(addHalf<F>(one, one), two);
  EXPECT_EQ(addHalf<F>(one, one, false, true), one); // saturated
  EXPECT_EQ(addHalf<F>(minus, 0, false, true), 0);
  EXPECT_EQ(addHalf<F>(F::infinity, uint16_t(F::infinity | 0x8000)), 0x7fff);
  EXPECT_EQ(addHalf<F>(0x7fff, one, false, true), 0); // .sat turns NaN into +0
  EXPECT_EQ(fmaHalf<F>(one, minus, 0, false, false, true), 0);
  EXPECT_EQ(fmaHalf<F>(one, 0x7fff, 0, false, false, true), 0x7fff);
  EXPECT_EQ(addHalf<F>(1, 0, true), 0); // flushed
  EXPECT_EQ(addHalf<F>(0x8001, 0x8000, true), 0x8000);
  EXPECT_EQ(addHalf<F>(1, 1), 2);
  EXPECT_EQ(negHalf(0x7fff), 0xffff);
  EXPECT_EQ(absHalf(0x8001), 1);
}

TYPED_TEST(Half, MinMax) {
  using F = typename TypeParam::Format;
  for (unsigned i = 0; i < 200000; ++i) {
    const uint16_t a = this->bits(), b = this->bits();
    const bool aNaN = (a & 0x7fff) > F::infinity, bNaN = (b & 0x7fff) > F::infinity;
    if (aNaN || bNaN) {
      const uint16_t other = aNaN && bNaN ? 0x7fff : aNaN ? b : a;
      EXPECT_EQ(minHalf<F>(a, b), other);
      EXPECT_EQ(maxHalf<F>(a, b), other);
      EXPECT_EQ(maxHalf<F>(a, b, {.propagateNaN = true}), 0x7fff);
      continue;
    }
    const double x = this->value(a), y = this->value(b);
    const bool less = x < y || (x == y && std::signbit(x) > std::signbit(y));
    EXPECT_EQ(minHalf<F>(a, b), less ? a : b);
    EXPECT_EQ(maxHalf<F>(a, b), less ? b : a);
    const uint16_t larger = uint16_t(std::max(a & 0x7fff, b & 0x7fff));
    EXPECT_EQ(maxHalf<F>(a, b, {.xorSign = true}), larger | ((a ^ b) & 0x8000));
  }
}

TEST(HalfEdges, Packing) {
  EXPECT_EQ(eachHalf([](uint16_t a, uint16_t b) { return addHalf<HalfFormat>(a, b); }, 0x3c004000, 0x3c003c00),
            0x40004200u);
  EXPECT_EQ(eachHalf(negHalf, 0x3c008000), 0xbc000000u);
}

} // namespace
} // namespace weft::simulator::semantics
