// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Constant expressions and initialisers (PTX ISA 4.5.5, 5.4.5).
#include "runtime/Simulator/PTX/Parser.h"

#include <bit>
#include <optional>
#include <type_traits>

namespace weft::simulator::ptx {
namespace {

constexpr int deepestNesting = 64;
constexpr uint64_t maximumElements = uint64_t{1} << 26;

/// PTX ISA 4.5.3, table "Operator Precedence"; 0 for what is no operator.
int precedence(const Token &token) {
  static constexpr std::string_view byLevel[][4] = {
      {"||"},       {"&&"},     {"|"},          {"^"}, {"&"}, {"==", "!="}, {"<", ">", "<=", ">="},
      {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}};
  if (token.kind == TokenKind::Mark || token.text == "%") // which begins words
    for (int level = 0; level < int(std::size(byLevel)); ++level)
      for (std::string_view each : byLevel[level])
        if (!each.empty() && each == token.text)
          return level + 1;
  return 0;
}

/// The level of `*`.
constexpr int tightest = 10;

/// `a op b` of two integers, both signed or both not.
template <typename T> uint64_t applied(std::string_view operation, T a, T b) {
  if (operation == "/" || operation == "%") {
    if (b == T(-1) && std::is_signed_v<T>) // the least number has no opposite
      return operation == "/" ? -uint64_t(a) : 0;
    return uint64_t(operation == "/" ? a / b : a % b);
  }
  if (operation == ">>") {
    if (std::is_unsigned_v<T> && uint64_t(b) > 63)
      return 0;
    return uint64_t(a >> (uint64_t(b) < 63 ? uint64_t(b) : 63));
  }
  return operation == "<" ? a < b : operation == ">" ? a > b : operation == "<=" ? a <= b : a >= b;
}

/// The operators whose result has the same bits with and without a sign.
std::optional<uint64_t> appliedToBits(std::string_view operation, uint64_t a, uint64_t b) {
  if (operation.size() == 1)
    switch (operation[0]) {
    case '*':
      return a * b;
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '&':
      return a & b;
    case '^':
      return a ^ b;
    case '|':
      return a | b;
    default:
      break;
    }
  if (operation == "<<")
    return b < 64 ? a << b : 0;
  if (operation == "==" || operation == "!=")
    return (a == b) == (operation == "==");
  if (operation == "&&" || operation == "||")
    return operation == "&&" ? a && b : a || b;
  return std::nullopt;
}

} // namespace

uint64_t Parser::constant() { return conditional(0).bits; }
uint64_t Parser::constantFactor() { return constantBinary(tightest, 0).bits; }

Parser::Constant Parser::conditional(int depth) {
  const Constant value = constantBinary(1, depth);
  if (!accept('?'))
    return value;
  const Constant yes = conditional(depth + 1);
  expect(':');
  const Constant no = conditional(depth + 1);
  return {value.bits ? yes.bits : no.bits, yes.isUnsigned || no.isUnsigned};
}

Parser::Constant Parser::constantBinary(int minimumPrecedence, int depth) {
  Constant left = constantUnary(depth);
  while (precedence(peek()) >= minimumPrecedence) {
    const Token operation = next();
    const Constant right = constantBinary(precedence(operation) + 1, depth + 1);
    if ((operation.text == "/" || operation.text == "%") && right.bits == 0)
      fail(operation, "expected a divisor other than zero");
    const bool isUnsigned = left.isUnsigned || right.isUnsigned;
    const int level = precedence(operation);
    if (const auto same = appliedToBits(operation.text, left.bits, right.bits))
      left.bits = *same;
    else
      left.bits = isUnsigned ? applied<uint64_t>(operation.text, left.bits, right.bits)
                             : applied<int64_t>(operation.text, int64_t(left.bits), int64_t(right.bits));
    const bool isTruth = level <= 2 || level == 6 || level == 7;
    left.isUnsigned = isUnsigned && !isTruth;
  }
  return left;
}

Parser::Constant Parser::constantUnary(int depth) {
  if (depth > deepestNesting)
    fail(peek(), "expected an expression less deep");
  if (accept('-')) {
    const Constant value = constantUnary(depth + 1);
    return {-value.bits, value.isUnsigned};
  }
  if (accept('+'))
    return constantUnary(depth + 1);
  if (accept('~')) {
    const Constant value = constantUnary(depth + 1);
    return {~value.bits, value.isUnsigned};
  }
  if (accept('!'))
    return {constantUnary(depth + 1).bits == 0, false};
  if (accept('(')) {
    if (peek().is(".s64") || peek().is(".u64")) { // a cast
      const bool isUnsigned = next().is(".u64");
      expect(')');
      return {constantUnary(depth + 1).bits, isUnsigned};
    }
    const Constant value = conditional(depth + 1);
    expect(')');
    return value;
  }
  if (accept("WARP_SZ"))
    return {32, false};
  const Token &number = peek();
  const uint64_t bits = expectInteger("an integer");
  return {bits, number.text.ends_with('U') || bits >> 63 != 0};
}

uint64_t Parser::numberBits(const Token &token, Type type, bool negative) {
  if (token.kind == TokenKind::Integer) {
    uint64_t value = negative ? -token.bits : token.bits;
    if (type == Type::F64)
      return std::bit_cast<uint64_t>(double(int64_t(value)));
    if (type == Type::F32)
      return std::bit_cast<uint32_t>(float(int64_t(value)));
    return value;
  }
  if (token.kind == TokenKind::Float32) {
    uint32_t bits = uint32_t(token.bits) ^ (negative ? 0x80000000u : 0u);
    return type == Type::F64 ? std::bit_cast<uint64_t>(double(std::bit_cast<float>(bits))) : bits;
  }
  uint64_t bits = token.bits ^ (negative ? uint64_t{1} << 63 : 0);
  return type == Type::F32 ? std::bit_cast<uint32_t>(float(std::bit_cast<double>(bits))) : bits;
}

InitialValue Parser::initialValue() {
  InitialValue value;
  bool negative = (peek().is('-') && peek(1).kind != TokenKind::Integer) ? (next(), true) : false;
  if (peek().kind == TokenKind::Float32 || peek().kind == TokenKind::Float64) {
    value.bits = next().bits ^ (negative ? uint64_t{1} << 63 : 0);
    return value;
  }
  // `0xFF00(generic(symbol))`: one byte of an address.
  if (peek().kind == TokenKind::Integer && peek(1).is('(')) {
    uint64_t mask = next().bits;
    if (mask == 0 || (mask >> std::countr_zero(mask)) != 0xFF)
      fail(peek(), "expected a mask of one byte");
    next();
    value = initialValue();
    expect(')');
    value.byteOfAddress = true;
    value.maskShift = uint8_t(std::countr_zero(mask));
    return value;
  }
  if (peek().kind != TokenKind::Word) {
    value.bits = constant();
    return value;
  }
  value.symbol = next().text;
  if (value.symbol == "generic" && accept('(')) {
    value.generic = true;
    value.symbol = expectWord("a variable's name");
    expect(')');
  }
  if (peek().is('+') || peek().is('-'))
    value.bits = constantUnary(0).bits;
  return value;
}

void Parser::initializer(Variable &variable, int depth) {
  if (depth > deepestNesting || variable.initial.size() > maximumElements)
    fail(peek(), "expected a smaller initialiser");
  if (accept('{')) {
    while (!accept('}')) {
      initializer(variable, depth + 1);
      if (!peek().is('}'))
        expect(',');
    }
    return;
  }
  if (peek().kind == TokenKind::String) {
    for (char c : next().text)
      variable.initial.emplace_back().bits = uint8_t(c);
    variable.initial.push_back({});
    return;
  }
  const Token first = peek();
  InitialValue value = initialValue();
  if (value.symbol.empty() && !value.byteOfAddress && isFloat(variable.type) && peek(0).kind != TokenKind::Float32) {
    // The value's own spelling decides how its bits are read.
    const Token &literal = first.is('-') ? tokens_[at_ - 1] : first;
    value.bits = numberBits(literal, variable.type, first.is('-'));
  }
  variable.initial.push_back(value);
}

} // namespace weft::simulator::ptx
