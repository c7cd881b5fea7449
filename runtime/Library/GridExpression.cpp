// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Library/GridExpression.h"

#include "runtime/Support/Format.h"
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace weft::library {
namespace {

constexpr size_t maxLength = 1000;
constexpr int maxDepth = 64;
/// Each level of nesting holds at most a sum's, a product's and a call's left operand while its right one is computed.
constexpr size_t maxStack = 3 * (maxDepth + 2);

bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

std::unexpected<Error> wrongAt(std::string_view text, size_t column, std::string_view message) {
  return failure(StatusCode::InvalidArgument,
                 weft::format("in the grid expression '{}', column {}: {}", text, column, message));
}

/// left / right, rounded up.
int64_t ceilDivide(int64_t left, int64_t right) {
  int64_t quotient = left / right;
  bool inexact = quotient * right != left;
  return quotient + (inexact && (left < 0) == (right < 0) ? 1 : 0);
}

} // namespace

/// Writes an expression's steps while it reads the text.
class ExpressionParser {
public:
  ExpressionParser(std::string_view text, const SlotLookup &slotOf) : text(text), slotOf(slotOf) {}

  Result<Expression> run() {
    if (text.size() > maxLength)
      return failure(
          StatusCode::InvalidArgument,
          weft::format("expected a grid expression of at most {} characters, but got {}", maxLength, text.size()));
    Status status = sum(0);
    if (status && peek())
      status = wrong("expected the end of the expression");
    if (!status)
      return std::unexpected(status.error());
    made.spelling = text;
    return std::move(made);
  }

private:
  using Kind = Expression::Kind;

  Status sum(int depth) {
    Status status = product(depth);
    while (status && (peek() == '+' || peek() == '-')) {
      Kind kind = take() == '+' ? Kind::Add : Kind::Subtract;
      status = product(depth).transform([&] { emit(kind); });
    }
    return status;
  }

  Status product(int depth) {
    Status status = factor(depth);
    while (status && (peek() == '*' || peek() == '/' || peek() == '%')) {
      char op = take();
      Kind kind = op == '*' ? Kind::Multiply : op == '/' ? Kind::Divide : Kind::Remainder;
      status = factor(depth).transform([&] { emit(kind); });
    }
    return status;
  }

  Status factor(int depth) {
    if (depth > maxDepth)
      return wrong("expected at most 64 levels of nesting");
    char c = peek();
    if (c == '-') {
      take();
      emit(Kind::Integer, 0);
      return factor(depth + 1).transform([&] { emit(Kind::Subtract); });
    }
    if (c == '(') {
      take();
      return sum(depth + 1).and_then([&] { return expect(')'); });
    }
    if (isDigit(c))
      return number();
    if (isNameStart(c))
      return nameOrCall(depth);
    return wrong("expected a number, a name or '('");
  }

  Status number() {
    int64_t value = 0;
    auto [rest, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc())
      return wrong("expected a number of 64 bits");
    at = rest - text.data();
    emit(Kind::Integer, value);
    return {};
  }

  Status nameOrCall(int depth) {
    size_t begin = at;
    while (at < text.size() && (isNameStart(text[at]) || isDigit(text[at])))
      ++at;
    std::string_view name = text.substr(begin, at - begin);
    if (peek() == '(')
      return call(name, depth);
    std::optional<uint32_t> slot = slotOf(name);
    if (!slot)
      return wrong(weft::format("no argument or constant is named '{}'", name));
    emit(Kind::Name, *slot);
    return {};
  }

  Status call(std::string_view name, int depth) {
    if (name != "cdiv" && name != "min" && name != "max")
      return wrong(weft::format("expected 'cdiv', 'min' or 'max', but got '{}'", name));
    take();
    return sum(depth + 1)
        .and_then([&] { return expect(','); })
        .and_then([&] { return sum(depth + 1); })
        .and_then([&] { return expect(')'); })
        .transform([&] {
          emit(name == "min" ? Kind::Min : name == "max" ? Kind::Max : Kind::CeilDivide);
        });
  }

  void emit(Kind kind, int64_t operand = 0) { made.steps.push_back({kind, static_cast<uint32_t>(at + 1), operand}); }
  char peek() {
    while (at < text.size() && text[at] == ' ')
      ++at;
    return at < text.size() ? text[at] : '\0';
  }
  char take() { return text[at++]; }
  Status expect(char c) {
    if (peek() != c)
      return wrong(weft::format("expected '{}'", c));
    take();
    return {};
  }
  std::unexpected<Error> wrong(std::string_view message) const { return wrongAt(text, at + 1, message); }

  std::string_view text;
  const SlotLookup &slotOf;
  Expression made;
  size_t at = 0;
};

Result<Expression> Expression::parse(std::string_view text, const SlotLookup &slotOf) {
  return ExpressionParser(text, slotOf).run();
}

Result<int64_t> Expression::evaluate(std::span<const int64_t> values) const {
  std::array<int64_t, maxStack> stack;
  size_t top = 0;
  stack[0] = 0;
  for (const Step &step : steps) {
    if (step.kind == Kind::Integer || step.kind == Kind::Name) {
      stack[top++] = step.kind == Kind::Integer ? step.operand : values[step.operand];
      continue;
    }
    int64_t right = stack[--top], left = stack[top - 1], value = 0;
    bool overflow = false;
    switch (step.kind) {
    case Kind::Add:
      overflow = __builtin_add_overflow(left, right, &value);
      break;
    case Kind::Subtract:
      overflow = __builtin_sub_overflow(left, right, &value);
      break;
    case Kind::Multiply:
      overflow = __builtin_mul_overflow(left, right, &value);
      break;
    case Kind::Min:
      value = std::min(left, right);
      break;
    case Kind::Max:
      value = std::max(left, right);
      break;
    default: // the divisions
      if (right == 0)
        return wrongAt(spelling, step.column, "division by zero");
      overflow = left == std::numeric_limits<int64_t>::min() && right == -1;
      if (!overflow)
        value = step.kind == Kind::Divide      ? left / right
                : step.kind == Kind::Remainder ? left % right
                                               : ceilDivide(left, right);
    }
    if (overflow)
      return wrongAt(spelling, step.column, "the value does not fit 64 bits");
    stack[top - 1] = value;
  }
  return stack[0];
}

std::optional<uint32_t> Expression::name() const {
  bool plain = steps.size() == 1 && steps[0].kind == Kind::Name;
  return plain ? std::optional(static_cast<uint32_t>(steps[0].operand)) : std::nullopt;
}

std::optional<int64_t> Expression::integer() const {
  bool plain = steps.size() == 1 && steps[0].kind == Kind::Integer;
  return plain ? std::optional(steps[0].operand) : std::nullopt;
}

Result<int64_t> evaluateGrid(std::string_view expression, const NameLookup &lookup) {
  std::vector<int64_t> values;
  auto slotOf = [&](std::string_view name) -> std::optional<uint32_t> {
    std::optional<int64_t> value = lookup(name);
    if (!value)
      return std::nullopt;
    values.push_back(*value);
    return static_cast<uint32_t>(values.size() - 1);
  };
  return Expression::parse(expression, slotOf).and_then([&](const Expression &parsed) {
    return parsed.evaluate(values);
  });
}

Status checkGrid(std::string_view expression, const std::function<bool(std::string_view)> &known) {
  auto slotOf = [&](std::string_view name) { return known(name) ? std::optional<uint32_t>(0) : std::nullopt; };
  return Expression::parse(expression, slotOf).transform([](const Expression &) {});
}

} // namespace weft::library
