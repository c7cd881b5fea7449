// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Checks/GlobalRaces.h"
#include "runtime/Simulator/Machine/State/Cluster.h"
#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

/// Races at one instruction after which it is not looked at any more.
constexpr uint8_t enoughRaces = 64;

/// The order of two reads that are remembered as one: the weaker, in flight while either is.
uint8_t bothOrders(uint8_t a, uint8_t b) { return uint8_t((a & b) | ((a | b) & orderCopy)); }

std::string place(uint64_t address, unsigned bytes) { return format("{} bytes at {:#x}", bytes, address); }

std::string blockName(const Warp &warp, Stamp stamp) {
  const Dim3 &grid = warp.block->grid->shape.grid;
  const uint64_t block = stamp.block();
  return format("block ({}, {}, {})", block % grid.x, block / grid.x % grid.y, block / grid.x / grid.y);
}

} // namespace

void GlobalAccesses::begin(const Record &record) {
  pc_ = warp_.here();
  order_ = warp_.block->grid->options.checks.async ? record.order : uint8_t(record.order & ~orderCopy);
  tracks_ = warp_.worker->raced[pc_] < enoughRaces && pc_ < maximumPlaces;
  allocation_ = warp_.worker->lastAllocation[pc_];
  at_ = {pc_, order_};
  if (tracks_)
    first_ = {warp_.block->index, warp_.index, 0, warp_.block->shadow.now(warp_.index)};
}

void GlobalAccesses::unlock() {
  if (page_)
    page_->lock.clear(std::memory_order_release);
  page_ = nullptr;
  bytes_ = 0;
}

[[gnu::always_inline]] inline GlobalGranule *GlobalAccesses::granule(uint64_t address) {
  return address - low_ < bytes_ ? &granules_[(address - pageStart_) >> shadow_.shift()] : find(address);
}

/// Of another page than the one that was worked on last.
GlobalGranule *GlobalAccesses::find(uint64_t address) {
  unlock();
  const MemoryView &view = *warp_.block->grid->view;
  if (!allocation_ || !allocation_->contains(address, 1))
    allocation_ = view.find(address, 1);
  if (!allocation_)
    return nullptr;
  constexpr uint64_t pageBytes = uint64_t{1} << GlobalPage::shift;
  const uint64_t origin = allocation_->base >> shadow_.shift() << shadow_.shift(), offset = address - origin;
  page_ = shadow_.page(size_t(allocation_ - view.allocations().data()), offset);
  if (!page_)
    return nullptr;
  while (page_->lock.test_and_set(std::memory_order_acquire)) {
  }
  granules_ = page_->granules.data();
  pageStart_ = origin + offset / pageBytes * pageBytes;
  low_ = std::max(pageStart_, allocation_->base);
  bytes_ = std::min(pageStart_ + pageBytes, allocation_->end()) - low_;
  return granule(address);
}

template <typename Visit>
[[gnu::always_inline]] inline void GlobalAccesses::each(uint64_t address, unsigned bytes, Visit visit) {
  const uint64_t step = uint64_t{1} << shadow_.shift();
  for (uint64_t at = address, end = address + bytes; at < end;) {
    GlobalGranule *found = granule(at);
    if (!found) {
      at += step;
      continue;
    }
    // Neighbours in one page lie side by side.
    for (const uint64_t last = std::min(end, low_ + bytes_); at < last; at += step)
      visit(*found++, at);
  }
}

bool GlobalAccesses::conflicts(Stamp me, Stamp other, uint8_t order, bool reads) const {
  if (!other || other.sameThread(me))
    return false;
  if ((order | order_) & orderSwap && !(order & order_ & orderSwap)) {
    // A loop around compare-and-swap starts from a weak read of what it may find: wrong guesses cost a turn only.
    const uint8_t rest = (order & orderSwap) ? order_ : order;
    if (!(rest & orderStrong) && reads)
      return false;
  }
  const bool sameBlock = other.block() == me.block();
  if ((order & order_ & orderStrong) && (sameBlock || (order & order_ & orderWide)))
    return false;
  const bool sameCluster = warp_.block->cluster->rankOf(other.block()) >= 0;
  if ((order & order_ & orderStrong) && sameCluster && scopeOf(order) != Scope::Block &&
      scopeOf(order_) != Scope::Block)
    return false;
  if (sameBlock && other.warp() == me.warp() &&
      warp_.block->shadow.lanesOrdered(warp_.index, me.lane(), other.lane(), other.clock()))
    return false;
  return !happenedBefore(warp_, other.block(), other.warp(), other.clock());
}

std::string GlobalAccesses::other(const char *did, Stamp stamp, uint32_t pc) const {
  return format("{}, warp {}, lane {} {} it at {}", blockName(warp_, stamp), stamp.warp(), stamp.lane(), did,
                siteName(warp_, pc));
}

std::string GlobalAccesses::otherWarp(const char *did, Stamp stamp, uint32_t pc) const {
  return format("{}, warp {} {} it at {}", blockName(warp_, stamp), stamp.warp(), did, siteName(warp_, pc));
}

[[gnu::always_inline]] inline void GlobalAccesses::read(GlobalGranule &g, Stamp me, uint64_t address, unsigned bytes) {
  if ((!g.write || g.write.sameThread(me)) && (!g.read[0] || g.read[0].sameThread(me)) && !g.readLanes) {
    // A thread's own memory: the common case.
    const AccessPlace before = g.readAt[0];
    if (g.read[0].bits == me.bits)
      g.readAt[0] = {pc_, bothOrders(before.order, order_)};
    else if (g.read[0] && (before.order & orderCopy))
      g.readAt[0] = {pc_, uint32_t(order_ | orderCopy)};
    else
      g.readAt[0] = at_;
    g.read[0] = me;
    return;
  }
  readOther(g, me, address, bytes);
}

/// Of memory that other threads access too.
void GlobalAccesses::readOther(GlobalGranule &g, Stamp me, uint64_t address, unsigned bytes) {
  if (conflicts(me, g.write, g.writeAt.order, true)) {
    const bool scalar = (order_ & orderUniform) && g.write.block() == me.block();
    warp_.worker->raced[pc_] += !scalar;
    report(warp_, FindingKind::GlobalRace, me.lane(),
           "reads " + place(address, bytes) + ", and nothing orders that after a write",
           other("wrote", g.write, g.writeAt.pc), scalar);
  }
  if (!rememberAmongTwo(g, me))
    rememberMore(g, me);
}

/// Where a reader that this one is ordered after, or another lane of its warp, or none is remembered.
bool GlobalAccesses::rememberAmongTwo(GlobalGranule &g, Stamp me) {
  for (unsigned i = 0; i < 2; ++i) {
    const Stamp before = g.read[i];
    const uint8_t order = g.readAt[i].order;
    const bool mine = before.sameWarp(me);
    const bool replace = !before || mine ||
                         (!(order & orderCopy) && before.block() == me.block() &&
                          warp_.block->shadow.ordered(warp_.index, before.warp(), before.clock()));
    if (!replace)
      continue;
    const auto bit = uint8_t(1u << i);
    const bool lanes = mine && before.clock() == me.clock() && ((g.readLanes & bit) || before.lane() != me.lane());
    g.readLanes = uint8_t((g.readLanes & ~bit) | (lanes ? bit : 0));
    // Of a strong and a weak read by one warp the weak one is remembered.
    g.readAt[i] = {pc_, !mine                          ? order_
                        : before.clock() == me.clock() ? bothOrders(order, order_)
                                                       : uint32_t(order_ | (order & orderCopy))};
    g.read[i] = me;
    return true;
  }
  return false;
}

/// Beside two readers that this one is in no order with. Where nothing orders blocks, any write is in no order with one
/// of two readers of different blocks, so that these say all.
void GlobalAccesses::rememberMore(GlobalGranule &g, Stamp me) {
  const Grid &grid = *warp_.block->grid;
  if (!grid.ordersBlocks) {
    if (g.read[0].block() != g.read[1].block())
      return;
    if (g.read[0].block() != me.block()) {
      g.read[1] = me;
      g.readAt[1] = at_;
      g.readLanes &= 1u;
      g.more = 0;
      return;
    }
  }
  if (!(order_ & orderCopy)) // `land` remembers it, when it is over
    addMore(g, me, order_);
}

void GlobalAccesses::addMore(GlobalGranule &g, Stamp me, uint8_t order) {
  const Stamp warp(me.block(), me.warp(), 0, me.clock());
  if (!added_.to || added_.from != g.more || added_.order != order) {
    added_.from = g.more;
    added_.order = order;
    added_.to = warp_.block->grid->moreReaders.with(g.more, warp, {pc_, order}, [&](Stamp before) {
      return before.block() == me.block() && warp_.block->shadow.ordered(warp_.index, before.warp(), before.clock());
    });
  }
  g.more = added_.to;
}

bool GlobalAccesses::read(unsigned lane, uint64_t address, unsigned bytes) {
  const Stamp me = stamp(lane);
  uint64_t written = 0;
  each(address, bytes, [&](GlobalGranule &g, uint64_t) {
    written |= g.write.bits;
    read(g, me, address, bytes);
  });
  return written != 0;
}

bool GlobalAccesses::read(unsigned lane, uint64_t address, unsigned bytes, unsigned one) {
  const Stamp me = stamp(lane);
  uint64_t written = 0;
  each(address, bytes, [&](GlobalGranule &g, uint64_t at) {
    written |= g.write.bits;
    read(g, me, at - ((at - address) & (one - 1)), one);
  });
  return written != 0;
}

void GlobalAccesses::readAll(uint64_t address, unsigned bytes) {
  if (bytes < 1u << shadow_.shift()) { // lanes share granules
    for (unsigned lane = 0; lane < laneCount; ++lane)
      read(lane, address + lane * bytes, bytes);
    return;
  }
  const Stamp first = stamp(0);
  const auto shift = unsigned(__builtin_ctz(bytes));
  each(address, laneCount * bytes, [&](GlobalGranule &g, uint64_t at) {
    const auto lane = unsigned((at - address) >> shift);
    read(g, first.ofLane(lane), address + (uint64_t(lane) << shift), bytes);
  });
}

std::vector<GlobalAccesses::Write> GlobalAccesses::lastWrites(uint64_t address, uint32_t bytes) {
  std::vector<Write> writes;
  each(address, bytes, [&](const GlobalGranule &g, uint64_t) {
    if (g.write && (writes.empty() || writes.back().stamp.bits != g.write.bits))
      writes.push_back({g.write, g.writeAt.pc});
  });
  unlock();
  return writes;
}

void GlobalAccesses::land(unsigned lane, uint64_t address, unsigned bytes) {
  const Stamp me = stamp(lane);
  each(address, bytes, [&](GlobalGranule &g, uint64_t) {
    // A write in between has been reported, and left no reader.
    bool isRemembered = false;
    for (unsigned i = 0; i < 2; ++i) {
      if (!g.read[i].sameWarp(me))
        continue;
      isRemembered = true;
      // Of several copies of a warp the first that is done speaks for all.
      if (!(g.readAt[i].order & orderCopy))
        continue;
      g.readAt[i].order &= uint8_t(~orderCopy);
      g.read[i] = me;
    }
    if (!isRemembered)
      landBesideTwo(g, me);
  });
}

/// Of a copy that was not remembered while it was in flight.
void GlobalAccesses::landBesideTwo(GlobalGranule &g, Stamp me) {
  const bool two = g.read[0] && g.read[1];
  if (two && (warp_.block->grid->ordersBlocks || (g.read[0].block() == me.block() && g.read[1].block() == me.block())))
    addMore(g, me, uint8_t(order_ & ~orderCopy));
}

/// A thread's own memory: the common case.
[[gnu::always_inline]] inline bool GlobalAccesses::writeOwn(GlobalGranule &g, Stamp me) {
  if ((g.write && !g.write.sameThread(me)) || (g.read[0] && !g.read[0].sameThread(me)) || g.read[1] || g.readLanes ||
      (g.read[0] && (g.readAt[0].order & orderCopy)))
    return false;
  g.read[0] = {};
  g.write = me;
  g.writeAt = at_;
  return true;
}

uint32_t GlobalAccesses::writeOwn(uint32_t mask, const uint64_t *addresses, unsigned bytes) {
  uint32_t rest = mask;
  for (; rest; rest &= rest - 1) {
    const unsigned lane = firstLane(rest);
    bool own = true;
    each(addresses[lane], bytes, [&](GlobalGranule &g, uint64_t) { own = own && writeOwn(g, stamp(lane)); });
    if (!own)
      break;
  }
  return mask & ~rest;
}

void GlobalAccesses::write(unsigned lane, uint64_t address, unsigned bytes, const std::byte *value) {
  const Stamp me = stamp(lane);
  each(address, bytes, [&](GlobalGranule &g, uint64_t) {
    if (!writeOwn(g, me))
      writeOther(g, me, address, bytes, value);
  });
}

/// Of memory that other threads access too.
void GlobalAccesses::writeOther(GlobalGranule &g, Stamp me, uint64_t address, unsigned bytes, const std::byte *value) {
  checkLastWrite(g, me, address, bytes, value);
  checkReaders(g, me, address, bytes);
  g = {};
  g.write = me;
  g.writeAt = at_;
}

void GlobalAccesses::checkLastWrite(const GlobalGranule &g, Stamp me, uint64_t address, unsigned bytes,
                                    const std::byte *value) {
  if (!conflicts(me, g.write, g.writeAt.order, false))
    return;
  const bool same = value && std::memcmp(reinterpret_cast<const std::byte *>(address), value, bytes) == 0;
  warp_.worker->raced[pc_] += !same;
  report(warp_, FindingKind::GlobalRace, me.lane(),
         "writes " + place(address, bytes) +
             (same ? ", the same value as another thread that nothing orders it with"
                   : ", and nothing orders that after another write"),
         other("wrote", g.write, g.writeAt.pc), same);
}

/// Whether other lanes of the writer's own warp are what read[reader] is of.
static bool isOfOtherLanes(const GlobalGranule &g, unsigned reader, Stamp me) {
  return g.read[reader].sameThread(me) && (g.readLanes >> reader & 1);
}

bool GlobalAccesses::isReaderUnordered(const GlobalGranule &g, unsigned reader, Stamp me) const {
  const uint8_t order = g.readAt[reader].order;
  if (!isOfOtherLanes(g, reader, me))
    return conflicts(me, g.read[reader], order, true);
  // A weak read before a compare-and-swap only guesses what it will find.
  const bool guess = (order_ & orderSwap) && !(order & orderStrong);
  return !guess && !(order & order_ & orderStrong) &&
         !warp_.block->shadow.lanesOrdered(warp_.index, me.lane(), me.lane(), g.read[reader].clock());
}

/// Which lanes of the writer's own warp read is not known.
const MoreReader &GlobalAccesses::unorderedAmongMore(uint32_t list, Stamp me) {
  if (asked_.list != list) {
    asked_.list = list;
    asked_.unordered = warp_.block->grid->moreReaders.find(list, [&](const MoreReader &reader) {
      return !reader.stamp.sameWarp(me) && conflicts(me, reader.stamp, reader.place.order, true);
    });
  }
  return asked_.unordered;
}

/// Reports the first reader that a write is not ordered after; a scalar's, which is no finding, where there is no other.
void GlobalAccesses::checkReaders(const GlobalGranule &g, Stamp me, uint64_t address, unsigned bytes) {
  std::string scalarReader;
  auto complain = [&](std::string reader, bool scalar) {
    warp_.worker->raced[pc_] += !scalar;
    report(warp_, FindingKind::GlobalRace, me.lane(),
           "writes " + place(address, bytes) + ", and nothing orders that after a read", std::move(reader), scalar);
  };
  auto isScalar = [&](Stamp reader, uint8_t order) { return (order & orderUniform) && reader.block() == me.block(); };
  for (unsigned i = 0; i < 2; ++i) {
    const Stamp reader = g.read[i];
    const AccessPlace at = g.readAt[i];
    if (reader && (at.order & orderCopy)) {
      report(warp_, FindingKind::AsyncOverwrite, me.lane(),
             "writes " + place(address, bytes) + ", which a cp.async in flight reads", other("copies", reader, at.pc));
      return;
    }
    if (!isReaderUnordered(g, i, me))
      continue;
    std::string name = isOfOtherLanes(g, i, me) ? format("other lanes of warp {} read it too", reader.warp())
                                                : other("read", reader, at.pc);
    if (!isScalar(reader, at.order))
      return complain(std::move(name), false);
    scalarReader = std::move(name);
  }
  if (const MoreReader *more = g.more ? &unorderedAmongMore(g.more, me) : nullptr; more && more->stamp) {
    std::string name = otherWarp("read", more->stamp, more->place.pc);
    if (!isScalar(more->stamp, more->place.order))
      return complain(std::move(name), false);
    scalarReader = std::move(name);
  }
  if (!scalarReader.empty())
    complain(std::move(scalarReader), true);
}

} // namespace weft::simulator::machine
