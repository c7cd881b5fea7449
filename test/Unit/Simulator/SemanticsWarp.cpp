// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Exchanges between lanes against the ISA's pseudocode and brute force.
#include "runtime/Simulator/Semantics/Warp.h"
#include "test/Unit/Simulator/Random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
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

/// The extremum by sorting what counts: as integers the bits of floats of one sign have their order.
uint32_t extremum(bool greatest, bool magnitudes, bool propagateNaN, const float *values, uint32_t members) {
  std::vector<int32_t> keys;
  bool anyNaN = false;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (!(members >> lane & 1))
      continue;
    const uint32_t bits = std::bit_cast<uint32_t>(values[lane]) & (magnitudes ? 0x7fffffff : 0xffffffff);
    const bool isNaN = (bits & 0x7fffffff) > 0x7f800000;
    anyNaN |= isNaN;
    if (!isNaN)
      keys.push_back(int32_t(bits >> 31 ? bits ^ 0x7fffffff : bits));
  }
  if (keys.empty() || (anyNaN && propagateNaN))
    return 0x7fffffff;
  const int32_t key =
      greatest ? *std::max_element(keys.begin(), keys.end()) : *std::min_element(keys.begin(), keys.end());
  return key < 0 ? uint32_t(key) ^ 0x7fffffff : uint32_t(key);
}

TEST(Warp, ReduceFloats) {
  static constexpr uint32_t special[] = {0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345,
                                         0x7f800001, 0x00000001, 0x80000001, 0x3f800000, 0xbf800000, 0x7fffffff};
  test::Random random;
  int nans = 0, negativeZeros = 0;
  for (int i = 0; i < 20000; ++i) {
    const uint32_t members =
        (random.below(2) ? random.word() & random.word() & random.word() : random.word()) | 1u << random.below(32);
    const uint32_t kinds = 1 + random.below(12), from = random.below(12);
    float values[32];
    for (float &value : values)
      value = std::bit_cast<float>(random.below(9) ? special[(from + random.below(kinds)) % 12] : random.word());
    for (int how = 0; how < 8; ++how) {
      const bool greatest = how & 1, magnitudes = how & 2, propagate = how & 4;
      const uint32_t want = extremum(greatest, magnitudes, propagate, values, members);
      EXPECT_EQ(std::bit_cast<uint32_t>(reduxFloat(greatest, magnitudes, propagate, values, members)), want);
      nans += want == 0x7fffffff, negativeZeros += want == 0x80000000;
    }
  }
  EXPECT_GT(nans, 1000);
  EXPECT_GT(negativeZeros, 1000);
}

} // namespace
} // namespace weft::simulator::semantics
