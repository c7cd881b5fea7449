// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Granules looked at and changed many at a time: as one by one.
#include "runtime/Simulator/Machine/State/Shadow/GranuleRuns.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace weft::simulator::machine;

namespace {

constexpr size_t words = sizeof(Granule) / 4;

GranuleMask wordsOf(const Granule &g) {
  GranuleMask result;
  std::memcpy(&result, &g, sizeof g);
  return result;
}

bool areAlike(const Granule &a, const Granule &b, const GranuleMask &mask) {
  const GranuleMask x = wordsOf(a), y = wordsOf(b);
  for (size_t i = 0; i < words; ++i)
    if ((x.words[i] ^ y.words[i]) & mask.words[i])
      return false;
  return true;
}

GranuleMask anyMask(std::mt19937_64 &random) {
  GranuleMask mask;
  for (uint32_t &word : mask.words)
    word = random() % 3 ? (random() % 2 ? ~0u : uint32_t(random())) : 0;
  return mask;
}

/// Changes one bit of a granule.
void change(Granule &g, std::mt19937_64 &random) {
  GranuleMask bits = wordsOf(g);
  bits.words[random() % words] ^= 1u << random() % 32;
  std::memcpy(static_cast<void *>(&g), &bits, sizeof g);
}

} // namespace

TEST(GranuleRuns, EndWhereOneDiffersInABitThatMatters) {
  std::mt19937_64 random(1);
  size_t whole = 0;
  for (int i = 0; i < 20000; ++i) {
    Granule all;
    all.writeClock = uint32_t(random());
    std::vector<Granule> granules(1 + random() % 70, all);
    for (uint64_t changes = random() % 4; changes; --changes)
      change(granules[random() % granules.size()], random);
    const GranuleMask mask = anyMask(random);
    Granule *first = &granules[random() % granules.size()], *end = granules.data() + granules.size(), *expected = first;
    while (expected != end && areAlike(*first, *expected, mask))
      ++expected;
    ASSERT_EQ(endOfAlike(first, end, mask) - first, expected - first);
    whole += expected == end;
  }
  EXPECT_GT(whole, 2000u);
  EXPECT_LT(whole, 18000u);
}

TEST(GranuleRuns, AreChangedInTheBitsThatAreNotKept) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 2000; ++i) {
    std::vector<Granule> granules(3 + random() % 40);
    for (Granule &g : granules)
      for (int bits = 0; bits < 60; ++bits)
        change(g, random);
    const std::vector<Granule> before = granules;
    const size_t begin = random() % granules.size(), end = begin + random() % (granules.size() - begin + 1);
    const GranuleMask keep = anyMask(random);
    Granule set;
    for (int bits = 0; bits < 20; ++bits)
      change(set, random);
    changeGranules(&granules[begin], granules.data() + end, keep, set);
    for (size_t at = 0; at < granules.size(); ++at)
      for (size_t word = 0; word < words; ++word) {
        const uint32_t was = wordsOf(before[at]).words[word];
        const bool inside = begin <= at && at < end;
        ASSERT_EQ(wordsOf(granules[at]).words[word],
                  inside ? (was & keep.words[word]) | wordsOf(set).words[word] : was);
      }
    fillGranules(&granules[begin], granules.data() + end, before[0]);
    for (size_t at = begin; at < end; ++at)
      ASSERT_TRUE(areAlike(granules[at], before[0], {{~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u}}));
  }
}
