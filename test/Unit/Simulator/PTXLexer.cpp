// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/PTX/Lexer.h"

#include <bit>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft;
using namespace weft::simulator::ptx;

namespace {

std::vector<std::string> texts(std::string_view text) {
  std::vector<std::string> result;
  Result<std::vector<Token>> tokens = tokenize(text);
  if (!tokens)
    return {"error: " + tokens.error().message};
  for (const Token &token : *tokens)
    if (token.kind != TokenKind::End)
      result.emplace_back(token.text);
  return result;
}

TEST(Lexer, SplitsAnInstruction) {
  EXPECT_THAT(texts("@!%p1 ld.global.L1::evict_last.v4.b32 {%r1,_}, [%rd2+-16]; // x"),
              testing::ElementsAre("@", "!", "%p1", "ld", ".global", ".L1::evict_last", ".v4", ".b32", "{", "%r1", ",",
                                   "_", "}", ",", "[", "%rd2", "+", "-", "16", "]", ";"));
}

TEST(Lexer, ReadsNumbersOfEveryForm) {
  auto tokens = tokenize("0x1F 017 0b101 42U 0f3F800000 0d3FF0000000000000 1.5 2e3 18446744073709551615");
  ASSERT_TRUE(tokens) << tokens.error().message;
  const uint64_t expected[] = {31,
                               15,
                               5,
                               42,
                               0x3f800000,
                               0x3ff0000000000000,
                               std::bit_cast<uint64_t>(1.5),
                               std::bit_cast<uint64_t>(2000.0),
                               ~uint64_t{0}};
  ASSERT_EQ(tokens->size(), std::size(expected) + 1);
  for (size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ((*tokens)[i].bits, expected[i]) << i;
}

TEST(Lexer, KeepsPositions) {
  auto tokens = tokenize("a\n  /* two\nlines */ b // c\n d");
  ASSERT_TRUE(tokens);
  EXPECT_EQ((*tokens)[1].at.line, 3u);
  EXPECT_EQ((*tokens)[1].at.column, 10u);
  EXPECT_EQ((*tokens)[2].at.line, 4u);
}

struct Refusal {
  const char *text, *message;
};
class LexerRefuses : public testing::TestWithParam<Refusal> {};

TEST_P(LexerRefuses, WithPlaceAndReason) {
  auto tokens = tokenize(GetParam().text);
  ASSERT_FALSE(tokens);
  EXPECT_THAT(tokens.error().message, testing::HasSubstr(GetParam().message));
  EXPECT_EQ(tokens.error().code, StatusCode::Corrupt);
}
INSTANTIATE_TEST_SUITE_P(All, LexerRefuses,
                         testing::Values(Refusal{"a\n `", "line 2, column 2: expected a token, but got '`'"},
                                         Refusal{"/* open", "line 1, column 1: expected '*/'"},
                                         Refusal{"\"open\n", "expected '\"' to end the string"},
                                         Refusal{"18446744073709551616", "expected a number"},
                                         Refusal{"0f3F8", "expected a number"}, Refusal{"12ab", "expected a number"},
                                         Refusal{"\x01", "the byte 0x1"}));

} // namespace
