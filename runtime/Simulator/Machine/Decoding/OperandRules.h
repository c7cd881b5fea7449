// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What ptxas asks of operands whatever the instruction. Each function fails where it is not so: a simulator that took more
// would run what no GPU does.
#pragma once

#include "runtime/Simulator/Machine/Decoding/Decode.h"

namespace weft::simulator::machine {

/// A source of `type`: a register of a type that goes with it (PTX ISA 9.4.1), a constant of its kind, and in the
/// instructions that read them a special register of its size or the address of a variable.
void expectSource(const Binding &binding, const ptx::Operand &operand, ptx::Type type, bool wider);
/// A constant that is no more than `most`; other operands pass.
void expectAtMost(const Binding &binding, const ptx::Operand &operand, uint64_t most);
/// A destination of `type`.
void expectDestination(const Binding &binding, const ptx::Operand &operand, ptx::Type type);

/// An address in brackets: generic ones and those of global memory are of 64 bits, and a number is one in local memory only.
AddressOperand addressIn(const Binding &binding, const ptx::Operand &operand, ptx::Space space);

/// What may stand around an operand: `!` where a predicate may be, an offset within brackets, and a part (`.b0`) or `-`
/// only in the instructions that have them.
void expectMarks(const ptx::Instruction &instruction, bool hasParts);

/// Every operand was asked for by the binder or is the cache policy at the end, `|` stands only within `d|p`, and the
/// elements of a vector are of one kind.
void expectAllRead(Binding &binding);

} // namespace weft::simulator::machine
