// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Accesses to tensor memory: whether they may be made, and whether something orders them (PTX ISA 9.7.16.6).
//
// An access is over when its warp has awaited it (tcgen05.wait), or when a tcgen05.commit behind it has completed. Until
// then it may touch its cells at any time; from then on whoever touches them must know of that. Compiled code leaves out
// tcgen05.fence where an mbarrier or a barrier orders threads, which the ISA asks for: an advisory.
#pragma once

#include "runtime/Simulator/Machine/State/Tensor/TensorMemory.h"

namespace weft::simulator::machine {

/// What accesses tensor memory of a block.
struct TensorAccess {
  Block &block;
  unsigned lane = 0; ///< of the warp whose record runs
  TensorRange range;
  bool writes = false;
  const TensorOperation *operation = nullptr; ///< whose access it is, where it is one of tensor cores
  const char *what = "reads";
};

/// Whether the range is allocated. If so, accesses that nothing orders with this one are reported.
bool checkTensorAccess(Warp &warp, const TensorAccess &access);

/// Columns are given back: no access to them may be on its way, or unordered.
void checkTensorFree(Warp &warp, Block &block, const TensorRange &range);

/// An access is over.
void endTensorAccess(Block &block, const TensorRange &range, bool writes, const TensorStamp &stamp);

/// tcgen05.fence by a warp.
void fenceTensorBefore(Warp &warp);
void fenceTensorAfter(Warp &warp);

/// Every column of every lane.
inline constexpr TensorRange tensorWhole{0xff, 0, tensorColumns};

/// "lanes 0 to 31 of columns 64 to 127".
std::string describeRange(const TensorRange &range);

} // namespace weft::simulator::machine
