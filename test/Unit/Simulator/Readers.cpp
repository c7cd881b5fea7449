// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What is remembered of several readers: each one's clocks, however many there are, and no more than there is room for.
#include "runtime/Simulator/Machine/State/Readers/MoreReaders.h"
#include "runtime/Simulator/Machine/State/SharedShadow.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace weft::simulator::machine;

TEST(Readers, OfOneWarpAreItsFirstAndLast) {
  SharedShadow shadow;
  shadow.reset(64, 2, 4);
  Granule &g = shadow.at(0);
  g.read = {.warps = 1u << 2, .clock = 5};
  for (uint32_t clock : {5, 9, 7})
    shadow.addReader(g, 2, clock);
  EXPECT_EQ(shadow.readsOf(g, 2).first, 5u);
  EXPECT_EQ(shadow.readsOf(g, 2).last, 9u);
}

TEST(Readers, OfOneTurnNeedNoSet) {
  SharedShadow shadow;
  shadow.reset(64, 2, 4);
  Granule &g = shadow.at(0);
  g.read = {.warps = 1, .clock = 5};
  for (uint32_t warp : {1, 3, 0})
    shadow.addReader(g, warp, 5);
  EXPECT_EQ(g.later, 0);
  EXPECT_EQ(g.read.warps, 0b1011u);
  EXPECT_EQ(shadow.readsOf(g, 3).last, 5u);
}

TEST(Readers, OfNeighboursShareASet) {
  SharedShadow shadow;
  shadow.reset(64, 2, 4);
  for (uint32_t byte : {0, 4}) {
    Granule &g = shadow.at(byte);
    g.read = {.warps = 1, .clock = 2};
    shadow.addReader(g, 0, 3);
    shadow.addReader(g, 1, 7);
    EXPECT_EQ(g.readUntil(), 7u) << "no reader read later";
  }
  EXPECT_NE(shadow.at(0).later, 0);
  EXPECT_EQ(shadow.at(0).later, shadow.at(4).later);
  EXPECT_EQ(shadow.readsOf(shadow.at(0), 0).first, 2u);
  EXPECT_EQ(shadow.readsOf(shadow.at(0), 0).last, 3u);
}

/// A granule's readers as they are added, beside the shadow's.
static void addAny(SharedShadow &shadow, std::vector<std::map<uint32_t, WarpReads>> &expected, uint32_t index,
                   uint32_t warp, uint32_t clock) {
  Granule &g = shadow.at(4 * index);
  WarpReads &reads = expected[index][warp];
  reads = {reads.last ? reads.first : clock, clock};
  if (g.read.warps)
    shadow.addReader(g, warp, clock);
  else
    g.read = {.warps = 1u << warp, .clock = clock};
}

TEST(Readers, AreKeptWhenSetsOfOthersAreForgotten) {
  constexpr uint32_t warps = 6, words = 500;
  std::mt19937 random(7);
  SharedShadow shadow;
  shadow.reset(4 * words, 2, warps);
  std::vector<std::map<uint32_t, WarpReads>> expected(words);
  for (uint32_t clock = 1; clock < 20000; ++clock) {
    const uint32_t index = random() % words;
    if (random() % 8 == 0) { // a write
      Granule &g = shadow.at(4 * index);
      g.read.warps = 0;
      g.later = 0;
      expected[index].clear();
    }
    addAny(shadow, expected, index, random() % warps, clock);
  }
  for (uint32_t index = 0; index < words; ++index)
    for (const auto &[warp, reads] : expected[index]) {
      const WarpReads found = shadow.readsOf(shadow.at(4 * index), warp);
      EXPECT_EQ(found.first, reads.first) << index << ", warp " << warp;
      EXPECT_EQ(found.last, reads.last) << index << ", warp " << warp;
    }
}

TEST(Readers, WithoutRoomAreTheEarliest) {
  constexpr uint32_t words = 70000;
  SharedShadow shadow;
  shadow.reset(4 * words, 2, 2);
  for (uint32_t index = 0; index < words; ++index) {
    Granule &g = shadow.at(4 * index);
    g.read = {.warps = 1, .clock = 2 * index + 1};
    shadow.addReader(g, 1, 2 * index + 2);
  }
  const Granule &first = shadow.at(0), &last = shadow.at(4 * (words - 1));
  EXPECT_EQ(shadow.readsOf(first, 1).last, 2u);
  EXPECT_EQ(last.read.warps, 3u);
  EXPECT_EQ(shadow.readsOf(last, 1).last, 2 * words - 1) << "that of the other";
}

namespace {

const auto none = [](Stamp) { return false; };

std::vector<uint32_t> warpsOf(const MoreReaders &readers, uint32_t list) {
  std::vector<uint32_t> warps;
  readers.find(list, [&](const MoreReader &reader) {
    warps.push_back(reader.stamp.warp());
    return false;
  });
  return warps;
}

} // namespace

TEST(MoreReaders, OfNeighboursShareAList) {
  MoreReaders readers;
  uint32_t list = readers.with(0, {1, 2, 0, 5}, {7, 0}, none);
  EXPECT_EQ(readers.with(0, {1, 2, 0, 5}, {7, 0}, none), list);
  EXPECT_NE(readers.with(0, {1, 2, 0, 6}, {7, 0}, none), list);
  uint32_t longer = readers.with(list, {1, 3, 0, 5}, {7, 0}, none);
  EXPECT_EQ(warpsOf(readers, longer), (std::vector<uint32_t>{3, 2}));
  EXPECT_EQ(warpsOf(readers, list), std::vector<uint32_t>{2}) << "a list never changes";
}

TEST(MoreReaders, LeaveOutWhoIsBefore) {
  MoreReaders readers;
  uint32_t list = 0;
  for (uint32_t warp : {1, 2, 3})
    list = readers.with(list, {0, warp, 0, 1}, {7, 0}, none);
  list = readers.with(list, {0, 4, 0, 2}, {7, 0}, [](Stamp before) { return before.warp() != 1; });
  EXPECT_EQ(warpsOf(readers, list), (std::vector<uint32_t>{4, 1}));
  list = readers.with(list, {0, 4, 0, 3}, {9, 0}, none);
  EXPECT_EQ(warpsOf(readers, list), (std::vector<uint32_t>{4, 1})) << "the later of one warp's";
  list = readers.with(list, {0, 4, 0, 4}, {9, 1}, none);
  EXPECT_EQ(warpsOf(readers, list), (std::vector<uint32_t>{4, 4, 1})) << "a weak and a strong one";
}
