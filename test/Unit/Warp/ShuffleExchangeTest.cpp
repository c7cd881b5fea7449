// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Exchanges by shuffles, carried out on paper.
#include "dialects/Warp/Layout/ShuffleExchange.h"
#include "dialects/Warp/Layout/MmaLayouts.h"
#include "test/Unit/Warp/RandomLayout.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

using namespace weft::warp;
using namespace weft::warp::test;

namespace {

/// Every lane of every warp gets the element that `result` asks for, from its own warp.
void expectDelivers(const ShuffleExchange &exchange, const LinearLayout &source, const LinearLayout &result) {
  for (const Place &place : placesOf(result)) {
    Place from;
    from[InDim::Warp] = place[InDim::Warp];
    from[InDim::Register] = exchange.registerOf[place[InDim::Register]];
    from[InDim::Lane] = exchange.laneOf[place[InDim::Register]];
    for (auto [bit, steps] : llvm::enumerate(llvm::zip_equal(exchange.registerSteps, exchange.laneSteps)))
      if ((place[InDim::Warp] << 5 | place[InDim::Lane]) >> bit & 1) {
        from[InDim::Register] ^= std::get<0>(steps);
        from[InDim::Lane] ^= std::get<1>(steps);
      }
    ASSERT_EQ(source.apply(from), result.apply(place)) << source.str() << "\n" << result.str();
  }
}

TEST(ShuffleExchange, RowsOfAnAccumulatorToOneALane) {
  // The layout of a product's row maxima, four lanes a row, to one row a lane.
  LinearLayout rows = mmaAccLayout({128, 64}, {4, 1}).dropAxis(1), spread({128});
  spread.appendAxis(InDim::Lane, 0, 5, 1).appendAxis(InDim::Warp, 0, 2, 32);
  std::optional<ShuffleExchange> exchange = shuffleExchange(rows, spread, 4);
  ASSERT_TRUE(exchange);
  EXPECT_EQ(exchange->choosingBits().size(), 2u); // 8 and 16 rows on are other registers
  expectDelivers(*exchange, rows, spread);
  std::optional<ShuffleExchange> back = shuffleExchange(spread, rows, 4);
  ASSERT_TRUE(back);
  EXPECT_TRUE(back->choosingBits().empty());
  expectDelivers(*back, spread, rows);
}

TEST(ShuffleExchange, FromLanesThatHoldTheSame) {
  // Sums that all lanes have, one to a lane: a choice among registers.
  LinearLayout sums({8}), spread({8});
  sums.appendAxis(InDim::Register, 0, 3, 1).appendAxis(InDim::Lane, 0, 5, 8);
  spread.appendAxis(InDim::Lane, 0, 5, 1);
  std::optional<ShuffleExchange> exchange = shuffleExchange(sums, spread, 4);
  ASSERT_TRUE(exchange);
  EXPECT_TRUE(exchange->isOwnLane());
  expectDelivers(*exchange, sums, spread);
  std::optional<ShuffleExchange> back = shuffleExchange(spread, sums, 4);
  ASSERT_TRUE(back);
  EXPECT_FALSE(back->isOwnLane());
  expectDelivers(*back, spread, sums);
}

TEST(ShuffleExchange, EachWarpItsOwnOfWhatAllHold) {
  // Words that every warp has one to a lane, to eight registers of each of four warps.
  LinearLayout lanes({32}), registers({32});
  lanes.appendAxis(InDim::Lane, 0, 5, 1).append(InDim::Warp, 0u).append(InDim::Warp, 0u);
  registers.appendAxis(InDim::Register, 0, 3, 4);
  for (int bit = 0; bit < 5; ++bit)
    registers.append(InDim::Lane, 0u);
  registers.appendAxis(InDim::Warp, 0, 2, 1);
  std::optional<ShuffleExchange> exchange = shuffleExchange(lanes, registers, 4);
  ASSERT_TRUE(exchange);
  EXPECT_FALSE(exchange->isOwnLane());
  expectDelivers(*exchange, lanes, registers);
  EXPECT_FALSE(shuffleExchange(registers, lanes, 4));
}

TEST(ShuffleExchange, NotAcrossWarps) {
  LinearLayout low({64}), high({64});
  low.appendAxis(InDim::Lane, 0, 5, 1).appendAxis(InDim::Warp, 0, 1, 32);
  high.appendAxis(InDim::Lane, 0, 5, 2).appendAxis(InDim::Warp, 0, 1, 1);
  EXPECT_FALSE(shuffleExchange(low, high, 4));
}

TEST(ShuffleExchange, NotWhereMemoryIsCheaper) {
  // 32 x 32 transposed inside one warp: each lane wants all registers of all lanes.
  LinearLayout rows({32, 32}), columns({32, 32});
  rows.appendAxis(InDim::Register, 1, 5, 1).appendAxis(InDim::Lane, 0, 5, 1);
  columns.appendAxis(InDim::Register, 0, 5, 1).appendAxis(InDim::Lane, 1, 5, 1);
  EXPECT_FALSE(shuffleExchange(rows, columns, 4));
}

TEST(ShuffleExchange, DeliversWhateverItAccepts) {
  RandomLayouts random(seed());
  SCOPED_TRACE("WEFT_SEED=" + std::to_string(seed()));
  int accepted = 0;
  for (int round = 0; round < 3000 && accepted < 100; ++round) {
    // Few elements, so that the dice often leave both warps with the same ones.
    llvm::SmallVector<int64_t, 1> shape{int64_t(1) << (2 + random.below(5))};
    auto draw = [&] {
      for (;;) {
        LinearLayout layout(shape);
        for (unsigned bits = 1 + random.below(3); bits > 0; --bits)
          layout.append(InDim::Register, random.below(layout.numElements()));
        for (unsigned bit = 0; bit < 5; ++bit)
          layout.append(InDim::Lane, random.below(layout.numElements()));
        layout.append(InDim::Warp, random.below(2) ? 0 : random.below(layout.numElements()));
        if (layout.isSurjective())
          return layout;
      }
    };
    LinearLayout source = draw(), result = draw();
    if (std::optional<ShuffleExchange> exchange = shuffleExchange(source, result, 4)) {
      ++accepted;
      expectDelivers(*exchange, source, result);
    }
  }
  EXPECT_GT(accepted, 20);
}

} // namespace
