// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What happened before what, across the warps and blocks of a grid (PTX ISA 8, memory consistency model).
//
// Inside a block, SharedShadow's vector clocks say it. Strong accesses (atomic, volatile, relaxed, acquire, release)
// and fences carry it further: a release leaves a *moment* at its address, an acquire that reads from there takes it
// over. A moment knows its block's clocks and the moments that its thread knew of, so moments form a graph that only
// grows, and a question walks it. Questions are asked only where two accesses conflict and the block's own clocks do
// not order them.
//
// Taken from the model: relaxed accesses order nothing by themselves; a fence before a relaxed write makes it a
// release, one after a relaxed read an acquire; read-modify-writes continue what was released before them; scopes must
// include the other side. More generous than the model: a barrier counts as the fence after a relaxed read, and hands a
// fence that one thread made before it on to the others, since widely used code rests on both.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weft::simulator::machine {

struct Warp;
struct Block;
struct Record;

/// A moment's number; 0 is none.
using Moment = uint32_t;

/// What a strong access or a fence orders: bits of Record::order.
enum OrderBits : uint8_t {
  orderStrong = 1,
  orderAcquire = 2,
  orderRelease = 4,
  orderWide = 8,      ///< scope .gpu or .sys
  orderSwap = 16,     ///< a compare-and-swap: may follow a weak read that only guesses what it will find
  orderUniform = 32,  ///< a read of one address by all lanes, as of a scalar that a compiler keeps in every thread
  orderCopy = 64,     ///< a read by a cp.async that is in flight
  orderCluster = 128, ///< scope .cluster; without it and orderWide .cta
};

/// How far a strong access or a fence reaches: each scope holds the one before.
enum class Scope : uint8_t { Block, Cluster, Grid };
inline constexpr size_t scopeCount = 3;
inline Scope scopeOf(uint8_t order) {
  return order & orderWide ? Scope::Grid : order & orderCluster ? Scope::Cluster : Scope::Block;
}
/// The bits of a scope's name; 0 for .cta.
inline uint8_t orderOfScope(std::string_view name) {
  return name == "cluster" ? orderCluster : name == "cta" || name.empty() ? uint8_t(0) : orderWide;
}

/// A moment for each scope.
using ScopedMoments = std::array<Moment, scopeCount>;

/// What a warp knows of others and has prepared for them.
struct WarpOrder {
  Moment known = 0;         ///< what was acquired
  Moment caused = 0;        ///< what must have been before what was seen, though it orders no memory
  ScopedMoments fence{};    ///< as of the last fence of that scope or a wider one: what a relaxed write releases
  ScopedMoments unfenced{}; ///< read from by relaxed accesses: acquired by the next fence of the scope
};

/// The moments of one launch, and what was released at which address. Its functions may be called from several threads.
class OrderGraph {
public:
  OrderGraph() { clear(); }
  void clear();
  Moment add(uint32_t block, const uint32_t *clocks, uint32_t warps, uint32_t warp, uint32_t now, Moment known);
  /// Both.
  Moment join(Moment a, Moment b);
  /// Whether what `warp` of `block` did up to its clock `clock` is known to `from`. True where the graph is full.
  bool knows(Moment from, uint32_t block, uint32_t warp, uint32_t clock) const;

  /// Whether anything that threads of `block` did is known to `from`.
  bool meets(Moment from, uint32_t block) const;

  /// What was last released at an address: for one block, for one cluster, and for all.
  struct Released {
    ScopedMoments moments{};
    uint32_t block = 0, cluster = 0;
  };
  /// The addresses of one stripe are accessed under its lock.
  struct Stripe {
    std::mutex mutex;
    std::unordered_map<uint64_t, Released> released;
  };
  Stripe &stripeOf(uint64_t key) { return stripes_[(key >> 2) * 0x9E3779B97F4A7C15u >> 58]; }

private:
  /// A moment of one block has that block's clocks, with those of all its moments that it comes from by way of the
  /// block alone; a joint of moments of several blocks has none.
  struct Node {
    uint32_t block;
    std::vector<uint32_t> clocks;
    Moment first = 0, second = 0;
    bool foreign = false; ///< comes from other blocks' moments too
  };
  /// Whether a moment is one of the two that another is made of, or of the first of these: lanes that wait for the same take
  /// over the same in turn.
  bool isMadeOf(Moment newer, Moment older) const;
  bool isOf(const Node &node, uint32_t block) const { return !node.clocks.empty() && node.block == block; }
  /// Whether `accept` holds for `from` or a moment before it, the walk leaving out what comes from one block alone.
  template <typename Accept> bool walk(Moment from, Accept accept) const;
  mutable std::mutex mutex_;
  std::deque<Node> nodes_;
  // Of a question's walk; kept for the next.
  mutable std::vector<Moment> open_;
  mutable std::vector<uint32_t> seen_;
  mutable uint32_t question_ = 0;
  /// The last answers of `knows` that took a walk; those of no moment are none.
  struct Answer {
    Moment from = 0;
    uint32_t block = 0, warp = 0, clock = 0;
    bool known = false;
    bool isTo(const Answer &asked) const {
      return from == asked.from && block == asked.block && warp == asked.warp && clock == asked.clock;
    }
  };
  mutable std::array<Answer, 1024> answers_;
  std::array<Stripe, 64> stripes_;
};

/// Whether an access of a warp of the same block, stamped with its clock, happened before what `warp` does now: by
/// what the warp acquired from others, where the block's own clocks do not say so (Warp.h).
bool acquired(const Warp &warp, uint32_t owner, uint32_t clock);
/// The same for a warp of any block.
bool happenedBefore(const Warp &warp, uint32_t block, uint32_t owner, uint32_t clock);

/// All that a warp has done and knows, now; what it does next is not part of it.
Moment snapshot(Warp &warp);

/// A fence.
void fence(Warp &warp, Scope scope);

/// What one side knows and has fenced, the other knows and has fenced too.
void joinOrder(OrderGraph &graph, WarpOrder &into, const WarpOrder &from);

/// Where lanes meet: reads before it count as fenced.
void fenceReads(Warp &warp);

/// A lane's strong access to global memory at `key`, or to shared memory (see sharedKey). The lock of its stripe is
/// held from construction on, so that accesses and what they release happen in one order.
class StrongAccess {
public:
  StrongAccess(Warp &warp, uint8_t order, uint64_t key);
  /// After the access: what it read from and whether it wrote.
  void done(bool reads, bool writes, bool modifies);
  /// What is released here now is released under another key of the same word too.
  void copyTo(uint64_t key);

private:
  Warp &warp_;
  uint8_t order_;
  uint64_t key_;
  OrderGraph::Stripe *stripe_ = nullptr;
  std::unique_lock<std::mutex> lock_;
};

/// The key of a byte of a block's shared memory.
uint64_t sharedKey(const Block &block, uint32_t offset);

} // namespace weft::simulator::machine
