// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Launch/Arena.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>

using namespace weft::launch;

TEST(Arena, BuffersThatDoNotMeetShare) {
  ArenaLayout layout = layOut(std::vector<BufferLife>{{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}});
  EXPECT_EQ(layout.offsets, (std::vector<uint64_t>{0, 1024, 0}));
  EXPECT_EQ(layout.bytes, 2048u);
}

TEST(Arena, GapsAreUsedWhereTheyAreWideEnough) {
  ArenaLayout layout = layOut(std::vector<BufferLife>{{256, 0, 9}, {512, 0, 1}, {256, 0, 9}, {768, 2, 3}, {300, 2, 3}});
  EXPECT_EQ(layout.offsets, (std::vector<uint64_t>{0, 256, 768, 1024, 256}));
}

TEST(Arena, Nothing) {
  EXPECT_EQ(layOut({}).bytes, 0u);
  EXPECT_EQ(layOut(std::vector<BufferLife>{{0, 0, 1}}).bytes, 0u);
}

TEST(Arena, NoTwoThatLiveTogetherOverlap) {
  uint64_t seed = std::random_device{}();
  printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::vector<BufferLife> buffers(1 + random() % 12);
    for (BufferLife &buffer : buffers) {
      uint32_t first = random() % 8;
      buffer = {random() % 3000, first, static_cast<uint32_t>(first + random() % 4)};
    }
    ArenaLayout layout = layOut(buffers);
    uint64_t needed = 0, all = 0;
    for (uint32_t step = 0; step < 12; ++step) {
      uint64_t live = 0;
      for (const BufferLife &buffer : buffers)
        live += buffer.first <= step && step <= buffer.last ? (buffer.bytes + 255) / 256 * 256 : 0;
      needed = std::max(needed, live);
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      all += (buffers[i].bytes + 255) / 256 * 256;
      ASSERT_EQ(layout.offsets[i] % 256, 0u);
      ASSERT_LE(layout.offsets[i] + buffers[i].bytes, layout.bytes);
      for (size_t j = 0; j < i; ++j) {
        bool meet = buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
        bool apart = layout.offsets[i] + buffers[i].bytes <= layout.offsets[j] ||
                     layout.offsets[j] + buffers[j].bytes <= layout.offsets[i];
        ASSERT_TRUE(!meet || apart || !buffers[i].bytes || !buffers[j].bytes);
      }
    }
    ASSERT_GE(layout.bytes, needed);
    ASSERT_LE(layout.bytes, all);
  }
}
