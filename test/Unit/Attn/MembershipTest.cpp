// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Membership drawn: small matrices as they are, and what has no formula.
#include "Patterns.h"
#include "dialects/Attn/Pattern/Philox.h"
#include "dialects/Attn/Pattern/Transpose.h"
#include <gtest/gtest.h>
#include <set>

using namespace weft::attn;
using namespace weft::attn::test;

TEST(Membership, CausalEndsAtTheLastKey) {
  EXPECT_EQ(matrix(pattern("causal"), 3, 5), "###..\n"
                                             "####.\n"
                                             "#####");
  EXPECT_EQ(matrix(pattern("causal"), 4, 2), "..\n"
                                             "..\n"
                                             "#.\n"
                                             "##");
}

TEST(Membership, WindowsCountFromTheQuery) {
  EXPECT_EQ(matrix(pattern("window<left = 1, right = 0>"), 4, 4), "#...\n"
                                                                  "##..\n"
                                                                  ".##.\n"
                                                                  "..##");
  EXPECT_EQ(matrix(pattern("block_window<[3]>"), 4, 5), "###..\n"
                                                        "###..\n"
                                                        "...##\n"
                                                        "...##");
  // Queries before the first key lie in windows of their own.
  EXPECT_EQ(matrix(pattern("block_window<[2]>"), 4, 2), "..\n"
                                                        "..\n"
                                                        "##\n"
                                                        "##");
}

TEST(Membership, GridWindowsAreRagged) {
  // A grid of 2 rows of 3: windows of 2 columns end at the row's end.
  EXPECT_EQ(matrix(pattern("block_window<[1, 2], grid = [2, 3]>"), 6, 6), "##....\n"
                                                                          "##....\n"
                                                                          "..#...\n"
                                                                          "...##.\n"
                                                                          "...##.\n"
                                                                          ".....#");
}

TEST(Membership, NeighbourhoodsMoveInwards) {
  EXPECT_EQ(matrix(pattern("neighbourhood<shape = [5], kernel = [3], dilation = [1]>"), 5, 5), "###..\n"
                                                                                               "###..\n"
                                                                                               ".###.\n"
                                                                                               "..###\n"
                                                                                               "..###");
  EXPECT_EQ(matrix(pattern("neighbourhood<shape = [5], kernel = [2], dilation = [2]>"), 5, 5), "#.#..\n"
                                                                                               ".#.#.\n"
                                                                                               "#.#..\n"
                                                                                               ".#.#.\n"
                                                                                               "..#.#");
}

TEST(Membership, NothingLiesOutsideTables) {
  // A shifted table has no keys before its first; a shifted formula has what it says.
  EXPECT_EQ(matrix(pattern("shift<#attn.causal, 1>"), 2, 3), "###\n###");
  EXPECT_EQ(matrix(pattern("shift<#attn.random_blocks<seed = 0, perRow = 9, block = 1>, 1>"), 2, 3), ".##\n.##");
  EXPECT_EQ(matrix(pattern("shift<#attn.neighbourhood<shape = [3], kernel = [3], dilation = [1]>, -1>"), 2, 3),
            "##.\n##.");
}

TEST(Membership, Transposes) {
  EXPECT_EQ(matrix(pattern("transpose<#attn.prefix<1>>"), 3, 2), "##\n..\n..");
  EXPECT_EQ(matrix(pattern("transpose<#attn.causal>"), 2, 3), ".##\n..#");
}

TEST(Membership, PhiloxGivesTheNumbersOfItsAuthors) {
  // Known answers of Philox-2x32-10, from Random123's kat_vectors: the first of the two words.
  HostArithmetic host;
  EXPECT_EQ(philox(host, 0, 0, 0), 0xff1dae59);
  EXPECT_EQ(philox(host, 0xffffffff, 0xffffffff, 0xffffffff), 0x2c3f628b);
  EXPECT_EQ(philox(host, 0x243f6a88, 0x85a308d3, 0x13198a2e), 0xdd7ce038);
}

TEST(Membership, RandomBlocksAreDistinct) {
  for (int64_t perRow : {1, 3, 7, 8}) {
    auto random = pattern("random_blocks<seed = " + std::to_string(seed()) + ", perRow = " + std::to_string(perRow) +
                          ", block = 2>");
    std::set<std::string> rows;
    for (int64_t n = 0; n < 40; n += 2) {
      std::string row;
      for (int64_t m = 0; m < 15; ++m)
        row += has(random, n, m, 40, 15) ? '#' : '.';
      // Both queries of a block, and both keys, have the same.
      for (int64_t m = 0; m < 15; ++m) {
        EXPECT_EQ(has(random, n + 1, m, 40, 15), row[m] == '#');
        EXPECT_EQ(row[m], row[m / 2 * 2]);
      }
      int64_t blocks = 0;
      for (int64_t m = 0; m < 15; m += 2)
        blocks += row[m] == '#';
      EXPECT_EQ(blocks, perRow) << row << ", WEFT_SEED=" << seed();
      rows.insert(row);
    }
    EXPECT_EQ(rows.size() == 1, perRow == 8) << "WEFT_SEED=" << seed();
  }
}

TEST(Membership, WindowsOfHeadsAreChosenByTheHead) {
  auto heads =
      pattern("per_head<#attn.causal, #attn.window<left = 1, right = 0>, #attn.full, #attn.window<right = 1>>");
  EXPECT_EQ(matrix(heads, 3, 3, 0), "#..\n##.\n###");
  EXPECT_EQ(matrix(heads, 3, 3, 1), "#..\n##.\n.##");
  EXPECT_EQ(matrix(heads, 3, 3, 2), "###\n###\n###");
  EXPECT_EQ(matrix(heads, 3, 3, 3), "##.\n###\n###");
}

TEST(Membership, Operands) {
  const int32_t queryIds[] = {7, 7, 9}, keyIds[] = {9, 7, 9, 8}, index[] = {1, 0, 5, 5}, count[] = {1, 0},
                bits[] = {0, 1, 1, 0};
  HostOperand operands[] = {
      {queryIds, {3}}, {keyIds, {1, 4}}, {index, {1, 1, 2, 2}}, {count, {1, 1, 2}}, {bits, {1, 1, 2, 2}}};
  auto mask = [](int64_t region, int64_t b, int64_t h, int64_t n, int64_t m) { return region == 1 && b + h + n == m; };
  HostArithmetic host(operands, mask);
  auto row = [&](const std::string &text, int64_t n) {
    std::string result;
    for (int64_t m = 0; m < 4; ++m)
      result += contains(host, pattern(text), Place<HostArithmetic>{0, 1, n, m, 3, 4}) ? '#' : '.';
    return result;
  };
  EXPECT_EQ(row("document<queryIds = 0, keyIds = 1>", 0), ".#..");
  EXPECT_EQ(row("document<queryIds = 0, keyIds = 1>", 2), "#.#.");
  EXPECT_EQ(row("shift<#attn.document<queryIds = 0, keyIds = 1>, 1>", 2), ".#.#");
  EXPECT_EQ(row("blocks<index = 2, count = 3, blockM = 2, blockN = 2>", 1), "..##");
  EXPECT_EQ(row("blocks<index = 2, count = 3, blockM = 2, blockN = 2>", 2), "....");
  EXPECT_EQ(row("block_bitmap<bits = 4, blockM = 2, blockN = 2>", 0), "..##");
  EXPECT_EQ(row("block_bitmap<bits = 4, blockM = 2, blockN = 2>", 2), "##..");
  const int32_t lower[] = {0, 1, 1}, upper[] = {0, 3, 4}, first[] = {1, 1, 1, 2}, past[] = {1, 3, 3, 3};
  HostOperand tables[] = {{lower, {1, 1, 3}}, {upper, {1, 1, 3}}, {first, {1, 1, 4}}, {past, {1, 1, 4}}};
  HostArithmetic withSpan(tables, mask, /*heads=*/2);
  auto span = pattern("span<lower = 0, upper = 1, first = 2, past = 3>");
  for (auto [n, m] : {std::pair(0, 0), {1, 0}, {1, 1}, {1, 2}, {1, 3}, {2, 3}, {3, 1}, {-1, 0}, {2, 4}}) {
    Place<HostArithmetic> place{0, 1, n, m, 3, 4};
    bool belongs = (n == 1 && (m == 1 || m == 2)) || (n == 2 && m >= 1 && m < 4);
    EXPECT_EQ(contains(withSpan, span, place), belongs) << n << " " << m;
    EXPECT_EQ(contains(withSpan, transposePattern(span), place.transposed()), belongs) << n << " " << m;
  }
  EXPECT_EQ(row("mask<1>", 1), "..#.");
  EXPECT_EQ(row("per_head<#attn.full, #attn.mask<1>>", 2), "...#");
}
