// Part of Weft. SPDX-License-Identifier: Apache-2.0
// f32 and f64 arithmetic against the C library and 113-bit sums; comparisons against their table in the ISA.
#include "runtime/Simulator/Semantics/Compare.h"
#include "runtime/Simulator/Semantics/Float.h"
#include "runtime/Simulator/Semantics/Rounded.h"
#include "test/Unit/Simulator/Random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weft::simulator::semantics {
namespace {

using Quad = __float128;

/// Equal bits, where every NaN of f32 must be the canonical one.
void expectSame(float got, float want) {
  const uint32_t bits = std::isnan(want) ? 0x7fffffff : std::bit_cast<uint32_t>(want);
  ASSERT_EQ(std::bit_cast<uint32_t>(got), bits) << got << " for " << want;
}

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

TEST(Float, ToNearest) {
  test::Random random;
  for (int i = 0; i < 1000000; ++i) {
    const float a = random.real(), b = random.real(), c = random.real();
    expectSame(add(a, b), float(Quad(a) + Quad(b)));
    expectSame(sub(a, b), float(Quad(a) - Quad(b)));
    expectSame(mul(a, b), float(Quad(a) * Quad(b)));
    expectSame(div(a, b), float(Quad(a) / Quad(b)));
    expectSame(fma(a, b, c), float(addToOdd(double(a) * double(b), double(c))));
    expectSame(sqrt(a), std::sqrt(a));
    expectSame(rcp(a), float(1 / Quad(a)));
    if (testing::Test::HasFatalFailure())
      return;
  }
}

TEST(Float, FmaBreaksTiesByTheSmallestPart) {
  for (float sign : {1.0f, -1.0f})
    for (float tiny : {0x1p-60f, 0x1p-100f, 0x1p-149f}) {
      expectSame(fma(sign * (1.0f + 0x1p-23f), 1.0f + 0x1p-1f, tiny), std::fma(sign * (1.0f + 0x1p-23f), 1.5f, tiny));
      expectSame(fma(sign * (1.0f + 0x1p-23f), 1.0f + 0x1p-1f, -tiny), std::fma(sign * (1.0f + 0x1p-23f), 1.5f, -tiny));
      expectSame(fma(tiny, sign, 0x1p-140f), std::fma(tiny, sign, 0x1p-140f));
    }
  EXPECT_TRUE(std::signbit(fma(-0.0f, 1.0f, -0.0f)));
  EXPECT_FALSE(std::signbit(fma(-0.0f, 1.0f, 0.0f)));
  expectSame(fma(INFINITY, 1.0f, -INFINITY), NAN);
  expectSame(fma(0x1p127f, 0x1p127f, -INFINITY), -INFINITY);
  expectSame(fma(0x1p127f, 2.0f, -0x1p127f), 0x1p127f);
}

TEST(Float, FlushAndSaturate) {
  test::Random random;
  for (int i = 0; i < 200000; ++i) {
    const float a = random.real(), b = random.real();
    expectSame(add(a, b, {.flush = true}), flushed(float(Quad(flushed(a)) + Quad(flushed(b)))));
    expectSame(mul(a, b, {.flush = true}), flushed(float(Quad(flushed(a)) * Quad(flushed(b)))));
    const float product = float(Quad(a) * Quad(b));
    expectSame(mul(a, b, {.saturate = true}), product > 0 ? std::min(product, 1.0f) : 0.0f);
    if (testing::Test::HasFatalFailure())
      return;
  }
}

template <typename T> class Directed : public testing::Test {
public:
  /// `got` is the last T on the right side of the exact value, which 113 bits hold.
  static void expectRounded(Rounding rounding, T got, Quad exact) {
    const T down = std::nextafter(got, -std::numeric_limits<T>::infinity());
    const T up = std::nextafter(got, std::numeric_limits<T>::infinity());
    const bool downward = rounding == Rounding::Down || (rounding == Rounding::Zero && exact > 0);
    if (rounding == Rounding::NearestEven) {
      // Below a power of two the neighbour is half as far as above.
      ASSERT_TRUE(exact - Quad(got) <= (Quad(up) - Quad(got)) / 2 && Quad(got) - exact <= (Quad(got) - Quad(down)) / 2);
    } else if (downward) {
      ASSERT_TRUE(Quad(got) <= exact && exact < Quad(up));
    } else {
      ASSERT_TRUE(Quad(got) >= exact && exact > Quad(down));
    }
  }
};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(Directed, Reals);

TYPED_TEST(Directed, EveryOperation) {
  using T = TypeParam;
  test::Random random;
  const auto value = [&] { // few exponents, so that sums of products fit 113 bits
    const double fraction = 1.0 + double(random.bits() >> 12) * 0x1p-52;
    return T((random.below(2) ? fraction : -fraction) * (random.below(3) + 0.5));
  };
  for (int i = 0; i < 30000; ++i) {
    const T a = value(), b = value(), c = value();
    for (Rounding rounding : {Rounding::NearestEven, Rounding::Zero, Rounding::Down, Rounding::Up}) {
      this->expectRounded(rounding, addRounded(rounding, a, b), Quad(a) + Quad(b));
      this->expectRounded(rounding, subRounded(rounding, a, b), Quad(a) - Quad(b));
      this->expectRounded(rounding, mulRounded(rounding, a, b), Quad(a) * Quad(b));
      this->expectRounded(rounding, fmaRounded(rounding, a, b, c), Quad(a) * Quad(b) + Quad(c));
      this->expectRounded(rounding, divRounded(rounding, a, b), Quad(a) / Quad(b));
      this->expectRounded(rounding, rcpRounded(rounding, a), 1 / Quad(a));
      const T root = sqrtRounded(rounding, std::fabs(a)); // compared by squares, which are exact
      if (rounding == Rounding::Down || rounding == Rounding::Zero)
        ASSERT_TRUE(Quad(root) * root <= Quad(std::fabs(a)));
      if (rounding == Rounding::Up)
        ASSERT_TRUE(Quad(root) * root >= Quad(std::fabs(a)));
      ASSERT_NEAR(double(root), std::sqrt(double(std::fabs(a))), std::numeric_limits<T>::epsilon() * 2);
      if (testing::Test::HasFatalFailure())
        FAIL() << a << ' ' << b << ' ' << c << " rounding " << int(rounding);
    }
  }
}

TEST(DirectedEdges, ZerosOverflowAndMode) {
  EXPECT_TRUE(std::signbit(addRounded(Rounding::Down, 1.0f, -1.0f)));
  EXPECT_FALSE(std::signbit(addRounded(Rounding::Up, 1.0f, -1.0f)));
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(addRounded(Rounding::Zero, largest, largest), largest);
  EXPECT_EQ(addRounded(Rounding::Up, largest, largest), INFINITY);
  EXPECT_EQ(addRounded(Rounding::Up, -largest, -largest), -largest);
  EXPECT_EQ(mulRounded(Rounding::Up, 0x1p-149f, 0x1p-149f), 0x1p-149f);
  EXPECT_EQ(mulRounded(Rounding::Up, 0x1p-100f, 0x1p-40f, {.flush = true}), 0.0f);
  EXPECT_EQ(1.0f + 0x1p-24f, 1.0f); // the host's mode is back
}

TEST(Float, SignsMinMaxAndClasses) {
  test::Random random;
  for (int i = 0; i < 200000; ++i) {
    const float a = random.real(), b = random.real();
    if (!std::isnan(a) && !std::isnan(b)) {
      const bool less = a < b || (a == b && std::signbit(a) > std::signbit(b));
      expectSame(min(a, b), less ? a : b);
      expectSame(max(a, b), less ? b : a);
      expectSame(min(a, b, {.xorSign = true}), std::signbit(a) != std::signbit(b)
                                                   ? -std::fmin(std::fabs(a), std::fabs(b))
                                                   : std::fmin(std::fabs(a), std::fabs(b)));
      expectSame(copysign(a, b), std::copysign(b, a));
    } else {
      expectSame(min(a, b), std::isnan(a) ? b : a);
      expectSame(max(a, b), std::isnan(a) ? b : a);
      expectSame(max(a, b, {.propagateNaN = true}), NAN);
    }
    const int kind = std::fpclassify(a);
    EXPECT_EQ(testp(FloatClass::Finite, a), bool(std::isfinite(a)));
    EXPECT_EQ(testp(FloatClass::Infinite, a), kind == FP_INFINITE);
    EXPECT_EQ(testp(FloatClass::Number, a), kind != FP_NAN);
    EXPECT_EQ(testp(FloatClass::NotANumber, a), kind == FP_NAN);
    EXPECT_EQ(testp(FloatClass::Normal, a), kind == FP_NORMAL);
    EXPECT_EQ(testp(FloatClass::Subnormal, a), kind == FP_SUBNORMAL);
    EXPECT_EQ(testp(FloatClass::Subnormal, double(a)), false);
    if (testing::Test::HasFatalFailure())
      return;
  }
  EXPECT_EQ(std::bit_cast<uint32_t>(neg(std::bit_cast<float>(0x7fc00001u))), 0xffc00001u);
  EXPECT_EQ(std::bit_cast<uint32_t>(abs(-0x1p-140f, true)), 0u);
}

/// PTX ISA tables of operators: less, equal, greater, unordered for each.
TEST(Compare, EveryOperatorOnEveryRelation) {
  struct Row {
    bool less, equal, greater, unordered;
  };
  const auto check = [&]<Comparison C>(Row row) {
    EXPECT_EQ(compare<C>(1.0f, 2.0f), row.less) << int(C);
    EXPECT_EQ(compare<C>(-0.0f, 0.0f), row.equal) << int(C);
    EXPECT_EQ(compare<C>(2.0, 1.0), row.greater) << int(C);
    for (auto [a, b] : {std::pair(NAN, 1.0f), {1.0f, NAN}, {NAN, NAN}})
      EXPECT_EQ(compare<C>(a, b), row.unordered) << int(C);
    EXPECT_EQ((compareHalf<C, HalfFormat>(0x3c00, 0x4000)), row.less);
    EXPECT_EQ((compareHalf<C, BfloatFormat>(0x7fff, 0x3f80)), row.unordered);
    EXPECT_EQ(compare<C>(0x1p-140f, 0x1p-130f, true), row.equal);
    if constexpr (C <= Comparison::Ge) {
      EXPECT_EQ((compare<C, int32_t>(-1, 1)), row.less);
      EXPECT_EQ((compare<C, uint32_t>(~0u, 1)), row.greater);
      EXPECT_EQ((compare<C, int64_t>(5, 5)), row.equal);
    }
  };
  check.operator()<Comparison::Eq>({false, true, false, false});
  check.operator()<Comparison::Ne>({true, false, true, false});
  check.operator()<Comparison::Lt>({true, false, false, false});
  check.operator()<Comparison::Le>({true, true, false, false});
  check.operator()<Comparison::Gt>({false, false, true, false});
  check.operator()<Comparison::Ge>({false, true, true, false});
  check.operator()<Comparison::Equ>({false, true, false, true});
  check.operator()<Comparison::Neu>({true, false, true, true});
  check.operator()<Comparison::Ltu>({true, false, false, true});
  check.operator()<Comparison::Leu>({true, true, false, true});
  check.operator()<Comparison::Gtu>({false, false, true, true});
  check.operator()<Comparison::Geu>({false, true, true, true});
  check.operator()<Comparison::Num>({true, true, true, false});
  check.operator()<Comparison::NaN>({false, false, false, true});
}

TEST(Compare, SelectAndCombine) {
  EXPECT_EQ(slct(1, 2, -0.0f), 1);
  EXPECT_EQ(slct(1, 2, NAN), 2);
  EXPECT_EQ(slct(1, 2, -0x1p-140f), 2);
  EXPECT_EQ(slct(1, 2, -0x1p-140f, true), 1);
  EXPECT_EQ(slct(1, 2, -1), 2);
  EXPECT_EQ(slct(1, 2, 0), 1);
  for (bool a : {false, true})
    for (bool b : {false, true}) {
      EXPECT_EQ(combine(BoolOp::None, a, b), a);
      EXPECT_EQ(combine(BoolOp::And, a, b), a && b);
      EXPECT_EQ(combine(BoolOp::Or, a, b), a || b);
      EXPECT_EQ(combine(BoolOp::Xor, a, b), a != b);
    }
}

} // namespace
} // namespace weft::simulator::semantics
