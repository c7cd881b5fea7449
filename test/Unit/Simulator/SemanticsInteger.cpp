// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Integer arithmetic against 128-bit arithmetic, and bit operations against bit-by-bit definitions.
#include "runtime/Simulator/Semantics/Bits.h"
#include "runtime/Simulator/Semantics/Integer.h"
#include "test/Unit/Simulator/Random.h"

#include <gtest/gtest.h>

#include <bitset>

namespace weft::simulator::semantics {
namespace {

using Big = __int128;

template <typename T> class Integer : public testing::Test {
public:
  /// Any value, or one at the edges of the type.
  T value() {
    static constexpr T edges[] = {
        T(0), T(1), T(-1), T(2), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    return random.below(4) == 0 ? edges[random.below(6)] : T(random.bits() >> random.below(sizeof(T) * 8));
  }
  test::Random random;
};
using Types = testing::Types<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>;
TYPED_TEST_SUITE(Integer, Types);

TYPED_TEST(Integer, Arithmetic) {
  using T = TypeParam;
  constexpr int width = sizeof(T) * 8;
  for (int i = 0; i < 20000; ++i) {
    const T a = this->value(), b = this->value(), c = this->value();
    EXPECT_EQ(add(a, b), T(Big(a) + Big(b)));
    EXPECT_EQ(sub(a, b), T(Big(a) - Big(b)));
    const Big product = Big((unsigned __int128)(Big(a)) * (unsigned __int128)(Big(b)));
    EXPECT_EQ(mulLo(a, b), T(product));
    EXPECT_EQ(mulHi(a, b), T(std::is_signed_v<T> ? product >> width : Big((unsigned __int128)(product) >> width)));
    EXPECT_EQ(madLo(a, b, c), T(product + Big(c)));
    EXPECT_EQ(madHi(a, b, c), T(Big(mulHi(a, b)) + Big(c)));
    if constexpr (sizeof(T) < 8) {
      EXPECT_EQ(mulWide(a, b), Wide<T>(product));
      EXPECT_EQ(madWide(a, b, Wide<T>(c)), Wide<T>(product + Big(c)));
    }
    const Big difference = Big(a) < Big(b) ? Big(b) - Big(a) : Big(a) - Big(b);
    EXPECT_EQ(sad(a, b, c), T(difference + Big(c)));
    EXPECT_EQ(div(a, b), b == 0 ? T(-1) : T(Big(a) / Big(b)));
    EXPECT_EQ(rem(a, b), b == 0 ? a : T(Big(a) % Big(b)));
    EXPECT_EQ(min(a, b), Big(a) < Big(b) ? a : b);
    EXPECT_EQ(max(a, b), Big(a) > Big(b) ? a : b);
    EXPECT_EQ(max(a, b, true), Big(std::max(a, b)) < 0 ? T(0) : std::max(a, b));
    if constexpr (std::is_signed_v<T>) {
      EXPECT_EQ(neg(a), T(-Big(a)));
      EXPECT_EQ(abs(a), T(a < 0 ? -Big(a) : Big(a)));
    }
  }
}

TEST(IntegerEdges, Saturation) {
  EXPECT_EQ(add<int32_t>(INT32_MAX, 1, true), INT32_MAX);
  EXPECT_EQ(add<int32_t>(INT32_MIN, -1, true), INT32_MIN);
  EXPECT_EQ(sub<int32_t>(INT32_MIN, 1, true), INT32_MIN);
  EXPECT_EQ(sub<int32_t>(5, 7, true), -2);
  EXPECT_EQ(madHi<int32_t>(INT32_MAX, INT32_MAX, INT32_MAX, true), INT32_MAX);
  EXPECT_EQ(mad24Hi<int32_t>(0x7fffff, 0x7fffff, INT32_MAX, true), INT32_MAX);
}

TEST(IntegerEdges, TwentyFourBits) {
  test::Random random;
  for (int i = 0; i < 20000; ++i) {
    const uint32_t a = random.word(), b = random.word(), c = random.word();
    const uint64_t product = uint64_t(a & 0xffffff) * (b & 0xffffff);
    EXPECT_EQ(mul24Lo(a, b), uint32_t(product));
    EXPECT_EQ(mul24Hi(a, b), uint32_t(product >> 16));
    EXPECT_EQ(mad24Lo(a, b, c), uint32_t(product) + c);
    const auto signed24 = [](uint32_t x) { return (x & 0x7fffff) - int64_t(x & 0x800000); };
    const int64_t signedProduct = signed24(a) * signed24(b);
    EXPECT_EQ(mul24Lo(int32_t(a), int32_t(b)), int32_t(signedProduct));
    EXPECT_EQ(mul24Hi(int32_t(a), int32_t(b)), int32_t(signedProduct >> 16));
  }
}

TEST(IntegerEdges, CarriesChainToAnyWidth) {
  test::Random random;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t a = random.bits() | -uint64_t(random.below(2)), b = random.bits();
    const auto low = addCarry(uint32_t(a), uint32_t(b), false);
    const auto high = addCarry(uint32_t(a >> 32), uint32_t(b >> 32), low.carry);
    const unsigned __int128 sum = (unsigned __int128)a + b;
    EXPECT_EQ(uint64_t(high.value) << 32 | low.value, uint64_t(sum));
    EXPECT_EQ(high.carry, bool(sum >> 64));
    const auto lowDifference = subCarry(uint32_t(a), uint32_t(b), true);
    const auto highDifference = subCarry(uint32_t(a >> 32), uint32_t(b >> 32), lowDifference.carry);
    EXPECT_EQ(uint64_t(highDifference.value) << 32 | lowDifference.value, a - b);
    EXPECT_EQ(highDifference.carry, a >= b); // the flag of a difference says that nothing was borrowed
    const auto product = madCarry<uint64_t, false>(a, b, a, true);
    const auto productHigh = madCarry<uint64_t, true>(a, b, b, product.carry);
    const unsigned __int128 square = (unsigned __int128)a * b;
    const unsigned __int128 total = square + a + 1; // never overflows: a * b <= (2^64 - 1)^2
    EXPECT_EQ(product.value, uint64_t(total));
    EXPECT_EQ(productHigh.value, uint64_t(total >> 64) + b);
  }
  EXPECT_EQ(addCarry(~0u, 0u, true), (Carried<uint32_t>{0, true}));
  EXPECT_EQ(addCarry(~0u, ~0u, true), (Carried<uint32_t>{~0u, true}));
  EXPECT_EQ(subCarry(0u, 0u, false), (Carried<uint32_t>{~0u, false}));
  EXPECT_EQ(subCarry(0u, ~0u, false), (Carried<uint32_t>{0, false}));
  EXPECT_EQ(subCarry(5u, 5u, true), (Carried<uint32_t>{0, true}));
}

TEST(IntegerEdges, DotProducts) {
  test::Random random;
  for (int i = 0; i < 20000; ++i) {
    const uint32_t a = random.word(), b = random.word(), c = random.word();
    const auto byte = [](uint32_t word, int at, bool isSigned) {
      const int value = int(word >> at * 8 & 255);
      return isSigned && value > 127 ? value - 256 : value;
    };
    const auto part = [](uint32_t word, int at, bool isSigned) {
      const int value = int(word >> at * 16 & 65535);
      return isSigned && value > 32767 ? value - 65536 : value;
    };
    for (bool x : {false, true})
      for (bool y : {false, true}) {
        int64_t four = c, low = c, high = c;
        for (int j = 0; j < 4; ++j)
          four += int64_t(byte(a, j, x)) * byte(b, j, y);
        for (int j = 0; j < 2; ++j) {
          low += int64_t(part(a, j, x)) * byte(b, j, y);
          high += int64_t(part(a, j, x)) * byte(b, j + 2, y);
        }
        EXPECT_EQ(dp4a(a, x, b, y, c), uint32_t(four));
        EXPECT_EQ(dp2a(a, x, b, y, c, false), uint32_t(low));
        EXPECT_EQ(dp2a(a, x, b, y, c, true), uint32_t(high));
      }
  }
}

TYPED_TEST(Integer, Shifts) {
  using T = TypeParam;
  constexpr unsigned width = sizeof(T) * 8;
  for (int i = 0; i < 20000; ++i) {
    const T a = this->value();
    const uint32_t amount = this->random.below(3) ? this->random.below(2 * width) : this->random.word();
    T right = 0;
    for (unsigned bit = 0; bit < width; ++bit) { // PTX: vacated bits are copies of the sign, or zero
      const uint64_t from = uint64_t(bit) + amount;
      const bool set = from < width ? (uint64_t(a) >> from) & 1 : std::is_signed_v<T> && a < T(0);
      right |= T(uint64_t(set) << bit);
    }
    EXPECT_EQ(shr(a, amount), right) << amount;
    if constexpr (std::is_unsigned_v<T>)
      EXPECT_EQ(shl(a, amount), amount >= width ? T(0) : T(Big(a) << amount));
  }
}

/// The pseudocode of PTX ISA "bfe", bit by bit.
template <typename T> T bfeByBits(T a, uint32_t b, uint32_t c) {
  constexpr uint32_t msb = sizeof(T) * 8 - 1;
  const uint32_t pos = b & 0xff, len = c & 0xff;
  const auto bitOf = [&](uint32_t i) { return bool(uint64_t(a) >> i & 1); };
  const bool sbit = std::is_unsigned_v<T> || len == 0 ? false : bitOf(std::min(pos + len - 1, msb));
  uint64_t d = 0;
  for (uint32_t i = 0; i <= msb; ++i)
    d |= uint64_t(i < len && pos + i <= msb ? bitOf(pos + i) : sbit) << i;
  return T(d);
}

/// The pseudocode of PTX ISA "bfi".
template <typename T> T bfiByBits(T a, T b, uint32_t c, uint32_t d) {
  constexpr uint32_t msb = sizeof(T) * 8 - 1;
  const uint32_t pos = c & 0xff, len = d & 0xff;
  uint64_t f = b;
  for (uint32_t i = 0; i < len && pos + i <= msb; ++i)
    f = (f & ~(uint64_t(1) << (pos + i))) | (uint64_t(a) >> i & 1) << (pos + i);
  return T(f);
}

TYPED_TEST(Integer, BitFields) {
  using T = TypeParam;
  if constexpr (sizeof(T) >= 4) {
    using U = std::make_unsigned_t<T>;
    for (int i = 0; i < 50000; ++i) {
      const T a = this->value(), b = this->value();
      const uint32_t position = this->random.below(300),
                     length = this->random.below(3) ? this->random.below(80) : this->random.below(300);
      ASSERT_EQ(bfe(a, position, length), bfeByBits(a, position, length)) << position << ' ' << length;
      ASSERT_EQ(bfi(U(a), U(b), position, length), bfiByBits(U(a), U(b), position, length));
    }
  }
}

TEST(Bits, FunnelShifts) {
  test::Random random;
  for (int i = 0; i < 20000; ++i) {
    const uint32_t a = random.word(), b = random.word(), amount = random.below(2) ? random.below(70) : random.word();
    for (bool wrap : {false, true}) {
      const uint32_t n = wrap ? amount & 31 : std::min(amount, 32u); // PTX ISA: d = (b << n) | (a >> (32 - n))
      const uint32_t left = uint32_t(n == 32 ? 0 : b << n) | uint32_t(n == 0 ? 0 : a >> (32 - n));
      const uint32_t right = uint32_t(n == 0 ? 0 : b << (32 - n)) | uint32_t(n == 32 ? 0 : a >> n);
      EXPECT_EQ(shfLeft(a, b, amount, wrap), left);
      EXPECT_EQ(shfRight(a, b, amount, wrap), right);
    }
  }
}

TEST(Bits, EveryTableOfLop3) {
  test::Random random;
  EXPECT_EQ(lop3(0xf0, 0xcc, 0xaa, 0x80) & 0xff, 0x80u); // PTX ISA: F(ta, tb, tc) of these constants is the table
  for (unsigned table = 0; table < 256; ++table) {
    EXPECT_EQ(lop3(0xf0, 0xcc, 0xaa, uint8_t(table)) & 0xff, table);
    const uint32_t a = random.word(), b = random.word(), c = random.word(), d = lop3(a, b, c, uint8_t(table));
    for (unsigned bit = 0; bit < 32; ++bit) {
      const unsigned index = (a >> bit & 1) * 4 + (b >> bit & 1) * 2 + (c >> bit & 1);
      ASSERT_EQ(d >> bit & 1, table >> index & 1);
    }
  }
}

TEST(Bits, CountsAndSearches) {
  test::Random random;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t a = random.bits() >> random.below(64);
    const uint32_t low = uint32_t(a);
    uint32_t count = 0, reversed = 0;
    uint64_t reversed64 = 0;
    for (int bit = 0; bit < 64; ++bit) {
      count += a >> bit & 1;
      reversed64 |= (a >> bit & 1) << (63 - bit);
      if (bit < 32)
        reversed |= (low >> bit & 1) << (31 - bit);
    }
    EXPECT_EQ(popc(a), count);
    EXPECT_EQ(brev(low), reversed);
    EXPECT_EQ(brev(a), reversed64);
    const auto highest = [](uint64_t bits) {
      for (int bit = 63; bit >= 0; --bit)
        if (bits >> bit & 1)
          return uint32_t(bit);
      return ~0u;
    };
    EXPECT_EQ(bfind(a), highest(a));
    EXPECT_EQ(clz(a), 63 - highest(a));
    EXPECT_EQ(bfind(low, true), low == 0 ? ~0u : 31 - highest(low));
    EXPECT_EQ(bfind(int64_t(a)), highest(int64_t(a) < 0 ? ~a : a));
    EXPECT_EQ(bfind(int32_t(low)), highest(int32_t(low) < 0 ? ~low : low));
    EXPECT_EQ(cnot(low), uint32_t(low == 0));
  }
  EXPECT_EQ(clz(0u), 32u);
  EXPECT_EQ(clz(uint64_t(0)), 64u);
  EXPECT_EQ(bfind(-1), ~0u);
  EXPECT_EQ(bfind(0u, true), ~0u);
}

TEST(Bits, NthSetBit) {
  // fns as PTX's pseudocode words it: walk from the base and count the set bits.
  EXPECT_EQ(fns(0xaaaaaaaa, 3, 1), 3u);
  EXPECT_EQ(fns(0xaaaaaaaa, 3, -1), 3u);
  EXPECT_EQ(fns(0xaaaaaaaa, 2, 1), 3u);
  EXPECT_EQ(fns(0xaaaaaaaa, 2, -1), 1u);
  EXPECT_EQ(fns(0xaaaaaaaa, 0, 16), 31u);
  EXPECT_EQ(fns(0xaaaaaaaa, 0, 17), ~0u);
  EXPECT_EQ(fns(0xaaaaaaaa, 1, 0), 1u);
  EXPECT_EQ(fns(0xaaaaaaaa, 2, 0), ~0u);
  EXPECT_EQ(fns(0xffffffff, 0, INT32_MIN), ~0u);
}

TEST(Bits, Masks) {
  for (uint32_t position = 0; position < 70; ++position)
    for (uint32_t length = 0; length < 70; ++length)
      for (bool wrap : {false, true}) {
        const uint32_t first = wrap ? position % 32 : position, count = wrap ? length % 32 : length;
        uint32_t want = 0;
        for (uint32_t bit = 0; bit < 32; ++bit)
          want |= uint32_t(bit >= first && bit < first + count) << bit;
        ASSERT_EQ(bmsk(position, length, wrap), want) << position << ' ' << length;
      }
  EXPECT_EQ(szext(0xffu, 4, false), 0xfu);
  EXPECT_EQ(szext(int32_t(0xff), 4, false), -1);
  EXPECT_EQ(szext(int32_t(0x7), 4, false), 7);
  EXPECT_EQ(szext(0x12345678u, 40, false), 0x12345678u);
  EXPECT_EQ(szext(0x12345678u, 40, true), 0x78u);
  EXPECT_EQ(szext(0x12345678u, 0, false), 0u);
}

TEST(Bits, Permute) {
  const uint32_t a = 0x33221180, b = 0x77665544;
  EXPECT_EQ(prmt(a, b, 0x3210), a);
  EXPECT_EQ(prmt(a, b, 0x7654), b);
  EXPECT_EQ(prmt(a, b, 0x0406), 0x80448066u);
  EXPECT_EQ(prmt(a, b, 0x8f9b), 0xff000000u); // signs of bytes 0, 7, 1, 3
  // The rows of the ISA's table: selector in c[1:0], bytes d3 d2 d1 d0.
  const struct {
    PermuteMode mode;
    uint32_t selectors[4];
  } rows[] = {{PermuteMode::Forward4, {0x3210, 0x4321, 0x5432, 0x6543}},
              {PermuteMode::Backward4, {0x5670, 0x6701, 0x7012, 0x0123}},
              {PermuteMode::Replicate8, {0x0000, 0x1111, 0x2222, 0x3333}},
              {PermuteMode::EdgeLeft, {0x3210, 0x3211, 0x3222, 0x3333}},
              {PermuteMode::EdgeRight, {0x0000, 0x1110, 0x2210, 0x3210}},
              {PermuteMode::Replicate16, {0x1010, 0x3232, 0x1010, 0x3232}}};
  for (const auto &row : rows)
    for (uint32_t control = 0; control < 8; ++control) {
      EXPECT_EQ(permuteSelector(row.mode, control), row.selectors[control & 3]) << int(row.mode) << ' ' << control;
      EXPECT_EQ(prmt(a, b, control, row.mode), prmt(a, b, row.selectors[control & 3]));
    }
}

} // namespace
} // namespace weft::simulator::semantics
