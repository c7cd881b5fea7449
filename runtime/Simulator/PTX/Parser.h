// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The recursive-descent parser behind `parseModule`; its parts share this class and nothing else sees it.
#pragma once

#include "runtime/Simulator/PTX/Syntax.h"

#include "runtime/Support/Format.h"
#include <unordered_map>

namespace weft::simulator::ptx {

/// Thrown inside the parser only; `parseModule` turns it into a Result.
struct ParseFailure {
  Error error;
};

/// A brace level of a function body: what its names mean.
struct Scope {
  int32_t parent = -1;
  std::unordered_map<std::string_view, uint32_t> registers;
  struct Range {
    uint32_t first, count, length; ///< the elements of each, which are registers
  };
  std::unordered_map<std::string_view, Range> ranges;
  std::unordered_map<std::string_view, uint32_t> variables;
  std::unordered_map<std::string_view, uint32_t> labels;
};

class Parser {
public:
  Parser(std::vector<Token> tokens, Module &module) : tokens_(std::move(tokens)), module_(module) {}
  void run();

private:
  // Cursor (Parser.cpp).
  const Token &peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token &next();
  bool accept(char mark);
  bool accept(std::string_view word);
  void expect(char mark);
  std::string_view expectWord(std::string_view what);
  uint64_t expectInteger(std::string_view what);
  [[noreturn]] void fail(const Token &at, std::string message);
  [[noreturn]] void failExpected(std::string_view what);

  // Constant expressions (ParserConstants.cpp).
  struct Constant {
    uint64_t bits;
    bool isUnsigned;
  };
  uint64_t constant();
  uint64_t constantFactor(); ///< without `+`, `-` and what binds less
  Constant conditional(int depth);
  Constant constantBinary(int minimumPrecedence, int depth);
  Constant constantUnary(int depth);
  InitialValue initialValue();
  uint64_t numberBits(const Token &token, Type type, bool negative);
  void initializer(Variable &variable, int depth);

  // Declarations (ParserDeclarations.cpp).
  void topLevel();
  void alias();
  void variableList(Space space, bool isExtern, std::vector<Variable> &into, Scope *scope);
  Variable variableHead(Space space);
  void variableTail(Variable &variable);
  void dimensions(Variable &variable);
  Variable parameter();
  void parameterList(Function &function);
  void function(bool isEntry, bool isExtern);
  void functionAttributes(Function &function);
  std::array<uint32_t, 3> threeCounts();
  void skipSection();
  void skipBraces();
  void file();

  // Bodies (ParserBody.cpp).
  void body(Function &function);
  void statement(Function &function);
  void bodyDirective(Function &function, const Token &directive);
  void registerDeclaration(Function &function);
  void declareLabel(Function &function);
  void labelDirective(Function &function, uint32_t label, const Token &directive);
  void loc();
  void instruction(Function &function);
  void add(Function &function, Instruction instruction);
  /// A call whose registers and constants go through `.param` variables of the parser's own.
  void callByValue(Function &function, Instruction call);
  Type passedType(const Function &function, const Operand &value, const Variable *parameter) const;
  Operand operand(Function &function, bool call, int depth);
  Operand primary();
  /// `a[3]`: the address of an element of an array (PTX ISA 6.4.2); the name has been read.
  void element(const Function &function, Operand &array);
  Operand bracketed(Function &function, OperandKind kind, char close, bool call, int depth);
  bool resolve(std::string_view name, Operand &operand) const;
  void resolveLabels(Function &function);
  void resolveLabels(Operand &operand, int32_t scope);
  void addRegisters(Function &function, const Token &name, const Variable &head, uint64_t count, bool ranged);
  Operand vectorRegister(Operand operand);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  Module &module_;

  std::vector<Scope> scopes_;
  int32_t scope_ = -1;
  std::vector<int32_t> instructionScopes_;
  SourceLine source_;
  std::unordered_map<uint32_t, uint32_t> vectorLengths_; ///< by the first element's register
};

} // namespace weft::simulator::ptx
