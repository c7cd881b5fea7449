// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Decoding/OperandRules.h"

#include "runtime/Support/Format.h"

#include <algorithm>
#include <array>

namespace weft::simulator::machine {
namespace {

using ptx::OperandKind;
using ptx::Type;

/// Instructions that take the name of a variable for its address without brackets.
constexpr std::string_view addressReaders[] = {"mov", "cvta", "mapa", "getctarank"};

/// Instructions whose vectors are one value, and of one kind; matrix instructions mix the registers of a fragment.
constexpr std::string_view vectorMovers[] = {"mov", "ld", "ldu", "st"};

bool isBits(Type type) { return type >= Type::B8 && type <= Type::B128; }

/// Bits go with every type of their size, whole numbers with whole numbers, and a floating-point type with itself. A
/// register of .f16x2 goes with whole numbers too.
bool goesWith(Type expected, Type held) {
  if (isBits(expected) || isBits(held))
    return true;
  if (held == Type::F16x2)
    return expected == held || !ptx::isFloat(expected);
  return ptx::isFloat(expected) ? expected == held : !ptx::isFloat(held);
}

void expectRegister(const Binding &b, const ptx::Operand &operand, Type type) {
  const Type held = b.decoder.registerType(b.frame, operand);
  if (held != Type::Pred && !goesWith(type, held))
    b.fail(operand, format("expected a register that goes with .{}, but '{}' is a .{}", ptx::typeName(type),
                           operand.text, ptx::typeName(held)));
}

/// Constants are whole numbers, floating-point numbers of single precision (0f3f800000), or of double precision.
bool takesConstant(OperandKind kind, Type type) {
  if (kind == OperandKind::Integer)
    return !ptx::isFloat(type);
  return type == Type::F32 || type == Type::F64 || type == (kind == OperandKind::Float32 ? Type::B32 : Type::B64);
}

void expectConstant(const Binding &b, const ptx::Operand &operand, Type type) {
  if (takesConstant(operand.kind, type))
    return;
  const bool hasNone = ptx::isFloat(type) && type != Type::F32 && type != Type::F64;
  b.fail(operand, format("expected {} for .{}, but got '{}'",
                         hasNone              ? "a register, as there are no constants"
                         : ptx::isFloat(type) ? "a floating-point number, such as 0f3f800000 or 1.0,"
                                              : "a whole number",
                         ptx::typeName(type), operand.text));
}

/// Whether a special register was of so many bits once, as which it may still be read (PTX ISA, Special Registers).
bool wasOfBits(std::string_view name, unsigned bits) {
  if (bits == 16)
    return std::ranges::any_of(std::array{"%tid.", "%ntid.", "%ctaid.", "%nctaid."},
                               [&](std::string_view start) { return name.starts_with(start); });
  return bits == 32 && name == "%gridid";
}

} // namespace

void expectSource(const Binding &b, const ptx::Operand &operand, Type type, bool wider) {
  const std::string_view name = b.instruction.mnemonic;
  switch (operand.kind) {
  case OperandKind::Register:
    return expectRegister(b, operand, type);
  case OperandKind::Integer:
  case OperandKind::Float32:
  case OperandKind::Float64:
    return expectConstant(b, operand, type);
  case OperandKind::Special:
    if (operand.text == "%is_explicit_cluster")
      b.fail(operand, "expected a register of 32 or 64 bits, but '%is_explicit_cluster' is a predicate");
    if (const unsigned bits = Decoder::expectSpecial(operand);
        (wider ? bits < ptx::typeBits(type) : bits != ptx::typeBits(type)) &&
        !wasOfBits(operand.text, ptx::typeBits(type)))
      b.fail(operand, format("expected {} bits, but '{}' has {}", ptx::typeBits(type), operand.text, bits));
    if ((name != "mov" && name != "cvt") || ptx::isFloat(type) || ptx::isFloat(b.type("to")))
      b.fail(operand,
             format("expected a register: '{}' is read by a 'mov' or 'cvt' of whole numbers alone", operand.text));
    return;
  case OperandKind::Variable:
  case OperandKind::Symbol:
    if (!std::ranges::count(addressReaders, name) || (name == "cvta" && b.has("to")) || ptx::isFloat(type))
      b.fail(operand,
             format("expected a register: the address of '{}' is read by a 'mov' or 'cvta' alone", operand.text));
    return;
  default:
    return;
  }
}

void expectAtMost(const Binding &b, const ptx::Operand &operand, uint64_t most) {
  if (operand.kind == OperandKind::Integer && operand.bits > most)
    b.fail(operand, format("expected at most {}, but got '{}'", most, operand.text));
}

void expectDestination(const Binding &b, const ptx::Operand &operand, Type type) {
  if (operand.kind == OperandKind::Register)
    expectRegister(b, operand, type);
}

AddressOperand addressIn(const Binding &b, const ptx::Operand &operand, ptx::Space space) {
  const AddressOperand address = b.decoder.address(b.frame, operand);
  const ptx::Operand &base = operand.elements[0];
  if (base.kind == OperandKind::Integer && space != ptx::Space::Local)
    b.fail(base, format("expected a register or a variable as address, but got '{}', which local memory alone takes",
                        base.text));
  const bool isLong = space == ptx::Space::Global || space == ptx::Space::Generic;
  if (isLong && base.kind == OperandKind::Register && ptx::typeBits(b.decoder.registerType(b.frame, base)) == 32)
    b.fail(base, format("expected a 64-bit register as address, but '{}' has 32 bits", base.text));
  return address;
}

static void expectMarks(const ptx::Operand &operand, OperandKind around, bool hasParts) {
  auto refuse = [&](std::string_view what) {
    Decoder::fail(operand.at, format("expected no {} '{}'", what, operand.text));
  };
  const bool predicate = operand.kind == OperandKind::Register || operand.kind == OperandKind::Integer ||
                         operand.kind == OperandKind::Special;
  if (operand.negated && (!predicate || around != OperandKind::List))
    refuse("'!' before");
  if (operand.minus && !hasParts)
    refuse("'-' before");
  if (!operand.component.empty() && !hasParts)
    refuse(format("part '.{}' of", operand.component));
  const bool isNumber = operand.kind == OperandKind::Register || operand.kind == OperandKind::Label;
  if (operand.offset && isNumber && around != OperandKind::Address)
    refuse("offset, which addresses in brackets have, from");
  for (const ptx::Operand &element : operand.elements)
    expectMarks(element, operand.kind, hasParts);
}

void expectMarks(const ptx::Instruction &instruction, bool hasParts) {
  for (const ptx::Operand &operand : instruction.operands)
    expectMarks(operand, OperandKind::List, hasParts);
}

/// The elements of a vector are registers of types that go with each other, and constants of one kind.
static void expectOneKind(const Binding &b, const ptx::Operand &vector) {
  Type registers = Type::None;
  OperandKind constants = OperandKind::Sink;
  for (const ptx::Operand &element : vector.elements) {
    if (element.kind == OperandKind::Register) {
      const Type held = b.decoder.registerType(b.frame, element);
      if (registers != Type::None && !goesWith(registers, held))
        b.fail(element, format("expected elements of one type, but '{}' is a .{} behind a .{}", element.text,
                               ptx::typeName(held), ptx::typeName(registers)));
      registers = isBits(held) ? registers : held;
    } else if (element.kind == OperandKind::Integer || element.kind == OperandKind::Float32 ||
               element.kind == OperandKind::Float64) {
      if (constants != OperandKind::Sink && constants != element.kind)
        b.fail(element, format("expected constants of one kind, but got '{}'", element.text));
      constants = element.kind;
    }
  }
}

void expectAllRead(Binding &b) {
  const auto &operands = b.instruction.operands;
  if (std::ranges::count(vectorMovers, b.instruction.mnemonic))
    for (const ptx::Operand &operand : operands)
      expectOneKind(b, operand);
  if (b.has("hint")) {
    const ptx::Operand &policy = b.operand(std::min(b.asked, operands.size() - 1));
    if (policy.kind != OperandKind::Register && policy.kind != OperandKind::Integer)
      b.fail(policy, format("expected a cache policy in a 64-bit register, but got '{}'", policy.text));
    b.source(policy, Type::B64);
  }
  if (operands.size() > b.asked)
    b.fail(operands[b.asked],
           format("expected {} operands of '{}', but got {}", b.asked, b.instruction.spelling(), operands.size()));
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i].paired && (i > 0 || !b.mayPair))
      b.fail(operands[i], format("expected ',' behind '{}', but got '|'", operands[i].text));
}

} // namespace weft::simulator::machine
