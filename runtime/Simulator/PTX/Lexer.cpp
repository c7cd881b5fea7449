// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/PTX/Lexer.h"

#include "runtime/Support/Format.h"
#include <bit>
#include <charconv>

namespace weft::simulator::ptx {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool startsWord(char c) { return isLetter(c) || c == '_' || c == '$' || c == '%'; }
bool continuesWord(char c) { return isLetter(c) || isDigit(c) || c == '_' || c == '$'; }
bool isHex(char c) { return isDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

class Lexer {
public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> run() {
    tokens_.reserve(text_.size() / 5 + 1);
    while (true) {
      if (Status skipped = skipBlank(); !skipped)
        return std::unexpected(skipped.error());
      if (at_ >= text_.size())
        break;
      if (Status read = readToken(); !read)
        return std::unexpected(read.error());
    }
    tokens_.push_back({TokenKind::End, text_.substr(text_.size()), 0, here()});
    return std::move(tokens_);
  }

private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  Position here() const { return {line_, uint32_t(at_ - lineStart_ + 1)}; }

  Status skipBlank() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '\n') {
        ++line_;
        lineStart_ = ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' ||
                 (c == '\0' && at_ + 1 == text_.size())) {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '/' && peek(1) == '*') {
        Position start = here();
        size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos)
          return std::unexpected(errorAt(start, "expected '*/' to end the comment, but got the end of the text"));
        for (; at_ < end + 2; ++at_)
          if (text_[at_] == '\n') {
            ++line_;
            lineStart_ = at_ + 1;
          }
      } else {
        break;
      }
    }
    return {};
  }

  void push(TokenKind kind, size_t length, uint64_t bits = 0) {
    tokens_.push_back({kind, text_.substr(at_, length), bits, here()});
    at_ += length;
  }

  Status readToken() {
    char c = peek();
    if (startsWord(c)) {
      size_t length = 1;
      while (continuesWord(peek(length)))
        ++length;
      push(TokenKind::Word, length);
      return {};
    }
    // `.5` is a number where an operand may begin, and of a modifier as in `.tensor.2d` elsewhere.
    if (c == '.' && isDigit(peek(1)) && !tokens_.empty() && tokens_.back().kind == TokenKind::Mark)
      return readDecimal();
    if (c == '.' && (continuesWord(peek(1)))) {
      // `.L2::128B` is one modifier; `::` never occurs elsewhere.
      size_t length = 1;
      while (continuesWord(peek(length)) || (peek(length) == ':' && peek(length + 1) == ':') ||
             (peek(length) == ':' && peek(length - 1) == ':' && peek(length - 2) != ':'))
        ++length;
      push(TokenKind::DotWord, length);
      return {};
    }
    if (isDigit(c))
      return readNumber();
    if (c == '"')
      return readString();
    const bool doubled = std::string_view("<>@|&=").find(c) != std::string_view::npos && peek(1) == c;
    if (doubled || ((c == '<' || c == '>' || c == '!') && peek(1) == '=')) {
      push(TokenKind::Mark, 2);
      return {};
    }
    if (std::string_view("{}[]()<>,;:@!|+-*/&~^=?%").find(c) != std::string_view::npos) {
      push(TokenKind::Mark, 1);
      return {};
    }
    bool printable = c > ' ' && c < 127;
    return std::unexpected(errorAt(here(), printable ? format("expected a token, but got '{}'", c)
                                                     : format("expected a token, but got the byte {:#x}",
                                                              unsigned(static_cast<unsigned char>(c)))));
  }

  Status readString() {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n')
      ++end;
    if (end >= text_.size() || text_[end] != '"')
      return std::unexpected(errorAt(here(), "expected '\"' to end the string"));
    tokens_.push_back({TokenKind::String, text_.substr(at_ + 1, end - at_ - 1), 0, here()});
    at_ = end + 1;
    return {};
  }

  Status badNumber(size_t length) {
    return std::unexpected(
        errorAt(here(), format("expected a number, but got '{}'", text_.substr(at_, std::min<size_t>(length, 40)))));
  }

  Status readNumber() {
    char kind = peek() == '0' ? peek(1) : '\0';
    if (kind == 'f' || kind == 'F' || kind == 'd' || kind == 'D') {
      size_t digits = kind == 'f' || kind == 'F' ? 8 : 16;
      uint64_t bits = 0;
      for (size_t i = 2; i < 2 + digits; ++i) {
        if (!isHex(peek(i)))
          return badNumber(i + 1);
        std::from_chars(&text_[at_ + i], &text_[at_ + i] + 1, kindDigit_, 16);
        bits = bits << 4 | kindDigit_;
      }
      push(digits == 8 ? TokenKind::Float32 : TokenKind::Float64, 2 + digits, bits);
      return {};
    }
    int base = 10;
    size_t prefix = 0;
    if (kind == 'x' || kind == 'X')
      base = 16, prefix = 2;
    else if ((kind == 'b' || kind == 'B') && (peek(2) == '0' || peek(2) == '1'))
      base = 2, prefix = 2;
    size_t length = prefix;
    while (base == 16 ? isHex(peek(length)) : isDigit(peek(length)))
      ++length;
    auto isExponent = [&](size_t at) { return peek(at) == 'e' || peek(at) == 'E'; };
    const bool point = peek(length) == '.' &&
                       (isDigit(peek(length + 1)) || !continuesWord(peek(length + 1)) || isExponent(length + 1));
    const bool decimal = base == 10 && (point || isExponent(length));
    if (decimal)
      return readDecimal();
    if (base == 10 && length > 1 && peek() == '0')
      base = 8;
    uint64_t bits = 0;
    const char *first = text_.data() + at_ + prefix, *last = text_.data() + at_ + length;
    auto [stop, code] = std::from_chars(first, last, bits, base);
    if (code != std::errc() || stop != last || first == last)
      return badNumber(length);
    if (peek(length) == 'U')
      ++length;
    if (continuesWord(peek(length)))
      return badNumber(length + 1);
    push(TokenKind::Integer, length, bits);
    return {};
  }

  Status readDecimal() {
    double value = 0;
    const char *first = text_.data() + at_, *last = text_.data() + text_.size();
    auto [stop, code] = std::from_chars(first, last, value);
    if (code != std::errc() || continuesWord(stop < last ? *stop : '\0'))
      return badNumber(size_t(stop - first) + 1);
    push(TokenKind::Float64, size_t(stop - first), std::bit_cast<uint64_t>(value));
    return {};
  }

  std::string_view text_;
  size_t at_ = 0, lineStart_ = 0;
  uint32_t line_ = 1;
  uint64_t kindDigit_ = 0;
  std::vector<Token> tokens_;
};

} // namespace

Result<std::vector<Token>> tokenize(std::string_view text) { return Lexer(text).run(); }

Error errorAt(Position at, std::string message, StatusCode code) {
  return {code, format("line {}, column {}: {}", at.line, at.column, message)};
}

} // namespace weft::simulator::ptx
