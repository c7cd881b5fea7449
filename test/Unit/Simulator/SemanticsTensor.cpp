// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Elements of tcgen05.mma, each of their bits, and its products.
#include "runtime/Simulator/Semantics/Half.h"
#include "runtime/Simulator/Semantics/Tensor/Product.h"
#include "test/Unit/Simulator/SmallFloats.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace weft::simulator::semantics {
namespace {

using test::SmallFloats;

/// A narrow type's magnitudes, and its bits.
struct Format {
  TensorElement element;
  SmallFloats magnitudes;
  unsigned bits;
};

const std::vector<Format> &formats() {
  static const std::vector<Format> all{{TensorElement::E4M3, {4, 3, 0x7e}, 8},
                                       {TensorElement::E5M2, {5, 2, 0x7b}, 8},
                                       {TensorElement::E2M3, {2, 3, 0x1f}, 6},
                                       {TensorElement::E3M2, {3, 2, 0x1f}, 6},
                                       {TensorElement::E2M1, {2, 1, 0x7}, 4}};
  return all;
}

TEST(TensorElements, AreTheseHalfs) {
  for (const Format &format : formats()) {
    EXPECT_EQ(bitsOf(format.element), format.bits);
    EXPECT_TRUE(isNarrow(format.element));
    for (unsigned magnitude = 0; magnitude < format.magnitudes.values.size(); ++magnitude)
      for (const unsigned sign : {0u, 1u}) {
        const float half = halfToFloat(halfOf(format.element, magnitude | sign << (format.bits - 1)));
        EXPECT_EQ(std::signbit(half), sign == 1);
        EXPECT_EQ(std::abs(double(half)), format.magnitudes.at(magnitude));
      }
  }
  EXPECT_TRUE(std::isnan(halfToFloat(halfOf(TensorElement::E4M3, 0x7f))));
  EXPECT_TRUE(std::isinf(halfToFloat(halfOf(TensorElement::E5M2, 0xfc))));
}

TEST(TensorElements, LieOneAfterAnother) {
  for (const Format &format : formats()) {
    std::array<uint8_t, 16> bytes{};
    const unsigned mask = (1u << format.bits) - 1;
    auto codeOf = [&](unsigned i) { return (37 * i + 11) & mask; };
    for (unsigned i = 0; i < 16; ++i)
      for (unsigned bit = 0; bit < format.bits; ++bit)
        bytes[(i * format.bits + bit) / 8] |= uint8_t((codeOf(i) >> bit & 1) << (i * format.bits + bit) % 8);
    uint16_t halves[16];
    widen(format.element, bytes.data(), halves);
    for (unsigned i = 0; i < 16; ++i)
      EXPECT_EQ(halves[i], halfOf(format.element, codeOf(i)));
  }
}

TEST(TensorElements, HaveScales) {
  EXPECT_EQ(scaleOf(ScaleElement::UE8M0, 127), 1);
  EXPECT_EQ(scaleOf(ScaleElement::UE8M0, 0), std::ldexp(1.0, -127));
  EXPECT_EQ(scaleOf(ScaleElement::UE8M0, 254), std::ldexp(1.0, 127));
  EXPECT_TRUE(std::isnan(scaleOf(ScaleElement::UE8M0, 255)));
  EXPECT_EQ(scaleOf(ScaleElement::UE4M3, 0x38), 1);
  EXPECT_EQ(scaleOf(ScaleElement::UE4M3, 0x7e), 448);
  EXPECT_TRUE(std::isnan(scaleOf(ScaleElement::UE4M3, 0x7f)));
}

/// Rows of 32 bytes of small whole numbers of bf16.
std::vector<std::byte> rowsOf(unsigned count, unsigned factor) {
  std::vector<std::byte> rows(32 * count);
  for (unsigned i = 0; i < 16 * count; ++i) {
    const uint16_t bits = floatToBfloat(float(int(factor * i % 7) - 3));
    std::memcpy(&rows[2 * i], &bits, 2);
  }
  return rows;
}

TEST(TensorProducts, LeaveRowsThatAreNotWritten) {
  constexpr unsigned n = 24, stride = 40;
  const std::vector<std::byte> a = rowsOf(16, 5), b = rowsOf(n, 3);
  auto number = [](const std::vector<std::byte> &rows, unsigned row, unsigned k) {
    uint16_t bits;
    std::memcpy(&bits, &rows[32 * row + 2 * k], 2);
    return bfloatToFloat(bits);
  };
  for (const bool adds : {false, true}) {
    TensorProduct product{TensorElement::BF16, TensorElement::BF16, AccumulatorType::F32};
    product.negate = true;
    product.adds = adds;
    product.scale = 2;
    const TensorMultiplier multiplier(product, b.data(), n);
    std::vector<uint32_t> d(16 * stride, std::bit_cast<uint32_t>(8.0f));
    multiplier.multiply(a.data(), d.data(), stride, 0x7ffe);
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned column = 0; column < stride; ++column) {
        float expected = adds ? 2 : 0;
        for (unsigned k = 0; k < 16 && column < n; ++k)
          expected -= number(a, row, k) * number(b, column, k);
        const bool written = row > 0 && row < 15 && column < n;
        EXPECT_EQ(std::bit_cast<float>(d[row * stride + column]), written ? expected : 8) << row << ", " << column;
      }
  }
}

TEST(TensorProducts, ScaleEachBlock) {
  TensorProduct product{TensorElement::E2M1, TensorElement::E2M1, AccumulatorType::F32};
  product.block = 16;
  product.packed = true;
  product.adds = false;
  const std::vector<std::byte> ones(32 * 16, std::byte{0x22}); // each element is 1
  const TensorMultiplier multiplier(product, ones.data(), 8);
  BlockScales scales;
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned block = 0; block < 4; ++block)
      scales.a.push_back(double(row + 1) * (1 << block));
  scales.b.assign(8 * 4, 0.5);
  std::vector<uint32_t> d(16 * 8);
  multiplier.multiply(ones.data(), d.data(), 8, 0xffff, scales);
  for (unsigned row = 0; row < 16; ++row)
    EXPECT_EQ(std::bit_cast<float>(d[8 * row + 5]), 16 * 0.5f * float(row + 1) * 15);
}

} // namespace
} // namespace weft::simulator::semantics
