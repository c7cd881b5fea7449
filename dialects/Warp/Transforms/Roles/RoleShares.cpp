// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Roles/RoleShares.h"
#include "dialects/Tile/IR/Schedule.h"

#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/OperandsOfLoops.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft::warp {

/// Registers that a thread needs in the kernel's fullest loop with products of warpgroups, at the least.
static int64_t leastRegisters(func::FuncOp kernel) {
  int64_t most = 0;
  kernel.walk([&](scf::ForOp loop) { most = std::max(most, registersOfProducts(loop).atOnce()); });
  return most;
}

/// Bytes of shared memory that the kernel's largest ring takes with what lives beside it, at the least.
static int64_t leastBytesOfRings(func::FuncOp kernel) {
  int64_t rings = 0, others = 0;
  kernel.walk([&](Block *block) {
    int64_t here = 0, beside = 0;
    for (auto alloc : block->getOps<AllocOp>()) {
      SharedType type = alloc.getResult().getType();
      (type.getStages() > 1 ? here : beside) += type.getBytes();
    }
    rings = std::max(rings, here);
    others = std::max(others, beside);
  });
  return rings + others;
}

RoleShares sharesOf(func::FuncOp kernel, const TargetInfo &target) {
  RoleShares shares;
  shares.consumerWarps = tile::scheduleOf(kernel).warps;
  shares.producerWarps = target.warpgroups.warps; // registers are traded by warpgroups
  const int all = shares.consumerWarps + shares.producerWarps, granule = target.roleRegisters;
  auto roundedDown = [&](int64_t count) { return static_cast<int>(count / granule * granule); };
  auto ofPool = [&](int warps) {
    int64_t share = target.registersPerProcessor / (int64_t(target.warpSize) * warps);
    return std::min<int64_t>(share, target.registersPerThread);
  };
  if (shares.consumerWarps % target.warpgroups.warps != 0 || all > target.maxWarps) {
    shares.hindrance = "the block has no room for a warpgroup more, or no whole warpgroups";
    return shares;
  }
  const int launched = roundedDown(ofPool(all));
  shares.producer = target.leastRoleRegisters;
  shares.consumer =
      roundedDown((int64_t(launched) * all - int64_t(shares.producer) * shares.producerWarps) / shares.consumerWarps);
  // A thread has room for no more: nothing is traded then.
  if (shares.consumer > target.registersPerThread)
    shares.producer = shares.consumer = 0;
  const int64_t left = shares.consumer ? shares.consumer : launched, before = ofPool(shares.consumerWarps);
  // Sums in tensor memory need none.
  if (!target.warpgroups.tensorColumns && left * 16 < before * 15)
    shares.hindrance = "the other warps would have fewer registers";
  const int64_t threads = int64_t(target.warpSize) * shares.consumerWarps;
  bool twoBlocks = 2 * threads * leastRegisters(kernel) <= target.registersPerProcessor &&
                   2 * (leastBytesOfRings(kernel) + target.reservedSharedBytes) <= target.sharedBytesPerProcessor;
  if (twoBlocks)
    shares.idle = "a multiprocessor holds two blocks, of which one computes while the other waits";
  return shares;
}

} // namespace weft::warp
