// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Checks/Tensor/LoadRegisters.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/Tensor/TensorAccess.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

/// Loads of a warp that are kept for a later tcgen05.wait::ld: one that is older than these matters to nobody.
constexpr size_t keptLoads = 64;

/// A register is read; or written, after which nothing reads what the load left there.
void touch(TensorTransfer &load, Ref ref, bool written) {
  auto found = std::ranges::find(load.unread, ref);
  if (ref == noRef || found == load.unread.end())
    return;
  *found = written ? noRef : load.unread.back();
  if (!written)
    load.unread.pop_back();
}

void touchAll(const Warp &warp, const Record &record, TensorTransfer &load) {
  const Site &site = warp.kernel->sites[warp.here()];
  for (const bool written : {false, true}) {
    for (unsigned i = 0; i < 6; ++i)
      if ((site.destinations >> i & 1) == written)
        touch(load, record.op[i], written);
    for (unsigned i = 0; i < site.wideCount; ++i)
      if ((i < site.wideDestinations) == written)
        touch(load, record.wide[i], written);
  }
}

void end(Warp &warp, TensorTransfer &load) {
  load.used = true;
  TensorStamp stamp{warp.block->shadow.now(warp.index), warp.index, load.pc, uint32_t(warp.block->index)};
  stamp.used = true;
  for (const TensorRange &range : load.ranges)
    if (range.columns)
      endTensorAccess(*warp.block, range, false, stamp);
}

} // namespace

void watchLoads(Warp &warp, const Record &record) {
  std::vector<TensorTransfer> &transfers = tensorOf(*warp.block).transfers;
  bool any = false;
  size_t used = 0;
  for (TensorTransfer &transfer : transfers) {
    if (transfer.stores || transfer.warp != warp.index)
      continue;
    if (!transfer.used) {
      touchAll(warp, record, transfer);
      if (transfer.unread.empty())
        end(warp, transfer);
    }
    any |= !transfer.used;
    used += transfer.used;
  }
  warp.loadsTensor = any;
  warp.watched = any || warp.anyPoison || warp.products;
  std::erase_if(transfers, [&](const TensorTransfer &transfer) {
    const bool isForgotten = transfer.used && transfer.warp == warp.index && used > keptLoads;
    used -= isForgotten;
    return isForgotten;
  });
}

} // namespace weft::simulator::machine
