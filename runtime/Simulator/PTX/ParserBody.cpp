// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Function bodies: scopes, declarations, labels, instructions and their operands (PTX ISA 4.3, 6).
#include "runtime/Simulator/PTX/Parser.h"

#include <charconv>
#include <utility>

namespace weft::simulator::ptx {
namespace {

constexpr uint32_t maximumRegisters = 1u << 20;
constexpr int maximumDepth = 16;

/// The element that `.x` or `.r` of a vector register names, or -1.
int elementNamed(std::string_view component) {
  static constexpr std::string_view positions = "xyzw", colours = "rgba";
  if (component.size() != 1)
    return -1;
  const size_t at = std::min(positions.find(component[0]), colours.find(component[0]));
  return at == std::string_view::npos ? -1 : int(at);
}

} // namespace

void Parser::body(Function &function) {
  scopes_.clear();
  instructionScopes_.clear();
  source_ = {};
  vectorLengths_.clear();
  scopes_.push_back({});
  scope_ = 0;
  for (uint32_t i = 0; i < function.variables.size(); ++i)
    scopes_[0].variables[function.variables[i].name] = i;
  expect('{');
  while (scope_ >= 0) {
    if (accept('{')) {
      scopes_.emplace_back().parent = scope_;
      scope_ = int32_t(scopes_.size() - 1);
    } else if (accept('}')) {
      scope_ = scopes_[size_t(scope_)].parent;
    } else {
      statement(function);
    }
  }
  resolveLabels(function);
}

void Parser::statement(Function &function) {
  const Token &first = peek();
  if (first.kind == TokenKind::End)
    failExpected("'}'");
  if (accept(';'))
    return;
  if (first.kind == TokenKind::DotWord)
    return bodyDirective(function, next());
  if (first.kind == TokenKind::Word && peek(1).is(':'))
    return declareLabel(function);
  instruction(function);
}

void Parser::bodyDirective(Function &function, const Token &directive) {
  Scope *scope = &scopes_[size_t(scope_)];
  if (directive.is(".reg"))
    return registerDeclaration(function);
  if (directive.is(".local"))
    return variableList(Space::Local, false, function.variables, scope);
  if (directive.is(".shared"))
    return variableList(Space::Shared, false, function.variables, scope);
  if (directive.is(".param"))
    return variableList(Space::Param, false, function.variables, scope);
  if (directive.is(".extern") && accept(".shared"))
    return variableList(Space::Shared, true, function.variables, scope);
  if (directive.is(".loc"))
    return loc();
  if (directive.is(".file"))
    return file();
  if (directive.is(".pragma")) {
    while (!accept(';'))
      if (next().kind == TokenKind::End)
        failExpected("';'");
    return;
  }
  fail(directive, format("expected a statement, but got '{}'", directive.text.substr(0, 60)));
}

void Parser::addRegisters(Function &function, const Token &name, const Variable &head, uint64_t count, bool ranged) {
  const uint64_t length = head.count; // of a vector register: its elements follow each other
  if (count > maximumRegisters || function.registers.size() + count * length > maximumRegisters)
    fail(name, format("expected at most {} registers, but got {}", maximumRegisters, count * length));
  for (uint64_t i = 0; i < count; ++i) {
    if (length > 1)
      vectorLengths_[uint32_t(function.registers.size())] = uint32_t(length);
    function.registers.insert(function.registers.end(), length, {name.text, ranged ? int32_t(i) : -1, head.type});
  }
}

/// Vector registers are of 2 or 4 elements and 128 bits at most (PTX ISA 5.4.2).
void Parser::registerDeclaration(Function &function) {
  const Token first = peek();
  const Variable head = variableHead(Space::Reg);
  if (head.count > 1 && (head.count > 4 || head.type == Type::Pred || head.count * typeBits(head.type) > 128))
    fail(first, format("expected a vector register of 2 or 4 elements and at most 128 bits, but got .v{} of .{}",
                       head.count, typeName(head.type)));
  do {
    const Token name = peek();
    expectWord("a register's name");
    Scope &scope = scopes_[size_t(scope_)];
    const auto at = uint32_t(function.registers.size());
    if (!accept('<')) {
      addRegisters(function, name, head, 1, false);
      scope.registers[name.text] = at;
      continue;
    }
    uint64_t count = expectInteger("a number of registers");
    expect('>');
    addRegisters(function, name, head, count, true);
    scope.ranges[name.text] = {at, uint32_t(count), uint32_t(head.count)};
  } while (accept(','));
  expect(';');
}

void Parser::declareLabel(Function &function) {
  const Token name = next();
  expect(':');
  Scope &scope = scopes_[size_t(scope_)];
  if (scope.labels.contains(name.text))
    fail(name, format("the label '{}' is defined twice", name.text));
  uint32_t index = uint32_t(function.labels.size());
  scope.labels[name.text] = index;
  Label label;
  label.name = name.text;
  label.at = name.at;
  label.target = uint32_t(function.body.size());
  function.labels.push_back(std::move(label));
  if (peek().is(".branchtargets") || peek().is(".callprototype") || peek().is(".calltargets"))
    labelDirective(function, index, next());
}

/// `L: .branchtargets A, B;` and `P: .callprototype (...) _ (...);`. Targets are resolved with all other labels.
void Parser::labelDirective(Function &function, uint32_t index, const Token &directive) {
  Label &label = function.labels[index];
  if (!directive.is(".branchtargets")) {
    label.isPrototype = true;
    while (!accept(';'))
      if (next().kind == TokenKind::End)
        failExpected("';'");
    return;
  }
  label.isTargetList = true;
  Instruction list; // a place for the names until all labels are known; taken out again by resolveLabels
  list.at = directive.at;
  list.mnemonic = ".branchtargets";
  do {
    Operand target;
    target.kind = OperandKind::Symbol;
    target.at = peek().at;
    target.text = expectWord("a label");
    list.operands.push_back(target);
  } while (accept(','));
  expect(';');
  list.guard = int32_t(index);
  function.body.push_back(std::move(list));
  instructionScopes_.push_back(scope_);
}

void Parser::loc() {
  SourceLine line;
  line.file = uint32_t(expectInteger("a file number"));
  line.line = uint32_t(expectInteger("a line"));
  expectInteger("a column");
  while (accept(',')) {
    if (accept("function_name")) {
      next();
      if (accept('+'))
        expectInteger("an offset");
    } else if (accept("inlined_at")) {
      expectInteger("a file number");
      expectInteger("a line");
      expectInteger("a column");
    } else {
      failExpected("'function_name' or 'inlined_at'");
    }
  }
  source_ = line;
}

void Parser::instruction(Function &function) {
  Instruction result;
  result.source = source_;
  result.at = peek().at;
  if (accept('@')) {
    result.guardNegated = accept('!');
    Operand guard = primary();
    if (guard.kind != OperandKind::Register || function.registers[guard.index].type != Type::Pred)
      fail(tokens_[at_ - 1], format("expected a predicate register as guard, but got '{}'", guard.text));
    result.guard = int32_t(guard.index);
  }
  result.at = peek().at;
  result.mnemonic = expectWord("an instruction");
  while (peek().kind == TokenKind::DotWord)
    result.modifiers.push_back(next().text.substr(1));
  bool call = result.mnemonic == "call";
  if (!peek().is(';')) {
    do {
      do {
        result.operands.push_back(operand(function, call, 0));
        if (!peek().is('|'))
          break;
        result.operands.back().paired = true;
      } while (accept('|'));
    } while (accept(','));
  }
  expect(';');
  for (Operand &each : result.operands)
    if (each.indexed && (result.mnemonic == "ld" || result.mnemonic == "ldu" || result.mnemonic == "st")) {
      Operand address; // the element itself, as in `ld.global.u32 %r1, a[3]`
      address.kind = OperandKind::Address;
      address.at = each.at;
      address.elements.push_back(std::exchange(each, {}));
      each = std::move(address);
    }
  if (call)
    return callByValue(function, std::move(result));
  add(function, std::move(result));
}

void Parser::add(Function &function, Instruction instruction) {
  function.body.push_back(std::move(instruction));
  instructionScopes_.push_back(scope_);
}

/// The type that a register or constant is passed as: a constant takes its parameter's.
Type Parser::passedType(const Function &function, const Operand &value, const Variable *parameter) const {
  if (value.kind == OperandKind::Register)
    switch (typeBits(function.registers[value.index].type)) {
    case 16:
      return Type::B16;
    case 32:
      return Type::B32;
    case 64:
      return Type::B64;
    default:
      return Type::None;
    }
  const bool isConstant =
      value.kind == OperandKind::Integer || value.kind == OperandKind::Float32 || value.kind == OperandKind::Float64;
  return isConstant && parameter && parameter->count == 1 ? parameter->type : Type::None;
}

void Parser::callByValue(Function &function, Instruction call) {
  const Function *callee = nullptr;
  for (const Operand &operand : call.operands)
    if (operand.kind == OperandKind::Symbol && !callee)
      callee = module_.function(operand.text);
  std::vector<Instruction> loads;
  bool isArgument = false;
  for (Operand &list : call.operands) {
    isArgument |= list.kind != OperandKind::List;
    for (size_t i = 0; list.kind == OperandKind::List && i < list.elements.size(); ++i) {
      const size_t at = i + (isArgument && callee ? callee->resultCount : 0);
      const Variable *parameter = callee && at < callee->variables.size() ? &callee->variables[at] : nullptr;
      const Type type = passedType(function, list.elements[i], parameter);
      if (type == Type::None)
        continue;
      Operand place;
      place.kind = OperandKind::Variable;
      place.at = list.elements[i].at;
      place.text = list.elements[i].text;
      place.index = uint32_t(function.variables.size());
      Variable &variable = function.variables.emplace_back();
      variable.space = Space::Param;
      variable.type = type;
      variable.align = typeBits(type) / 8;
      Instruction copy;
      copy.at = call.at;
      copy.source = call.source;
      copy.guard = call.guard;
      copy.guardNegated = call.guardNegated;
      copy.mnemonic = isArgument ? "st" : "ld";
      copy.modifiers = {"param", typeName(type)};
      Operand address;
      address.kind = OperandKind::Address;
      address.at = place.at;
      address.elements.push_back(place);
      copy.operands = {std::move(address), std::exchange(list.elements[i], place)};
      if (isArgument) {
        add(function, std::move(copy));
      } else {
        std::swap(copy.operands[0], copy.operands[1]);
        loads.push_back(std::move(copy));
      }
    }
  }
  add(function, std::move(call));
  for (Instruction &load : loads)
    add(function, std::move(load));
}

Operand Parser::bracketed(Function &function, OperandKind kind, char close, bool call, int depth) {
  Operand result;
  result.kind = kind;
  result.at = next().at;
  if (accept(close))
    return result;
  do
    result.elements.push_back(operand(function, call, depth + 1));
  while (accept(','));
  expect(close);
  return result;
}

Operand Parser::operand(Function &function, bool call, int depth) {
  if (depth > maximumDepth)
    fail(peek(), "expected an operand less deep");
  if (peek().is('{'))
    return bracketed(function, OperandKind::Vector, '}', call, depth);
  if (peek().is('['))
    return bracketed(function, OperandKind::Address, ']', call, depth);
  if (peek().is('(') && call)
    return bracketed(function, OperandKind::List, ')', call, depth);
  const bool startsConstant = peek(1).kind == TokenKind::Integer || peek(1).is('(');
  if (!startsConstant && accept('!')) {
    Operand result = operand(function, call, depth + 1);
    result.negated = !result.negated;
    return result;
  }
  if (peek().is('-') && peek(1).kind == TokenKind::Word && peek(1).text.starts_with('%')) {
    next();
    Operand result = primary();
    result.minus = true;
    return result;
  }
  Operand result = primary();
  if (depth == 0 && peek().is('[') && tokens_[at_ - 1].kind == TokenKind::Word)
    element(function, result);
  return result;
}

void Parser::element(const Function &function, Operand &array) {
  const Token name = tokens_[at_ - 1];
  const Variable *variable = array.kind == OperandKind::Variable ? &function.variables[array.index] : nullptr;
  for (const Variable &each : module_.variables)
    if (array.kind == OperandKind::Symbol && each.name == array.text)
      variable = &each;
  if (!variable || !variable->isArray)
    fail(name, format("expected an array before '[', but got '{}'", name.text));
  const Token index = tokens_[++at_];
  if (index.kind == TokenKind::Word)
    fail(index, format("expected a constant index, but got '{}': elements by registers are not supported by the "
                       "simulator",
                       index.text));
  const uint64_t number = constant();
  if (number > variable->count)
    fail(index, format("expected an index of at most {}, but got {}", variable->count, int64_t(number)));
  expect(']');
  array.offset = int64_t(number * (typeBits(variable->type) / 8));
  array.indexed = true;
}

Operand Parser::primary() {
  Operand result;
  const Token first = peek();
  result.at = first.at;
  result.text = first.text;
  bool negative = first.is('-') && (peek(1).kind == TokenKind::Float32 || peek(1).kind == TokenKind::Float64);
  if (negative)
    next();
  if (peek().kind == TokenKind::Float32 || peek().kind == TokenKind::Float64) {
    const Token number = next();
    bool single = number.kind == TokenKind::Float32;
    result.kind = single ? OperandKind::Float32 : OperandKind::Float64;
    result.bits = number.bits ^ (negative ? uint64_t{1} << (single ? 31 : 63) : 0);
    return result;
  }
  if (first.kind != TokenKind::Word || first.is("WARP_SZ")) {
    result.kind = OperandKind::Integer;
    result.bits = constant();
    return result;
  }
  next();
  if (first.text == "_")
    return result;
  bool known = resolve(first.text, result);
  if (known && result.kind == OperandKind::Register && vectorLengths_.contains(result.index))
    return vectorRegister(result);
  if (known && result.kind == OperandKind::Register && peek().kind == TokenKind::DotWord)
    result.component = next().text.substr(1);
  if (!known && first.text[0] == '%') {
    result.kind = OperandKind::Special;
    if (peek().kind == TokenKind::DotWord) {
      const Token &component = next();
      result.text = std::string_view(first.text.begin(), component.text.end());
    }
    return result;
  }
  if (!known)
    result.kind = OperandKind::Symbol; // a label or a module-level name: told apart when all labels are known
  while (peek().is('+') || peek().is('-')) {
    bool minus = next().is('-');
    uint64_t offset = constantFactor();
    result.offset = int64_t(minus ? uint64_t(result.offset) - offset : uint64_t(result.offset) + offset);
  }
  return result;
}

/// A vector register: the element that a component names, or all, as if they stood in braces (PTX ISA 6.4.3).
Operand Parser::vectorRegister(Operand operand) {
  const uint32_t length = vectorLengths_.at(operand.index);
  if (peek().kind == TokenKind::DotWord) {
    const Token component = next();
    const int element = elementNamed(component.text.substr(1));
    if (element < 0 || uint32_t(element) >= length)
      fail(component,
           format("expected an element of a vector of {}, such as '.x', but got '{}'", length, component.text));
    operand.index += uint32_t(element);
    return operand;
  }
  Operand all;
  all.kind = OperandKind::Vector;
  all.at = operand.at;
  all.text = operand.text;
  for (uint32_t i = 0; i < length; ++i, ++operand.index)
    all.elements.push_back(operand);
  return all;
}

bool Parser::resolve(std::string_view name, Operand &operand) const {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
    --digits;
  for (int32_t at = scope_; at >= 0; at = scopes_[size_t(at)].parent) {
    const Scope &scope = scopes_[size_t(at)];
    if (auto found = scope.registers.find(name); found != scope.registers.end()) {
      operand.kind = OperandKind::Register;
      operand.index = found->second;
      return true;
    }
    if (auto found = scope.variables.find(name); found != scope.variables.end()) {
      operand.kind = OperandKind::Variable;
      operand.index = found->second;
      return true;
    }
    // `%r10` may be number 10 of `%r` or number 0 of `%r1`.
    for (size_t split = digits; split < name.size() && !scope.ranges.empty(); ++split) {
      auto range = scope.ranges.find(name.substr(0, split));
      std::string_view number = name.substr(split);
      if (range == scope.ranges.end() || (number.size() > 1 && number[0] == '0'))
        continue;
      uint64_t value = 0;
      auto [stop, code] = std::from_chars(number.data(), number.data() + number.size(), value);
      if (code == std::errc() && value < range->second.count) {
        operand.kind = OperandKind::Register;
        operand.index = range->second.first + uint32_t(value) * range->second.length;
        return true;
      }
    }
  }
  return false;
}

void Parser::resolveLabels(Operand &operand, int32_t scope) {
  for (Operand &element : operand.elements)
    resolveLabels(element, scope);
  if (operand.kind != OperandKind::Symbol)
    return;
  for (; scope >= 0; scope = scopes_[size_t(scope)].parent) {
    const auto &labels = scopes_[size_t(scope)].labels;
    if (auto found = labels.find(operand.text); found != labels.end()) {
      operand.kind = OperandKind::Label;
      operand.index = found->second;
      return;
    }
  }
}

void Parser::resolveLabels(Function &function) {
  for (size_t i = 0; i < function.body.size(); ++i)
    for (Operand &operand : function.body[i].operands)
      resolveLabels(operand, instructionScopes_[i]);
  // Branch target lists stood in for themselves: move their labels over, then take them out.
  std::vector<uint32_t> moved(function.body.size() + 1);
  std::vector<Instruction> kept;
  kept.reserve(function.body.size());
  for (size_t i = 0; i < function.body.size(); ++i) {
    moved[i] = uint32_t(kept.size());
    Instruction &candidate = function.body[i];
    if (candidate.mnemonic != ".branchtargets") {
      kept.push_back(std::move(candidate));
      continue;
    }
    for (const Operand &target : candidate.operands) {
      if (target.kind != OperandKind::Label)
        throw ParseFailure{errorAt(target.at, format("expected a label, but got '{}'", target.text))};
      function.labels[size_t(candidate.guard)].targets.push_back(target.index);
    }
  }
  moved[function.body.size()] = uint32_t(kept.size());
  for (Label &label : function.labels)
    label.target = moved[label.target];
  function.body = std::move(kept);
}

} // namespace weft::simulator::ptx
