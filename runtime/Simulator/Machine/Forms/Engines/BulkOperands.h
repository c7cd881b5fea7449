// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Operands of instructions that copy asynchronously.
#pragma once

#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Running/BulkCopies.h"

namespace weft::simulator::machine {

/// An address that stands in an operand: which, and what is added to it.
struct AddressForm {
  int op = 0;
  int64_t offset = 0;
  bool wide = true;

  uint64_t at(const Warp &warp, const Record &record, unsigned lane) const {
    return wide ? warp.reg<const uint64_t>(record.op[op])[lane] + uint64_t(offset)
                : uint32_t(warp.reg<const uint32_t>(record.op[op])[lane] + uint32_t(offset));
  }
};

/// Puts an operand's address into op[op].
AddressForm addressOf(Binding &b, ptx::Operand operand, int op);

/// The block that a load goes to whose destination and mbarrier are at these addresses, and the byte of the mbarrier
/// into the copy; null, with a finding, where the cluster has none or they are of different blocks.
Block *loadTarget(Warp &warp, BulkCopy &copy, uint32_t to, uint32_t object);

} // namespace weft::simulator::machine
