// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "Samples.h"

#include "runtime/Launch/Dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft;
using namespace weft::launch;
using testing::HasSubstr;

namespace {

library::Kernel sample() {
  auto text = library::composeManifest(samples::vectorAddKernels(), {{"add.sm_80.ptx", ""}, {"add.sm_90a.ptx", ""}});
  return library::parseManifest(*text)->kernels[0];
}

std::vector<Value> values(int64_t n, uint64_t x = 256) {
  return {Value::ofAddress(x), Value::ofAddress(512), Value::ofAddress(1024), Value::ofInteger(n)};
}

driver::DeviceProperties capability(int major, int minor) {
  driver::DeviceProperties properties;
  properties.name = "a device";
  properties.major = major;
  properties.minor = minor;
  return properties;
}

} // namespace

TEST(Dispatch, FirstVariantThatFits) {
  library::Kernel kernel = sample();
  EXPECT_EQ(chooseVariant(kernel, capability(9, 0), values(32)), 0u);
  EXPECT_EQ(chooseVariant(kernel, capability(9, 0), values(33)), 1u);
  EXPECT_EQ(chooseVariant(kernel, capability(8, 6), values(32)), 1u);
  EXPECT_EQ(chooseVariant(kernel, capability(12, 0), values(32)), 1u);
}

TEST(Dispatch, WrongTarget) {
  Result<size_t> choice = chooseVariant(sample(), capability(7, 5), values(32));
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, StatusCode::WrongTarget);
  EXPECT_THAT(choice.error().message,
              HasSubstr("no variant of 'add' runs on a device, which is of compute capability 7.5"));
  EXPECT_THAT(choice.error().message, HasSubstr("variant 0 (sm_90a): made for sm_90a"));
}

TEST(Dispatch, GuardsNameWhatFailed) {
  library::Kernel kernel = sample();
  kernel.variants.pop_back();
  Result<size_t> choice = chooseVariant(kernel, capability(9, 0), values(33));
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().code, StatusCode::InvalidArgument);
  EXPECT_THAT(choice.error().message, HasSubstr("'n' = 33 is not divisible by 16"));
  kernel.variants[0].guards = {{0, 16, {}}};
  EXPECT_TRUE(chooseVariant(kernel, capability(9, 0), values(33, 272)));
  EXPECT_THAT(chooseVariant(kernel, capability(9, 0), values(33, 264)).error().message,
              HasSubstr("the address of 'x' is not divisible by 16"));
  kernel.variants[0].guards = {{3, 1, 33}};
  EXPECT_TRUE(chooseVariant(kernel, capability(9, 0), values(33)));
  EXPECT_THAT(chooseVariant(kernel, capability(9, 0), values(34)).error().message, HasSubstr("'n' is 34, not 33"));
  kernel.variants[0].guards = {{0, 1, 512}};
  EXPECT_TRUE(chooseVariant(kernel, capability(9, 0), values(33, 512)));
  EXPECT_THAT(chooseVariant(kernel, capability(9, 0), values(33, 256)).error().message,
              HasSubstr("the address of 'x' is 256, not 512"));
}

TEST(Dispatch, GuardsOfLargeIntegers) {
  library::Kernel kernel = sample();
  kernel.variants[0].guards = {{3, 16, -16}};
  std::vector<Value> given = values(0);
  auto refusal = [&](Value value) {
    given[3] = value;
    Result<size_t> choice = chooseVariant(kernel, capability(9, 0), given);
    return choice ? "variant " + std::to_string(*choice) : choice.error().message;
  };
  kernel.variants.resize(1);
  EXPECT_EQ(refusal(Value::ofInteger(-16)), "variant 0");
  EXPECT_THAT(refusal(Value::ofUnsigned(uint64_t(0) - 16)), HasSubstr("'n' is 18446744073709551600, not -16"));
  EXPECT_THAT(refusal(Value::ofUnsigned(UINT64_MAX)), HasSubstr("'n' = 18446744073709551615 is not divisible by 16"));
  kernel.variants[0].guards = {{3, 3, {}}}; // 2^64 - 1 is a multiple of 3, and -1 is none
  EXPECT_EQ(refusal(Value::ofUnsigned(UINT64_MAX)), "variant 0");
}

TEST(Dispatch, Grid) {
  library::Kernel kernel = sample();
  EXPECT_EQ(gridOf(kernel, kernel.variants[0], values(1000)), (driver::Extent3{8, 1, 1}));
  EXPECT_EQ(gridOf(kernel, kernel.variants[1], values(1000)), (driver::Extent3{16, 1, 1}));
  EXPECT_THAT(gridOf(kernel, kernel.variants[0], values(0)).error().message, HasSubstr("gives 0: expected 1 to"));
  kernel.variants[0].grid[0] = {"1", "70000", "1"};
  EXPECT_THAT(gridOf(kernel, kernel.variants[0], values(1)).error().message, HasSubstr("expected 1 to 65535"));
  kernel.variants[0].grid.clear();
  EXPECT_THAT(gridOf(kernel, kernel.variants[0], values(1)).error().message, HasSubstr("no grid expression"));
}
