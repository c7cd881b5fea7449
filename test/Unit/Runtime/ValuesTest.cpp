// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Launch/Values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace weft;
using namespace weft::launch;
using testing::HasSubstr;

static std::vector<library::ArgumentType> types(std::initializer_list<const char *> names) {
  std::vector<library::ArgumentType> result;
  for (const char *name : names)
    result.push_back(*library::parseArgumentType(name));
  return result;
}

template <typename T> static T at(const std::vector<std::byte> &bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

TEST(Values, LaidOutAsACStruct) {
  auto signature = types({"i1", "*fp16", "i8", "i32", "u16", "fp64", "fp16"});
  std::vector<Value> values{Value::ofInteger(1),     Value::ofAddress(0x1122334455667788),
                            Value::ofInteger(-2),    Value::ofInteger(-3),
                            Value::ofInteger(65535), Value::ofReal(0.1),
                            Value::ofReal(1)};
  auto bytes = packParameters(signature, values);
  ASSERT_TRUE(bytes) << bytes.error().message;
  ASSERT_EQ(bytes->size(), 42u);
  EXPECT_EQ(at<uint8_t>(*bytes, 0), 1);
  EXPECT_EQ(at<uint64_t>(*bytes, 8), 0x1122334455667788u);
  EXPECT_EQ(at<int8_t>(*bytes, 16), -2);
  EXPECT_EQ(at<int32_t>(*bytes, 20), -3);
  EXPECT_EQ(at<uint16_t>(*bytes, 24), 65535);
  EXPECT_EQ(at<double>(*bytes, 32), 0.1);
  EXPECT_EQ(at<uint16_t>(*bytes, 40), 0x3c00);
}

TEST(Values, Refusals) {
  auto message = [](std::initializer_list<const char *> names, std::vector<Value> values) {
    auto bytes = packParameters(types(names), values);
    return bytes ? "packed" : bytes.error().message;
  };
  EXPECT_THAT(message({"i32"}, {}), HasSubstr("expected 1 arguments, but got 0"));
  EXPECT_THAT(message({"i32", "i8"}, {Value::ofInteger(1), Value::ofInteger(128)}),
              HasSubstr("argument 1: expected 'i8' (-128 to 127), but got 128"));
  EXPECT_THAT(message({"u8"}, {Value::ofInteger(-1)}), HasSubstr("(0 to 255), but got -1"));
  EXPECT_THAT(message({"i1"}, {Value::ofInteger(2)}), HasSubstr("(0 to 1), but got 2"));
  EXPECT_THAT(message({"i32"}, {Value::ofReal(1)}), HasSubstr("expected 'i32', but got a real number"));
  EXPECT_THAT(message({"*fp32"}, {Value::ofInteger(1)}), HasSubstr("expected '*fp32', but got an integer"));
  EXPECT_THAT(message({"fp32"}, {Value::ofAddress(1)}), HasSubstr("expected 'fp32', but got an address"));
  EXPECT_EQ(message({"fp32"}, {Value::ofInteger(3)}), "packed");
  EXPECT_EQ(message({"i64", "u64"}, {Value::ofInteger(INT64_MIN), Value::ofInteger(-1)}), "packed");
  EXPECT_EQ(message({"u64", "u8"}, {Value::ofUnsigned(UINT64_MAX), Value::ofUnsigned(255)}), "packed");
  EXPECT_THAT(message({"i64"}, {Value::ofUnsigned(uint64_t(1) << 63)}),
              HasSubstr("expected 'i64' (-9223372036854775808 to 9223372036854775807), but got 9223372036854775808"));
  EXPECT_THAT(message({"u32"}, {Value::ofUnsigned(UINT64_MAX)}), HasSubstr("but got 18446744073709551615"));
  EXPECT_THAT(message({"*fp32"}, {Value::ofUnsigned(1)}), HasSubstr("expected '*fp32', but got an integer"));
}

TEST(Values, LargeIntegersAsReals) {
  std::vector<library::ArgumentType> types{*library::parseArgumentType("fp64"), *library::parseArgumentType("fp64")};
  auto bytes = packParameters(types, std::vector<Value>{Value::ofUnsigned(UINT64_MAX), Value::ofInteger(-1)});
  ASSERT_TRUE(bytes);
  std::array<double, 2> reals{};
  std::memcpy(reals.data(), bytes->data(), 16);
  EXPECT_EQ(reals[0], 0x1p64);
  EXPECT_EQ(reals[1], -1);
}

TEST(Values, HalfRoundsToNearestEven) {
  EXPECT_EQ(toHalf(0.0), 0);
  EXPECT_EQ(toHalf(-0.0), 0x8000);
  EXPECT_EQ(toHalf(1.0), 0x3c00);
  EXPECT_EQ(toHalf(1 + 0x1p-11), 0x3c00);           // a tie goes to even
  EXPECT_EQ(toHalf(1 + 3 * 0x1p-11), 0x3c02);       // a tie goes to even
  EXPECT_EQ(toHalf(1 + 0x1p-11 + 0x1p-40), 0x3c01); // rounded once, from double
  EXPECT_EQ(toHalf(65504), 0x7bff);
  EXPECT_EQ(toHalf(65519.99), 0x7bff);
  EXPECT_EQ(toHalf(65520), 0x7c00);
  EXPECT_EQ(toHalf(-1e30), 0xfc00);
  EXPECT_EQ(toHalf(std::numeric_limits<double>::infinity()), 0x7c00);
  EXPECT_EQ(toHalf(0x1p-24), 1); // the smallest subnormal
  EXPECT_EQ(toHalf(0x1p-25), 0); // half of it, to even
  EXPECT_EQ(toHalf(0x1.8p-25), 1);
  EXPECT_EQ(toHalf(0x1p-14), 0x0400); // the smallest normal
  EXPECT_EQ(toHalf(0x1.ffep-15), 0x0400);
  EXPECT_EQ(toHalf(std::nan("")) & 0x7e00, 0x7e00);
}

// The compiler's own _Float16 is the reference for every finite half and the points between two of them.
TEST(Values, HalfAgreesWithTheCompilers) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    _Float16 half;
    uint16_t pattern = bits;
    std::memcpy(&half, &pattern, 2);
    double value = half;
    ASSERT_EQ(toHalf(value), bits);
    for (double nearby : {value * (1 + 0x1p-12), value * (1 + 0x1p-11), value * (1 - 0x1p-12), value + 0x1p-25}) {
      _Float16 expected = static_cast<_Float16>(nearby);
      uint16_t expectedBits;
      std::memcpy(&expectedBits, &expected, 2);
      ASSERT_EQ(toHalf(nearby), expectedBits) << nearby;
    }
  }
}

TEST(Values, BFloat) {
  EXPECT_EQ(toBFloat(1.0), 0x3f80);
  EXPECT_EQ(toBFloat(1 + 0x1p-8), 0x3f80);
  EXPECT_EQ(toBFloat(1 + 3 * 0x1p-8), 0x3f82);
  EXPECT_EQ(toBFloat(1 + 0x1p-8 + 0x1p-50), 0x3f81);
  EXPECT_EQ(toBFloat(-3.4e38), 0xff80);
  EXPECT_EQ(toBFloat(0x1p-133), 1);
  EXPECT_EQ(toBFloat(1e300), 0x7f80);
}
