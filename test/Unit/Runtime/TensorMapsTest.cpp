// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Support/TensorMaps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

using namespace weft;
using testing::HasSubstr;

namespace {

const char *const line = "// weft.tensor_map 1 attend at=64 type=f16 swizzle=128 box=64,8 base=1*i8@0+2*i8@16 "
                         "sizes=64,1*i4@24 strides=2*i8@16*i4@28\n";

struct Parameters {
  uint64_t p = 4096, q = 0;
  int64_t offset = 8;
  int32_t n = 100, scale = 4;
  std::span<const std::byte> bytes() const { return {reinterpret_cast<const std::byte *>(this), sizeof *this}; }
};

TensorMapRecipe recipe() { return (*tensorMapsOf(line)).at("attend").front(); }

} // namespace

TEST(TensorMaps, AreSumsOfProductsOfParameters) {
  Result<TensorMapValues> values = recipe().evaluate(Parameters().bytes());
  ASSERT_TRUE(values);
  EXPECT_EQ(*values, (TensorMapValues{"f16", 128, 4096 + 16, {64, 8}, {64, 100}, {64}}));
}

TEST(TensorMaps, HaveElementsOf32Bits) {
  for (std::string type : {"f32", "s32", "u8"}) {
    std::string text = line;
    text.replace(text.find("f16"), 3, type);
    EXPECT_EQ(tensorMapsOf(text)->at("attend").front().evaluate(Parameters().bytes())->type, type);
  }
}

TEST(TensorMaps, HaveNoEmptyAxis) {
  Parameters none;
  none.n = -3;
  EXPECT_EQ(recipe().evaluate(none.bytes())->sizes, (std::vector<uint64_t>{64, 1}));
}

TEST(TensorMaps, RefuseWhatIsNoTensor) {
  Parameters turned, far;
  turned.scale = -1;
  far.offset = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(recipe().evaluate(turned.bytes()).error().message, HasSubstr("a stride that is negative"));
  EXPECT_EQ(recipe().evaluate(far.bytes()).error().code, StatusCode::InvalidArgument);
  EXPECT_THAT(recipe().evaluate(Parameters().bytes().first(20)).error().message, HasSubstr("too few"));
}

TEST(TensorMaps, AreVerifiedWhenTheyAreRead) {
  std::string text = line;
  auto with = [&](const std::string &from, const std::string &to) {
    std::string changed = text;
    return changed.replace(changed.find(from), from.size(), to);
  };
  EXPECT_TRUE(tensorMapsOf("// nothing of the kind\n")->empty());
  EXPECT_EQ(tensorMapsOf(with("tensor_map 1", "tensor_map 2")).error().code, StatusCode::Unsupported);
  for (auto [from, to] : {std::pair("i4@24", "i3@24"), std::pair("at=64", "at=x"), std::pair("box=64,8", "box=64"),
                          std::pair("type=f16", "type=f8"), std::pair("base=", "other="),
                          std::pair("2*i8@16 ", "2*i8 "), std::pair(",1*i4@24", ","), std::pair("@24", "@99999999")})
    EXPECT_EQ(tensorMapsOf(with(from, to)).error().code, StatusCode::Corrupt) << to;
  EXPECT_EQ(tensorMapsOf(text + text).error().code, StatusCode::Corrupt); // two in one place
}

TEST(TensorMaps, AreMadeOnceForTheSameValues) {
  int made = 0;
  TensorMapParameters maps({recipe()}, [&](const TensorMapValues &values) -> Result<TensorMapBytes> {
    ++made;
    TensorMapBytes bytes{};
    bytes[0] = std::byte(values.sizes[1]);
    return bytes;
  });
  Parameters parameters;
  ASSERT_TRUE(maps.lacksIn(parameters.bytes()));
  for (int32_t n : {100, 100, 7, 100}) {
    parameters.n = n;
    Result<std::vector<std::byte>> all = maps.complete(parameters.bytes());
    ASSERT_TRUE(all);
    EXPECT_EQ(all->size(), 64u + 128u);
    EXPECT_EQ(std::memcmp(all->data(), &parameters, sizeof parameters), 0);
    EXPECT_EQ((*all)[64], std::byte(n));
    EXPECT_FALSE(maps.lacksIn(*all));
  }
  EXPECT_EQ(made, 2);
}
