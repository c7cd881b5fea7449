// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Operands of tcgen05, as ptxas takes them.
#pragma once

#include "runtime/Simulator/Machine/Forms/Engines/BulkOperands.h"
#include "runtime/Simulator/Machine/Forms/MatrixOperands.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {

/// Puts an address in tensor memory, a register of 32 bits and what is added to it, into op[op].
inline AddressForm tensorAddress(Binding &b, const ptx::Operand &operand, int op) {
  const AddressForm address = addressOf(b, operand, op);
  const ptx::Operand &base = operand.elements[0];
  if (base.kind != ptx::OperandKind::Register || address.wide)
    b.fail(base, format("expected a 32-bit register as address in tensor memory, but got '{}'", base.text));
  return address;
}

/// Appends the `count` registers of a vector operand, each of 32 bits.
inline void appendVector(Binding &b, const ptx::Operand &operand, size_t count, bool destination,
                         std::vector<Ref> &refs) {
  if (operand.kind != ptx::OperandKind::Vector)
    b.fail(operand, format("expected a vector of {} registers, but got '{}'", count, operand.text));
  for (const ptx::Operand &element : operand.elements)
    if (element.kind != ptx::OperandKind::Register)
      b.fail(element, format("expected a register, but got '{}'", element.text));
  appendRegisters(b, operand, count, ptx::Type::B32, destination, refs);
}

} // namespace weft::simulator::machine
