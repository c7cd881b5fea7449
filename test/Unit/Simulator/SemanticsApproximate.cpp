// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The approximate functions against the C library in f64, within the errors that the PTX ISA states.
#include "runtime/Simulator/Semantics/Approximate.h"
#include "test/Unit/Simulator/Random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace weft::simulator::semantics {
namespace {

/// |got - want| in units of want's last place as an f32.
double ulps(float got, double want) {
  if (double(got) == want)
    return 0;
  int exponent = 0;
  std::frexp(want, &exponent);
  return std::fabs(got - want) / std::ldexp(1.0, std::max(exponent, -125) - 24);
}

bool isCanonicalNaN(float x) { return std::bit_cast<uint32_t>(x) == 0x7fffffff; }

TEST(Approximate, ExponentialToTwoUlps) {
  test::Random random;
  double worst = 0;
  for (int i = 0; i < 2000000; ++i) {
    const float x = i % 2 ? float(int32_t(random.word())) * 0x1.4p-24f : random.real(); // |x| < 160
    if (std::isnan(x))
      continue;
    const double want = std::exp2(double(x));
    const float got = ex2Approx(x);
    if (want >= 0x1p128) {
      ASSERT_EQ(got, INFINITY) << x;
    } else if (want < 0x1p-150) {
      ASSERT_EQ(got, 0.0f) << x;
    } else {
      worst = std::max(worst, ulps(got, want));
      ASSERT_LE(ulps(got, want), 2.0) << x;
    }
    if (want < 0x1p-126) {
      ASSERT_LE(ex2Approx(x, true), 0x1p-126f) << x;
    }
  }
  RecordProperty("worst", std::to_string(worst));
  EXPECT_EQ(ex2Approx(0.0f), 1.0f);
  EXPECT_EQ(ex2Approx(-0x1p-140f), 1.0f);
  EXPECT_EQ(ex2Approx(10.0f), 1024.0f);
  EXPECT_EQ(ex2Approx(-149.0f), 0x1p-149f);
  EXPECT_EQ(ex2Approx(-140.0f, true), 0.0f);
  EXPECT_EQ(ex2Approx(-INFINITY), 0.0f);
  EXPECT_EQ(ex2Approx(INFINITY), INFINITY);
  EXPECT_EQ(ex2Approx(128.0f), INFINITY);
  EXPECT_TRUE(isCanonicalNaN(ex2Approx(NAN)));
}

TEST(Approximate, Logarithm) {
  test::Random random;
  for (int i = 0; i < 1000000; ++i) {
    const float x = i % 2 ? 0.25f + float(random.word()) * 0x1p-31f : std::fabs(random.real());
    if (!(x > 0) || std::isinf(x))
      continue;
    const double want = std::log2(double(x)), error = std::fabs(lg2Approx(x) - want);
    ASSERT_LE(error, x > 0.5f && x < 2.0f ? 0x1p-22 : 0x1p-22 * std::fabs(want)) << x;
  }
  EXPECT_EQ(lg2Approx(0.0f), -INFINITY);
  EXPECT_EQ(lg2Approx(-0.0f), -INFINITY);
  EXPECT_EQ(lg2Approx(0x1p-140f), -140.0f);
  EXPECT_EQ(lg2Approx(0x1p-140f, true), -INFINITY);
  EXPECT_EQ(lg2Approx(INFINITY), INFINITY);
  EXPECT_EQ(lg2Approx(1.0f), 0.0f);
  EXPECT_TRUE(isCanonicalNaN(lg2Approx(-1.0f)));
  EXPECT_TRUE(isCanonicalNaN(lg2Approx(-INFINITY)));
  EXPECT_TRUE(isCanonicalNaN(lg2Approx(NAN)));
}

TEST(Approximate, SineAndCosine) {
  test::Random random;
  for (int i = 0; i < 1000000; ++i) {
    const float scale = i % 3 == 0 ? 0x1p-29f : i % 3 == 1 ? 0x1p-15f : 0x1p-3f; // up to 4, 65536, 2^28
    const float x = float(int32_t(random.word())) * scale;
    ASSERT_NEAR(sinApprox(x), std::sin(double(x)), std::exp2(-20.5)) << x;
    ASSERT_NEAR(cosApprox(x), std::cos(double(x)), std::exp2(-20.5)) << x;
    const float any = random.real();
    if (std::isfinite(any)) {
      ASSERT_LE(std::fabs(sinApprox(any)), 1.0f) << any;
    }
  }
  EXPECT_EQ(sinApprox(0x1p-140f), 0x1p-140f);
  EXPECT_EQ(sinApprox(0x1p-140f, true), 0.0f);
  EXPECT_TRUE(std::signbit(sinApprox(-0.0f)));
  EXPECT_EQ(cosApprox(0x1p-140f), 1.0f);
  EXPECT_TRUE(isCanonicalNaN(sinApprox(INFINITY)));
  EXPECT_TRUE(isCanonicalNaN(cosApprox(-INFINITY)));
  EXPECT_TRUE(isCanonicalNaN(cosApprox(NAN)));
}

TEST(Approximate, HyperbolicTangent) {
  test::Random random;
  for (int i = 0; i < 1000000; ++i) {
    const float x = i % 2 ? float(int32_t(random.word())) * 0x1p-28f : random.real();
    if (std::isnan(x))
      continue;
    const double want = std::tanh(double(x));
    ASSERT_LE(std::fabs(tanhApprox(x) - want), std::fabs(want) * 0x1p-20) << x; // PTX allows 2^-11
  }
  EXPECT_EQ(tanhApprox(INFINITY), 1.0f);
  EXPECT_EQ(tanhApprox(-INFINITY), -1.0f);
  EXPECT_EQ(tanhApprox(-0x1p-140f), -0x1p-140f);
  EXPECT_TRUE(std::signbit(tanhApprox(-0.0f)));
  EXPECT_TRUE(isCanonicalNaN(tanhApprox(NAN)));
  EXPECT_EQ(tanhApproxHalf<HalfFormat>(0x7c00), 0x3c00);
  EXPECT_EQ(ex2ApproxHalf<HalfFormat>(0x4000), 0x4400); // 2^2
}

TEST(Approximate, ReciprocalsAndRoots) {
  test::Random random;
  for (int i = 0; i < 1000000; ++i) {
    const float x = random.real(), y = random.real();
    if (std::isfinite(x) && x != 0 && std::fabs(1 / double(x)) < 0x1p128) {
      ASSERT_LE(ulps(rcpApprox(x), 1 / double(x)), 1.0) << x;
    }
    if (x > 0 && std::isfinite(x)) {
      const double root = std::sqrt(double(x));
      ASSERT_LE(std::fabs(rsqrtApprox(x) * root - 1), std::exp2(-22.9)) << x;
      ASSERT_LE(std::fabs(sqrtApprox(x) - root), root * 0x1p-23) << x;
    }
    if (std::isfinite(x) && std::fabs(y) <= 0x1p126f && std::fabs(y) >= 0x1p-126f) {
      const double quotient = double(x) / double(y);
      if (std::fabs(quotient) < 0x1p128) {
        ASSERT_LE(ulps(divApprox(x, y), quotient), 2.0) << x << ' ' << y;
        ASSERT_LE(ulps(divFull(x, y), quotient), 2.0) << x << ' ' << y;
      }
    }
  }
  EXPECT_EQ(rcpApprox(-0.0f), -INFINITY);
  EXPECT_EQ(rcpApprox(0x1p-140f, true), INFINITY);
  EXPECT_EQ(rcpApprox(INFINITY), 0.0f);
  EXPECT_EQ(rsqrtApprox(0.0f), INFINITY);
  EXPECT_EQ(rsqrtApprox(-0.0f), -INFINITY);
  EXPECT_EQ(rsqrtApprox(INFINITY), 0.0f);
  EXPECT_TRUE(isCanonicalNaN(rsqrtApprox(-1.0f)));
  EXPECT_TRUE(isCanonicalNaN(sqrtApprox(-1.0f)));
  EXPECT_EQ(divApprox(0x1p127f, 0x1p127f), 0.0f);
  EXPECT_TRUE(isCanonicalNaN(divApprox(INFINITY, 0x1p127f)));
  EXPECT_EQ(divApprox(1.0f, INFINITY), 0.0f);
  EXPECT_TRUE(isCanonicalNaN(divApprox(0.0f, 0.0f)));
}

TEST(Approximate, GrossDoubles) {
  test::Random random;
  for (int i = 0; i < 300000; ++i) {
    const double x = std::ldexp(1 + double(random.bits() >> 12) * 0x1p-52, int(random.below(600)) - 300);
    const double high = std::bit_cast<double>(std::bit_cast<uint64_t>(x) & 0xffffffff00000000);
    ASSERT_NEAR(rcpGross(x) * high, 1, 0x1p-20);
    ASSERT_NEAR(rsqrtGross(x) * std::sqrt(high), 1, 0x1p-20);
    ASSERT_EQ(std::bit_cast<uint64_t>(rcpGross(x)) & 0xffffffff, 0u);
    ASSERT_NEAR(rsqrtApprox(x) * std::sqrt(x), 1, 0x1p-52);
  }
  EXPECT_EQ(rcpGross(0x1p-1040), INFINITY);
  EXPECT_EQ(rcpGross(-0.0), -INFINITY);
  EXPECT_EQ(rcpGross(INFINITY), 0.0);
  EXPECT_TRUE(std::isnan(rsqrtGross(-1.0)));
}

} // namespace
} // namespace weft::simulator::semantics
