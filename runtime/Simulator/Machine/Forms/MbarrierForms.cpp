// Part of Weft. SPDX-License-Identifier: Apache-2.0
// mbarrier (PTX ISA 9.7.13.15) and cp.async.mbarrier.arrive.
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Decoding/OperandRules.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/Running/AsyncCopies.h"
#include "runtime/Simulator/Machine/Running/BulkCopies.h"
#include "runtime/Simulator/Machine/Running/Mbarriers.h"
#include "runtime/Simulator/Machine/Running/Tensor/Commits.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Support/Format.h"

#include <optional>

namespace weft::simulator::machine {
namespace {

using namespace mbarrier;
using ptx::Space;
using ptx::Type;

enum class What : uint8_t {
  Init,
  Inval,
  Arrive,
  ArriveDrop,
  ArriveExpect,
  ArriveDropExpect,
  Expect,
  Complete,
  TestWait,
  TestParity,
  AsyncArrive
};

bool drops(What what) { return what == What::ArriveDrop || what == What::ArriveDropExpect; }
bool expects(What what) { return what == What::ArriveExpect || what == What::ArriveDropExpect || what == What::Expect; }

/// Record::aux. op[0]: result or noRef; op[1] + imm: object; op[2]: count, state or parity, or noRef.
struct MbarrierForm {
  What what = What::Init;
  Space space = Space::Generic;
  bool noIncrement = false; ///< .noinc
  bool noComplete = false;
  bool relaxed = false; ///< orders no memory
};

/// Bytes that the current phase of an mbarrier still expects.
int64_t transactionsOf(const Block &block, uint32_t offset) {
  auto known = block.mbarriers.find(offset);
  return known == block.mbarriers.end() ? 0 : known->second.transactions;
}

/// Lets the copies be done that arrive at an mbarrier when they are, now that somebody waits for it: the latest moment
/// that a program can tell.
void arriveWithCopies(Block &block, uint64_t object) {
  bool any = false;
  std::erase_if(block.arrivals, [&](const AsyncArrival &arrival) {
    if (arrival.object != object)
      return false;
    Warp &warp = block.warps[arrival.warp];
    completeIssued(warp, arrival.lane, arrival.sequence);
    std::byte *at = block.shared.data() + object;
    uint64_t now;
    std::memcpy(&now, at, 8);
    if ((now & markMask) != mark || pending(now) == 0)
      return true;
    const uint64_t before = phase(now);
    const uint64_t old = now;
    now = settled(arrivals(now, 1, false), transactionsOf(block, uint32_t(object)));
    rememberObject(block, {block.rank, warp.index, arrival.lane, block.clockOf(warp), arrival.pc}, uint32_t(object),
                   old, now);
    StrongAccess access(warp, orderStrong | orderRelease | orderCluster, sharedKey(block, uint32_t(object)));
    std::memcpy(at, &now, 8);
    access.done(false, true, true);
    if (phase(now) != before)
      access.copyTo(phaseKey(block, object, before));
    any = true;
    return true;
  });
  if (any)
    block.warps[0].worker->changed = true;
}

/// What one lane does to one mbarrier.
struct LaneOperation {
  Warp &warp;
  const MbarrierForm &form;
  Block &block; ///< whose shared memory the object lies in
  unsigned lane;
  uint64_t address;
  std::byte *at;      ///< where the object lies
  uint64_t object;    ///< its bits before
  uint64_t operand;   ///< count, state or parity
  bool found = false; ///< asked for a phase that was over already, and acquired what it left

  uint32_t offset() const { return uint32_t(address & rankOffsetMask); }
  bool remote() const { return &block != warp.block; }
  void misuse(const std::string &what) const { report(warp, FindingKind::MbarrierMisuse, lane, what); }
};

/// A count that is not given is 1.
uint64_t operandOf(Warp &warp, const Record &record, What what, unsigned lane) {
  if (record.op[2] == noRef)
    return 1;
  return what == What::TestWait ? warp.reg<const uint64_t>(record.op[2])[lane]
                                : warp.reg<const uint32_t>(record.op[2])[lane];
}

uint64_t afterInit(const LaneOperation &op) {
  auto &known = op.block.mbarriers;
  if (auto before = known.find(op.offset()); before != known.end() && before->second.object == op.object)
    op.misuse(format("initialises an mbarrier that {} initialised and that nothing invalidated",
                     siteName(op.warp, before->second.initPc)));
  if (op.operand == 0 || op.operand > countMask)
    op.misuse(format("expected a count from 1 to {}, but got {}", countMask, op.operand));
  const uint64_t after = make(op.operand & countMask, op.operand & countMask, 0);
  MbarrierHistory &history = known[op.offset()];
  history = {};
  history.object = after;
  history.counted.assign(op.block.warps.size(), 0);
  history.initPc = op.warp.here();
  history.initWarp = op.warp.index;
  history.initLane = op.lane;
  history.initClock = op.block.clockOf(op.warp);
  return after;
}

/// The object after an arrival; none where it is misused.
std::optional<uint64_t> afterArrive(const LaneOperation &op) {
  const uint64_t count = expects(op.form.what) ? 1 : op.operand;
  if (count == 0 || count > pending(op.object)) {
    op.misuse(format("arrives {} times at an mbarrier that waits for {} in this phase", count, pending(op.object)));
    return std::nullopt;
  }
  checkArrival(op.warp, op.block, op.lane, op.offset(), op.object);
  if (expects(op.form.what))
    expectBytes(op.warp, op.block, op.lane, op.offset(), int64_t(op.operand));
  if (op.form.noComplete && count == pending(op.object)) {
    op.misuse("completes the phase with '.noComplete'");
    return std::nullopt;
  }
  const uint64_t next = settled(arrivals(op.object, count, drops(op.form.what)), transactionsOf(op.block, op.offset()));
  if (phase(next) != phase(op.object))
    checkUnexpected(op.warp, op.block, op.lane, op.offset());
  return next;
}

/// The object after mbarrier.expect_tx or complete_tx.
uint64_t afterTransaction(const LaneOperation &op) {
  checkArrival(op.warp, op.block, op.lane, op.offset(), op.object);
  const auto bytes = int64_t(op.operand);
  expectBytes(op.warp, op.block, op.lane, op.offset(), expects(op.form.what) ? bytes : -bytes);
  return settled(op.object, transactionsOf(op.block, op.offset()));
}

/// The object after mbarrier.inval, which nothing may complete on any more.
uint64_t afterInval(const LaneOperation &op) {
  checkUnexpected(op.warp, op.block, op.lane, op.offset());
  checkCommits(op.warp, op.block, op.lane, op.offset());
  op.block.mbarriers.erase(op.offset());
  return 0;
}

/// The object after cp.async.mbarrier.arrive; none where it is misused. The arrival itself comes when the copies are
/// done, see `arriveWithCopies`.
std::optional<uint64_t> afterAsyncArrive(const LaneOperation &op) {
  if (op.form.noIncrement ? pending(op.object) == 0 : pending(op.object) == countMask) {
    op.misuse("arrives at an mbarrier that cannot wait for it");
    return std::nullopt;
  }
  checkArrival(op.warp, op.block, op.lane, op.offset(), op.object);
  op.block.arrivals.push_back({op.warp.index, op.lane, op.offset(), op.warp.async.issued, op.warp.here()});
  return op.form.noIncrement ? op.object : make(expected(op.object), pending(op.object) + 1, phase(op.object));
}

/// The object after an operation that changes it; none where it is misused.
std::optional<uint64_t> afterChange(const LaneOperation &op) {
  switch (op.form.what) {
  case What::Init:
    return afterInit(op);
  case What::Inval:
    return afterInval(op);
  case What::Expect:
  case What::Complete:
    return afterTransaction(op);
  case What::AsyncArrive:
    return afterAsyncArrive(op);
  default:
    return afterArrive(op);
  }
}

/// Whether a lane uses another block's mbarrier without knowing that it was initialised; reported.
bool missesInit(const LaneOperation &op) {
  auto known = op.block.mbarriers.find(op.offset());
  if (known == op.block.mbarriers.end() || !op.block.grid->options.checks.races ||
      happenedBefore(op.warp, uint32_t(op.block.index), known->second.initWarp, known->second.initClock))
    return false;
  report(op.warp, FindingKind::MissingProxyFence, op.lane,
         format("arrives at an mbarrier of block rank {} of the cluster, and no fence.mbarrier_init and "
                "barrier.cluster lie between that and mbarrier.init",
                op.block.rank),
         siteName(op.warp, known->second.initPc));
  return true;
}

/// Lanes use their own block's mbarrier knowing that it was initialised, or are reported: whoever comes to it first
/// finds other bytes. Later arrivals hide that from the shadow, which knows the last write alone.
void checkInit(const LaneOperation &op, uint32_t lanes) {
  auto known = op.block.mbarriers.find(op.offset());
  if (known == op.block.mbarriers.end() || !tracksShared(op.warp))
    return;
  const MbarrierHistory &history = known->second;
  if (op.warp.block->shadow.ordered(op.warp.index, history.initWarp, history.initClock))
    return; // whatever lane asks
  eachLane(lanes, [&](unsigned lane) {
    const bool isOwn = history.initWarp == op.warp.index && history.initLane == lane;
    if (isOwn || happenedBefore(op.warp, lane, history.initWarp, history.initLane, history.initClock))
      return;
    report(op.warp, FindingKind::SharedRace, lane,
           format("uses the mbarrier at byte {} of shared memory, and no barrier orders that after mbarrier.init",
                  op.offset()),
           format("warp {}, lane {} initialised it at {}", history.initWarp, history.initLane,
                  siteName(op.warp, history.initPc)));
  });
}
void checkInit(const LaneOperation &op) { checkInit(op, 1u << op.lane); }

/// Stores the object, and releases what the lane did before to those who wait for it.
void storeObject(const LaneOperation &op, uint64_t next) {
  Warp &warp = op.warp;
  const What what = op.form.what;
  const bool arrives = what != What::Init && what != What::Inval;
  warp.worker->changed = true;
  if (arrives && !op.remote())
    checkInit(op);
  if (arrives)
    rememberObject(op.block, {warp.block->rank, warp.index, op.lane, op.block.clockOf(warp), warp.here()}, op.offset(),
                   op.object, next);
  if (tracksShared(warp) && !(op.remote() && missesInit(op)))
    shadowWrite(warp, op.lane, clusterAddress(op.block, op.offset()), 8, nullptr, what != What::Init);
  // What a thread arrives with at another block's mbarrier is released to the cluster, whatever its scope says: the
  // pipelines of CUTLASS rest on it.
  const uint8_t order = what == What::Init ? 0 : orderStrong | orderCluster | (op.form.relaxed ? 0 : orderRelease);
  StrongAccess access(warp, order, orderKey(warp, op.address, true));
  std::memcpy(op.at, &next, 8);
  access.done(false, arrives && what != What::Expect && what != What::Complete && what != What::AsyncArrive, true);
  if (arrives && phase(next) != phase(op.object))
    access.copyTo(phaseKey(op.block, op.offset(), phase(op.object)));
}

/// A wait by parity for a phase that is over, and the next one too: the parity is that of the phase after these. Who
/// knows that they are over means that one: warpgroups that take turns leave phases to each other.
void checkBehind(const LaneOperation &op) {
  auto known = op.block.mbarriers.find(op.offset());
  if (known == op.block.mbarriers.end() || !op.block.grid->options.checks.races ||
      knowsPhaseEnd(op.warp, op.block, op.lane, known->second))
    return;
  const uint64_t next = known->second.counted[op.warp.index], now = phase(op.object);
  if (next != 0 && now >= next + 2 && (now - next) % 2 == 0)
    op.misuse(
        format("waits by parity for phase {} of an mbarrier that is in phase {}: it waits for that to end", next, now));
}

/// Whether the phase that a lane asks for, by a state or by a parity, is over. If so, the lane has acquired what its
/// arrivals released.
bool testPhase(LaneOperation &op) {
  if (op.remote()) {
    op.misuse("waits for an mbarrier of another block of the cluster");
    return true;
  }
  checkInit(op);
  const bool byParity = op.form.what == What::TestParity;
  const uint64_t asked = byParity ? op.operand : phase(op.operand);
  auto lasts = [&] { return byParity ? (phase(op.object) & 1) == (asked & 1) : phase(op.object) == asked; };
  if (byParity && lasts())
    checkBehind(op);
  op.found = !lasts();
  countWait(op.warp, op.offset(), phase(op.object) - (op.found ? 1 : 0));
  if (!op.found) {
    arriveWithCopies(op.block, op.offset());
    landAtMbarrier(op.block, op.offset());
    landCommits(op.block, op.offset());
    std::memcpy(&op.object, op.at, 8);
  }
  if (!byParity && (op.operand & markMask) != mark) {
    op.found = false;
    op.misuse("waits for a state that no mbarrier.arrive gave");
  } else if (!byParity && uint16_t(phase(op.object) - asked) > 1) {
    op.found = false;
    op.misuse(format("waits for phase {} of an mbarrier that is in phase {}", asked, phase(op.object)));
  }
  if (lasts())
    return false;
  const uint8_t order = orderStrong | orderCluster | (op.form.relaxed ? 0 : orderAcquire);
  StrongAccess access(op.warp, order, phaseKey(op.block, op.offset(), asked));
  access.done(true, false, false);
  if (auto known = op.block.mbarriers.find(op.offset()); known != op.block.mbarriers.end() && known->second.caused)
    op.warp.order.caused = op.block.grid->order.join(op.warp.order.caused, known->second.caused);
  return true;
}

/// The lanes after one, up to the first that asks for something else, that ask of an mbarrier what that lane has found.
/// They would find it again, and acquire what the warp has acquired.
uint32_t findAlike(const LaneOperation &op, const Record &record, const uint64_t *addresses, uint32_t rest) {
  uint32_t alike = 0;
  for (; rest; rest &= rest - 1) {
    const unsigned lane = firstLane(rest);
    if (addresses[lane] != op.address || operandOf(op.warp, record, op.form.what, lane) != op.operand)
      break;
    alike |= 1u << lane;
  }
  checkInit(op, alike);
  return alike;
}

/// The lanes whose generic address is of shared memory; the others are reported.
uint32_t lanesInShared(Warp &warp, uint32_t mask, const uint64_t *addresses) {
  uint32_t inside = 0;
  eachLane(mask, [&](unsigned lane) {
    if (addresses[lane] >> windowShift << windowShift == sharedWindow)
      inside |= 1u << lane;
    else
      report(warp, FindingKind::OutOfBounds, lane,
             format("expected an address of shared memory, where mbarriers are, but got {:#x}", addresses[lane]));
  });
  return inside;
}

void runMbarrier(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const MbarrierForm *>(record.aux);
  LaneAddresses addresses(warp, record, record.op[1], record.wideAddress);
  if (form.space == Space::Generic)
    mask = lanesInShared(warp, mask, addresses.at);
  if (!mask)
    return;
  AccessKind kind = form.what == What::Init ? AccessKind::Write : AccessKind::Atomic;
  Resolved at = form.space == Space::Shared ? resolveShared(warp, record, mask, addresses.at, 8, kind)
                                            : resolveGeneric(warp, record, mask, addresses.at, 8, kind);
  const bool tests = form.what == What::TestWait || form.what == What::TestParity;
  uint64_t states[laneCount] = {};
  uint32_t passed = 0;
  for (uint32_t rest = at.mask; rest; rest &= rest - 1) {
    const unsigned lane = firstLane(rest);
    Block &block = *blockAt(warp, uint32_t(addresses.at[lane] & windowOffsetMask));
    LaneOperation op{
        warp, form, block, lane, addresses.at[lane], at.at[lane], 0, operandOf(warp, record, form.what, lane)};
    std::memcpy(&op.object, op.at, 8);
    if (form.what != What::Init && (op.object & markMask) != mark) {
      op.misuse("uses an mbarrier that was not initialised");
      passed |= 1u << lane; // not to wait for ever
      continue;
    }
    states[lane] = op.object;
    if (tests)
      passed |= uint32_t(testPhase(op)) << lane;
    else if (std::optional<uint64_t> next = afterChange(op))
      storeObject(op, *next);
    if (op.found) {
      const uint32_t alike = findAlike(op, record, addresses.at, rest & (rest - 1));
      passed |= alike;
      rest &= ~alike;
    }
  }
  if (!tests) {
    if (record.op[0] != noRef)
      commit(warp.reg<uint64_t>(record.op[0]), states, mask);
    return;
  }
  commitPredicate(warp.predicate(record.op[0]), passed, mask);
  if (mask & ~passed) {
    warp.spun = true;
    warp.awaited = uint32_t(addresses.at[firstLane(mask & ~passed)] & windowOffsetMask);
    warp.stop(); // let those run that are waited for
  }
}

/// The state that an arrival gives, which at another block's mbarrier there is none of.
void bindState(Binding &b, const ptx::Operand &operand) {
  if (b.modifier("space") == "shared::cluster" && operand.kind != ptx::OperandKind::Sink)
    b.fail(operand,
           format("expected '_' for the state of an arrival with '.shared::cluster', but got '{}'", operand.text));
  b.setDestination(0, b.destinationOrNone(operand, Type::B64));
}

void bind(Binding &b, What what) {
  MbarrierForm form;
  form.what = what;
  form.space = b.modifier("space").starts_with("shared") ? Space::Shared : Space::Generic;
  form.noIncrement = b.has("noinc");
  form.noComplete = b.has("noComplete");
  form.relaxed = b.modifier("order") == "relaxed";
  size_t at = 0;
  bool waits = what == What::TestWait || what == What::TestParity;
  // To wait for another block's mbarrier is a misuse of its own.
  b.record.inCluster = waits || form.space == Space::Generic || b.modifier("space") == "shared::cluster";
  if (waits)
    b.setDestination(0, b.predicateDestination(b.operand(at++)));
  else if (what >= What::Arrive && what <= What::ArriveDropExpect && b.operand(0).kind != ptx::OperandKind::Address)
    bindState(b, b.operand(at++));
  const AddressOperand address = addressIn(b, b.operand(at++), form.space);
  b.record.op[1] = address.base;
  b.record.imm = address.offset;
  b.record.wideAddress = address.wide;
  b.record.order = orderStrong;
  b.site.addressOperand = 1;
  if (at < b.operandCount())
    b.record.op[2] = b.source(b.operand(at++), what == What::TestWait ? Type::B64 : Type::U32);
  if (b.modifier("wait") == "try_wait" && at < b.operandCount())
    b.source(b.operand(at), Type::U32); // how long to wait, which the simulator may choose
  if (what == What::TestParity)
    expectAtMost(b, b.operand(2), 1);
  if (what == What::Init && b.record.op[2] == noRef)
    b.fail("expected a count of arrivals");
  if (waits && b.record.op[2] == noRef)
    b.fail("expected a state or a parity");
  if ((expects(what) || what == What::Complete) && b.record.op[2] == noRef)
    b.fail("expected a count of bytes");
  b.decoder.noteAccess(Space::Shared, 8);
  b.keep(form);
  b.record.run = runMbarrier;
}

template <What what> void bindAs(Binding &b) { bind(b, what); }

void bindPending(Binding &b) {
  b.record.run = lanes<[](uint64_t state) { return uint32_t(pending(state)); }, uint32_t, uint64_t>;
}

#define WEFT_WHERE "space=shared|shared::cta?"
#define WEFT_ANYWHERE "space=shared|shared::cta|shared::cluster?"
#define WEFT_ORDER "order=release|acquire|relaxed? scope=cta|cluster?"
constexpr auto cls = InstructionClass::Barrier;

const Form forms[] = {
    {"mbarrier", "init " WEFT_WHERE " b64", "*", cls, bindAs<What::Init>},
    {"mbarrier", "inval " WEFT_WHERE " b64", "*", cls, bindAs<What::Inval>},
    {"mbarrier", "arrive noComplete? " WEFT_ORDER " " WEFT_ANYWHERE " b64", "*", cls, bindAs<What::Arrive>},
    {"mbarrier", "arrive_drop noComplete? " WEFT_ORDER " " WEFT_ANYWHERE " b64", "*", cls, bindAs<What::ArriveDrop>},
    {"mbarrier", "arrive expect_tx " WEFT_ORDER " " WEFT_ANYWHERE " b64", "*", cls, bindAs<What::ArriveExpect>},
    {"mbarrier", "arrive_drop expect_tx " WEFT_ORDER " " WEFT_ANYWHERE " b64", "*", cls,
     bindAs<What::ArriveDropExpect>},
    {"mbarrier", "expect_tx " WEFT_ORDER " " WEFT_ANYWHERE " b64", "*", cls, bindAs<What::Expect>},
    {"mbarrier", "complete_tx " WEFT_ORDER " " WEFT_ANYWHERE " b64", "*", cls, bindAs<What::Complete>},
    {"mbarrier", "wait=test_wait|try_wait " WEFT_ORDER " " WEFT_WHERE " b64", "*", cls, bindAs<What::TestWait>},
    {"mbarrier", "wait=test_wait|try_wait parity " WEFT_ORDER " " WEFT_WHERE " b64", "*", cls,
     bindAs<What::TestParity>},
    {"mbarrier", "pending_count b64", "d:b32 s:b64", cls, bindPending},
    {"cp", "async mbarrier arrive noinc? " WEFT_WHERE " b64", "*", InstructionClass::AsyncCopy,
     bindAs<What::AsyncArrive>},
};

} // namespace

std::span<const Form> mbarrierForms() { return forms; }

} // namespace weft::simulator::machine
