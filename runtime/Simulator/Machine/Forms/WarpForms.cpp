// Part of Weft. SPDX-License-Identifier: Apache-2.0
// shfl, vote, match, redux, elect (PTX ISA 9.7.9.6, 9.7.13).
#include "runtime/Simulator/Machine/Checks/Poison.h"
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Forms/Engines/Requirements.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/Running/Divergence.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Simulator/Semantics/Warp.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;
using ptx::Type;

/// Keeps in `mask` the lanes whose members are all here; false where there are none.
bool gatherMembers(Warp &warp, uint32_t &mask, const uint32_t *members) {
  mask = gatherGroups(warp, mask, members);
  warp.meetings = uint16_t(warp.meetings + (mask == warp.live));
  return mask != 0;
}

/// op: result, value, b, c, members, predicate result or noRef. Record::imm: mode.
void runShuffle(Warp &warp, const Record &record, uint32_t mask) {
  if (!gatherMembers(warp, mask, warp.reg<const uint32_t>(record.op[4])))
    return;
  const uint32_t *value = warp.reg<const uint32_t>(record.op[1]);
  const uint32_t *b = warp.reg<const uint32_t>(record.op[2]), *c = warp.reg<const uint32_t>(record.op[3]);
  const uint32_t *members = warp.reg<const uint32_t>(record.op[4]);
  uint32_t results[laneCount], inRange = 0, poison = 0, absent = 0, poisoned = poisonOf(warp, record.op[1]);
  uint8_t from[laneCount];
  for (unsigned lane = 0; lane < laneCount; ++lane) {
    sem::ShuffleSource source = sem::shuffleSource(sem::ShuffleMode(record.imm), lane, b[lane], c[lane]);
    results[lane] = value[source.lane];
    from[lane] = source.lane;
    inRange |= uint32_t(source.inRange) << lane;
    poison |= (poisoned >> source.lane & 1) << lane;
    absent |= (~(members[lane] & mask) >> source.lane & 1) << lane;
  }
  uint32_t origins[laneCount]; // before the results are written, which may be the values' registers
  eachLane(poison & mask,
           [&](unsigned lane) { origins[lane] = readNow(warp, originOf(warp, record.op[1], from[lane])); });
  commit(warp.reg<uint32_t>(record.op[0]), results, mask);
  if (Ref predicate = warp.kernel->sites[warp.here()].wideCount ? record.wide[0] : noRef; predicate != noRef)
    commitPredicate(warp.predicate(predicate), inRange, mask);
  eachLane(poison & mask & ~absent,
           [&](unsigned lane) { poisonRegister(warp, record.op[0], 1u << lane, origins[lane]); });
  if (warp.block->grid->options.checks.uninitialised)
    eachLane(absent & mask, [&](unsigned lane) { // what a lane that is not there would give is undefined
      poisonRegister(warp, record.op[0], 1u << lane, readFirst(warp, Origin::Lane, from[lane]));
    });
}

/// op: result, predicate, members. Record::imm: mode; Record::target: negated.
enum class Vote : uint8_t { All, Any, Uni, Ballot };

void runVote(Warp &warp, const Record &record, uint32_t mask) {
  const uint32_t *members = warp.reg<const uint32_t>(record.op[2]);
  if (!gatherMembers(warp, mask, members))
    return;
  uint32_t holds = warp.predicate(record.op[1]) ^ (record.target ? ~0u : 0u);
  uint32_t ballots[laneCount], bits = 0;
  for (unsigned lane = 0; lane < laneCount; ++lane) {
    uint32_t present = members[lane] & warp.live;
    ballots[lane] = sem::voteBallot(holds, present);
    bool value = Vote(record.imm) == Vote::All   ? sem::voteAll(holds, present)
                 : Vote(record.imm) == Vote::Any ? sem::voteAny(holds, present)
                                                 : sem::voteUni(holds, present);
    bits |= uint32_t(value) << lane;
  }
  if (Vote(record.imm) == Vote::Ballot)
    commit(warp.reg<uint32_t>(record.op[0]), ballots, mask);
  else
    commitPredicate(warp.predicate(record.op[0]), bits, mask);
}

/// op: result, value, members, predicate result or noRef. Record::target: all.
template <typename T> void runMatch(Warp &warp, const Record &record, uint32_t mask) {
  const uint32_t *members = warp.reg<const uint32_t>(record.op[2]);
  if (!gatherMembers(warp, mask, members))
    return;
  const T *values = warp.reg<const T>(record.op[1]);
  uint32_t results[laneCount] = {}, same = 0;
  eachLane(mask, [&](unsigned lane) {
    uint32_t present = members[lane] & warp.live;
    results[lane] = record.target ? sem::matchAll(values, present) : sem::matchAny(values, lane, present);
    same |= uint32_t(results[lane] != 0) << lane;
  });
  commit(warp.reg<uint32_t>(record.op[0]), results, mask);
  if (record.op[3] != noRef)
    commitPredicate(warp.predicate(record.op[3]), same, mask);
}

/// op: result, value, members. Record::imm: reduction.
template <typename T> void runRedux(Warp &warp, const Record &record, uint32_t mask) {
  const uint32_t *members = warp.reg<const uint32_t>(record.op[2]);
  if (!gatherMembers(warp, mask, members))
    return;
  const T *values = warp.reg<const T>(record.op[1]);
  uint32_t results[laneCount] = {};
  eachLane(mask, [&](unsigned lane) {
    results[lane] = uint32_t(sem::redux<T>(sem::Reduction(record.imm), values, members[lane] & warp.live));
  });
  commit(warp.reg<uint32_t>(record.op[0]), results, mask);
}

/// What Record::imm has of a reduction of f32.
enum FloatReductionBits : uint8_t { GreatestBit = 1, MagnitudesBit = 2, NaNBit = 4 };

/// op: result, value, members. Record::imm: FloatReductionBits.
void runFloatRedux(Warp &warp, const Record &record, uint32_t mask) {
  const uint32_t *members = warp.reg<const uint32_t>(record.op[2]);
  if (!gatherMembers(warp, mask, members))
    return;
  const float *values = warp.reg<const float>(record.op[1]);
  const bool greatest = record.imm & GreatestBit, magnitudes = record.imm & MagnitudesBit, nan = record.imm & NaNBit;
  float results[laneCount] = {};
  eachLane(mask, [&](unsigned lane) {
    results[lane] = sem::reduxFloat(greatest, magnitudes, nan, values, members[lane] & warp.live);
  });
  commit(warp.reg<float>(record.op[0]), results, mask);
}

void bindShuffle(Binding &b) {
  b.record.members = 4;
  std::string_view mode = b.modifier("mode");
  b.record.imm = int64_t(mode == "up"     ? sem::ShuffleMode::Up
                         : mode == "down" ? sem::ShuffleMode::Down
                         : mode == "bfly" ? sem::ShuffleMode::Butterfly
                                          : sem::ShuffleMode::Index);
  size_t at = 1;
  b.setDestination(0, b.destination(b.operand(0), Type::B32));
  if (b.pair())
    b.setWide({b.predicateDestinationOrNone(b.operand(at++))}, 1);
  for (size_t i = 1; i <= 4; ++i)
    b.record.op[i] = b.source(b.operand(at++), i < 4 ? Type::B32 : Type::U32);
  b.record.run = runShuffle;
}

void bindVote(Binding &b) {
  b.record.members = 2;
  std::string_view mode = b.modifier("mode");
  Vote vote = mode == "all" ? Vote::All : mode == "any" ? Vote::Any : mode == "uni" ? Vote::Uni : Vote::Ballot;
  b.record.imm = int64_t(vote);
  b.setDestination(0, vote == Vote::Ballot ? b.destination(b.operand(0), Type::B32)
                                           : b.predicateDestination(b.operand(0)));
  const ptx::Operand &predicate = b.operand(1);
  b.record.target = predicate.negated;
  b.record.op[1] = b.predicate(predicate);
  b.record.op[2] = b.source(b.operand(2), Type::U32);
  b.record.run = runVote;
}

void bindMatch(Binding &b) {
  b.record.members = 2;
  size_t at = 1;
  b.setDestination(0, b.destination(b.operand(0), Type::U32));
  if (b.pair())
    b.setDestination(3, b.predicateDestinationOrNone(b.operand(at++)));
  b.record.op[1] = b.source(b.operand(at), b.type());
  b.record.op[2] = b.source(b.operand(at + 1), Type::U32);
  b.record.target = b.modifier("mode") == "all";
  b.record.run = b.type() == Type::B64 ? runMatch<uint64_t> : runMatch<uint32_t>;
}

void bindRedux(Binding &b) {
  b.record.members = 2;
  static constexpr std::string_view names[] = {"add", "min", "max", "and", "or", "xor"};
  for (int64_t i = 0; i < 6; ++i)
    if (names[i] == b.modifier("op"))
      b.record.imm = i;
  b.record.run = b.type() == Type::S32 ? runRedux<int32_t> : runRedux<uint32_t>;
}

void bindFloatRedux(Binding &b) {
  needsFloatReductions(b);
  b.record.members = 2;
  b.record.imm =
      (b.modifier("op") == "max" ? GreatestBit : 0) | (b.has("abs") ? MagnitudesBit : 0) | (b.has("NaN") ? NaNBit : 0);
  b.record.run = runFloatRedux;
}

/// op: the lane as a number, whether this lane is it, members. Which lane it is, is open.
void runElect(Warp &warp, const Record &record, uint32_t mask) {
  const uint32_t *members = warp.reg<const uint32_t>(record.op[2]);
  if (!gatherMembers(warp, mask, members))
    return;
  uint32_t results[laneCount] = {}, elected = 0;
  eachLane(mask, [&](unsigned lane) {
    // Any would do by the ISA, as long as it is the same for the same members. CUTLASS's pipelines, where thread 0 says
    // how many bytes come and the elected thread sends for them, rest on the one that machines elect.
    results[lane] = firstLane(members[lane] & warp.live);
    elected |= uint32_t(results[lane] == lane) << lane;
  });
  commit(warp.reg<uint32_t>(record.op[0]), results, mask);
  commitPredicate(warp.predicate(record.op[1]), elected, mask);
}

void bindElect(Binding &b) {
  needsHopper(b);
  b.record.members = 2;
  b.setDestination(0, b.destinationOrNone(b.operand(0), Type::U32));
  if (!b.pair())
    b.fail("expected a register and a predicate");
  b.setDestination(1, b.predicateDestination(b.operand(1)));
  b.record.op[2] = b.source(b.operand(2), Type::U32);
  b.record.run = runElect;
}

const Form forms[] = {
    {"elect", "sync", "*", InstructionClass::Vote, bindElect},
    {"shfl", "sync mode=up|down|bfly|idx b32", "*", InstructionClass::Shuffle, bindShuffle},
    {"vote", "sync mode=all|any|uni pred", "*", InstructionClass::Vote, bindVote},
    {"vote", "sync mode=ballot b32", "*", InstructionClass::Vote, bindVote},
    {"match", "mode=any|all sync type=b32|b64", "*", InstructionClass::Vote, bindMatch},
    {"redux", "sync op=add|min|max|and|or|xor type=u32|s32|b32", "d:u32 s:u32 s:u32", InstructionClass::Vote,
     bindRedux},
    {"redux", "sync op=min|max abs? NaN? type=f32", "d:f32 s:f32 s:u32", InstructionClass::Vote, bindFloatRedux},
};

} // namespace

std::span<const Form> warpForms() { return forms; }

} // namespace weft::simulator::machine
