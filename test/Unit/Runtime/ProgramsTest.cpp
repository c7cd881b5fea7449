// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Support/Programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

using namespace weft;
using testing::HasSubstr;

namespace {

const std::string line = "// weft.programs 1 attend at=24\n";

std::string map(uint32_t at) {
  return "// weft.tensor_map 1 attend at=" + std::to_string(at) +
         " type=f16 swizzle=128 box=64,8 base=1*i8@0 sizes=64,1*i4@8 strides=128\n";
}

} // namespace

TEST(Programs, ArePassedBehindAllElse) {
  const std::vector<std::byte> own(22);
  Result<ProgramsLaunch> launch = launchOver({6, 2, 3}, 5, *addedParametersOf(line)->at("attend").programs, own);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->blocks, 5u);
  ASSERT_EQ(launch->parameters.size(), 36u);
  std::array<uint32_t, 3> passed{};
  std::memcpy(passed.data(), launch->parameters.data() + 24, sizeof passed);
  EXPECT_EQ(passed, (std::array<uint32_t, 3>{6, 2, 3}));
}

TEST(Programs, AreNoFewerThanTheirBlocks) {
  EXPECT_EQ(launchOver({2, 1, 1}, 132, 0, {})->blocks, 2u);
  EXPECT_EQ(launchOver({2, 1, 1}, 0, 0, {})->blocks, 1u);
}

TEST(Programs, AreAtMostWhatAnIntegerHolds) {
  EXPECT_EQ(launchOver({INT32_MAX, 1, 1}, 132, 0, {})->blocks, 132u);
  for (const std::array<uint32_t, 3> &grid : {std::array<uint32_t, 3>{1u << 31, 1, 1},
                                              {65536, 32768, 1},
                                              {1 << 16, 1 << 14, 4},
                                              {UINT32_MAX, UINT32_MAX, 65535}})
    EXPECT_THAT(launchOver(grid, 132, 0, {}).error().message, HasSubstr("at most 2147483647 programs")) << grid[0];
}

TEST(Programs, AreFoundBesideMaps) {
  Result<AddedOfEntries> both = addedParametersOf(map(64) + "// weft.programs 1 attend at=192\n");
  ASSERT_TRUE(both);
  const AddedParameters &added = both->at("attend");
  EXPECT_EQ(added.count(), 4u);
  EXPECT_EQ(*added.begin(), 64u);
  EXPECT_TRUE(added.lacksPrograms(std::vector<std::byte>(192)));
  EXPECT_FALSE(added.lacksPrograms(std::vector<std::byte>(204)));
  EXPECT_EQ(*addedParametersOf(line)->at("attend").begin(), 24u);
  EXPECT_TRUE(addedParametersOf("// of nothing\n")->empty());
}

TEST(Programs, AreVerifiedWhenTheyAreRead) {
  for (std::string wrong :
       {"// weft.programs 1 attend\n", "// weft.programs 1 attend at=\n", "// weft.programs 1 attend at=22\n",
        "// weft.programs 1 attend at=65536\n", "// weft.programs 1\n", "// weft.programs 1 attend at=8 \n"}) {
    Result<AddedOfEntries> read = addedParametersOf(wrong);
    ASSERT_FALSE(read) << wrong;
    EXPECT_EQ(read.error().code, StatusCode::Corrupt) << wrong;
  }
  EXPECT_THAT(addedParametersOf(line + line).error().message, HasSubstr("one grid of programs"));
  EXPECT_THAT(addedParametersOf(map(64) + line).error().message, HasSubstr("behind all tensor maps"));
  EXPECT_EQ(addedParametersOf("// weft.programs 2 attend at=24\n").error().code, StatusCode::Unsupported);
}
