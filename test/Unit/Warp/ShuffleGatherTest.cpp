// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Gathers by shuffles, carried out on paper.
#include "dialects/Warp/Layout/ShuffleGather.h"
#include "test/Unit/Warp/RandomLayout.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

using namespace weft::warp;
using namespace weft::warp::test;

namespace {

void move(Place &place, llvm::ArrayRef<Place> steps, uint32_t bits) {
  for (auto [bit, step] : llvm::enumerate(steps))
    if (bits >> bit & 1)
      for (InDim dim : {InDim::Register, InDim::Lane})
        place[dim] ^= step[dim];
}

/// Every lane of every warp gets the element that any index names, from its own warp.
void expectDelivers(const ShuffleGather &gather, const LinearLayout &source, const LinearLayout &result,
                    unsigned axis) {
  for (const Place &place : placesOf(result))
    for (int64_t index = 0; index < source.shape()[axis]; ++index) {
      Place from = gather.ofRegister[place[InDim::Register]];
      move(from, gather.laneSteps, place[InDim::Lane]);
      move(from, gather.warpSteps, place[InDim::Warp]);
      move(from, gather.indexSteps, index);
      ASSERT_EQ(from[InDim::Warp], 0u);
      from[InDim::Warp] = place[InDim::Warp];
      llvm::SmallVector<int64_t, 4> at = result.delinearize(result.apply(place));
      at[axis] = index;
      ASSERT_EQ(source.apply(from), source.linearize(at)) << source.str() << "\n" << result.str();
    }
}

TEST(ShuffleGather, InRowsOfAWarp) {
  LinearLayout source({4, 64}), result({4, 32});
  source.appendAxis(InDim::Register, 1, 1, 1).appendAxis(InDim::Lane, 1, 5, 2).appendAxis(InDim::Warp, 0, 2, 1);
  result.appendAxis(InDim::Lane, 1, 5, 1).appendAxis(InDim::Warp, 0, 2, 1);
  std::optional<ShuffleGather> gather = shuffleGather(source, result, 1, 4);
  ASSERT_TRUE(gather);
  EXPECT_EQ(gather->choosingBits(), 1u); // an odd index is in the other register
  expectDelivers(*gather, source, result, 1);
}

TEST(ShuffleGather, NotAcrossWarps) {
  LinearLayout rows({4, 64});
  rows.appendAxis(InDim::Register, 1, 1, 1).appendAxis(InDim::Lane, 1, 5, 2).appendAxis(InDim::Warp, 0, 2, 1);
  EXPECT_FALSE(shuffleGather(rows, rows, 0, 4));
}

TEST(ShuffleGather, NotWhereMemoryIsCheaper) {
  LinearLayout rows({4, 1024});
  rows.appendAxis(InDim::Register, 1, 5, 1).appendAxis(InDim::Lane, 1, 5, 32).appendAxis(InDim::Warp, 0, 2, 1);
  EXPECT_FALSE(shuffleGather(rows, rows, 1, 4));
}

TEST(ShuffleGather, DeliversWhateverItAccepts) {
  RandomLayouts random(seed());
  SCOPED_TRACE("WEFT_SEED=" + std::to_string(seed()));
  int accepted = 0;
  for (int round = 0; round < 20000 && accepted < 100; ++round) {
    unsigned axis = random.below(2);
    llvm::SmallVector<int64_t, 2> shape{int64_t(1) << random.below(4), int64_t(1) << random.below(4)};
    auto draw = [&](int64_t size) {
      shape[axis] = size;
      for (;;) {
        LinearLayout layout(shape);
        for (unsigned bits = random.below(3); bits > 0; --bits)
          layout.append(InDim::Register, random.below(layout.numElements()));
        for (unsigned bit = 0; bit < 5; ++bit)
          layout.append(InDim::Lane, random.below(layout.numElements()));
        layout.append(InDim::Warp, random.below(2) ? 0 : layout.numElements() / 2);
        if (layout.isSurjective())
          return layout;
      }
    };
    LinearLayout source = draw(int64_t(1) << random.below(4)), result = draw(int64_t(1) << random.below(4));
    if (std::optional<ShuffleGather> gather = shuffleGather(source, result, axis, 4)) {
      ++accepted;
      expectDelivers(*gather, source, result, axis);
    }
  }
  EXPECT_GT(accepted, 20);
}

} // namespace
