// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Layouts of matrix instructions of warpgroups against the formulas of PTX ISA 9.7.15.5 and its swizzles.
#include "dialects/Warp/Layout/WgmmaLayouts.h"
#include "test/Unit/Warp/LayoutCoordinates.h"
#include "gtest/gtest.h"

using namespace weft::warp;
using namespace weft::warp::test;

namespace {
TEST(WgmmaLayouts, Accumulator) {
  // Two warpgroups along the rows, two tiles of 64 rows each.
  LinearLayout layout = wgmmaAccLayout({256, 32}, {2, 1});
  ASSERT_EQ(layout.size(InDim::Register), 32u);
  for (uint32_t warp = 0; warp < 8; ++warp)
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t reg = 0; reg < 32; ++reg) {
        uint32_t i = reg % 16, tile = reg / 16;
        int64_t row = 128 * (warp / 4) + 64 * tile + 16 * (warp % 4) + lane / 4 + 8 * (i / 2 & 1);
        int64_t column = 8 * (i / 4) + 2 * (lane % 4) + (i & 1);
        EXPECT_EQ(at(layout, reg, lane, warp), (Coordinates{row, column}));
      }
}

TEST(WgmmaLayouts, OperandAOf16BitsIsAnAccumulator) {
  EXPECT_EQ(wgmmaALayout({128, 64}, {2, 1}, 16), wgmmaAccLayout({128, 64}, {2, 1}));
  EXPECT_NE(wgmmaALayout({128, 64}, {1, 2}, 16), wgmmaAccLayout({128, 64}, {1, 2}));
}

TEST(WgmmaLayouts, GridsAreFoundAgain) {
  for (WarpgroupGrid grid : {WarpgroupGrid{1, 1}, WarpgroupGrid{2, 1}, WarpgroupGrid{1, 2}, WarpgroupGrid{2, 2}}) {
    std::optional<WarpgroupGrid> found = wgmmaGridOf(wgmmaAccLayout({128, 128}, grid));
    ASSERT_TRUE(found);
    EXPECT_EQ(std::pair(found->rows, found->columns), std::pair(grid.rows, grid.columns));
  }
  EXPECT_FALSE(wgmmaGridOf(wgmmaALayout({128, 64}, {1, 2}, 16)));
}

TEST(WgmmaLayouts, TilesAreSwizzledAsAddressesAre) {
  for (unsigned bytes : {1u, 2u, 4u})
    for (int64_t along : {16, 32, 64, 256})
      for (int64_t lines : {8, 64})
        for (unsigned axis : {0u, 1u}) {
          Coordinates shape{axis == 0 ? along : lines, axis == 0 ? lines : along};
          std::optional<LinearLayout> layout = wgmmaTileLayout(shape, axis, bytes);
          int64_t lineBytes = std::min<int64_t>(128, along * bytes);
          ASSERT_EQ(layout.has_value(), lineBytes >= 32);
          if (!layout)
            continue;
          for (int64_t line = 0; line < lines; ++line)
            for (int64_t i = 0; i < along; ++i) {
              int64_t address = i * bytes / lineBytes * lines * lineBytes + line * lineBytes + i * bytes % lineBytes;
              address ^= (address >> 7 & (lineBytes / 16 - 1)) << 4;
              Coordinates found = layout->delinearize(layout->apply(InDim::Offset, address / bytes));
              ASSERT_EQ(found[axis], i);
              ASSERT_EQ(found[1 - axis], line);
            }
        }
  EXPECT_FALSE(wgmmaTileLayout({4, 64}, 1, 2));
}

TEST(WgmmaLayouts, Operands) {
  // [K, N] with neighbours along N: turned. 16 rows of K are 16 lines on; 64 columns are a panel on.
  std::optional<WgmmaOperand> turned = wgmmaOperand(*wgmmaTileLayout({32, 128}, 1, 2), 0, 2);
  ASSERT_TRUE(turned);
  EXPECT_TRUE(turned->turned);
  EXPECT_EQ(turned->offset(0, 16), 16 * 128);
  EXPECT_EQ(turned->offset(64, 16), 32 * 128 + 16 * 128);
  EXPECT_EQ(turned->descriptor(), uint64_t(32 * 128 >> 4) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62);
  // [M, K] with neighbours along K: 16 elements are 32 bytes on, 64 a panel.
  std::optional<WgmmaOperand> straight = wgmmaOperand(*wgmmaTileLayout({128, 128}, 1, 2), 1, 2);
  ASSERT_TRUE(straight);
  EXPECT_FALSE(straight->turned);
  EXPECT_EQ(straight->offset(64, 16), 64 * 128 + 32);
  EXPECT_EQ(straight->offset(0, 64), 128 * 128);
  EXPECT_EQ(straight->descriptor(), uint64_t(1) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62);
  EXPECT_FALSE(wgmmaOperand(*wgmmaTileLayout({32, 128}, 1, 4), 0, 2));
  // Lines of 64 bytes along N, as where two warpgroups take 32 columns each: the second one's are a panel on.
  std::optional<WgmmaOperand> halved = wgmmaOperand(*wgmmaTileLayout({32, 64}, 1, 2, 64), 0, 2);
  ASSERT_TRUE(halved);
  EXPECT_TRUE(halved->turned);
  EXPECT_EQ(halved->offset(32, 16), 32 * 64 + 16 * 64);
  EXPECT_EQ(halved->descriptor(), uint64_t(32 * 64 >> 4) << 16 | uint64_t(512 >> 4) << 32 | uint64_t(2) << 62);
  EXPECT_EQ(wgmmaLineBytes(*wgmmaTileLayout({32, 64}, 1, 2, 64), 1, 2), 64);
  EXPECT_FALSE(wgmmaLineBytes(*wgmmaTileLayout({32, 64}, 1, 2, 64), 0, 2));
}

} // namespace
