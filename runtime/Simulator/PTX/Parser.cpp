// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The parser's cursor and its entry point.
#include "runtime/Simulator/PTX/Parser.h"

namespace weft::simulator::ptx {
namespace {

std::string describe(const Token &token) {
  if (token.kind == TokenKind::End)
    return "the end of the text";
  if (token.kind == TokenKind::String)
    return "a string";
  return format("'{}'", token.text.substr(0, 60));
}

} // namespace

const Token &Parser::next() {
  const Token &token = peek();
  if (at_ < tokens_.size() - 1)
    ++at_;
  return token;
}

bool Parser::accept(char mark) {
  if (!peek().is(mark))
    return false;
  next();
  return true;
}

bool Parser::accept(std::string_view word) {
  if (!peek().is(word) || peek().kind == TokenKind::End)
    return false;
  next();
  return true;
}

void Parser::expect(char mark) {
  if (!accept(mark))
    failExpected(format("'{}'", mark));
}

std::string_view Parser::expectWord(std::string_view what) {
  if (peek().kind != TokenKind::Word)
    failExpected(what);
  return next().text;
}

uint64_t Parser::expectInteger(std::string_view what) {
  if (peek().kind != TokenKind::Integer)
    failExpected(what);
  return next().bits;
}

void Parser::fail(const Token &at, std::string message) { throw ParseFailure{errorAt(at.at, std::move(message))}; }

void Parser::failExpected(std::string_view what) {
  fail(peek(), format("expected {}, but got {}", what, describe(peek())));
}

void Parser::run() {
  while (peek().kind != TokenKind::End)
    topLevel();
  if (module_.version.empty())
    failExpected("a '.version' directive");
  if (module_.target.empty())
    failExpected("a '.target' directive");
}

Result<Module> parseModule(std::string text) {
  Module module;
  module.text = std::make_shared<const std::string>(std::move(text));
  Result<std::vector<Token>> tokens = tokenize(*module.text);
  if (!tokens)
    return std::unexpected(tokens.error());
  try {
    Parser(std::move(*tokens), module).run();
  } catch (ParseFailure &failure) {
    return std::unexpected(std::move(failure.error));
  }
  return module;
}

const Function *Module::function(std::string_view name) const {
  // A declaration may stand before or after its definition: the definition is the one wanted.
  const Function *found = nullptr;
  if (const auto alias = aliases.find(name); alias != aliases.end())
    name = alias->second;
  for (const Function &candidate : functions)
    if (candidate.name == name && (!found || candidate.hasBody))
      found = &candidate;
  return found;
}

std::string Instruction::spelling() const {
  std::string result(mnemonic);
  for (std::string_view modifier : modifiers) {
    result += '.';
    result += modifier;
  }
  return result;
}

} // namespace weft::simulator::ptx
