// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/Divergence.h"
#include "runtime/Simulator/Machine/State/Executors.h"
#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

/// Turns that lanes at a join wait for a fragment that spins.
constexpr uint32_t patience = 2;

int32_t newJoin(Warp &warp, uint32_t pc, uint32_t mask, int32_t parent) {
  for (size_t i = 0; i < warp.joins.size(); ++i)
    if (!warp.joins[i].used) {
      warp.joins[i] = {pc, mask, 0, parent, true};
      return int32_t(i);
    }
  warp.joins.push_back({pc, mask, 0, parent, true});
  return int32_t(warp.joins.size() - 1);
}

/// Takes lanes that will never arrive out of the joins from `from` up to, not including, `until`.
void leaveJoins(Warp &warp, uint32_t lanes, int32_t from, int32_t until) {
  for (int32_t at = from; at != until && at >= 0;) {
    Join &join = warp.joins[size_t(at)];
    int32_t parent = join.parent;
    join.mask &= ~lanes;
    if (join.mask == 0) {
      join.used = false;
    } else if (join.arrived == join.mask) {
      // Everyone else waited for these lanes only.
      join.used = false;
      warp.fragments.push_back({join.pc, join.arrived, parent, FragmentState::Ready, 0});
    }
    at = parent;
  }
}

int32_t commonAncestor(const Warp &warp, int32_t a, int32_t b) {
  for (int32_t x = a; x >= 0; x = warp.joins[size_t(x)].parent)
    for (int32_t y = b; y >= 0; y = warp.joins[size_t(y)].parent)
      if (x == y)
        return x;
  return -1;
}

/// Lanes at a shuffle or its like may wait for lanes that wait at a join for them: those go on; true if any do.
bool callToMeeting(Warp &warp) {
  for (const Fragment &fragment : warp.fragments) {
    const Record &record = warp.kernel->code[fragment.pc];
    if (fragment.state != FragmentState::AtSync || record.members < 0)
      continue;
    uint32_t needed = 0;
    eachLane(fragment.mask,
             [&](unsigned lane) { needed |= warp.reg<const uint32_t>(record.op[record.members])[lane]; });
    for (Join &join : warp.joins) {
      if (!join.used || !(join.arrived & needed & ~fragment.mask))
        continue;
      const Fragment freed{join.pc, join.arrived, join.parent, FragmentState::Ready, 0};
      join.mask &= ~join.arrived;
      join.arrived = 0;
      warp.fragments.push_back(freed);
      return true;
    }
  }
  return false;
}

/// Merges fragments that wait at one record; true if any did.
bool mergeWaiting(Warp &warp) {
  auto &fragments = warp.fragments;
  for (size_t i = 0; i < fragments.size(); ++i)
    for (size_t j = i + 1; j < fragments.size(); ++j) {
      Fragment &a = fragments[i], &b = fragments[j];
      if (a.state != FragmentState::AtSync || b.state != FragmentState::AtSync || a.pc != b.pc)
        continue;
      Fragment first = a, second = b;
      int32_t common = commonAncestor(warp, first.join, second.join);
      fragments.erase(fragments.begin() + long(j));
      fragments[i] = {first.pc, first.mask | second.mask, common, FragmentState::Ready, 0};
      leaveJoins(warp, first.mask, first.join, common);
      leaveJoins(warp, second.mask, second.join, common);
      return true;
    }
  return false;
}

} // namespace

void divide(Warp &warp, uint32_t taken, uint32_t target, uint32_t join) {
  uint32_t rest = warp.mask & ~taken;
  if (join != ~0u && (warp.join < 0 || warp.joins[size_t(warp.join)].pc != join))
    warp.join = newJoin(warp, join, warp.mask, warp.join);
  // The way with the lower pc goes first, so that both sides of an if have run when its join is reached.
  if (target < warp.pc) {
    warp.fragments.push_back({warp.pc, rest, warp.join, FragmentState::Ready, 0});
    warp.mask = taken;
    warp.pc = target;
  } else {
    warp.fragments.push_back({target, taken, warp.join, FragmentState::Ready, 0});
    warp.mask = rest;
  }
}

void divideInto(Warp &warp, uint32_t join) { warp.join = newJoin(warp, join, warp.mask, warp.join); }

void suspend(Warp &warp, FragmentState state, uint32_t pc, uint8_t barrier) {
  warp.fragments.push_back({pc, warp.mask, warp.join, state, barrier});
  warp.mask = 0;
  if (!resume(warp))
    warp.stop();
}

void arrive(Warp &warp, uint32_t pc) {
  while (warp.join >= 0 && warp.joins[size_t(warp.join)].pc == pc) {
    Join &join = warp.joins[size_t(warp.join)];
    join.arrived |= warp.mask;
    if (join.arrived != join.mask) {
      warp.mask = 0;
      if (!resume(warp))
        warp.stop();
      return;
    }
    warp.mask = join.mask;
    warp.join = join.parent;
    join.used = false;
  }
}

void exitLanes(Warp &warp, uint32_t mask) {
  warp.live &= ~mask;
  warp.mask &= ~mask;
  leaveJoins(warp, mask, warp.join, -1);
  if (warp.mask == 0) {
    warp.join = -1;
    if (!resume(warp))
      warp.stop();
  }
}

bool gather(Warp &warp, uint32_t mask, uint32_t needed) {
  if ((needed & warp.live & ~mask) == 0)
    return true;
  --warp.worker->executed[warp.here()]; // it will run again
  warp.worker->executedThreads[warp.here()] -= unsigned(__builtin_popcount(mask));
  suspend(warp, FragmentState::AtSync, warp.here());
  return false;
}

namespace {

/// Reports lanes that meet though their masks leave them out, or differ from those of lanes that they name.
void checkMembers(Warp &warp, uint32_t mask, const uint32_t *members) {
  eachLane(mask, [&](unsigned lane) {
    if (!(members[lane] >> lane & 1))
      report(warp, FindingKind::BarrierMismatch, lane,
             format("executes it with lanes {:#x}, of which it is none", members[lane]));
    else
      eachLane(members[lane] & mask, [&](unsigned other) {
        if ((members[other] ^ members[lane]) & warp.live)
          report(warp, FindingKind::BarrierMismatch, lane,
                 format("executes it with lanes {:#x}, one of which executes it with other lanes", members[lane]),
                 format("lane {} names lanes {:#x}", other, members[other]));
      });
  });
}

} // namespace

uint32_t gatherGroups(Warp &warp, uint32_t mask, const uint32_t *members) {
  const bool checks = warp.block->grid->options.checks.barriers;
  const uint32_t first = members[firstLane(mask)];
  uint32_t differ = 0;
  for (unsigned lane = 0; lane < laneCount; ++lane)
    differ |= (mask >> lane & 1) ? members[lane] ^ first : 0;
  if (!differ && (first & warp.live & ~mask) == 0) { // the rule: all name the same lanes, and these are here
    if (checks && (mask & ~first))
      checkMembers(warp, mask, members);
    return mask;
  }
  uint32_t complete = 0;
  eachLane(mask, [&](unsigned lane) { complete |= uint32_t((members[lane] & warp.live & ~mask) == 0) << lane; });
  const uint32_t rest = mask & ~complete;
  if (checks)
    checkMembers(warp, complete, members);
  if (rest == 0)
    return mask;
  warp.worker->executedThreads[warp.here()] -= unsigned(__builtin_popcount(rest)); // they will run it again
  if (complete) {
    warp.fragments.push_back({warp.here(), rest, warp.join, FragmentState::AtSync, 0});
    warp.mask &= ~rest;
    return complete;
  }
  --warp.worker->executed[warp.here()];
  suspend(warp, FragmentState::AtSync, warp.here());
  return 0;
}

bool waitsForLanes(const Warp &warp) {
  return std::any_of(warp.fragments.begin(), warp.fragments.end(),
                     [](const Fragment &fragment) { return fragment.state == FragmentState::AtSync; });
}

bool resume(Warp &warp) {
  do {
    auto &fragments = warp.fragments;
    auto ready = std::find_if(fragments.begin(), fragments.end(),
                              [](const Fragment &fragment) { return fragment.state == FragmentState::Ready; });
    if (ready != fragments.end()) {
      warp.pc = ready->pc;
      warp.mask = ready->mask;
      warp.join = ready->join;
      fragments.erase(ready);
      return true;
    }
    if (!waitsForLanes(warp))
      return false;
  } while (mergeWaiting(warp) || leftByExits(warp) || meetApart(warp) || callToMeeting(warp));
  return false;
}

bool releaseWaiting(Warp &warp) {
  auto waiting =
      std::find_if(warp.joins.begin(), warp.joins.end(), [](const Join &join) { return join.used && join.arrived; });
  if (waiting == warp.joins.end())
    return false;
  Fragment freed{waiting->pc, waiting->arrived, waiting->parent, FragmentState::Ready, 0};
  waiting->mask &= ~waiting->arrived;
  waiting->arrived = 0;
  warp.fragments.push_back(freed);
  return true;
}

void rotate(Warp &warp) {
  auto waits = [](const Join &join) { return join.used && join.arrived; };
  // A round of a long loop, as unoptimised code has them, may take several turns, of which one reads memory.
  if (std::none_of(warp.joins.begin(), warp.joins.end(), waits)) {
    warp.starved = 0;
  } else if (warp.spun && ++warp.starved > patience) {
    warp.starved = 0;
    releaseWaiting(warp);
  }
  auto ready = [](const Fragment &fragment) { return fragment.state == FragmentState::Ready; };
  if (warp.mask && std::any_of(warp.fragments.begin(), warp.fragments.end(), ready)) {
    warp.fragments.push_back({warp.pc, warp.mask, warp.join, FragmentState::Ready, 0});
    warp.mask = 0;
    resume(warp);
  }
}

} // namespace weft::simulator::machine
