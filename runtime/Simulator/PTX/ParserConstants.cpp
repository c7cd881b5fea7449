// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Constant expressions and initialisers (PTX ISA 4.5.5, 5.4.5).
#include "runtime/Simulator/PTX/Parser.h"

#include <bit>

namespace weft::simulator::ptx {
namespace {

constexpr int maximumDepth = 64;
constexpr uint64_t maximumElements = uint64_t{1} << 26;

int precedence(const Token &token) {
  if (token.kind != TokenKind::Mark)
    return 0;
  if (token.text == "*" || token.text == "/" || token.text == "%")
    return 6;
  if (token.text == "+" || token.text == "-")
    return 5;
  if (token.text == "<<" || token.text == ">>")
    return 4;
  if (token.text == "&")
    return 3;
  if (token.text == "^")
    return 2;
  return 0; // `|` separates destinations, so that it is no operator here
}

} // namespace

uint64_t Parser::constant() { return constantBinary(1, 0); }

uint64_t Parser::constantBinary(int minimumPrecedence, int depth) {
  uint64_t left = constantUnary(depth);
  while (precedence(peek()) >= minimumPrecedence) {
    const Token operation = next();
    uint64_t right = constantBinary(precedence(operation) + 1, depth + 1);
    switch (operation.text[0]) {
    case '*':
      left *= right;
      break;
    case '/':
    case '%':
      if (right == 0)
        fail(operation, "expected a divisor other than zero");
      left = operation.text[0] == '/' ? left / right : left % right;
      break;
    case '+':
      left += right;
      break;
    case '-':
      left -= right;
      break;
    case '<':
      left = right < 64 ? left << right : 0;
      break;
    case '>':
      left = right < 64 ? left >> right : 0;
      break;
    case '&':
      left &= right;
      break;
    case '^':
      left ^= right;
      break;
    }
  }
  return left;
}

uint64_t Parser::constantUnary(int depth) {
  if (depth > maximumDepth)
    fail(peek(), "expected an expression less deep");
  if (accept('-'))
    return -constantUnary(depth + 1);
  if (accept('+'))
    return constantUnary(depth + 1);
  if (accept('~'))
    return ~constantUnary(depth + 1);
  if (accept('!'))
    return constantUnary(depth + 1) == 0;
  if (accept('(')) {
    if (peek().is(".s64") || peek().is(".u64")) { // a cast
      next();
      expect(')');
      return constantUnary(depth + 1);
    }
    uint64_t value = constantBinary(1, depth + 1);
    expect(')');
    return value;
  }
  return expectInteger("an integer");
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
    value.bits = constantUnary(0);
  return value;
}

void Parser::initializer(Variable &variable, int depth) {
  if (depth > maximumDepth || variable.initial.size() > maximumElements)
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
