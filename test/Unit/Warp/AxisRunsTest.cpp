// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Runs of registers along an axis, counted place by place.
#include "dialects/Warp/Layout/AxisRuns.h"
#include "test/Unit/Warp/RandomLayout.h"
#include "gtest/gtest.h"
#include <set>

using namespace weft::warp;
using namespace weft::warp::test;

namespace {

TEST(AxisRuns, Accumulator) {
  LinearLayout layout({16, 64});
  for (auto base : {std::pair<int64_t, int64_t>{0, 1}, {8, 0}, {0, 8}, {0, 16}, {0, 32}})
    layout.append(InDim::Register, {base.first, base.second});
  for (auto base : {std::pair<int64_t, int64_t>{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}})
    layout.append(InDim::Lane, {base.first, base.second});
  std::optional<AxisRuns> columns = runsAlong(layout, 1), rows = runsAlong(layout, 0);
  ASSERT_TRUE(columns && rows);
  EXPECT_EQ(columns->size(), 16);
  EXPECT_EQ(columns->last(), 57);
  EXPECT_EQ(columns->elementAt(5), 17);
  EXPECT_EQ(columns->numberOf(17), 5);
  EXPECT_EQ(rows->size(), 2);
  EXPECT_EQ(rows->last(), 8);
}

TEST(AxisRuns, NoneAtUnequalDistances) {
  LinearLayout layout({64});
  for (uint32_t element : {1, 4, 16, 32})
    layout.append(InDim::Register, element);
  EXPECT_FALSE(runsAlong(layout, 0));
}

/// Every step along one axis, dealt out at random.
LinearLayout dealt(RandomLayouts &random, llvm::ArrayRef<int64_t> shape) {
  LinearLayout layout(shape);
  std::vector<uint32_t> steps;
  for (uint32_t step = 1; step < layout.numElements(); step *= 2)
    steps.insert(steps.begin() + random.below(unsigned(steps.size()) + 1), step);
  for (uint32_t step : steps)
    layout.append(random.below(2) ? InDim::Register : random.below(2) ? InDim::Lane : InDim::Warp, step);
  return layout;
}

/// What runs say is what a thread has: from its first element on, the same distances in the same order.
TEST(AxisRuns, AreAThreadsElements) {
  SCOPED_TRACE(testing::Message() << "WEFT_SEED=" << seed());
  RandomLayouts random(seed());
  unsigned found = 0;
  for (unsigned i = 0; i < 3000; ++i) {
    std::vector<int64_t> shape = random.shape();
    LinearLayout layout = i % 2 ? random.any(shape) : dealt(random, shape);
    unsigned axis = random.below(unsigned(shape.size()));
    std::optional<AxisRuns> runs = runsAlong(layout, axis);
    if (!runs)
      continue;
    ++found;
    for (uint32_t lane = 0; lane < layout.size(InDim::Lane); ++lane)
      for (uint32_t warp = 0; warp < layout.size(InDim::Warp); ++warp) {
        uint32_t of = layout.apply(InDim::Lane, lane) ^ layout.apply(InDim::Warp, warp);
        int64_t first = layout.delinearize(of)[axis];
        std::set<int64_t> distances, expected;
        for (uint32_t r = 0; r < layout.size(InDim::Register); ++r)
          distances.insert(layout.delinearize(of ^ layout.apply(InDim::Register, r))[axis] - first);
        for (int64_t number = 0; number < runs->size(); ++number) {
          expected.insert(runs->elementAt(number));
          ASSERT_EQ(runs->numberOf(runs->elementAt(number)), number);
        }
        ASSERT_EQ(distances, expected);
      }
  }
  EXPECT_GT(found, 300u);
}

} // namespace
