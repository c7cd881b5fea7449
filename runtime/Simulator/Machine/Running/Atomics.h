// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What runs atom and red (PTX ISA 9.7.13.5, 9.7.13.6): each lane in turn, by the host's own atomic instructions, since
// other blocks run at the same time.
#pragma once

#include "runtime/Simulator/Machine/State/Program.h"

namespace weft::simulator::machine {

/// The value to store from the old one and the operands' bits.
using NewValue = uint64_t (*)(uint64_t old, uint64_t b, uint64_t c, bool global);

/// Record::aux. op[0]: result or noRef; op[1] + imm: address; op[2], op[3]: operands. Of vectors and 128 bits: Record::wide.
struct AtomicForm {
  ptx::Space space = ptx::Space::Generic;
  NewValue compute = nullptr;
  bool swaps = false;   ///< cas
  bool returns = false; ///< atom
  /// Which bytes of the result are unwritten where a byte of what they are made of is.
  enum Mixing : uint8_t { None, Bytes, All } mixing = All; ///< exch; cas and bitwise operations; arithmetic
};

/// One value of type T a lane.
template <typename T> void runAtomic(Warp &warp, const Record &record, uint32_t mask);
/// A vector of Record::vector elements, each of which is changed atomically for itself. wide: the results, where `atom`
/// gives any, and the operands.
template <typename T> void runAtomicVector(Warp &warp, const Record &record, uint32_t mask);
/// exch.b128 and cas.b128. wide: halves, the low one first, of the result, the operand and what cas stores.
void runAtomicWide(Warp &warp, const Record &record, uint32_t mask);

} // namespace weft::simulator::machine
