// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The parsed form of a PTX module: what the text says, names of registers and local variables resolved, nothing
// decoded.
#pragma once

#include "runtime/Simulator/PTX/Lexer.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::simulator::ptx {

/// PTX ISA 5.2 "Types", packed and alternate formats included.
enum class Type : uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  U16x2,
  S16x2,
  F16,
  F16x2,
  BF16,
  BF16x2,
  TF32,
  F32,
  F64,
  E4M3,
  E5M2,
  E4M3x2,
  E5M2x2,
  B1,
  U4,
  S4
};

/// The type a word such as "f32" names, or None.
Type typeNamed(std::string_view word);
/// Its spelling without a dot.
std::string_view typeName(Type type);
/// Bits of one value; 1 for predicates.
unsigned typeBits(Type type);
bool isSigned(Type type);
bool isFloat(Type type);

/// PTX ISA 5.1 "State Spaces".
enum class Space : uint8_t { None, Reg, Generic, Global, Shared, Local, Const, Param };

/// A value in an initialiser: bits, or the address of a variable plus an offset.
struct InitialValue {
  uint64_t bits = 0;
  std::string_view symbol; ///< empty for plain bits; else `bits` is added to its address
  bool generic = false;    ///< written `generic(symbol)`
  uint8_t maskShift = 0;   ///< `0xFF00(symbol)`: which byte of the address, in bits
  bool byteOfAddress = false;
};

/// A variable of any addressable space.
struct Variable {
  std::string_view name;
  Space space = Space::None;
  Type type = Type::None;
  uint32_t align = 1;
  uint64_t count = 1; ///< elements in all dimensions
  bool isArray = false;
  bool isExtern = false; ///< `.extern`; of no size when shared: the launch's dynamic memory
  bool pointer = false;  ///< a parameter declared `.ptr`
  std::vector<InitialValue> initial;
  Position at;

  uint64_t size() const { return count * ((typeBits(type) + 7) / 8); }
};

/// One register of a function.
struct Register {
  std::string_view name; ///< without its number for a range
  int32_t number = -1;   ///< its number in a range `%r<10>`, or -1
  Type type = Type::None;
};

enum class OperandKind : uint8_t {
  Register, ///< index into Function::registers
  Special,  ///< `%tid.x`: text holds the whole name
  Integer,  ///< bits
  Float32,  ///< bits
  Float64,  ///< bits
  Variable, ///< index into Function::variables, plus `offset`
  Symbol,   ///< a module-level name, plus `offset`
  Label,    ///< index into Function::labels
  Address,  ///< `[inner + offset]`: elements[0] is the base
  Vector,   ///< `{a, b}`
  List,     ///< `(a, b)` of a call
  Sink,     ///< `_`
};

struct Operand {
  OperandKind kind = OperandKind::Sink;
  Position at;
  std::string_view text;
  bool negated = false; ///< `!%p1`
  bool minus = false;   ///< `-%r1`, of a scalar video instruction
  bool paired = false;  ///< followed by `|`: the next operand is its second destination
  bool indexed = false; ///< `a[3]`: the offset is that of an element
  uint32_t index = 0;
  uint64_t bits = 0;
  int64_t offset = 0;
  std::string_view component; ///< `%r1.b0`: "b0"
  std::vector<Operand> elements;
};

/// The source line a `.loc` gave.
struct SourceLine {
  uint32_t file = 0, line = 0;
};

struct Instruction {
  Position at;
  std::string_view mnemonic;               ///< "ld"
  std::vector<std::string_view> modifiers; ///< without dots: "global", "v4", "b32"
  std::vector<Operand> operands;
  int32_t guard = -1; ///< predicate register, or -1
  bool guardNegated = false;
  SourceLine source;

  /// "ld.global.v4.b32"
  std::string spelling() const;
};

struct Label {
  std::string_view name;
  uint32_t target = ~0u; ///< index of the instruction it stands before; the body's size at its end
  Position at;
  std::vector<uint32_t> targets; ///< of a `.branchtargets` label
  bool isTargetList = false;
  bool isPrototype = false; ///< of a `.callprototype`
};

struct Function {
  std::string_view name;
  Position at;
  bool isEntry = false;
  bool hasBody = false;
  uint32_t resultCount = 0;        ///< `.func (…) name`: the first of `variables`
  uint32_t parameterCount = 0;     ///< the next of `variables`
  std::vector<Variable> variables; ///< then .local, .shared and .param (call arguments) declared in the body
  std::vector<Register> registers;
  std::vector<Label> labels;
  std::vector<Instruction> body;
  std::array<uint32_t, 3> requiredBlock{}, maximumBlock{};
  uint32_t maximumRegisters = 0;             ///< .maxnreg
  uint32_t minimumBlocks = 0;                ///< .minnctapersm
  std::array<uint32_t, 3> requiredCluster{}; ///< .reqnctapercluster
  bool explicitCluster = false;              ///< .explicitcluster
  uint32_t maximumRanks = 0;                 ///< .maxclusterrank
};

struct Module {
  std::shared_ptr<const std::string> text; ///< what every string_view points into
  std::string_view version;
  std::string_view target;
  uint32_t addressBits = 64;
  std::map<uint32_t, std::string_view> files;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::map<std::string_view, std::string_view> aliases; ///< `.alias a, f`: a stands for f

  /// A function by its name or an alias.
  const Function *function(std::string_view name) const;
};

/// Parses a whole module. Checks grammar, declarations and scopes; instructions are checked against the instruction
/// table when they are decoded. Errors: Corrupt, with line, column, what was expected and what came.
Result<Module> parseModule(std::string text);

} // namespace weft::simulator::ptx
