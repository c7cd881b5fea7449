// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Module-level directives: variables, functions, files, sections (PTX ISA 5.4, 11.1 to 11.6).
#include "runtime/Simulator/PTX/Parser.h"

#include <bit>

namespace weft::simulator::ptx {
namespace {

constexpr uint64_t maximumBytes = uint64_t{1} << 32;

Space spaceNamed(std::string_view directive) {
  if (directive == ".global")
    return Space::Global;
  if (directive == ".const")
    return Space::Const;
  if (directive == ".shared" || directive == ".shared::cta")
    return Space::Shared;
  if (directive == ".local")
    return Space::Local;
  if (directive == ".param")
    return Space::Param;
  return Space::None;
}

} // namespace

void Parser::topLevel() {
  const Token directive = next();
  if (directive.is(';'))
    return;
  if (directive.is(".version")) {
    module_.version = next().text;
    return;
  }
  if (directive.is(".target")) {
    module_.target = expectWord("a target's name");
    while (accept(','))
      expectWord("a target option");
    return;
  }
  if (directive.is(".address_size")) {
    module_.addressBits = uint32_t(expectInteger("32 or 64"));
    if (module_.addressBits != 64)
      fail(directive, format("expected '.address_size 64', but got {}", module_.addressBits));
    return;
  }
  if (directive.is(".file"))
    return file();
  if (directive.is(".section"))
    return skipSection();
  if (directive.is(".pragma")) {
    while (!accept(';'))
      if (next().kind == TokenKind::End)
        failExpected("';'");
    return;
  }
  if (directive.is(".loc"))
    return loc();
  if (directive.is("@@")) {
    // Old DWARF lines: the rest of the line is data.
    uint32_t line = directive.at.line;
    while (peek().kind != TokenKind::End && peek().at.line == line)
      next();
    return;
  }
  if (directive.is(".alias"))
    return alias();

  bool isExtern = false;
  const Token *what = &directive;
  Token after = directive;
  while (what->is(".extern") || what->is(".visible") || what->is(".weak") || what->is(".common")) {
    isExtern |= what->is(".extern");
    after = next();
    what = &after;
  }
  if (what->is(".entry") || what->is(".func"))
    return function(what->is(".entry"), isExtern);
  if (Space space = spaceNamed(what->text); space != Space::None && space != Space::Param) {
    variableList(space, isExtern, module_.variables, nullptr);
    return;
  }
  fail(*what, format("expected a directive such as '.entry' or '.global', but got '{}'", what->text.substr(0, 60)));
}

void Parser::file() {
  uint32_t number = uint32_t(expectInteger("a file number"));
  if (peek().kind != TokenKind::String)
    failExpected("a file name in quotes");
  module_.files[number] = next().text;
  while (accept(','))
    expectInteger("a time stamp or a size");
}

void Parser::skipBraces() {
  int depth = 0;
  do {
    if (peek().kind == TokenKind::End)
      failExpected("'}'");
    depth += peek().is('{') - peek().is('}');
    next();
  } while (depth > 0);
}

void Parser::skipSection() {
  if (peek().kind != TokenKind::DotWord && peek().kind != TokenKind::Word && peek().kind != TokenKind::String)
    failExpected("a section's name");
  next();
  if (!peek().is('{'))
    failExpected("'{'");
  skipBraces();
}

/// Everything of a declaration before its name: alignment, vector length, type, attributes.
Variable Parser::variableHead(Space space) {
  Variable variable;
  variable.space = space;
  uint64_t lanes = 1;
  uint64_t align = 0;
  while (peek().kind == TokenKind::DotWord) {
    const Token word = next();
    if (word.is(".align")) {
      align = expectInteger("an alignment");
      if (!std::has_single_bit(align) || align > 4096)
        fail(word, format("expected an alignment that is a power of two up to 4096, but got {}", align));
    } else if (word.is(".v2") || word.is(".v4") || word.is(".v8")) {
      lanes = uint64_t(word.text[2] - '0');
    } else if (word.is(".ptr")) {
      variable.pointer = true;
      if (spaceNamed(peek().text) != Space::None)
        next();
      if (accept(".align"))
        expectInteger("an alignment"); // of what is pointed to
    } else if (word.is(".attribute")) {
      expect('(');
      while (!accept(')'))
        if (next().kind == TokenKind::End)
          failExpected("')'");
    } else if (Type type = typeNamed(word.text.substr(1)); type != Type::None) {
      variable.type = type;
    } else {
      fail(word, format("expected a type, but got '{}'", word.text));
    }
  }
  if (variable.type == Type::None)
    failExpected("a type");
  if (space != Space::Reg && typeBits(variable.type) < 8)
    fail(peek(), format("expected a type that memory can hold, but got '.{}'", typeName(variable.type)));
  variable.count = lanes;
  variable.isArray = lanes > 1;
  variable.align = align ? uint32_t(align) : uint32_t(std::max<uint64_t>(1, variable.size()));
  return variable;
}

void Parser::dimensions(Variable &variable) {
  while (accept('[')) {
    uint64_t length = 0; // `[]` takes its length from the initialiser, or has none
    if (!peek().is(']'))
      length = constant();
    expect(']');
    if (length && variable.count > maximumBytes / length)
      fail(peek(), "expected a variable of at most 4 GiB");
    variable.count *= length;
    variable.isArray = true;
  }
}

void Parser::variableTail(Variable &variable) {
  variable.at = peek().at;
  variable.name = expectWord("a variable's name");
  dimensions(variable);
  if (variable.size() > maximumBytes)
    fail(peek(), "expected a variable of at most 4 GiB");
  if (!accept('='))
    return;
  initializer(variable, 0);
  if (variable.count == 0)
    variable.count = variable.initial.size();
  if (variable.initial.size() > variable.count)
    fail(peek(), format("expected at most {} initial values for '{}', but got {}", variable.count, variable.name,
                        variable.initial.size()));
}

void Parser::variableList(Space space, bool isExtern, std::vector<Variable> &into, Scope *scope) {
  Variable head = variableHead(space);
  head.isExtern = isExtern;
  do {
    Variable variable = head;
    variableTail(variable);
    if (accept('<')) { // `.param .b32 p<4>`: p0 to p3
      fail(peek(), "ranges of variables are not supported by the simulator");
    }
    if (scope)
      scope->variables[variable.name] = uint32_t(into.size());
    into.push_back(std::move(variable));
  } while (accept(','));
  expect(';');
}

Variable Parser::parameter() {
  if (peek().is(".reg"))
    fail(peek(), "expected '.param', but got '.reg': register parameters are not supported by the simulator");
  if (!accept(".param"))
    failExpected("'.param'");
  Variable variable = variableHead(Space::Param);
  variable.at = peek().at;
  variable.name = expectWord("a parameter's name");
  dimensions(variable);
  return variable;
}

void Parser::parameterList(Function &function) {
  if (accept(')'))
    return;
  do {
    Variable variable = parameter();
    function.variables.push_back(std::move(variable));
    ++function.parameterCount;
  } while (accept(','));
  expect(')');
}

std::array<uint32_t, 3> Parser::threeCounts() {
  std::array<uint32_t, 3> counts{1, 1, 1};
  for (size_t i = 0; i < 3; ++i) {
    counts[i] = uint32_t(expectInteger("a count"));
    if (i == 2 || !accept(','))
      break;
  }
  return counts;
}

void Parser::functionAttributes(Function &function) {
  while (peek().kind == TokenKind::DotWord) {
    const Token word = next();
    if (word.is(".reqntid"))
      function.requiredBlock = threeCounts();
    else if (word.is(".maxntid"))
      function.maximumBlock = threeCounts();
    else if (word.is(".maxnreg"))
      function.maximumRegisters = uint32_t(expectInteger("a count"));
    else if (word.is(".maxclusterrank"))
      function.maximumRanks = uint32_t(expectInteger("a count"));
    else if (word.is(".reqnctapercluster"))
      function.requiredCluster = threeCounts();
    else if (word.is(".blocksareclusters"))
      fail(word, "'.blocksareclusters' is not supported by the simulator: give the grid in blocks");
    else if (word.is(".explicitcluster"))
      function.explicitCluster = true;
    else if (word.is(".minnctapersm"))
      function.minimumBlocks = uint32_t(expectInteger("a count"));
    else if (word.is(".maxnctapersm") || word.is(".abi_preserve") || word.is(".abi_preserve_control"))
      expectInteger("a count");
    else if (word.is(".pragma")) {
      while (!accept(';'))
        if (next().kind == TokenKind::End)
          failExpected("';'");
    } else if (!word.is(".noreturn") && !word.is(".unique"))
      fail(word, format("expected a function attribute, but got '{}'", word.text));
  }
}

/// `.alias a, f;`
void Parser::alias() {
  const std::string_view name = expectWord("a function's name");
  expect(',');
  const Token &target = peek();
  module_.aliases[name] = expectWord("the name of the function that it stands for");
  expect(';');
  if (const Function *function = module_.function(target.text); !function || function->isEntry)
    fail(target, format("expected a function, but '{}' is not one", target.text));
}

void Parser::function(bool isEntry, bool isExtern) {
  Function function;
  function.isEntry = isEntry;
  if (!isEntry && accept('(')) {
    function.variables.push_back(parameter());
    function.resultCount = 1;
    expect(')');
  }
  function.at = peek().at;
  function.name = expectWord("a function's name");
  if (accept('('))
    parameterList(function);
  functionAttributes(function);
  if (peek().is('{')) {
    if (isExtern)
      failExpected("';' after an '.extern' function");
    if (const Function *other = module_.function(function.name); other && other->hasBody)
      fail(peek(), format("'{}' is defined twice", function.name));
    function.hasBody = true;
    body(function);
  } else {
    accept(';');
  }
  module_.functions.push_back(std::move(function));
}

} // namespace weft::simulator::ptx
