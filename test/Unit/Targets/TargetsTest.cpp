// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "targets/Target.h"

#include <algorithm>
#include <gmock/gmock.h>

using namespace weft::targets;

TEST(Targets, AreFoundByName) {
  for (const Target &target : all()) {
    ASSERT_NE(find(target.name), nullptr);
    EXPECT_EQ(find(target.name)->name, target.name);
    EXPECT_THAT(names(), testing::HasSubstr("'" + std::string(target.name) + "'"));
  }
  EXPECT_EQ(find("sm_1"), nullptr);
  EXPECT_EQ(find(""), nullptr);
}

TEST(Targets, SayTheirCapability) {
  EXPECT_EQ(capabilityOf("sm_80"), 80);
  EXPECT_EQ(capabilityOf("sm_90a"), 90);
  EXPECT_EQ(capabilityOf("sm_103f"), 103);
  for (const char *wrong : {"", "sm_", "sm_a", "compute_80"})
    EXPECT_EQ(capabilityOf(wrong), 0) << wrong;
}

TEST(Targets, LendTheirLimitsToNewerDevices) {
  for (const Target &target : all())
    EXPECT_EQ(&nearest(target.capability()), find(target.name));
  EXPECT_EQ(nearest(87).capability() / 10, 8);
  EXPECT_EQ(nearest(103).name, "sm_100a");
  EXPECT_EQ(nearest(70).capability(), 80) << "the oldest, where there is no older one";
}

TEST(Targets, HaveOneDefaultSimulator) {
  EXPECT_EQ(std::ranges::count_if(all(), &Target::simulated), 1);
  EXPECT_TRUE(simulated().simulated);
}

TEST(Targets, DescribeTheirGpus) {
  for (const Target &target : all()) {
    ASSERT_GT(target.gpus.size(), 0u) << target.name;
    EXPECT_LE(target.sharedBytesPerBlock + target.reservedSharedBytes, target.sharedBytesPerProcessor);
    EXPECT_LE(target.maxWarps, target.maxWarpsPerProcessor);
    for (const Gpu &gpu : target.gpus) {
      EXPECT_FALSE(gpu.source.empty()) << gpu.key;
      // Products of f16 and bf16 go at one rate, those of tf32 at no higher one.
      ASSERT_GE(gpu.matrix.size(), 3u) << gpu.key;
      EXPECT_EQ(gpu.matrix.begin()[0].element, "f16");
      EXPECT_EQ(gpu.matrix.begin()[0].rate, gpu.matrix.begin()[1].rate);
      EXPECT_LE(gpu.matrix.begin()[2].rate, gpu.matrix.begin()[1].rate);
      // Every multiprocessor does a multiply-add of f32 a clock on each of 64 or 128 lanes, which is within 2 % of
      // what is published.
      double lanes = gpu.float32 / (2 * gpu.clock * gpu.multiprocessors);
      EXPECT_NEAR(lanes, lanes < 96 ? 64 : 128, 0.09 * lanes) << gpu.key;
    }
  }
}
