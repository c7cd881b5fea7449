// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tcgen05.mma (PTX ISA 9.7.16.10) and tcgen05.cp (9.7.16.9.2) from its issue by one thread until it is over. It computes when a tcgen05.commit behind
// it completes or, by seed, when it is issued; those of a block in the order of their issue.
#pragma once

#include "runtime/Simulator/Machine/State/Tensor/Tensor.h"

namespace weft::simulator::machine {

/// The operands of one tcgen05.mma as a thread has them.
struct TensorOperands {
  uint32_t d = 0;
  uint64_t a = 0; ///< an address in tensor memory, or a descriptor
  uint64_t b = 0;
  uint32_t instruction = 0; ///< the instruction descriptor
  bool adds = true;
  std::array<uint32_t, 8> disabled{};
  uint32_t scaleA = 0, scaleB = 0; ///< where scales begin
  uint64_t columnMask = 0;         ///< zero-column-mask-desc
};

void issueTensorProduct(Warp &warp, unsigned lane, const TensorForm &form, const TensorOperands &operands);

/// tcgen05.cp by a lane.
void issueTensorCopy(Warp &warp, unsigned lane, const TensorForm &form, uint32_t to, uint64_t descriptor);

/// Computes the operations of a block up to a number, in order.
void computeTensor(Block &block, uint64_t end);

/// The blocks whose memories an operation of a block touches.
std::vector<Block *> blocksOf(Block &block, const TensorForm &form);

} // namespace weft::simulator::machine
