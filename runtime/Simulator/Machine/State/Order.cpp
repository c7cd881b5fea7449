// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/Order.h"
#include "runtime/Simulator/Machine/State/Cluster.h"

#include <algorithm>
#include <utility>

namespace weft::simulator::machine {
namespace {

/// Moments kept at most; beyond, everything counts as ordered.
constexpr size_t maximumMoments = 4u << 20;

/// The later of each two clocks.
void takeLater(std::vector<uint32_t> &clocks, const std::vector<uint32_t> &others) {
  for (size_t i = 0; i < clocks.size(); ++i)
    clocks[i] = std::max(clocks[i], others[i]);
}

/// Whether clocks are no earlier than others.
bool areNoEarlier(const std::vector<uint32_t> &clocks, const std::vector<uint32_t> &others) {
  for (size_t i = 0; i < clocks.size(); ++i)
    if (clocks[i] < others[i])
      return false;
  return true;
}

} // namespace

Moment snapshot(Warp &warp) {
  SharedShadow &shadow = warp.block->shadow;
  const Moment now = warp.block->grid->order.add(uint32_t(warp.block->index), shadow.clocksOf(warp.index),
                                                 shadow.warps(), warp.index, shadow.now(warp.index), warp.order.known);
  shadow.advance(warp.index); // what comes now is not part of it
  return now;
}

void OrderGraph::clear() {
  nodes_.clear();
  nodes_.push_back({});
  seen_.clear();
  answers_.fill({});
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

bool OrderGraph::isMadeOf(Moment newer, Moment older) const {
  const Node &node = nodes_[newer];
  auto isOne = [&](const Node &of) { return of.first == older || of.second == older; };
  return isOne(node) || (node.first && isOne(nodes_[node.first]));
}

Moment OrderGraph::join(Moment a, Moment b) {
  if (!a || !b || a == b)
    return a | b;
  std::lock_guard lock(mutex_);
  const Moment newer = std::max(a, b), older = std::min(a, b);
  if (nodes_.size() >= maximumMoments || isMadeOf(newer, older))
    return newer;
  const Node &x = nodes_[newer], &y = nodes_[older];
  if (!x.clocks.empty() && isOf(y, x.block)) {
    // What one block's moments alone make is in their clocks.
    if (!y.foreign && areNoEarlier(x.clocks, y.clocks))
      return newer;
    if (!x.foreign && areNoEarlier(y.clocks, x.clocks))
      return older;
  }
  Node node{0, {}, newer, older, true};
  if (!x.clocks.empty() && isOf(y, x.block)) {
    node = {x.block, x.clocks, newer, older, x.foreign || y.foreign};
    takeLater(node.clocks, y.clocks);
  }
  nodes_.push_back(std::move(node));
  return Moment(nodes_.size() - 1);
}

template <typename Accept> bool OrderGraph::walk(Moment from, Accept accept) const {
  // Every question marks the moments that it has seen with a number of its own.
  seen_.resize(nodes_.size());
  if (++question_ == 0) {
    std::fill(seen_.begin(), seen_.end(), 0);
    question_ = 1;
  }
  open_.assign(1, from);
  for (size_t i = 0; i < open_.size(); ++i) {
    const Node &node = nodes_[open_[i]];
    if (accept(node))
      return true;
    if (!node.foreign)
      continue;
    for (Moment next : {node.first, node.second})
      if (next && std::exchange(seen_[next], question_) != question_)
        open_.push_back(next);
  }
  return false;
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
  // What a moment knows does not change, and the bytes of a copy or of a vector ask the same one by one.
  const Answer asked{from, block, warp, clock};
  Answer &answer = answers_[(from * 31u + block * 17u + warp * 101u + clock) % answers_.size()];
  if (!answer.isTo(asked)) {
    answer = asked;
    answer.known = walk(from, [&](const Node &node) { return isOf(node, block) && node.clocks[warp] >= clock; });
  }
  return answer.known;
}

bool OrderGraph::meets(Moment from, uint32_t block) const {
  if (!from)
    return false;
  std::lock_guard lock(mutex_);
  return nodes_.size() >= maximumMoments || walk(from, [&](const Node &node) { return isOf(node, block); });
}

bool acquired(const Warp &warp, uint32_t owner, uint32_t clock) {
  return warp.order.known && warp.block->grid->order.knows(warp.order.known, uint32_t(warp.block->index), owner, clock);
}

bool happenedBefore(const Warp &warp, uint32_t block, uint32_t owner, uint32_t clock) {
  return block == uint32_t(warp.block->index) ? happenedBefore(warp, owner, clock)
                                              : warp.block->grid->order.knows(warp.order.known, block, owner, clock);
}

void fence(Warp &warp, Scope scope) {
  OrderGraph &graph = warp.block->grid->order;
  WarpOrder &order = warp.order;
  for (size_t i = 0; i <= size_t(scope); ++i)
    order.known = graph.join(order.known, std::exchange(order.unfenced[i], 0));
  const Moment now = snapshot(warp);
  std::fill_n(order.fence.begin(), size_t(scope) + 1, now);
}

void fenceReads(Warp &warp) {
  OrderGraph &graph = warp.block->grid->order;
  for (Moment &each : warp.order.unfenced)
    if (each)
      warp.order.known = graph.join(warp.order.known, std::exchange(each, 0));
}

void joinOrder(OrderGraph &graph, WarpOrder &into, const WarpOrder &from) {
  into.known = graph.join(into.known, from.known);
  into.caused = graph.join(into.caused, from.caused);
  for (size_t i = 0; i < scopeCount; ++i)
    into.fence[i] = graph.join(into.fence[i], from.fence[i]);
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
  const auto block = uint32_t(warp_.block->index), cluster = warp_.block->clusterIndex;
  const auto reach = size_t(scopeOf(order_));
  auto found = stripe_->released.find(key_);
  const bool any = found != stripe_->released.end();
  // Of a block's or a cluster's moments, those of others are not for this one.
  auto isMine = [&](size_t scope, const OrderGraph::Released &released) {
    return scope == size_t(Scope::Grid) ||
           (scope == size_t(Scope::Block) ? released.block == block : released.cluster == cluster);
  };
  for (size_t i = 0; reads && any && i <= reach; ++i)
    if (isMine(i, found->second)) {
      Moment &into = order_ & orderAcquire ? own.known : own.unfenced[i];
      into = graph.join(into, found->second.moments[i]);
    }
  if (!writes)
    return;
  OrderGraph::Released now{{}, block, cluster};
  const Moment here = order_ & orderRelease ? snapshot(warp_) : 0;
  for (size_t i = 0; i <= reach; ++i)
    now.moments[i] = here ? here : own.fence[i];
  if (modifies && any)
    for (size_t i = 0; i < scopeCount; ++i)
      if (isMine(i, found->second))
        now.moments[i] = graph.join(found->second.moments[i], now.moments[i]);
  if (any)
    found->second = now;
  else if (now.moments != ScopedMoments{})
    stripe_->released[key_] = now;
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
