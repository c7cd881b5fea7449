// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Driver/Target.h"

#include <gtest/gtest.h>

using namespace weft::driver;

TEST(Target, ParsesAndPrints) {
  EXPECT_EQ(*parseTarget("sm_80"), (Target{8, 0, 0}));
  EXPECT_EQ(*parseTarget("sm_90a"), (Target{9, 0, 'a'}));
  EXPECT_EQ(*parseTarget("sm_121f"), (Target{12, 1, 'f'}));
  for (const char *name : {"sm_75", "sm_90a", "sm_100f", "sm_120"})
    EXPECT_EQ(targetName(*parseTarget(name)), name);
  for (const char *wrong : {"", "sm_", "sm_8", "sm_-80", "sm_80x", "sm_90aa", "sm_99999999999", "SM_80", "compute_80"})
    EXPECT_FALSE(parseTarget(wrong)) << wrong;
}

TEST(Target, RunsOn) {
  EXPECT_TRUE(runsOn({8, 0, 0}, 8, 0));
  EXPECT_TRUE(runsOn({8, 0, 0}, 9, 0));
  EXPECT_TRUE(runsOn({8, 9, 0}, 12, 0));
  EXPECT_FALSE(runsOn({8, 9, 0}, 8, 6));
  EXPECT_TRUE(runsOn({9, 0, 'a'}, 9, 0));
  EXPECT_FALSE(runsOn({9, 0, 'a'}, 10, 0));
  EXPECT_FALSE(runsOn({9, 0, 'a'}, 8, 0));
  EXPECT_TRUE(runsOn({10, 0, 'f'}, 10, 3));
  EXPECT_FALSE(runsOn({10, 3, 'f'}, 10, 0));
  EXPECT_FALSE(runsOn({10, 0, 'f'}, 11, 0));
}

TEST(Target, BinaryRunsOn) {
  EXPECT_TRUE(binaryRunsOn({8, 0, 0}, 8, 0));
  EXPECT_TRUE(binaryRunsOn({8, 0, 0}, 8, 9));
  EXPECT_FALSE(binaryRunsOn({8, 6, 0}, 8, 0));
  EXPECT_FALSE(binaryRunsOn({8, 0, 0}, 9, 0));
  EXPECT_TRUE(binaryRunsOn({9, 0, 'a'}, 9, 0));
  EXPECT_FALSE(binaryRunsOn({10, 0, 'a'}, 10, 3));
  EXPECT_TRUE(binaryRunsOn({10, 0, 'f'}, 10, 3));
  EXPECT_FALSE(binaryRunsOn({10, 3, 'f'}, 10, 0));
}
