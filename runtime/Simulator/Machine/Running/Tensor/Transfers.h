// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tcgen05.ld, .st and .wait (PTX ISA 9.7.16.8). A load reads when it is issued: a register that it writes may be used at
// once (9.7.16.6.4.5), and whoever writes its cells before it was awaited is reported. A store writes when it is
// awaited or, by seed, when it is issued.
#pragma once

#include "runtime/Simulator/Machine/State/Tensor/Tensor.h"

namespace weft::simulator::machine {

enum class TransferShape : uint8_t { L32x32b, L16x32bx2, L16x64b, L16x128b, L16x256b };

/// Record::aux of tcgen05.ld and .st; Record::wide: the registers.
struct TransferForm {
  TransferShape shape = TransferShape::L32x32b;
  uint32_t count = 1;     ///< .num
  bool packs = false;     ///< .pack::16b, .unpack::16b
  uint32_t split = 0;     ///< immHalfSplitoff
  uint32_t registers = 1; ///< as many as Record::wide has

  /// Columns of one of its accesses.
  uint32_t columns() const;
};

/// Registers that one of a shape takes.
uint32_t registersOf(TransferShape shape);

void loadTensor(Warp &warp, const TransferForm &form, const Ref *registers, uint32_t address);
void storeTensor(Warp &warp, const TransferForm &form, const Ref *registers, uint32_t address);

/// tcgen05.wait::ld, or ::st.
void awaitTensor(Warp &warp, bool stores);

} // namespace weft::simulator::machine
