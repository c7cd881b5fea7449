// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/Order.h"
#include "runtime/Simulator/Machine/State/Warp.h"

#include <algorithm>
#include <utility>

namespace weft::simulator::machine {
namespace {

/// Moments kept at most; beyond, everything counts as ordered.
constexpr size_t maximumMoments = 4u << 20;

/// The moment that is now.
Moment snapshot(Warp &warp) {
  SharedShadow &shadow = warp.block->shadow;
  const Moment now = warp.block->grid->order.add(uint32_t(warp.block->index), shadow.clocksOf(warp.index),
                                                 shadow.warps(), warp.index, shadow.now(warp.index), warp.order.known);
  shadow.advance(warp.index); // what comes now is not part of it
  return now;
}

/// The later of each two clocks.
void takeLater(std::vector<uint32_t> &clocks, const std::vector<uint32_t> &others) {
  for (size_t i = 0; i < clocks.size(); ++i)
    clocks[i] = std::max(clocks[i], others[i]);
}

} // namespace

void OrderGraph::clear() {
  nodes_.clear();
  nodes_.push_back({});
  seen_.clear();
  for (Stripe &stripe : stripes_)
    stripe.released.clear();
}

Moment OrderGraph::add(uint32_t block, const uint32_t *clocks, uint32_t warps, uint32_t warp, uint32_t now,
                       Moment known) {
  Node node{block, {clocks, clocks + warps}, known, 0};
  node.clocks[warp] = now;
  std::lock_guard lock(mutex_);
  if (nodes_.size() >= maximumMoments)
    return Moment(nodes_.size() - 1);
  if (known) {
    const Node &before = nodes_[known];
    node.foreign = before.foreign || !isOf(before, block);
    if (isOf(before, block))
      takeLater(node.clocks, before.clocks);
  }
  nodes_.push_back(std::move(node));
  return Moment(nodes_.size() - 1);
}

Moment OrderGraph::join(Moment a, Moment b) {
  if (!a || !b || a == b)
    return a | b;
  std::lock_guard lock(mutex_);
  const Moment newer = std::max(a, b), older = std::min(a, b);
  if (nodes_[newer].first == older || nodes_[newer].second == older || nodes_.size() >= maximumMoments)
    return newer;
  const Node &x = nodes_[newer], &y = nodes_[older];
  Node node{0, {}, newer, older, true};
  if (!x.clocks.empty() && isOf(y, x.block)) {
    node = {x.block, x.clocks, newer, older, x.foreign || y.foreign};
    takeLater(node.clocks, y.clocks);
  }
  nodes_.push_back(std::move(node));
  return Moment(nodes_.size() - 1);
}

bool OrderGraph::knows(Moment from, uint32_t block, uint32_t warp, uint32_t clock) const {
  if (!from)
    return false;
  std::lock_guard lock(mutex_);
  if (nodes_.size() >= maximumMoments)
    return true;
  // Of one block's moments, the newest knows all.
  if (const Node &node = nodes_[from]; isOf(node, block) && node.clocks[warp] >= clock)
    return true;
  else if (!node.foreign)
    return false;
  // Every question marks the moments that it has seen with a number of its own.
  seen_.resize(nodes_.size());
  if (++question_ == 0) {
    std::fill(seen_.begin(), seen_.end(), 0);
    question_ = 1;
  }
  open_.assign(1, from);
  for (size_t i = 0; i < open_.size(); ++i) {
    const Node &node = nodes_[open_[i]];
    if (isOf(node, block) && node.clocks[warp] >= clock)
      return true;
    if (!node.foreign)
      continue;
    for (Moment next : {node.first, node.second})
      if (next && std::exchange(seen_[next], question_) != question_)
        open_.push_back(next);
  }
  return false;
}

bool happenedBefore(const Warp &warp, uint32_t owner, uint32_t clock) {
  return warp.block->shadow.ordered(warp.index, owner, clock) ||
         (warp.order.known &&
          warp.block->grid->order.knows(warp.order.known, uint32_t(warp.block->index), owner, clock));
}

bool happenedBefore(const Warp &warp, unsigned lane, uint32_t owner, unsigned ownerLane, uint32_t clock) {
  return (owner == warp.index && warp.block->shadow.lanesOrdered(warp.index, lane, ownerLane, clock)) ||
         happenedBefore(warp, owner, clock);
}

bool happenedBefore(const Warp &warp, uint32_t block, uint32_t owner, uint32_t clock) {
  return block == uint32_t(warp.block->index) ? happenedBefore(warp, owner, clock)
                                              : warp.block->grid->order.knows(warp.order.known, block, owner, clock);
}

void fence(Warp &warp, bool wide) {
  OrderGraph &graph = warp.block->grid->order;
  WarpOrder &order = warp.order;
  order.known = graph.join(order.known, order.narrowUnfenced);
  order.narrowUnfenced = 0;
  if (wide) {
    order.known = graph.join(order.known, order.wideUnfenced);
    order.wideUnfenced = 0;
  }
  order.narrowFence = snapshot(warp);
  if (wide)
    order.wideFence = order.narrowFence;
}

void fenceReads(Warp &warp) {
  WarpOrder &order = warp.order;
  if (!order.wideUnfenced && !order.narrowUnfenced)
    return;
  OrderGraph &graph = warp.block->grid->order;
  order.known = graph.join(order.known, graph.join(order.wideUnfenced, order.narrowUnfenced));
  order.wideUnfenced = order.narrowUnfenced = 0;
}

StrongAccess::StrongAccess(Warp &warp, uint8_t order, uint64_t key) : warp_(warp), order_(order), key_(key) {
  if (!order || !warp.block->grid->options.checks.races)
    return;
  stripe_ = &warp.block->grid->order.stripeOf(key);
  lock_ = std::unique_lock(stripe_->mutex);
}

void StrongAccess::done(bool reads, bool writes, bool modifies) {
  if (!stripe_)
    return;
  OrderGraph &graph = warp_.block->grid->order;
  WarpOrder &own = warp_.order;
  const auto block = uint32_t(warp_.block->index);
  const bool wide = order_ & orderWide;
  auto found = stripe_->released.find(key_);
  Moment readWide = 0, readNarrow = 0;
  if (reads && found != stripe_->released.end()) {
    readWide = wide ? found->second.wide : 0;
    readNarrow = found->second.narrowBlock == block ? found->second.narrow : 0;
    if (order_ & orderAcquire) {
      own.known = graph.join(own.known, graph.join(readWide, readNarrow));
    } else {
      own.wideUnfenced = graph.join(own.wideUnfenced, readWide);
      own.narrowUnfenced = graph.join(own.narrowUnfenced, readNarrow);
    }
  }
  if (!writes)
    return;
  Moment wideNow = wide ? own.wideFence : 0, narrowNow = own.narrowFence;
  if (order_ & orderRelease) {
    narrowNow = snapshot(warp_);
    wideNow = wide ? narrowNow : 0;
  }
  if (found == stripe_->released.end()) {
    if (wideNow || narrowNow)
      stripe_->released[key_] = {wideNow, narrowNow, block};
    return;
  }
  OrderGraph::Released &released = found->second;
  const bool same = released.narrowBlock == block;
  if (!modifies)
    released = {wideNow, narrowNow, block};
  else
    released = {graph.join(released.wide, wideNow), graph.join(same ? released.narrow : 0, narrowNow), block};
}

void StrongAccess::copyTo(uint64_t key) {
  if (!stripe_)
    return;
  if (auto found = stripe_->released.find(key_); found != stripe_->released.end()) {
    const OrderGraph::Released released = found->second;
    stripe_->released[key] = released;
  }
}

uint64_t sharedKey(const Block &block, uint32_t offset) { return uint64_t{3} << 62 | block.index << 20 | offset; }

} // namespace weft::simulator::machine
