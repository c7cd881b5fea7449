// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Simplification and transposition, as text.
#include "dialects/Attn/Pattern/Simplify.h"
#include "Patterns.h"
#include "dialects/Attn/Pattern/Transpose.h"
#include <gtest/gtest.h>

using namespace weft::attn;
using namespace weft::attn::test;

namespace {

std::string simple(const std::string &given, const Lengths &lengths = {}) {
  return text(simplifyPattern(pattern(given), lengths)).substr(strlen("#attn."));
}
std::string transposed(const std::string &given, const Lengths &lengths = {}) {
  return text(transposePattern(pattern(given), lengths)).substr(strlen("#attn."));
}

} // namespace

TEST(Simplify, NeutralAndAbsorbing) {
  EXPECT_EQ(simple("and<#attn.full, #attn.causal>"), "causal");
  EXPECT_EQ(simple("or<#attn.full, #attn.causal>"), "full");
  EXPECT_EQ(simple("and<#attn.mask<0>, #attn.empty>"), "empty");
  EXPECT_EQ(simple("or<#attn.mask<0>, #attn.empty>"), "mask<0>");
  EXPECT_EQ(simple("and<#attn.mask<0>, #attn.not<#attn.mask<0>>>"), "empty");
  EXPECT_EQ(simple("or<#attn.mask<0>, #attn.not<#attn.mask<0>>>"), "full");
  EXPECT_EQ(simple("not<#attn.not<#attn.mask<0>>>"), "mask<0>");
  EXPECT_EQ(simple("not<#attn.full>"), "empty");
}

TEST(Simplify, NestsAndRepetitions) {
  EXPECT_EQ(simple("and<#attn.mask<0>, #attn.and<#attn.strided<2>, #attn.mask<0>>>"),
            "and<#attn.mask<0>, #attn.strided<2>>");
  EXPECT_EQ(simple("or<#attn.or<#attn.mask<0>>>"), "mask<0>");
  EXPECT_EQ(simple("per_head<#attn.causal, #attn.window<right = 0>>"), "causal");
  EXPECT_EQ(simple("per_head<#attn.causal, #attn.full>"), "per_head<#attn.causal, #attn.full>");
}

TEST(Simplify, Windows) {
  EXPECT_EQ(simple("window<right = 0>"), "causal");
  EXPECT_EQ(simple("window<left = 2, right = -3>"), "empty");
  EXPECT_EQ(simple("and<#attn.window<left = 7, right = 9>, #attn.causal>"), "window<left = 7, right = 0>");
  EXPECT_EQ(simple("and<#attn.window<left = 7, right = 9>, #attn.window<left = 9, right = 7>, #attn.mask<0>>"),
            "and<#attn.window<left = 7, right = 7>, #attn.mask<0>>");
  EXPECT_EQ(simple("or<#attn.window<left = 7, right = 9>, #attn.window<left = 3, right = 7>>"),
            "window<left = 7, right = 9>");
  EXPECT_EQ(simple("or<#attn.causal, #attn.window<left = 0>>"), "full");
  EXPECT_EQ(simple("and<#attn.causal, #attn.not<#attn.causal>>"), "empty");
  EXPECT_EQ(simple("not<#attn.causal>"), "window<left = -1>");
  EXPECT_EQ(simple("shift<#attn.window<left = 7, right = 9>, 2>"), "window<left = 5, right = 11>");
  EXPECT_EQ(simple("shift<#attn.shift<#attn.causal, 2>, -2>"), "causal");
  EXPECT_EQ(simple("dilated<step = 1, width = 4>"), "window<left = 4, right = 4>");
  EXPECT_EQ(simple("strided<1>"), "full");
  EXPECT_EQ(simple("block_window<[1]>"), "window<left = 0, right = 0>");
}

TEST(Simplify, LengthsSayMore) {
  EXPECT_EQ(simple("window<left = 99, right = 99>", Lengths::of(100, 100)), "full");
  EXPECT_EQ(simple("window<left = 98, right = 99>", Lengths::of(100, 100)), "window<left = 98>");
  EXPECT_EQ(simple("window<left = 99, right = 0>", Lengths::of(100, 100)), "causal");
  EXPECT_EQ(simple("causal", Lengths::of(1, 100)), "full"); // a query that decodes
  EXPECT_EQ(simple("prefix<100>", Lengths::of(7, 100)), "full");
  EXPECT_EQ(simple("prefix<0>"), "empty");
  EXPECT_EQ(simple("block_window<[128]>", Lengths::of(100, 100)), "full");
  EXPECT_EQ(simple("global_tokens<0>", Lengths::of(100, 100)), "empty");
  // What is known of keys in the sequence does not hold of shifted ones.
  EXPECT_EQ(simple("shift<#attn.not<#attn.prefix<0>>, 3>"), "not<#attn.prefix<3>>");
  EXPECT_EQ(simple("shift<#attn.prefix<100>, -3>", Lengths::of(100, 100)), "prefix<97>");
}

TEST(Simplify, LeavesAlone) {
  for (const char *given :
       {"causal", "mask<0>", "block_window<[64]>", "or<#attn.prefix<100>, #attn.causal>",
        "and<#attn.causal, #attn.block_window<[64]>>", "or<#attn.global_tokens<4>, #attn.window<left = 9, right = 9>>",
        "neighbourhood<shape = [8], kernel = [3], dilation = [1]>", "not<#attn.block_window<[8]>>",
        "shift<#attn.block_window<[8]>, 3>", "transpose<#attn.prefix<4>>", "strided<2>",
        "and<#attn.causal, #attn.strided<2>>", "document<queryIds = 0, keyIds = 1>"})
    EXPECT_EQ(simple(given), given);
}

TEST(Transpose, ClosedForms) {
  EXPECT_EQ(transposed("causal"), "window<left = 0>");
  EXPECT_EQ(transposed("window<left = 3, right = 5>"), "window<left = 5, right = 3>");
  EXPECT_EQ(transposed("strided<2>"), "strided<2>");
  EXPECT_EQ(transposed("and<#attn.causal, #attn.not<#attn.window<left = 2>>>"),
            "and<#attn.window<left = 0>, #attn.not<#attn.window<right = 2>>>");
  EXPECT_EQ(transposed("shift<#attn.causal, 3>"), "shift<#attn.window<left = 0>, -3>");
  EXPECT_EQ(transposed("transpose<#attn.mask<0>>"), "mask<0>");
  EXPECT_EQ(transposed("per_head<#attn.causal, #attn.full>"), "per_head<#attn.window<left = 0>, #attn.full>");
}

TEST(Transpose, WrapsTheRest) {
  EXPECT_EQ(transposed("prefix<4>"), "transpose<#attn.prefix<4>>");
  EXPECT_EQ(transposed("block_window<[8]>"), "transpose<#attn.block_window<[8]>>");
  EXPECT_EQ(transposed("block_window<[8]>", Lengths::of(64, 64)), "block_window<[8]>");
  EXPECT_EQ(transposed("or<#attn.mask<0>, #attn.causal>"),
            "or<#attn.transpose<#attn.mask<0>>, #attn.window<left = 0>>");
  EXPECT_EQ(transposed("shift<#attn.prefix<4>, 1>"), "transpose<#attn.shift<#attn.prefix<4>, 1>>");
}
