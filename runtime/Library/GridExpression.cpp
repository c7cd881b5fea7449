// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Library/GridExpression.h"

#include "runtime/Support/Format.h"
#include <algorithm>
#include <charconv>
#include <limits>

namespace weft::library {
namespace {

constexpr size_t maxLength = 1000;
constexpr int maxDepth = 64;

bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Evaluates while it parses. With `symbolic` only syntax and names are checked: every name is 1 and no arithmetic
/// failure counts.
class Evaluator {
public:
  Evaluator(std::string_view text, const NameLookup &lookup, bool symbolic)
      : text(text), lookup(lookup), symbolic(symbolic) {}

  Result<int64_t> run() {
    Result<int64_t> value = sum(0);
    if (value && peek())
      return wrong("expected the end of the expression");
    return value;
  }

private:
  Result<int64_t> sum(int depth) {
    Result<int64_t> left = product(depth);
    while (left && (peek() == '+' || peek() == '-')) {
      char op = take();
      left = product(depth).and_then([&](int64_t right) { return apply(op, *left, right); });
    }
    return left;
  }

  Result<int64_t> product(int depth) {
    Result<int64_t> left = factor(depth);
    while (left && (peek() == '*' || peek() == '/' || peek() == '%')) {
      char op = take();
      left = factor(depth).and_then([&](int64_t right) { return apply(op, *left, right); });
    }
    return left;
  }

  Result<int64_t> factor(int depth) {
    if (depth > maxDepth)
      return wrong("expected at most 64 levels of nesting");
    char c = peek();
    if (c == '-') {
      take();
      return factor(depth + 1).and_then([&](int64_t value) { return apply('-', 0, value); });
    }
    if (c == '(') {
      take();
      Result<int64_t> value = sum(depth + 1);
      return value ? expect(')').transform([&] { return *value; }) : value;
    }
    if (isDigit(c))
      return number();
    if (isNameStart(c))
      return nameOrCall(depth);
    return wrong("expected a number, a name or '('");
  }

  Result<int64_t> number() {
    int64_t value = 0;
    auto [rest, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc())
      return wrong("expected a number of 64 bits");
    at = rest - text.data();
    return value;
  }

  Result<int64_t> nameOrCall(int depth) {
    size_t begin = at;
    while (at < text.size() && (isNameStart(text[at]) || isDigit(text[at])))
      ++at;
    std::string_view name = text.substr(begin, at - begin);
    if (peek() == '(')
      return call(name, depth);
    std::optional<int64_t> value = lookup(name);
    if (!value)
      return wrong(weft::format("no argument or constant is named '{}'", name));
    return *value;
  }

  Result<int64_t> call(std::string_view name, int depth) {
    if (name != "cdiv" && name != "min" && name != "max")
      return wrong(weft::format("expected 'cdiv', 'min' or 'max', but got '{}'", name));
    take();
    Result<int64_t> left = sum(depth + 1);
    Status comma = left ? expect(',') : std::unexpected(left.error());
    Result<int64_t> right = comma ? sum(depth + 1) : std::unexpected(comma.error());
    Status close = right ? expect(')') : std::unexpected(right.error());
    if (!close)
      return std::unexpected(close.error());
    if (name == "min")
      return std::min(*left, *right);
    if (name == "max")
      return std::max(*left, *right);
    return ceilDiv(*left, *right);
  }

  Result<int64_t> ceilDiv(int64_t left, int64_t right) {
    return apply('/', left, right).transform([&](int64_t quotient) {
      bool inexact = right != 0 && quotient * right != left;
      return quotient + (inexact && (left < 0) == (right < 0) ? 1 : 0);
    });
  }

  Result<int64_t> apply(char op, int64_t left, int64_t right) {
    int64_t value = 0;
    bool overflow = false;
    if (op == '/' || op == '%') {
      if (symbolic)
        return 1;
      if (right == 0)
        return wrong("division by zero");
      overflow = left == std::numeric_limits<int64_t>::min() && right == -1;
      value = overflow ? 0 : op == '/' ? left / right : left % right;
    } else {
      overflow = op == '+'   ? __builtin_add_overflow(left, right, &value)
                 : op == '-' ? __builtin_sub_overflow(left, right, &value)
                             : __builtin_mul_overflow(left, right, &value);
    }
    if (symbolic)
      return 1;
    if (overflow)
      return wrong("the value does not fit 64 bits");
    return value;
  }

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
  std::unexpected<Error> wrong(std::string message) const {
    return failure(StatusCode::InvalidArgument,
                   weft::format("in the grid expression '{}', column {}: {}", text, at + 1, message));
  }

  std::string_view text;
  const NameLookup &lookup;
  bool symbolic;
  size_t at = 0;
};

Result<int64_t> run(std::string_view expression, const NameLookup &lookup, bool symbolic) {
  if (expression.size() > maxLength)
    return failure(
        StatusCode::InvalidArgument,
        weft::format("expected a grid expression of at most {} characters, but got {}", maxLength, expression.size()));
  return Evaluator(expression, lookup, symbolic).run();
}

} // namespace

Result<int64_t> evaluateGrid(std::string_view expression, const NameLookup &lookup) {
  return run(expression, lookup, false);
}

Status checkGrid(std::string_view expression, const std::function<bool(std::string_view)> &known) {
  NameLookup one = [&](std::string_view name) { return known(name) ? std::optional<int64_t>(1) : std::nullopt; };
  return run(expression, one, true).transform([](int64_t) {});
}

} // namespace weft::library
