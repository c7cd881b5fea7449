// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What ops on a tensor's shape do to its layout.
#include "test/Unit/Warp/RandomLayout.h"
#include "gtest/gtest.h"
#include <numeric>

using namespace weft::warp;
using namespace weft::warp::test;

namespace {
constexpr int shapes = 100;

class LayoutShapeTest : public testing::Test {
protected:
  LayoutShapeTest() : random(seed()), trace(__FILE__, __LINE__, "WEFT_SEED=" + std::to_string(seed())) {}
  RandomLayouts random;
  testing::ScopedTrace trace;
};

TEST_F(LayoutShapeTest, AppendAxisRepeatsPastTheEnd) {
  LinearLayout layout({4, 8});
  layout.appendAxis(InDim::Lane, 0, 3, 1);
  EXPECT_EQ(layout.str(), "[4, 8], lane = [[1, 0], [2, 0], [0, 0]]");
}

TEST_F(LayoutShapeTest, ReshapeKeepsRowMajorOrder) {
  LinearLayout layout = random.any({4, 8});
  LinearLayout reshaped = layout.reshape({2, 16});
  EXPECT_EQ(reshaped.shape(), llvm::ArrayRef<int64_t>({2, 16}));
  for (const Place &place : placesOf(layout))
    EXPECT_EQ(reshaped.apply(place), layout.apply(place));
}

TEST_F(LayoutShapeTest, PermuteMovesCoordinates) {
  for (int shape = 0; shape < shapes; ++shape) {
    LinearLayout layout = random.any(random.shape());
    std::vector<int32_t> order(layout.rank());
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[random.below(i)]);
    LinearLayout permuted = layout.permute(order);
    for (const Place &place : placesOf(layout)) {
      auto from = layout.delinearize(layout.apply(place)), to = permuted.delinearize(permuted.apply(place));
      for (unsigned axis = 0; axis < layout.rank(); ++axis)
        EXPECT_EQ(to[axis], from[order[axis]]);
    }
  }
}

TEST_F(LayoutShapeTest, DropAxisForgetsACoordinate) {
  for (int shape = 0; shape < shapes; ++shape) {
    LinearLayout layout = random.covering(random.shape(), 0);
    unsigned axis = random.below(layout.rank());
    LinearLayout dropped = layout.dropAxis(axis);
    EXPECT_EQ(dropped.rank(), layout.rank() - 1);
    EXPECT_TRUE(dropped.isSurjective());
    for (uint32_t basis : dropped.bases(InDim::Register))
      EXPECT_NE(basis, 0u) << "a register that repeats others stayed: " << dropped.str();
    for (InDim dim : {InDim::Lane, InDim::Warp}) {
      ASSERT_EQ(dropped.size(dim), layout.size(dim));
      for (uint32_t index = 0; index < layout.size(dim); ++index) {
        auto from = layout.delinearize(layout.apply(dim, index));
        from.erase(from.begin() + axis);
        EXPECT_EQ(dropped.delinearize(dropped.apply(dim, index)), from);
      }
    }
  }
}

TEST_F(LayoutShapeTest, SqueezeAxisIsTheSourceOfABroadcast) {
  LinearLayout layout({4, 4});
  layout.append(InDim::Register, {0, 1})
      .append(InDim::Register, {2, 0})
      .append(InDim::Lane, {0, 2})
      .append(InDim::Lane, {1, 0});
  EXPECT_EQ(layout.squeezeAxis(1).str(), "[4, 1], register = [[2, 0]], lane = [[0, 0], [1, 0]]");
  EXPECT_EQ(layout.squeezeAxis(0).str(), "[1, 4], register = [[0, 1]], lane = [[0, 2], [0, 0]]");
}

TEST_F(LayoutShapeTest, ResizeAxisKeepsTheOthers) {
  LinearLayout layout({4, 4});
  layout.append(InDim::Register, {0, 1})
      .append(InDim::Register, {2, 0})
      .append(InDim::Lane, {0, 2})
      .append(InDim::Lane, {1, 0});
  EXPECT_EQ(layout.resizeAxis(1, 2).str(), "[4, 2], register = [[0, 1], [2, 0]], lane = [[0, 0], [1, 0]]");
  EXPECT_EQ(layout.resizeAxis(0, 2).str(), "[2, 4], register = [[0, 1]], lane = [[0, 2], [1, 0]]");
  EXPECT_EQ(layout.resizeAxis(0, 8).str(), "[8, 4], register = [[0, 1], [2, 0], [4, 0]], lane = [[0, 2], [1, 0]]");
  EXPECT_EQ(layout.resizeAxis(1, 4), layout);
}

TEST_F(LayoutShapeTest, CountsContiguousRegisters) {
  LinearLayout layout({4, 8});
  EXPECT_EQ(layout.contiguousRegisters(), 1u);
  layout.append(InDim::Register, {0, 1}).append(InDim::Register, {0, 2}).append(InDim::Register, {1, 0});
  EXPECT_EQ(layout.contiguousRegisters(), 4u);
  layout.append(InDim::Lane, {0, 4});
  EXPECT_EQ(layout.contiguousRegisters(), 4u);
}

} // namespace
