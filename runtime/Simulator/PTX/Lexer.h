// Part of Weft. SPDX-License-Identifier: Apache-2.0
// PTX text to tokens, each with its place (PTX ISA 4.2 "Comments", 4.4 "Identifiers", 4.5 "Constants").
#pragma once

#include "runtime/Support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::simulator::ptx {

/// A place in the text, both counted from 1.
struct Position {
  uint32_t line = 0, column = 0;
};

enum class TokenKind : uint8_t {
  Word,    ///< an identifier: `add`, `%r1`, `$L__BB0_1`, `_`
  DotWord, ///< a directive or a modifier, its dot included: `.global`, `.L1::evict_last`
  Integer, ///< value in `bits`
  Float32, ///< `0f3F800000`, bits in `bits`
  Float64, ///< `0d...` or `1.5`, bits in `bits`
  String,  ///< text without its quotes
  Mark,    ///< one character of punctuation, or `<<`, `>>`, `@@`
  End,
};

struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;
  uint64_t bits = 0;
  Position at;

  bool is(char mark) const { return kind == TokenKind::Mark && text.size() == 1 && text[0] == mark; }
  bool is(std::string_view spelling) const { return text == spelling && kind != TokenKind::String; }
};

/// All tokens of a text, an End token last. The tokens point into `text`. Errors: Corrupt, with line and column, at a
/// character that no token starts with, at an open comment or string, or at a number that does not fit 64 bits.
Result<std::vector<Token>> tokenize(std::string_view text);

/// "line 3, column 7: expected ..." as every error of the PTX front reads.
Error errorAt(Position at, std::string message, StatusCode code = StatusCode::Corrupt);

} // namespace weft::simulator::ptx
