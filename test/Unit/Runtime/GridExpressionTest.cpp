// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Library/GridExpression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

using namespace weft;
using namespace weft::library;

static Result<int64_t> evaluate(std::string_view text) {
  static const std::map<std::string, int64_t, std::less<>> names{
      {"M", 1000}, {"BLOCK_M", 128}, {"zero", 0}, {"big", INT64_MAX}, {"least", INT64_MIN}};
  return evaluateGrid(text, [](std::string_view name) {
    auto found = names.find(name);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(GridExpression, Values) {
  EXPECT_EQ(evaluate("cdiv(M, BLOCK_M)"), 8);
  EXPECT_EQ(evaluate("1"), 1);
  EXPECT_EQ(evaluate(" 2 + 3 * 4 - 1 "), 13);
  EXPECT_EQ(evaluate("(2 + 3) * 4 % 7"), 6);
  EXPECT_EQ(evaluate("10 - 3 - 2"), 5);
  EXPECT_EQ(evaluate("min(M, 3) * max(2, --4)"), 12);
  EXPECT_EQ(evaluate("cdiv(min(M,cdiv(M,2)),BLOCK_M)"), 4);
}

TEST(GridExpression, DivisionRoundsAsItSays) {
  EXPECT_EQ(evaluate("-7 / 2"), -3);
  EXPECT_EQ(evaluate("-7 % 2"), -1);
  EXPECT_EQ(evaluate("cdiv(7, 2)"), 4);
  EXPECT_EQ(evaluate("cdiv(-7, 2)"), -3);
  EXPECT_EQ(evaluate("cdiv(-7, -2)"), 4);
  EXPECT_EQ(evaluate("cdiv(8, 2)"), 4);
}

TEST(GridExpression, Refusals) {
  auto message = [](std::string_view text) {
    Result<int64_t> value = evaluate(text);
    return value ? "a value" : value.error().message;
  };
  using testing::HasSubstr;
  EXPECT_THAT(message("M / zero"), HasSubstr("division by zero"));
  EXPECT_THAT(message("cdiv(1, zero)"), HasSubstr("division by zero"));
  EXPECT_THAT(message("N + 1"), HasSubstr("no argument or constant is named 'N'"));
  EXPECT_THAT(message("big + 1"), HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(message("least / -1"), HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(message("cdiv(least, -1)"), HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(message("-least"), HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(message("99999999999999999999"), HasSubstr("a number of 64 bits"));
  EXPECT_THAT(message("sqrt(M)"), HasSubstr("expected 'cdiv', 'min' or 'max', but got 'sqrt'"));
  EXPECT_THAT(message("cdiv(M)"), HasSubstr("expected ','"));
  EXPECT_THAT(message("(M"), HasSubstr("column 3: expected ')'"));
  EXPECT_THAT(message("M M"), HasSubstr("expected the end"));
  EXPECT_THAT(message(""), HasSubstr("expected a number"));
  EXPECT_THAT(message(std::string(900, '(')), HasSubstr("64 levels"));
  EXPECT_THAT(message(std::string(900, '-')), HasSubstr("64 levels"));
  EXPECT_THAT(message(std::string(2000, '1')), HasSubstr("at most 1000 characters"));
}

TEST(GridExpression, CheckNeedsNoValues) {
  auto known = [](std::string_view name) { return name == "n"; };
  EXPECT_TRUE(checkGrid("cdiv(n, n - 1)", known)); // a division by zero for some n is the launch's affair
  EXPECT_FALSE(checkGrid("cdiv(n, m)", known));
  EXPECT_FALSE(checkGrid("n +", known));
}

TEST(GridExpression, ParsedOnceEvaluatedOften) {
  auto slotOf = [](std::string_view name) -> std::optional<uint32_t> {
    return name == "N" ? std::optional(0u) : name == "M" ? std::optional(1u) : std::nullopt;
  };
  Result<Expression> parsed = Expression::parse("cdiv(N, 64) * (M - 1)", slotOf);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->evaluate(std::vector<int64_t>{128, 4}), 6);
  EXPECT_EQ(parsed->evaluate(std::vector<int64_t>{129, 5}), 12);
  EXPECT_EQ(parsed->text(), "cdiv(N, 64) * (M - 1)");
  EXPECT_FALSE(parsed->name());
  EXPECT_FALSE(parsed->integer());
  EXPECT_EQ(Expression::parse(" M ", slotOf)->name(), 1u);
  EXPECT_EQ(Expression::parse("64", slotOf)->integer(), 64);
  EXPECT_FALSE(Expression::parse("K", slotOf));
  Result<int64_t> none = Expression::parse("N / (M - M)", slotOf)->evaluate(std::vector<int64_t>{1, 1});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, testing::HasSubstr("column 12: division by zero"));
}

TEST(GridExpression, DeepNestingFitsItsStack) {
  std::string text = "N";
  for (int i = 0; i < 60; ++i)
    text = "1 + 2 * min(3, " + text + ")";
  auto slotOf = [](std::string_view) { return std::optional(0u); };
  Result<Expression> parsed = Expression::parse(text, slotOf);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->evaluate(std::vector<int64_t>{0}), 7); // 1 + 2 * min(3, x) is 1, 3, then 7 for ever
}
