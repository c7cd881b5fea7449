// Part of Weft. SPDX-License-Identifier: Apache-2.0
// shfl, vote, match, redux and bar.warp.sync wait until all lanes they name have executed *an* instruction with the
// same qualifiers and members (PTX ISA 9.7.9.6, 9.7.13): not the same one. Where a compiler has unrolled a loop around
// one, lanes meet at different copies of it. Each copy has registers of its own: their lanes are brought together in
// scratch registers, the instruction runs once, and the results go back.
#include "runtime/Simulator/Machine/Running/Divergence.h"
#include "runtime/Simulator/Machine/State/Executors.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

/// Fragments that execute an instruction together, by their place in Warp::fragments; the first gives its form.
struct Meeting {
  std::vector<size_t> fragments;
  uint32_t lanes = 0;
};

const Record &recordOf(const Warp &warp, const Fragment &fragment) { return warp.kernel->code[fragment.pc]; }
const Site &siteOf(const Warp &warp, const Fragment &fragment) { return warp.kernel->sites[fragment.pc]; }

uint32_t lanesOf(const Warp &warp, const Fragment &fragment) {
  const Record &record = recordOf(warp, fragment);
  if (record.guard == noRef)
    return fragment.mask;
  return fragment.mask & (warp.predicate(record.guard) ^ (record.guardNegated ? ~0u : 0u));
}

uint32_t membersOf(const Warp &warp, const Fragment &fragment) {
  const Record &record = recordOf(warp, fragment);
  uint32_t members = 0;
  eachLane(lanesOf(warp, fragment),
           [&](unsigned lane) { members |= warp.reg<const uint32_t>(record.op[record.members])[lane]; });
  return members & warp.live;
}

/// A vote's `target` says whether its predicate is negated, which is an operand's matter; a match's is its mode.
bool isVote(const Site &site) { return site.instruction->mnemonic == "vote"; }

bool sameForm(const Warp &warp, const Fragment &a, const Fragment &b) {
  const Record &x = recordOf(warp, a), &y = recordOf(warp, b);
  return a.pc != b.pc && x.run == y.run && x.imm == y.imm && (x.target == y.target || isVote(siteOf(warp, a))) &&
         siteOf(warp, a).wideCount >= siteOf(warp, b).wideCount;
}

/// All whose lanes `first` waits for, and those whose lanes they wait for; no fragments where some are not here.
Meeting meetingOf(const Warp &warp, size_t first) {
  const std::vector<Fragment> &fragments = warp.fragments;
  Meeting meeting{{first}, lanesOf(warp, fragments[first])};
  uint32_t needed = membersOf(warp, fragments[first]);
  for (bool grown = true; grown;) {
    grown = false;
    for (size_t i = 0; i < fragments.size(); ++i) {
      const Fragment &other = fragments[i];
      if (other.state != FragmentState::AtSync || !(lanesOf(warp, other) & needed & ~meeting.lanes) ||
          !sameForm(warp, fragments[first], other))
        continue;
      meeting.fragments.push_back(i);
      meeting.lanes |= lanesOf(warp, other);
      needed |= membersOf(warp, other);
      grown = true;
    }
  }
  if (meeting.fragments.size() == 1 || (needed & ~meeting.lanes))
    return {};
  return meeting;
}

/// Lanes of one register put into another; a register of 32 bits, of 64, or a predicate.
enum class Kind : uint8_t { Word, Double, Predicate };

void copyLanes(Warp &warp, Ref to, Ref from, uint32_t lanes, Kind kind, bool negated = false) {
  if (kind == Kind::Predicate) {
    const uint32_t bits = warp.predicate(from) ^ (negated ? ~0u : 0u);
    warp.predicate(to) = (warp.predicate(to) & ~lanes) | (bits & lanes);
    return;
  }
  eachLane(lanes, [&](unsigned lane) {
    if (kind == Kind::Double)
      warp.reg<uint64_t>(to)[lane] = warp.reg<const uint64_t>(from)[lane];
    else
      warp.reg<uint32_t>(to)[lane] = warp.reg<const uint32_t>(from)[lane];
  });
}

Kind kindOf(const Warp &warp, const Record &record, const Site &site, unsigned operand) {
  const Ref ref = record.op[operand];
  if (!(ref & constantRef) && ref < warp.kernel->vectorStart)
    return Kind::Predicate;
  const auto &modifiers = site.instruction->modifiers;
  const bool wide = operand == 1 && std::find(modifiers.begin(), modifiers.end(), "b64") != modifiers.end();
  return wide ? Kind::Double : Kind::Word;
}

void forget(Warp &warp, Ref ref, uint32_t lanes) {
  if (!warp.anyPoison || (ref & constantRef))
    return;
  const unsigned words = ref >= warp.kernel->vectorStart ? 9 : 1;
  for (unsigned i = 0; i < words; ++i)
    warp.poison[(ref >> 2) + i] &= ~lanes;
}

void hold(Warp &warp, const Meeting &meeting) {
  const Fragment &first = warp.fragments[meeting.fragments.front()];
  auto scratch = [&](unsigned operand) { return warp.kernel->meetingStart + operand * 2 * slotBytes; };
  Record together = recordOf(warp, first);
  together.guard = noRef;
  if (isVote(siteOf(warp, first)))
    together.target = 0;
  const Ref predicate = scratch(6);
  together.wide = &predicate;
  for (unsigned k = 0; k < 6; ++k)
    if (together.op[k] != noRef)
      together.op[k] = scratch(k);
  for (size_t at : meeting.fragments) {
    const Fragment &fragment = warp.fragments[at];
    const Record &record = recordOf(warp, fragment);
    const Site &site = siteOf(warp, fragment);
    for (unsigned k = 0; k < 6; ++k)
      if (record.op[k] != noRef && !(site.destinations >> k & 1))
        copyLanes(warp, scratch(k), record.op[k], lanesOf(warp, fragment), kindOf(warp, record, site, k),
                  isVote(site) && k == 1 && record.target);
  }
  warp.mask = meeting.lanes;
  warp.pc = first.pc + 1;
  together.run(warp, together, meeting.lanes);
  warp.mask = 0;
  for (size_t at : meeting.fragments) {
    Fragment &fragment = warp.fragments[at];
    const Record &record = recordOf(warp, fragment);
    const Site &site = siteOf(warp, fragment);
    const uint32_t lanes = lanesOf(warp, fragment);
    for (unsigned k = 0; k < 6; ++k)
      if (record.op[k] != noRef && (site.destinations >> k & 1)) {
        copyLanes(warp, record.op[k], scratch(k), lanes, kindOf(warp, record, site, k));
        forget(warp, record.op[k], lanes);
      }
    if (site.wideCount && record.wide[0] != noRef)
      copyLanes(warp, record.wide[0], predicate, lanes, Kind::Predicate);
    ++warp.worker->executed[fragment.pc];
    warp.worker->executedThreads[fragment.pc] += unsigned(__builtin_popcount(lanes));
  }
  for (size_t at : meeting.fragments) {
    warp.fragments[at].state = FragmentState::Ready;
    ++warp.fragments[at].pc;
  }
}

} // namespace

bool leftByExits(Warp &warp) {
  for (Fragment &fragment : warp.fragments) {
    if (fragment.state != FragmentState::AtSync)
      continue;
    const Record &record = recordOf(warp, fragment);
    const uint32_t here = lanesOf(warp, fragment), missing = warp.live & ~here;
    bool complete = missing == 0;
    if (record.members >= 0)
      eachLane(here, [&](unsigned lane) {
        complete |= (warp.reg<const uint32_t>(record.op[record.members])[lane] & missing) == 0;
      });
    if (here && complete) {
      fragment.state = FragmentState::Ready;
      return true;
    }
  }
  return false;
}

bool meetApart(Warp &warp) {
  for (size_t i = 0; i < warp.fragments.size(); ++i) {
    const Fragment &fragment = warp.fragments[i];
    if (fragment.state != FragmentState::AtSync || recordOf(warp, fragment).members < 0)
      continue;
    if (Meeting meeting = meetingOf(warp, i); !meeting.fragments.empty()) {
      hold(warp, meeting);
      return true;
    }
  }
  return false;
}

} // namespace weft::simulator::machine
