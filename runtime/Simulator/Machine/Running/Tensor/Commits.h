// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tcgen05.commit (PTX ISA 9.7.16.12): what tensor cores do for a thread, seen by those who wait for an mbarrier. It
// arrives when a thread waits for the mbarrier or, by seed, when that asks again, or at once. Who sees it knows what the
// thread knew when it committed, and that its operations are over.
#pragma once

#include "runtime/Simulator/Machine/State/Tensor/Tensor.h"

namespace weft::simulator::machine {

/// A lane commits its operations to an mbarrier of a block of the cluster.
void commitTensor(Warp &warp, unsigned lane, Block &target, uint32_t object);

/// Lets the commits arrive that an mbarrier's phase waits for, now that somebody does; true where any did.
bool landCommits(Block &block, uint32_t object);

/// An mbarrier ends at which a commit has still to arrive: an advisory, since Triton's loops leave their last ones so.
void checkCommits(Warp &warp, Block &block, unsigned lane, uint32_t object);

} // namespace weft::simulator::machine
