// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What binders call, and the operand patterns of the table.
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Decoding/OperandRules.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {

std::string_view Binding::modifier(std::string_view slot) const {
  for (const auto &[name, word] : chosen)
    if (name == slot)
      return word;
  return {};
}

const ptx::Operand &Binding::operand(size_t index) const {
  if (index >= instruction.operands.size())
    fail(format("expected at least {} operands of '{}', but got {}", index + 1, instruction.spelling(),
                instruction.operands.size()));
  asked = std::max(asked, index + 1);
  return instruction.operands[index];
}

bool Binding::pair() {
  mayPair = true;
  return operand(0).paired;
}

Ref Binding::source(const ptx::Operand &operand, ptx::Type type, bool wider) {
  expectSource(*this, operand, type, wider);
  return sourceElement(operand, type, wider);
}

Ref Binding::destination(const ptx::Operand &operand, ptx::Type type, bool wider) {
  if (operand.kind == ptx::OperandKind::Sink)
    fail(operand,
         format("expected a register to write: '{}' has no result that can be left out", instruction.spelling()));
  expectDestination(*this, operand, type);
  return destinationElement(operand, type, wider);
}

Ref Binding::destinationOrNone(const ptx::Operand &operand, ptx::Type type) {
  return operand.kind == ptx::OperandKind::Sink ? destinationElement(operand, type) : destination(operand, type);
}

Ref Binding::sourceElement(const ptx::Operand &operand, ptx::Type type, bool wider) {
  return decoder.source(frame, operand, type, wider);
}

Ref Binding::destinationElement(const ptx::Operand &operand, ptx::Type type, bool wider) {
  return decoder.destination(frame, operand, type, wider);
}

Ref Binding::predicate(const ptx::Operand &operand) {
  if (operand.kind == ptx::OperandKind::Integer) // a constant may stand for a predicate that is read
    return decoder.constant32(operand.bits ? ~0u : 0u);
  if (operand.kind == ptx::OperandKind::Special && operand.text == "%is_explicit_cluster")
    return decoder.nonZero(decoder.special(operand, ptx::Type::B32));
  if (operand.kind != ptx::OperandKind::Register || decoder.registerType(frame, operand) != ptx::Type::Pred)
    fail(operand, format("expected a predicate register, but got '{}'", operand.text));
  return virtualRef | (decoder.frame(frame).registerBase + operand.index);
}

Ref Binding::truth(const ptx::Operand &operand) {
  const Ref value = predicate(operand);
  return operand.negated ? decoder.opposite(value) : value;
}

Ref Binding::predicateDestinationOrNone(const ptx::Operand &operand) {
  return operand.kind == ptx::OperandKind::Sink ? decoder.scratch(ptx::Type::Pred) : predicateDestination(operand);
}

Ref Binding::predicateDestination(const ptx::Operand &operand) {
  if (operand.negated)
    fail(operand, "expected no '!' before a destination");
  if (operand.kind == ptx::OperandKind::Integer || operand.kind == ptx::OperandKind::Special)
    fail(operand, format("expected a predicate register, but got '{}'", operand.text));
  return predicate(operand);
}

Ref Binding::constant32(uint32_t value) { return decoder.constant32(value); }

void Binding::setWide(std::vector<Ref> refs, size_t destinations) {
  site.wideCount = uint16_t(refs.size());
  site.wideDestinations = uint16_t(destinations);
  decoder.kernel().wideLists.push_back(std::move(refs));
  record.wide = decoder.kernel().wideLists.back().data();
}

void Binding::fail(const ptx::Operand &at, std::string message) const { Decoder::fail(at.at, std::move(message)); }
void Binding::fail(std::string message) const { Decoder::fail(instruction.at, std::move(message)); }
void Binding::unsupported(std::string message) const {
  Decoder::fail(instruction.at, std::move(message) + " is not supported by the simulator", StatusCode::Unsupported);
}

void Decoder::bindOperands(Binding &binding, std::string_view pattern) {
  if (pattern.starts_with('*'))
    return;
  size_t count = 0;
  while (!pattern.empty()) {
    std::string_view item = pattern.substr(0, pattern.find(' '));
    pattern.remove_prefix(std::min(item.size() + 1, pattern.size()));
    char role = item[0];
    std::string_view typeText = item.size() > 2 ? item.substr(2) : std::string_view();
    bool wider = typeText.ends_with('+');
    if (wider)
      typeText.remove_suffix(1);
    ptx::Type type = ptx::typeNamed(typeText);
    if (type == ptx::Type::None && !typeText.empty())
      type = binding.type(typeText);
    const ptx::Operand &operand = binding.operand(count);
    switch (role) {
    case 'd':
      binding.setDestination(count, binding.destination(operand, type, wider));
      break;
    case 's':
      binding.record.op[count] = binding.source(operand, type, wider);
      break;
    case 'D':
      binding.setDestination(count, binding.predicateDestination(operand));
      break;
    case 'p':
      binding.record.op[count] = binding.truth(operand);
      break;
    default:
      binding.fail(format("'{}' names no role of an operand in the table of forms", item));
    }
    ++count;
  }
}

} // namespace weft::simulator::machine
