// Part of Weft. SPDX-License-Identifier: Apache-2.0
// wgmma (PTX ISA 9.7.15) from its issue to the wait that retires it. Each warp computes its own 16 of the 64 rows: at the
// wait, or, where the seed has it so, at the issue.
#pragma once

#include "runtime/Simulator/Machine/State/Products.h"
#include "runtime/Simulator/Machine/State/Warp.h"

namespace weft::simulator::machine {

std::shared_ptr<Products> makeProducts(const Warp &warp);

/// Issues wgmma.mma_async; the descriptors' bits are as the first lane has them.
void issueProduct(Warp &warp, const Record &record, uint64_t a, uint64_t b, bool adds);

/// wgmma.fence, commit_group and wait_group, the last of which leaves `left` groups: false, with nothing done, while
/// other warps of the warpgroup have yet to issue what it waits for.
void fenceProducts(Warp &warp);
void commitProducts(Warp &warp);
bool awaitProducts(Warp &warp, uint32_t left);

/// A warp's last lanes end: products that it has not awaited, and those that it leaves to others of its warpgroup.
void endProducts(Warp &warp);

} // namespace weft::simulator::machine
