// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which patterns have segments, how many, at what cost, and what is in them.
#include "CountingArithmetic.h"
#include "Patterns.h"
#include "dialects/Attn/Pattern/Simplify.h"
#include "dialects/Attn/Pattern/Transpose.h"
#include <gtest/gtest.h>

using namespace weft::attn;
using namespace weft::attn::test;
using Int = CountingArithmetic::Int;

namespace {

/// What code for a run of 128 rows in blocks of 64 keys comes to, with lengths that are not known.
struct Cost {
  size_t segments;
  int operations;
  std::string kinds;
};

Cost costOf(const std::string &text) {
  CountingArithmetic a;
  Int begin = a.unknown(256), end = a.unknown(384), N = a.unknown(1000), M = a.unknown(2000);
  auto segments = rowSegments(a, pattern(text), RowBlock<CountingArithmetic>{begin, end, a.unknown(1), N, M}, 64);
  if (!segments)
    return {0, 0, "none"};
  Cost cost{segments->size(), a.operations, ""};
  for (const auto &segment : *segments)
    cost.kinds += segment.full ? 'F' : 'p';
  return cost;
}

std::string onHost(const std::string &text, int64_t begin, int64_t end, int64_t N, int64_t M, int64_t blockN) {
  HostArithmetic host;
  auto segments = rowSegments(host, pattern(text), RowBlock<HostArithmetic>{begin, end, 0, N, M}, blockN);
  if (!segments)
    return "none";
  return classes<HostArithmetic>(*segments, M, blockN, [](int64_t x) { return x; });
}

} // namespace

TEST(Segments, ThosePatternsHaveThem) {
  for (const char *text :
       {"full",
        "empty",
        "causal",
        "window<left = 5, right = 3>",
        "window<left = 5>",
        "window<right = -2>",
        "window<left = -1, right = 4>",
        "window<left = 3, right = -5>",
        "block_window<[64]>",
        "prefix<100>",
        "global_tokens<4>",
        "neighbourhood<shape = [4096], kernel = [65], dilation = [1]>",
        "or<#attn.prefix<100>, #attn.causal>",
        "or<#attn.global_tokens<4>, #attn.window<left = 256, right = 256>>",
        "and<#attn.causal, #attn.or<#attn.global_tokens<4>, #attn.window<left = 256, right = 0>>>",
        "and<#attn.causal, #attn.window<left = 128, right = 128>>",
        "and<#attn.causal, #attn.block_window<[64]>>",
        "and<#attn.window<left = 9, right = 9>, #attn.block_window<[64]>>",
        "and<#attn.causal, #attn.not<#attn.window<left = 16, right = 0>>>",
        "not<#attn.causal>",
        "not<#attn.block_window<[64]>>",
        "not<#attn.prefix<9>>",
        "shift<#attn.causal, 3>",
        "shift<#attn.block_window<[64]>, -5>",
        "shift<#attn.window<left = 2, right = 2>, 7>",
        "or<#attn.window<left = 2, right = 2>, #attn.shift<#attn.window<left = 2, right = 2>, -100>>",
        "transpose<#attn.block_window<[64]>>",
        "transpose<#attn.global_tokens<4>>",
        "transpose<#attn.prefix<100>>",
        "transpose<#attn.or<#attn.prefix<100>, #attn.causal>>",
        "transpose<#attn.shift<#attn.prefix<9>, 2>>",
        "span<lower = 0, upper = 1, first = 2, past = 3>",
        "transpose<#attn.span<lower = 0, upper = 1, first = 2, past = 3>>",
        "per_head<#attn.causal, #attn.span<lower = 0, upper = 1, first = 2, past = 3>>",
        "per_head<#attn.causal, #attn.window<left = 9, right = 9>, #attn.full>",
        "and<#attn.per_head<#attn.causal, #attn.full>, #attn.window<left = 9>>"}) {
    EXPECT_TRUE(hasSegments(pattern(text))) << text;
    EXPECT_NE(costOf(text).kinds, "none") << text;
    EXPECT_TRUE(hasSegments(transposePattern(pattern(text)))) << "transpose of " << text;
  }
}

TEST(Segments, TheOthersHaveNone) {
  for (const char *text :
       {"strided<2>", "dilated<step = 2, width = 3>", "block_window<[2, 2], grid = [4, 4]>",
        "neighbourhood<shape = [8], kernel = [3], dilation = [2]>",
        "neighbourhood<shape = [8, 8], kernel = [3, 3], dilation = [1, 1]>",
        "random_blocks<seed = 1, perRow = 2, block = 4>", "document<queryIds = 0, keyIds = 1>",
        "blocks<index = 0, count = 1, blockM = 4, blockN = 4>", "block_bitmap<bits = 0, blockM = 4, blockN = 4>",
        "mask<0>", "and<#attn.causal, #attn.span<lower = 0, upper = 1, first = 2, past = 3>>",
        "not<#attn.span<lower = 0, upper = 1, first = 2, past = 3>>", "and<#attn.causal, #attn.mask<0>>",
        "per_head<#attn.causal, #attn.strided<2>>",
        // Rows' keys that are not together: every second half window.
        "and<#attn.block_window<[8]>, #attn.shift<#attn.block_window<[8]>, 4>>"}) {
    EXPECT_FALSE(hasSegments(pattern(text))) << text;
    EXPECT_EQ(costOf(text).kinds, "none") << text;
  }
}

TEST(Segments, FewLoops) {
  EXPECT_EQ(costOf("full").kinds, "Fp");
  EXPECT_EQ(costOf("causal").kinds, "Fp");
  EXPECT_EQ(costOf("window<left = 128, right = 0>").kinds, "pFp");
  EXPECT_EQ(costOf("and<#attn.causal, #attn.window<left = 128, right = 128>>").kinds, "pFp");
  EXPECT_EQ(costOf("block_window<[64]>").kinds, "pFp");
  EXPECT_EQ(costOf("prefix<100>").kinds, "Fp");
  EXPECT_EQ(costOf("or<#attn.prefix<100>, #attn.causal>").kinds, "Fp");
  EXPECT_EQ(costOf("not<#attn.causal>").kinds, "pFp");
  EXPECT_EQ(costOf("empty").kinds, "");
  EXPECT_LE(costOf("or<#attn.global_tokens<4>, #attn.window<left = 256, right = 256>>").segments, 6u);
  EXPECT_EQ(costOf("per_head<#attn.causal, #attn.window<left = 9, right = 0>, #attn.causal>").kinds, "pFp");
}

TEST(Segments, AreCheap) {
  // A division by the block is a shift. Of these, five are from N and M to the rows' positions and the number of
  // blocks.
  EXPECT_LE(costOf("full").operations, 10);
  EXPECT_LE(costOf("causal").operations, 14);
  EXPECT_LE(costOf("window<left = 128, right = 0>").operations, 30);
  EXPECT_LE(costOf("block_window<[64]>").operations, 45);
}

TEST(Segments, AsDrawn) {
  // Rows 4 to 7 of 16, blocks of 4 keys.
  EXPECT_EQ(onHost("full", 4, 8, 16, 16, 4), "FFFF");
  EXPECT_EQ(onHost("causal", 4, 8, 16, 16, 4), "Fp..");
  EXPECT_EQ(onHost("causal", 4, 8, 16, 24, 4), "FFFp..");
  EXPECT_EQ(onHost("causal", 4, 8, 16, 8, 4), "..");
  EXPECT_EQ(onHost("window<left = 8, right = 0>", 8, 12, 16, 16, 4), "pFp.");
  EXPECT_EQ(onHost("block_window<[4]>", 4, 8, 16, 16, 4), ".F..");
  EXPECT_EQ(onHost("full", 4, 8, 16, 15, 4), "FFFp");
  EXPECT_EQ(onHost("not<#attn.window<left = 1, right = 1>>", 4, 8, 16, 16, 4), "pppF");
  EXPECT_EQ(onHost("or<#attn.global_tokens<1>, #attn.window<left = 1, right = 1>>", 8, 12, 16, 16, 4), "pppp");
  EXPECT_EQ(onHost("or<#attn.global_tokens<4>, #attn.window<left = 0, right = 0>>", 8, 12, 16, 16, 4), "F.p.");
  EXPECT_EQ(onHost("or<#attn.global_tokens<4>, #attn.causal>", 0, 4, 16, 16, 4), "FFFF");
}

TEST(Segments, OfSpansBySteps) {
  // Rows 0 to 7 in two runs; 16 keys in blocks of 4. Bounds never fall; some rows have no key.
  auto drawn = [](std::vector<int32_t> lower, std::vector<int32_t> upper, int64_t begin, int64_t end) {
    HostOperand tables[] = {{lower, {1, 1, int64_t(lower.size())}}, {upper, {1, 1, int64_t(upper.size())}}};
    HostArithmetic host(tables, {});
    auto segments = rowSegments(host, pattern("span<lower = 0, upper = 1, first = 0, past = 0>"),
                                RowBlock<HostArithmetic>{begin, end, 0, 8, 16, 0}, 4);
    return classes<HostArithmetic>(*segments, 16, 4, [](int64_t x) { return x; });
  };
  const std::vector<int32_t> zeros(8, 0), all(8, 16);
  EXPECT_EQ(drawn(zeros, all, 0, 4), "FFFF");
  EXPECT_EQ(drawn(zeros, zeros, 0, 4), "....");
  EXPECT_EQ(drawn(all, all, 4, 8), "....");
  EXPECT_EQ(drawn(zeros, {0, 1, 2, 3, 4, 5, 6, 7}, 0, 4), "p...");
  EXPECT_EQ(drawn(zeros, {0, 1, 2, 3, 4, 5, 6, 7}, 4, 8), "Fp..");
  EXPECT_EQ(drawn(zeros, {0, 0, 0, 0, 8, 9, 12, 13}, 4, 8), "FFpp");
  EXPECT_EQ(drawn({0, 0, 2, 3, 3, 4, 4, 4}, {9, 9, 9, 9, 12, 12, 12, 12}, 0, 4), "pFp.");
  EXPECT_EQ(drawn({0, 0, 2, 3, 3, 4, 4, 5}, {9, 9, 9, 9, 12, 12, 12, 12}, 4, 8), "ppF.");
  // Where no block may be full.
  HostOperand tables[] = {{zeros, {1, 1, 8}}, {all, {1, 1, 8}}};
  HostArithmetic host(tables, {});
  auto segments = rowSegments(host, pattern("span<lower = 0, upper = 1, first = 0, past = 0>"),
                              RowBlock<HostArithmetic>{0, 4, 0, 8, 16, 0, /*mayBeFull=*/false}, 4);
  EXPECT_EQ(classes<HostArithmetic>(*segments, 16, 4, [](int64_t x) { return x; }), "pppp");
  // Two sequences in one run: nothing is whole, and what lies between is touched.
  EXPECT_EQ(drawn({0, 0, 0, 12, 12, 12, 12, 12}, {1, 2, 3, 13, 14, 15, 16, 16}, 0, 4), "pppp");
}

TEST(Segments, WalkedAsOne) {
  HostArithmetic host;
  std::vector<Segment<HostArithmetic>> segments = {
      {0, 2, false}, {2, 5, true}, {5, 4, false}, {7, 9, false}, {9, 12, true}};
  auto visited = [&](bool full) {
    Walk<HostArithmetic> walk(host, segments, full);
    std::vector<int64_t> blocks;
    for (int64_t step = 0; step < walk.count(); ++step)
      blocks.push_back(walk.block(host, step));
    return blocks;
  };
  EXPECT_EQ(visited(false), (std::vector<int64_t>{0, 1, 7, 8}));
  EXPECT_EQ(visited(true), (std::vector<int64_t>{2, 3, 4, 9, 10, 11}));
  EXPECT_EQ(Walk<HostArithmetic>(host, {}, true).count(), 0);
}
