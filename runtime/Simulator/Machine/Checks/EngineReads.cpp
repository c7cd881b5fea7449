// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Checks/EngineReads.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/Remote.h"
#include "runtime/Simulator/Machine/State/Products.h"
#include "runtime/Simulator/Machine/State/Tensor/Tensor.h"
#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

/// Fences that a warp's list keeps: one that is older than these matters to no pipeline.
constexpr size_t keptFences = 256;

std::string wroteAt(const Warp &warp, const Granule &g) {
  if (g.flags & Granule::RemoteWrite)
    return remoteSide(warp, "wrote", g.writeRank, g.writeThread, g.writePc);
  return isEngine(*warp.block, g.writeThread) ? engineName(warp, g.writePc) + " wrote it"
                                              : format("warp {}, lane {} wrote it at {}", g.writeThread / laneCount,
                                                       g.writeThread % laneCount, siteName(warp, g.writePc));
}

/// Whether a fence covers a write: its lanes knew of it.
bool covers(const Warp &warp, uint32_t fenceWarp, const ProxyFence &fence, uint32_t thread, uint32_t clock) {
  const uint32_t writer = thread / laneCount;
  if (fence.known[writer] >= clock)
    return true;
  if (writer == fenceWarp)
    return (fence.mask >> thread % laneCount & 1) && clock <= fence.clock;
  const Block &block = *warp.block;
  return fence.moment && block.grid->order.knows(fence.moment, uint32_t(block.index), writer, clock);
}

/// Whether a lane knows that a fence was made.
bool knowsFence(const Warp &warp, unsigned lane, uint32_t fenceWarp, const ProxyFence &fence) {
  if (fenceWarp == warp.index && (fence.mask >> lane & 1))
    return true;
  return happenedBefore(warp, lane, fenceWarp, firstLane(fence.mask), fence.clock);
}

/// Whether a fence.proxy.async lies between a write and what a lane does now.
bool isFenced(const Warp &warp, unsigned lane, uint32_t thread, uint32_t clock) {
  const auto &fences = warp.block->engines->fences;
  for (uint32_t other = 0; other < fences.size(); ++other)
    for (auto fence = fences[other].rbegin(); fence != fences[other].rend(); ++fence) {
      if (!covers(warp, other, *fence, thread, clock))
        break; // an older one covers less
      if (knowsFence(warp, lane, other, *fence))
        return true;
    }
  return false;
}

/// The same of a write by a thread of another block of the cluster: the fence may be on either side.
bool isFencedRemote(const Warp &warp, unsigned lane, const Granule &g) {
  const Block &block = *warp.block, &writer = *block.cluster->blocks[g.writeRank];
  const OrderGraph &graph = block.grid->order;
  const uint32_t thread = g.writeThread, writerWarp = thread / laneCount;
  const auto &mine = block.engines->fences, &theirs = writer.engines->fences;
  for (uint32_t other = 0; other < mine.size(); ++other)
    for (const ProxyFence &fence : mine[other])
      if (graph.knows(fence.moment, uint32_t(writer.index), writerWarp, g.writeClock) &&
          knowsFence(warp, lane, other, fence))
        return true;
  for (uint32_t other = 0; other < theirs.size(); ++other)
    for (const ProxyFence &fence : theirs[other])
      if ((fence.known[writerWarp] >= g.writeClock ||
           (other == writerWarp && (fence.mask >> thread % laneCount & 1) && g.writeClock <= fence.clock)) &&
          happenedBefore(warp, uint32_t(writer.index), other, fence.clock))
        return true;
  return false;
}

/// What is known of one write, which many granules share.
struct Verdict {
  uint32_t thread = ~0u, clock = 0, rank = 0;
  bool ordered = true, fenced = true;
};

/// The rank of a granule's writer, plus 1; 0 for the block itself.
uint32_t writerRank(const Granule &g) { return g.flags & Granule::RemoteWrite ? g.writeRank + 1u : 0; }

Verdict judge(const Warp &warp, unsigned lane, const Granule &g) {
  const uint32_t thread = g.writeThread, clock = g.writeClock;
  Verdict verdict{thread, clock, writerRank(g)};
  if (verdict.rank) {
    verdict.ordered = writeOrdered(warp, lane, *warp.block, g);
    verdict.fenced = isFencedRemote(warp, lane, g);
    return verdict;
  }
  verdict.ordered = (thread == warp.index * laneCount + lane) ||
                    happenedBefore(warp, lane, thread / laneCount, thread % laneCount, clock);
  verdict.fenced = isEngine(*warp.block, thread) || isFenced(warp, lane, thread, clock);
  return verdict;
}

void complain(Warp &warp, unsigned lane, const Granule &g, const Verdict &verdict, uint32_t offset) {
  const Checks &checks = warp.block->grid->options.checks;
  const std::string place = format("16 bytes at byte {} of shared memory", offset);
  const bool engine = !verdict.rank && isEngine(*warp.block, g.writeThread);
  if (!verdict.ordered && engine && checks.async)
    report(warp, FindingKind::AsyncUnwaited, lane,
           "reads " + place + ", which a bulk copy writes whose mbarrier it has not waited for", wroteAt(warp, g));
  else if (!verdict.ordered && !engine && checks.races)
    report(warp, FindingKind::SharedRace, lane, "reads " + place + ", and no barrier orders that after a write",
           wroteAt(warp, g));
  else if (!verdict.fenced && checks.async)
    report(warp, FindingKind::MissingProxyFence, lane,
           "reads " + place + " through the asynchronous proxy, and no fence.proxy.async lies between that and a write",
           wroteAt(warp, g));
}

template <typename Visit> void eachGranule(SharedShadow &shadow, uint32_t begin, uint32_t bytes, Visit visit) {
  for (Granule *g = &shadow.at(begin), *end = &shadow.at(begin + bytes - 1) + 1; g != end; ++g)
    visit(*g);
}

bool overlaps(uint32_t offset, unsigned bytes, uint32_t begin, uint32_t count) {
  return offset < begin + count && begin < offset + bytes;
}

bool readsBytes(const PendingProduct &product, uint32_t offset, unsigned bytes) {
  auto within = [&](uint32_t at) { return overlaps(offset, bytes, at, 16); };
  return std::ranges::any_of(product.b->begins, within) ||
         (product.a && std::ranges::any_of(product.a->begins, within));
}

bool readsBytes(const TensorOperation &op, uint32_t offset, unsigned bytes) {
  auto within = [&](uint32_t at) { return overlaps(offset, bytes, at, 16); };
  return (op.bPieces && std::ranges::any_of(op.bPieces->begins, within)) ||
         (op.aPieces && std::ranges::any_of(op.aPieces->begins, within));
}

/// What reads of a warp's lane see in each granule, and leave there.
class EngineReader {
public:
  EngineReader(Warp &warp, unsigned lane)
      : EngineReader(warp, warp.index, lane, warp.block->shadow.now(warp.index), warp.here()) {}
  EngineReader(Warp &warp, uint32_t reader, unsigned lane, uint32_t now, uint32_t pc)
      : warp_(warp), lane_(lane), checks_(warp.block->grid->options.checks), now_(now), pc_(pc),
        thread_(uint16_t(reader * laneCount + lane)), bit_(1u << (reader & 31)) {}

  void begin(uint32_t offset, uint32_t bytes) {
    eachGranule(warp_.block->shadow, offset, bytes, [&](Granule &g) { begin(g, offset); });
  }
  /// Of pieces of 16 bytes, whose granules are mostly as the one before: nobody complained of that one.
  void begin(std::span<const uint32_t> pieces) {
    Granule quiet;
    for (const uint32_t piece : pieces)
      eachGranule(warp_.block->shadow, piece, 16, [&](Granule &g) {
        if (g.writeClock == quiet.writeClock && g.writeThread == quiet.writeThread && g.poisoned == 0 &&
            (g.flags | Granule::EngineReads) == quiet.flags) {
          if (g.flags != quiet.flags)
            g.flags = quiet.flags;
          return;
        }
        begin(g, piece);
        const bool isQuiet = g.writeClock && !(g.flags & (Granule::Pending | Granule::RemoteWrite)) && !g.poisoned &&
                             verdict_.ordered && verdict_.fenced;
        quiet = isQuiet ? g : Granule();
      });
  }
  bool unwritten() const { return unwritten_ && checks_.uninitialised; }

  void end(uint32_t offset, uint32_t bytes) {
    eachGranule(warp_.block->shadow, offset, bytes, [&](Granule &g) { end(g); });
  }
  /// Of pieces of 16 bytes: granules that had the readers of the one before have its readers again.
  void end(std::span<const uint32_t> pieces) {
    const SharedShadow &shadow = warp_.block->shadow;
    Granule before, after;
    bool any = false;
    for (const uint32_t piece : pieces)
      eachGranule(warp_.block->shadow, piece, 16, [&](Granule &g) {
        if (any && g.read.warps == before.read.warps && g.read.clock == before.read.clock && g.later == before.later) {
          g.read = after.read;
          g.later = after.later;
          g.flags &= uint8_t(~endedFlags);
          return;
        }
        const uint32_t renumbered = shadow.renumbered();
        before = g;
        end(g);
        after = g;
        any = renumbered == shadow.renumbered(); // else numbers of sets mean other ones now
      });
  }

private:
  static constexpr uint8_t endedFlags = Granule::ReadByLanes | Granule::AtomicReads;

  void begin(Granule &g, uint32_t offset) {
    if (g.flags & Granule::Pending) {
      if (checks_.async)
        report(warp_, FindingKind::AsyncUnwaited, lane_,
               format("reads 16 bytes at byte {} of shared memory, which a copy may still write", offset),
               format("it was issued at {}", siteName(warp_, g.writePc)));
    } else if (g.writeClock) {
      if (verdict_.thread != g.writeThread || verdict_.clock != g.writeClock || verdict_.rank != writerRank(g))
        verdict_ = known(g);
      if (!verdict_.ordered || !verdict_.fenced)
        complain(warp_, lane_, g, verdict_, offset);
    }
    unwritten_ |= (g.writeClock == 0 && !(g.flags & Granule::Pending)) || g.poisoned;
    g.flags |= Granule::EngineReads;
  }

  /// What is ordered and fenced once stays so: a warp's products read the same writes again and again.
  Verdict known(const Granule &g) {
    auto &known = warp_.block->engines->visible[warp_.index];
    const VisibleWrite write{g.writeClock, g.writeThread, uint8_t(writerRank(g)), uint8_t(lane_)};
    VisibleWrite &place = known[(g.writeThread + 7 * g.writeClock) % known.size()];
    if (place == write)
      return {g.writeThread, g.writeClock, writerRank(g)};
    const Verdict verdict = judge(warp_, lane_, g);
    if (verdict.ordered && verdict.fenced)
      place = write;
    return verdict;
  }

  /// A writer must know the clocks of all readers, unless this read comes after the others.
  void end(Granule &g) {
    if (othersAreBefore(g)) {
      g.read.warps = bit_;
      g.read.clock = now_;
      g.later = 0;
    } else {
      warp_.block->shadow.addReader(g, uint32_t(thread_ / laneCount), now_);
    }
    g.read.thread = thread_;
    g.read.pc = pc_;
    g.read.meeting = warp_.meetings;
    g.flags &= uint8_t(~endedFlags);
  }

  bool othersAreBefore(const Granule &g) {
    for (uint32_t rest = g.read.warps & ~bit_; rest; rest &= rest - 1) {
      const auto reader = uint32_t(__builtin_ctz(rest));
      if (!isBefore(reader, warp_.block->shadow.readsOf(g, reader).last))
        return false;
    }
    return true;
  }

  /// Neighbours mostly have the same readers.
  bool isBefore(uint32_t owner, uint32_t clock) {
    if (owner != owner_ || clock != clock_) {
      owner_ = owner;
      clock_ = clock;
      before_ = happenedBefore(warp_, owner, clock);
    }
    return before_;
  }

  Warp &warp_;
  unsigned lane_;
  const Checks &checks_;
  const uint32_t now_, pc_;
  const uint16_t thread_;
  const uint32_t bit_;
  Verdict verdict_;
  bool unwritten_ = false, before_ = false;
  uint32_t owner_ = ~0u, clock_ = 0;
};

} // namespace

bool beginEngineRead(Warp &warp, unsigned lane, std::span<const SharedRange> ranges) {
  if (!tracksShared(warp))
    return false;
  EngineReader reader(warp, lane);
  for (const SharedRange &range : ranges)
    reader.begin(range.begin, range.bytes);
  return reader.unwritten();
}

bool beginEngineRead(Warp &warp, unsigned lane, std::span<const uint32_t> pieces) {
  if (!tracksShared(warp))
    return false;
  EngineReader reader(warp, lane);
  reader.begin(pieces);
  return reader.unwritten();
}

void endEngineRead(Warp &warp, unsigned lane, std::span<const SharedRange> ranges) {
  if (!warp.block->grid->options.checks.races)
    return;
  EngineReader reader(warp, lane);
  for (const SharedRange &range : ranges)
    reader.end(range.begin, range.bytes);
}

void endEngineRead(Warp &warp, std::span<const uint32_t> pieces, uint32_t reader, uint32_t clock, uint32_t pc) {
  if (!warp.block->grid->options.checks.races)
    return;
  EngineReader(warp, reader, 0, clock, pc).end(pieces);
}

void endRemoteEngineRead(Block &block, const RemoteAccess &reader, std::span<const SharedRange> ranges) {
  if (!block.grid->options.checks.races)
    return;
  for (const SharedRange &range : ranges)
    eachGranule(block.shadow, range.begin, range.bytes, [&](Granule &g) {
      block.remoteReads[block.shadow.indexOf(g)].push_back(reader);
      g.flags |= Granule::RemoteReads;
    });
}

namespace {

/// Whether a warp has heard, from one that awaited it, that a product of `other` is over.
bool knowsEnd(const Warp &warp, const Warp &other, const PendingProduct &product) {
  return happenedBefore(warp, uint32_t(other.block->index), product.reader, product.over);
}

/// What engines may still read a range of a block's shared memory: its name, and where it was issued; none without one.
struct EngineAtWork {
  std::string name;
  uint32_t pc = 0;
};

EngineAtWork readerOf(const Warp &warp, const Block &block, uint32_t offset, unsigned bytes) {
  for (const BulkCopy &copy : block.engines->copies)
    if (copy.kind != BulkKind::Load && !copy.taken &&
        std::any_of(copy.runs.begin(), copy.runs.end(),
                    [&](const BulkRun &run) { return overlaps(offset, bytes, run.shared, run.bytes); }))
      return {"a bulk copy", copy.pc};
  for (const auto &peer : block.cluster->blocks)
    for (const BulkCopy &copy : peer->engines->copies)
      if (copy.issuer == &block && overlaps(offset, bytes, copy.source.begin, copy.source.bytes))
        return {"a bulk copy", copy.pc};
  if (block.engines->tensor)
    for (const Block *each : pairOf(block))
      for (const TensorOperation &op : tensorOf(*each).operations)
        if ((each == &block || op.form->pair) && readsBytes(op, offset, bytes))
          return {format("a {}", op.name()), op.pc};
  for (const Warp &other : block.warps)
    if (other.products)
      for (const PendingProduct &product : other.products->pending)
        if (!(product.read && knowsEnd(warp, other, product)) && readsBytes(product, offset, bytes))
          return {"a wgmma", product.pc};
  return {};
}

} // namespace

bool areEnginesDone(const Warp &warp, const Block &block, SharedRange range) {
  return readerOf(warp, block, range.begin, range.bytes).name.empty();
}

void checkEngineReads(Warp &warp, unsigned lane, const Block &block, uint32_t offset, unsigned bytes) {
  if (const EngineAtWork reader = readerOf(warp, block, offset, bytes); !reader.name.empty())
    report(warp, FindingKind::AsyncOverwrite, lane,
           format("writes {} bytes at byte {} of shared memory, which {} may still read", bytes, offset, reader.name),
           format("it was issued at {}", siteName(warp, reader.pc)));
}

void fenceProxy(Warp &warp, uint32_t mask) {
  Block &block = *warp.block;
  if (!block.engines || !tracksShared(warp))
    return;
  SharedShadow &shadow = block.shadow;
  auto &fences = block.engines->fences[warp.index];
  const uint32_t *known = shadow.clocksOf(warp.index);
  fences.push_back({mask, shadow.now(warp.index), {known, known + block.warps.size()}, warp.order.known});
  if (mask == warp.live) // all of the warp's writes so far
    fences.back().known[warp.index] = std::max(fences.back().known[warp.index], shadow.now(warp.index));
  if (fences.size() > 2 * keptFences)
    fences.erase(fences.begin(), fences.end() - keptFences);
  shadow.advance(warp.index);
}

void adviseFence(Warp &warp, unsigned lane, const BulkRun &run) {
  Verdict verdict;
  eachGranule(warp.block->shadow, run.shared, run.bytes, [&](Granule &g) {
    if (!g.writeClock || (g.flags & (Granule::Pending | Granule::RemoteWrite)))
      return;
    if (verdict.thread == g.writeThread && verdict.clock == g.writeClock)
      return;
    verdict = judge(warp, lane, g);
    if (verdict.ordered && !verdict.fenced)
      report(warp, FindingKind::MissingProxyFence, lane,
             format("writes 16 bytes at byte {} of shared memory through the asynchronous proxy, and no "
                    "fence.proxy.async lies between that and a write",
                    run.shared),
             wroteAt(warp, g), true);
  });
}

} // namespace weft::simulator::machine
