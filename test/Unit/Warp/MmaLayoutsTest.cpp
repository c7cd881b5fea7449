// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Fragment layouts against the formulas of PTX ISA 9.7.14.5, and how they are tiled over warps.
#include "dialects/Warp/Layout/MmaLayouts.h"
#include "test/Unit/Warp/LayoutCoordinates.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <map>
#include <set>

using namespace weft::warp;
using namespace weft::warp::test;

namespace {
TEST(MmaLayouts, AccumulatorOfOneInstruction) {
  LinearLayout layout = mmaAccLayout({16, 8}, {1, 1});
  ASSERT_EQ(layout.size(InDim::Register), 4u);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 4; ++i) {
      // row = groupID for c0 and c1, groupID + 8 for c2 and c3; col = threadID_in_group * 2 + (i & 1)
      int64_t row = lane / 4 + (i < 2 ? 0 : 8), column = lane % 4 * 2 + (i & 1);
      EXPECT_EQ(at(layout, i, lane), (Coordinates{row, column}));
    }
}

TEST(MmaLayouts, FragmentsAreAParameter) {
  EXPECT_EQ(fragmentsOf({16, 8, 16}), &fragments16x8());
  EXPECT_EQ(fragmentsOf({16, 8, 32}), &fragments16x8());
  EXPECT_EQ(fragmentsOf({8, 8, 4}), &fragments8x8());
  EXPECT_EQ(fragmentsOf({32, 8, 16}), nullptr);
  EXPECT_EQ(fragmentsOf({16, 8}), nullptr);
  // m8n8k4 of f64: a lane has two neighbours of a row, and no second row.
  LinearLayout layout = mmaAccLayout({16, 8}, {2, 1}, fragments8x8());
  ASSERT_EQ(layout.size(InDim::Register), 2u);
  for (uint32_t warp = 0; warp < 2; ++warp)
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t i = 0; i < 2; ++i)
        EXPECT_EQ(at(layout, i, lane, warp), (Coordinates{8 * warp + lane / 4, lane % 4 * 2 + i}));
}

/// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and "mma.m8n8k4 with .f64": a register a number.
TEST(MmaLayouts, OperandsOf64BitElements) {
  LinearLayout a = mmaOperandLayout(MmaOperand::A, {16, 16}, {1, 1}, 64);
  LinearLayout b = mmaOperandLayout(MmaOperand::B, {16, 8}, {1, 1}, 64);
  LinearLayout small = mmaOperandLayout(MmaOperand::A, {8, 8}, {1, 1}, 64, fragments8x8());
  ASSERT_EQ(a.size(InDim::Register), 8u);
  ASSERT_EQ(b.size(InDim::Register), 4u);
  ASSERT_EQ(small.size(InDim::Register), 2u);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    int64_t group = lane / 4, thread = lane % 4;
    for (uint32_t i = 0; i < 8; ++i)
      EXPECT_EQ(at(a, i, lane), (Coordinates{group + (i % 2 ? 8 : 0), i / 2 * 4 + thread}));
    for (uint32_t i = 0; i < 4; ++i)
      EXPECT_EQ(at(b, i, lane), (Coordinates{i * 4 + thread, group}));
    for (uint32_t i = 0; i < 2; ++i)
      EXPECT_EQ(at(small, i, lane), (Coordinates{group, i * 4 + thread}));
  }
}

TEST(MmaLayouts, OperandAOf16BitElements) {
  LinearLayout layout = mmaOperandLayout(MmaOperand::A, {16, 16}, {1, 1}, 16);
  ASSERT_EQ(layout.size(InDim::Register), 8u);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 8; ++i) {
      // row = groupID for i in {0, 1, 4, 5}, groupID + 8 else; col = threadID_in_group * 2 + (i & 1), + 8 for i >= 4
      int64_t row = lane / 4 + (i < 2 || (i >= 4 && i < 6) ? 0 : 8), column = lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0);
      EXPECT_EQ(at(layout, i, lane), (Coordinates{row, column}));
    }
}

TEST(MmaLayouts, OperandBOf16BitElements) {
  LinearLayout layout = mmaOperandLayout(MmaOperand::B, {16, 8}, {1, 1}, 16);
  ASSERT_EQ(layout.size(InDim::Register), 4u);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 4; ++i) {
      // row = threadID_in_group * 2 + (i & 1), + 8 for i >= 2; col = groupID
      int64_t row = lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), column = lane / 4;
      EXPECT_EQ(at(layout, i, lane), (Coordinates{row, column}));
    }
}

TEST(MmaLayouts, OperandsByWordsAlongK) {
  LinearLayout a = byWordsAlongK(mmaOperandLayout(MmaOperand::A, {16, 32}, {1, 1}, 16), 1, 4);
  LinearLayout b = byWordsAlongK(mmaOperandLayout(MmaOperand::B, {32, 8}, {1, 1}, 16), 0, 4);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 8; ++i) {
      // Of 16 numbers along K four neighbours are a thread's: two where two would be, two where those 8 apart would.
      int64_t k = i / 4 * 16 + lane % 4 * 4 + i % 4;
      EXPECT_EQ(at(b, i, lane), (Coordinates{k, lane / 4}));
      for (uint32_t below : {0, 1}) {
        uint32_t reg = i % 2 + 2 * below + i / 2 * 4;
        EXPECT_EQ(at(a, reg, lane), (Coordinates{lane / 4 + 8 * below, k}));
      }
    }
}

TEST(MmaLayouts, OperandsByLongerWordsAlongK) {
  for (uint32_t neighbours : {8, 16}) {
    const int64_t K = 8 * neighbours;
    LinearLayout a = byWordsAlongK(mmaOperandLayout(MmaOperand::A, {16, K}, {1, 1}, 16), 1, neighbours);
    LinearLayout b = byWordsAlongK(mmaOperandLayout(MmaOperand::B, {K, 8}, {1, 1}, 16), 0, neighbours);
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t i = 0; i < 2 * neighbours; ++i) {
        int64_t k = i / neighbours * 4 * neighbours + lane % 4 * neighbours + i % neighbours;
        EXPECT_EQ(at(b, i, lane), (Coordinates{k, lane / 4}));
        for (uint32_t below : {0, 1})
          EXPECT_EQ(at(a, i % 2 + 2 * below + i / 2 * 4, lane), (Coordinates{lane / 4 + 8 * below, k}));
      }
  }
}

TEST(MmaLayouts, OperandsOf32BitElements) {
  LinearLayout a = mmaOperandLayout(MmaOperand::A, {16, 8}, {1, 1}, 32),
               b = mmaOperandLayout(MmaOperand::B, {8, 8}, {1, 1}, 32);
  ASSERT_EQ(a.size(InDim::Register), 4u);
  ASSERT_EQ(b.size(InDim::Register), 2u);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t i = 0; i < 4; ++i) // row = groupID, + 8 for a1 and a3; col = threadID_in_group, + 4 for a2 and a3
      EXPECT_EQ(at(a, i, lane), (Coordinates{int64_t(lane / 4 + (i & 1) * 8), int64_t(lane % 4 + (i >> 1) * 4)}));
    for (uint32_t i = 0; i < 2; ++i) // row = threadID_in_group, + 4 for b1; col = groupID
      EXPECT_EQ(at(b, i, lane), (Coordinates{int64_t(lane % 4 + i * 4), int64_t(lane / 4)}));
  }
}

TEST(MmaLayouts, OperandsOf8BitElements) {
  LinearLayout a = mmaOperandLayout(MmaOperand::A, {16, 32}, {1, 1}, 8),
               b = mmaOperandLayout(MmaOperand::B, {32, 8}, {1, 1}, 8);
  ASSERT_EQ(a.size(InDim::Register), 16u);
  ASSERT_EQ(b.size(InDim::Register), 8u);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t i = 0; i < 16;
         ++i) { // row = groupID for i < 4 and 8 <= i < 12; col = threadID_in_group * 4 + (i & 3), + 16 for i >= 8
      int64_t row = lane / 4 + (i < 4 || (i >= 8 && i < 12) ? 0 : 8),
              column = lane % 4 * 4 + (i & 3) + (i >= 8 ? 16 : 0);
      EXPECT_EQ(at(a, i, lane), (Coordinates{row, column}));
    }
    for (uint32_t i = 0; i < 8; ++i)
      EXPECT_EQ(at(b, i, lane), (Coordinates{int64_t(lane % 4 * 4 + (i & 3) + (i >= 4 ? 16 : 0)), int64_t(lane / 4)}));
  }
}

struct Product {
  int64_t m, n, k;
  WarpGrid warps;
  unsigned bits;
};

class TiledProduct : public testing::TestWithParam<Product> {};

TEST_P(TiledProduct, EachWarpOwnsAContiguousBlock) {
  Product p = GetParam();
  LinearLayout acc = mmaAccLayout({p.m, p.n}, p.warps);
  EXPECT_TRUE(acc.isSurjective());
  ASSERT_EQ(acc.size(InDim::Warp), p.warps.rows * p.warps.columns);
  if (p.m < 16 * p.warps.rows || p.n < 8 * p.warps.columns)
    return; // more warps than instruction tiles: some repeat
  EXPECT_TRUE(acc.isInjective());
  for (uint32_t warp = 0; warp < acc.size(InDim::Warp); ++warp)
    for (uint32_t reg = 0; reg < acc.size(InDim::Register); ++reg)
      for (uint32_t lane = 0; lane < 32; ++lane) {
        Coordinates here = at(acc, reg, lane, warp);
        EXPECT_EQ(here[0] / (p.m / p.warps.rows), warp % p.warps.rows);
        EXPECT_EQ(here[1] / (p.n / p.warps.columns), warp / p.warps.rows);
      }
}

TEST_P(TiledProduct, EachWarpHoldsTheOperandsOfItsBlock) {
  Product p = GetParam();
  LinearLayout acc = mmaAccLayout({p.m, p.n}, p.warps);
  LinearLayout a = mmaOperandLayout(MmaOperand::A, {p.m, p.k}, p.warps, p.bits);
  LinearLayout b = mmaOperandLayout(MmaOperand::B, {p.k, p.n}, p.warps, p.bits);
  EXPECT_TRUE(a.isSurjective());
  EXPECT_TRUE(b.isSurjective());
  for (uint32_t warp = 0; warp < acc.size(InDim::Warp); ++warp) {
    EXPECT_EQ(at(a, 0, 0, warp)[0], at(acc, 0, 0, warp)[0]);
    EXPECT_EQ(at(b, 0, 0, warp)[1], at(acc, 0, 0, warp)[1]);
    EXPECT_EQ(at(a, 0, 0, warp)[1], 0);
    EXPECT_EQ(at(b, 0, 0, warp)[0], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TiledProduct,
                         testing::Values(Product{128, 64, 64, {4, 1}, 16}, Product{128, 128, 64, {8, 1}, 16},
                                         Product{64, 64, 32, {2, 2}, 16}, Product{128, 256, 32, {2, 4}, 16},
                                         Product{16, 16, 16, {4, 1}, 16}, Product{16, 64, 16, {1, 8}, 16},
                                         Product{64, 64, 16, {2, 2}, 32}, Product{32, 32, 64, {2, 1}, 8}));

struct Batch {
  unsigned count;
  Product each; // warps: of all together
};

class BatchedProduct : public testing::TestWithParam<Batch> {};

TEST_P(BatchedProduct, EachWarpHoldsTheColumnsOfItsRows) {
  auto [count, p] = GetParam();
  LinearLayout acc = mmaAccLayout({count * p.m, p.n}, p.warps);
  LinearLayout b = mmaOperandLayout(MmaOperand::B, {p.k, count * p.n}, p.warps, p.bits, fragments16x8(), count);
  EXPECT_TRUE(b.isSurjective());
  ASSERT_EQ(b.size(InDim::Warp), acc.size(InDim::Warp));
  for (uint32_t warp = 0; warp < acc.size(InDim::Warp); ++warp)
    for (uint32_t lane = 0; lane < 32; ++lane) {
      std::set<std::pair<int64_t, int64_t>> needed, held; // a product, and eight of its columns
      for (uint32_t reg = 0; reg < acc.size(InDim::Register); ++reg)
        needed.insert({at(acc, reg, lane, warp)[0] / p.m, at(acc, reg, lane, warp)[1] / 8});
      for (uint32_t reg = 0; reg < b.size(InDim::Register); ++reg)
        held.insert({at(b, reg, lane, warp)[1] / p.n, at(b, reg, lane, warp)[1] % p.n / 8});
      EXPECT_EQ(needed, held) << "warp " << warp << ", lane " << lane;
    }
}

TEST_P(BatchedProduct, FragmentsAreThoseOfOneProduct) {
  auto [count, p] = GetParam();
  LinearLayout all = mmaOperandLayout(MmaOperand::B, {p.k, count * p.n}, p.warps, p.bits, fragments16x8(), count);
  LinearLayout one = mmaOperandLayout(MmaOperand::B, {p.k, p.n}, {1, p.warps.columns}, p.bits);
  for (uint32_t reg = 0; reg < all.size(InDim::Register); ++reg)
    for (uint32_t lane = 0; lane < 32; ++lane) {
      Coordinates here = at(all, reg, lane, 0), there = at(one, reg % one.size(InDim::Register), lane, 0);
      EXPECT_EQ(here[0], there[0]);
      EXPECT_EQ(here[1] - p.n * (reg / one.size(InDim::Register)), there[1]);
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, BatchedProduct,
                         testing::Values(Batch{4, {16, 32, 32, {4, 1}, 16}}, Batch{2, {64, 64, 32, {4, 1}, 16}},
                                         Batch{2, {64, 64, 32, {2, 2}, 16}}, Batch{8, {16, 16, 16, {4, 1}, 16}},
                                         Batch{16, {32, 8, 16, {1, 1}, 32}}, Batch{2, {16, 16, 32, {2, 4}, 8}}));

TEST(MmaLayouts, AccumulatorIsTheNextOperandA) {
  for (int64_t m : {16, 64, 128})
    for (int64_t n : {16, 32, 64, 128})
      for (unsigned warps : {1, 4, 8}) {
        LinearLayout acc = mmaAccLayout({m, n}, {warps, 1}),
                     a = mmaOperandLayout(MmaOperand::A, {m, n}, {warps, 1}, 16);
        EXPECT_TRUE(a.registerPermutation(acc)) << acc.str() << "\n" << a.str();
      }
}

} // namespace
