// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Exchanges between lanes against the ISA's pseudocode and brute force.
#include "runtime/Simulator/Semantics/Warp.h"
#include "test/Unit/Simulator/Random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weft::simulator::semantics {
namespace {

/// What CUDA's __shfl family documents, for a warp split into segments of `width` lanes.
TEST(Warp, ShuffleInSegments) {
  for (uint32_t width : {1u, 2u, 4u, 8u, 16u, 32u}) {
    const uint32_t segmask = (32 - width) << 8;
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t by = 0; by < 32; ++by) {
        const uint32_t base = lane / width * width, last = base + width - 1;
        const auto same = [&](bool inRange, uint32_t source) {
          return ShuffleSource{uint8_t(inRange ? source : lane), inRange};
        };
        EXPECT_EQ(shuffleSource(ShuffleMode::Up, lane, by, segmask), same(lane >= base + by, lane - by));
        EXPECT_EQ(shuffleSource(ShuffleMode::Down, lane, by, segmask | 31), same(lane + by <= last, lane + by));
        EXPECT_EQ(shuffleSource(ShuffleMode::Index, lane, by, segmask | 31), same(true, base + by % width));
        EXPECT_EQ(shuffleSource(ShuffleMode::Butterfly, lane, by, segmask | 31), same((lane ^ by) <= last, lane ^ by));
      }
  }
}

TEST(Warp, ShuffleClamps) {
  // Index with a clamp of 15 and no segments: lanes above are out of range.
  EXPECT_EQ(shuffleSource(ShuffleMode::Index, 3, 20, 15), (ShuffleSource{3, false}));
  EXPECT_EQ(shuffleSource(ShuffleMode::Index, 20, 15, 15), (ShuffleSource{15, true}));
  EXPECT_EQ(shuffleSource(ShuffleMode::Up, 3, 35, 0), (ShuffleSource{0, true})); // the distance is taken modulo 32
}

TEST(Warp, Votes) {
  test::Random random;
  for (int i = 0; i < 20000; ++i) {
    const uint32_t members = random.word() | 1u << random.below(32);
    const uint32_t predicates = random.below(3) == 0 ? ~0u : random.below(2) ? 0 : random.word();
    bool all = true, any = false;
    for (uint32_t lane = 0; lane < 32; ++lane)
      if (members >> lane & 1) {
        all = all && (predicates >> lane & 1);
        any = any || (predicates >> lane & 1);
      }
    EXPECT_EQ(voteAll(predicates, members), all);
    EXPECT_EQ(voteAny(predicates, members), any);
    EXPECT_EQ(voteUni(predicates, members), all || !any);
    EXPECT_EQ(voteBallot(predicates, members), predicates & members);
    EXPECT_TRUE(members >> elect(members) & 1);
  }
}

TEST(Warp, MatchAndReduce) {
  test::Random random;
  for (int i = 0; i < 5000; ++i) {
    const uint32_t members = random.word() | 1u << random.below(32);
    uint64_t wide[32];
    uint32_t values[32];
    int32_t signedValues[32];
    std::vector<uint32_t> chosen;
    const uint32_t range = random.below(3) == 0 ? 1 : 4;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      values[lane] = (random.below(range) * 0x40000001u) ^ (random.below(4) == 0 ? ~0u : 0u) * (range > 1);
      wide[lane] = uint64_t(values[lane]) << 32;
      signedValues[lane] = int32_t(values[lane]);
      if (members >> lane & 1)
        chosen.push_back(values[lane]);
    }
    for (uint32_t lane = 0; lane < 32; ++lane) {
      uint32_t want = 0;
      for (uint32_t other = 0; other < 32; ++other)
        want |= uint32_t((members >> other & 1) && values[other] == values[lane]) << other;
      EXPECT_EQ(matchAny(values, lane, members), want);
      EXPECT_EQ(matchAny(wide, lane, members), want);
    }
    const bool equal = std::all_of(chosen.begin(), chosen.end(), [&](uint32_t v) { return v == chosen[0]; });
    EXPECT_EQ(matchAll(values, members), equal ? members : 0);
    uint32_t sum = 0, both = ~0u, either = 0, odd = 0;
    int32_t low = INT32_MAX, high = INT32_MIN;
    for (uint32_t v : chosen)
      sum += v, both &= v, either |= v, odd ^= v, low = std::min(low, int32_t(v)), high = std::max(high, int32_t(v));
    EXPECT_EQ(redux(Reduction::Add, values, members), sum);
    EXPECT_EQ(redux(Reduction::And, values, members), both);
    EXPECT_EQ(redux(Reduction::Or, values, members), either);
    EXPECT_EQ(redux(Reduction::Xor, values, members), odd);
    EXPECT_EQ(redux(Reduction::Min, signedValues, members), low);
    EXPECT_EQ(redux(Reduction::Max, signedValues, members), high);
    EXPECT_EQ(redux(Reduction::Min, values, members), *std::min_element(chosen.begin(), chosen.end()));
    EXPECT_EQ(redux(Reduction::Max, values, members), *std::max_element(chosen.begin(), chosen.end()));
  }
}

} // namespace
} // namespace weft::simulator::semantics
