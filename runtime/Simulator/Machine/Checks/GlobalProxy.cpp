// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Checks/GlobalProxy.h"
#include "runtime/Simulator/Machine/Checks/GlobalRaces.h"
#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

bool looks(const Warp &warp) {
  const Checks &checks = warp.block->grid->options.checks;
  return checks.async && checks.races && warp.block->grid->globalShadow.tracks();
}

GlobalAccesses::Write lastWrite(Warp &warp, Address address) {
  const auto writes = GlobalAccesses(warp, warp.kernel->code[warp.here()]).lastWrites(address, 1);
  return writes.empty() ? GlobalAccesses::Write{} : writes.front();
}

GlobalFence fenceNow(Warp &warp) {
  const uint32_t clock = warp.block->shadow.now(warp.index);
  return {snapshot(warp), uint32_t(warp.block->index), warp.index, clock};
}

template <typename T> void keep(std::deque<T> &list, T value) {
  list.push_back(std::move(value));
  if (list.size() > ProxyFences::kept)
    list.pop_front();
}

bool covers(const Warp &warp, const GlobalFence &fence, Stamp write) {
  return warp.block->grid->order.knows(fence.moment, write.block(), write.warp(), write.clock());
}

/// Whether what a warp does now comes after a fence.
bool isBehind(const Warp &warp, const GlobalFence &fence) {
  return (fence.block == warp.block->index && fence.warp == warp.index) ||
         happenedBefore(warp, fence.block, fence.warp, fence.clock);
}

bool isModifiedBy(const Warp &warp, uint32_t pc, std::string_view mnemonic, std::string_view modifier) {
  const ptx::Instruction *instruction = warp.kernel->sites[pc].instruction;
  return instruction && instruction->mnemonic == mnemonic &&
         std::find(instruction->modifiers.begin(), instruction->modifiers.end(), modifier) !=
             instruction->modifiers.end();
}

void complain(Warp &warp, unsigned lane, const std::string &what, Stamp write, uint32_t pc) {
  report(warp, FindingKind::MissingProxyFence, lane, what,
         format("block {}, warp {}, lane {} wrote it at {}", write.block(), write.warp(), write.lane(),
                siteName(warp, pc)));
}

} // namespace

void fenceGlobalProxy(Warp &warp) {
  if (!looks(warp))
    return;
  const GlobalFence fence = fenceNow(warp);
  ProxyFences &fences = warp.block->grid->proxyFences;
  std::lock_guard lock(fences.mutex);
  keep(fences.async, fence);
}

void releaseMaps(Warp &warp) {
  if (!looks(warp))
    return;
  const GlobalFence fence = fenceNow(warp);
  ProxyFences &fences = warp.block->grid->proxyFences;
  std::lock_guard lock(fences.mutex);
  keep(fences.mapReleases, fence);
}

void acquireMap(Warp &warp, Address map) {
  if (!looks(warp))
    return;
  const Stamp write = lastWrite(warp, map).stamp;
  const GlobalFence fence = fenceNow(warp);
  ProxyFences &fences = warp.block->grid->proxyFences;
  std::lock_guard lock(fences.mutex);
  keep(fences.mapAcquires, {map, write, fence});
}

void checkBulkRead(Warp &warp, unsigned lane, Address address, uint32_t bytes) {
  if (!looks(warp))
    return;
  for (const auto &[write, pc] : GlobalAccesses(warp, warp.kernel->code[warp.here()]).lastWrites(address, bytes)) {
    if (isModifiedBy(warp, pc, "cp", "bulk")) // through the same proxy
      continue;
    ProxyFences &fences = warp.block->grid->proxyFences;
    std::lock_guard lock(fences.mutex);
    const bool fenced = std::any_of(fences.async.rbegin(), fences.async.rend(), [&](const GlobalFence &fence) {
      return covers(warp, fence, write) && isBehind(warp, fence);
    });
    if (!fenced)
      return complain(
          warp, lane,
          format("reads some of {} bytes at {:#x} through the asynchronous proxy, and no fence.proxy.async of "
                 "global memory lies between that and a write",
                 bytes, address),
          write, pc);
  }
}

void checkMapUse(Warp &warp, unsigned lane, Address map) {
  if (!looks(warp))
    return;
  const auto [write, pc] = lastWrite(warp, map);
  if (!write)
    return;
  ProxyFences &fences = warp.block->grid->proxyFences;
  std::lock_guard lock(fences.mutex);
  const bool released = isModifiedBy(warp, pc, "tensormap", "cp_fenceproxy") ||
                        std::any_of(fences.mapReleases.begin(), fences.mapReleases.end(),
                                    [&](const GlobalFence &fence) { return covers(warp, fence, write); });
  const bool acquired =
      std::any_of(fences.mapAcquires.rbegin(), fences.mapAcquires.rend(), [&](const MapAcquire &acquire) {
        return acquire.map == map && acquire.write.bits == write.bits && isBehind(warp, acquire.fence);
      });
  if (!released || !acquired)
    complain(
        warp, lane,
        format("uses the tensor map at {:#x}, and no fence.proxy.tensormap::generic.{} lies between that and a write",
               map, released ? "acquire" : "release"),
        write, pc);
}

} // namespace weft::simulator::machine
