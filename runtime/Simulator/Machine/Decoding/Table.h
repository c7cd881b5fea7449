// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The instruction table: one row per form of an instruction, holding what the decoder checks and what makes it run.
//
// A row's `modifiers` lists slots in PTX's order: `name=a|b|c` must be there, `name=a|b?` may be, and a bare word is a
// slot of that one word. A row's `operands` lists operands as `role:type`: `d` a destination, `s` a source, `p` a
// predicate source, `D` a predicate destination, with a type by name or the name of the modifier slot that gives it; a
// trailing `+` lets the register be wider. `*` alone leaves all operands to the row's binder, `**` also what may stand
// around them there alone: parts (`%r1.b0`) and `-`. Roles are put into Record::op in order.
//
//   {"abs", "type=s32", "d:type s:type", ...}     takes     abs.s32 %r1, %r2;     op[0] = %r1, op[1] = %r2
//                                                 not       abs.u32 %r1, %r2;     expected '.s32', but got '.u32'
#pragma once

#include "runtime/Simulator/Machine/State/Program.h"

#include <functional>
#include <span>
#include <string_view>

namespace weft::simulator::machine {

class Decoder;

/// What a binder sees: the instruction matched with its row, and the record to fill.
struct Binding {
  Decoder &decoder;
  const ptx::Instruction &instruction;
  uint32_t frame; ///< which inlined function the instruction stands in
  Record record;
  Site site;
  std::vector<std::pair<std::string_view, std::string_view>> chosen; ///< slot name, modifier

  /// The modifier chosen for a slot, or empty.
  std::string_view modifier(std::string_view slot) const;
  bool has(std::string_view slot) const { return !modifier(slot).empty(); }
  /// The type chosen for a slot.
  ptx::Type type(std::string_view slot = "type") const { return ptx::typeNamed(modifier(slot)); }
  /// An operand. One that is behind all that the binder asked for is one too many.
  const ptx::Operand &operand(size_t index) const;
  size_t operandCount() const { return instruction.operands.size(); }
  mutable size_t asked = 0; ///< operands up to the last that was asked for
  /// Whether the first operand is two, `d|p`. Elsewhere, and where the binder does not ask, `|` is an error.
  bool pair();
  bool mayPair = false;

  /// Operand `index` as a source or destination of `type`, whose register is of a type that goes with it (PTX ISA 9.4.1);
  /// `wider` accepts a wider register (see Decoder).
  Ref source(const ptx::Operand &operand, ptx::Type type, bool wider = false);
  Ref destination(const ptx::Operand &operand, ptx::Type type, bool wider = false);
  /// The same, or `_` for a result that nobody wants.
  Ref destinationOrNone(const ptx::Operand &operand, ptx::Type type);
  /// The same of an element of a vector, whose register may be of any type of the right size, or `_` where it is written.
  Ref sourceElement(const ptx::Operand &operand, ptx::Type type, bool wider = false);
  Ref destinationElement(const ptx::Operand &operand, ptx::Type type, bool wider = false);
  /// A predicate that is read, whether or not `!` is before it: the binder looks at Operand::negated.
  Ref predicate(const ptx::Operand &operand);
  /// The same with `!` seen to.
  Ref truth(const ptx::Operand &operand);
  Ref predicateDestination(const ptx::Operand &operand);
  Ref predicateDestinationOrNone(const ptx::Operand &operand);
  /// Sets op[i] and marks it written.
  void setDestination(size_t i, Ref ref) {
    record.op[i] = ref;
    site.destinations |= uint8_t(1u << i);
  }
  /// A constant the binder makes itself.
  Ref constant32(uint32_t value);
  /// Puts lists of operands into Record::wide: destinations first.
  void setWide(std::vector<Ref> refs, size_t destinations);
  /// Keeps `value` alive with the kernel and puts it into Record::aux.
  template <typename T> const T *keep(T value);
  [[noreturn]] void fail(const ptx::Operand &at, std::string message) const;
  [[noreturn]] void fail(std::string message) const;
  /// Well formed, but not supported.
  [[noreturn]] void unsupported(std::string message) const;
};

using Binder = void (*)(Binding &);

/// One row.
struct Form {
  std::string_view mnemonic;
  std::string_view modifiers;
  std::string_view operands;
  InstructionClass cls;
  Binder bind;
};

/// Every family of forms; the room of forms defines it.
std::span<const std::span<const Form>> allForms();

/// The rows of a mnemonic, in the order they are tried; empty for a name that is no instruction here.
std::span<const Form *const> formsOf(std::string_view mnemonic);

/// Matches modifiers with a row: fills `chosen`, or says what did not fit.
struct MatchResult {
  bool matched = false;
  std::string expected; ///< "one of .u32, .s32", where the first mismatch was
  std::string got;
  size_t depth = 0; ///< how many modifiers fitted before
};
MatchResult matchModifiers(const Form &form, const std::vector<std::string_view> &modifiers,
                           std::vector<std::pair<std::string_view, std::string_view>> &chosen);

/// Picks an instance of an executor template by integer type.
template <template <typename> typename Pick> Executor forInteger(ptx::Type type) {
  switch (type) {
  case ptx::Type::U16:
  case ptx::Type::B16:
    return Pick<uint16_t>::run;
  case ptx::Type::S16:
    return Pick<int16_t>::run;
  case ptx::Type::U32:
  case ptx::Type::B32:
    return Pick<uint32_t>::run;
  case ptx::Type::S32:
    return Pick<int32_t>::run;
  case ptx::Type::U64:
  case ptx::Type::B64:
    return Pick<uint64_t>::run;
  case ptx::Type::S64:
    return Pick<int64_t>::run;
  case ptx::Type::U8:
  case ptx::Type::B8:
    return Pick<uint8_t>::run;
  case ptx::Type::S8:
    return Pick<int8_t>::run;
  default:
    return nullptr;
  }
}

} // namespace weft::simulator::machine
