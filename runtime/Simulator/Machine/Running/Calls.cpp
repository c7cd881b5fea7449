// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/Calls.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Running/Divergence.h"
#include "runtime/Simulator/Machine/Running/Interpreter.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

/// What a call takes of the stack besides its frame: a return address and what a GPU saves at the least.
constexpr uint32_t callBytes = 16;

uint32_t &word(Warp &warp, Ref slot, unsigned index) { return warp.reg<uint32_t>(slot)[index]; }

/// A register's lane with what is known of it: its bits, then which of its bytes are unwritten, then its origin.
void save(Warp &warp, const SavedSlot &slot, unsigned lane, std::vector<uint32_t> &to) {
  if (slot.kind == SavedSlot::Predicate) {
    to.push_back(warp.predicate(slot.ref) >> lane & 1);
  } else if (slot.kind == SavedSlot::Word) {
    to.push_back(word(warp, slot.ref, lane));
  } else {
    to.push_back(word(warp, slot.ref, 2 * lane));
    to.push_back(word(warp, slot.ref, 2 * lane + 1));
  }
  uint32_t unwritten = poisonOf(warp, slot.ref) >> lane & 1;
  if (unwritten && slot.kind != SavedSlot::Predicate) {
    const BytePoison bytes = bytePoisonOf(warp, slot.ref);
    for (unsigned i = 0; i < bytes.size(); ++i)
      unwritten |= (bytes[i] >> lane & 1) << (i + 1);
  }
  to.push_back(unwritten);
  to.push_back(unwritten ? originOf(warp, slot.ref, lane) : 0);
}

uint32_t take(std::vector<uint32_t> &from) {
  const uint32_t value = from.back();
  from.pop_back();
  return value;
}

void restore(Warp &warp, const SavedSlot &slot, unsigned lane, std::vector<uint32_t> &from) {
  const uint32_t origin = take(from), unwritten = take(from);
  if (slot.kind == SavedSlot::Predicate) {
    warp.predicate(slot.ref) = (warp.predicate(slot.ref) & ~(1u << lane)) | take(from) << lane;
  } else if (slot.kind == SavedSlot::Word) {
    word(warp, slot.ref, lane) = take(from);
  } else {
    word(warp, slot.ref, 2 * lane + 1) = take(from);
    word(warp, slot.ref, 2 * lane) = take(from);
  }
  if (!warp.anyPoison)
    return;
  auto put = [&](uint32_t &bits, uint32_t bit) { bits = (bits & ~(1u << lane)) | (bit & 1) << lane; };
  put(warp.poison[slot.ref >> 2], unwritten);
  for (unsigned i = 0; i < 8 && slot.kind != SavedSlot::Predicate; ++i)
    put(warp.poison[(slot.ref >> 2) + 1 + i], unwritten >> (i + 1));
  if (unwritten)
    setOrigin(warp, slot.ref, 1u << lane, origin);
}

/// Copies bytes of a lane's local memory with what is known of them.
void copyLocal(Warp &warp, unsigned lane, uint32_t to, uint32_t from, uint32_t bytes) {
  const size_t base = size_t(lane) * warp.kernel->localBytes;
  std::memcpy(warp.local.data() + base + to, warp.local.data() + base + from, bytes);
  if (!warp.localWritten.empty())
    std::memcpy(warp.localWritten.data() + base + to, warp.localWritten.data() + base + from, bytes);
}

void markFrame(Warp &warp, const Record &record, uint32_t mask, LocalMark mark) {
  if (warp.localWritten.empty())
    return;
  const uint64_t *base = record.op[0] == noRef ? nullptr : warp.reg<const uint64_t>(record.op[0]);
  eachLane(mask, [&](unsigned lane) {
    std::memset(
        &warp.localWritten[size_t(lane) * warp.kernel->localBytes + (base ? base[lane] : 0) + uint64_t(record.imm)],
        mark, record.target - uint64_t(record.imm));
  });
}

} // namespace

void runCall(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const CallForm *>(record.aux);
  const CalledFunction &called = warp.kernel->called[form.function];
  const uint64_t *caller = warp.reg<const uint64_t>(record.op[0]);
  const uint32_t end = warp.kernel->localBytes;
  uint64_t starts[laneCount];
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const unsigned lane = firstLane(rest);
    const uint32_t start = alignUp(warp.stackTop[lane], called.align);
    if (start + called.bytes + callBytes > end) {
      report(warp, FindingKind::OutOfBounds, lane,
             format("calls '{}' with {} bytes of variables, and the stack of {} bytes overflows", called.name,
                    called.bytes, end - warp.kernel->stackStart));
      return abortBlock(*warp.block);
    }
    if (!warp.localWritten.empty())
      std::memset(&warp.localWritten[size_t(lane) * end + start], localUnwritten, called.bytes);
    for (const ParameterCopy &copy : form.arguments)
      copyLocal(warp, lane, start + copy.callee, uint32_t(caller[lane]) + copy.caller, copy.bytes);
    starts[lane] = start;
    std::vector<uint32_t> &saved = warp.calls[lane];
    for (const SavedSlot &slot : called.saved)
      save(warp, slot, lane, saved);
    for (uint32_t each : {warp.stackTop[lane], start, warp.here(), form.function})
      saved.push_back(each);
    warp.stackTop[lane] = start + called.bytes + callBytes;
    warp.stackMost[lane] = std::max(warp.stackMost[lane], warp.stackTop[lane]);
  }
  if (called.frame != noRef)
    commit(warp.reg<uint64_t>(called.frame), starts, mask);
  if (warp.block->grid->options.checks.uninitialised)
    for (uint32_t i = called.firstUninitialised; i < called.lastUninitialised; ++i)
      poisonRegister(warp, warp.kernel->maybeUninitialised[i].slot, mask,
                     warp.block->origins.add({Origin::Register, Origin::nowhere, Origin::nowhere, i}));
  // The lanes meet again behind the call, where a join stands.
  divideInto(warp, warp.pc);
  warp.pc = record.target;
}

void runReturn(Warp &warp, const Record &, uint32_t mask) {
  uint32_t targets[laneCount];
  eachLane(mask, [&](unsigned lane) {
    std::vector<uint32_t> &saved = warp.calls[lane];
    const CalledFunction &called = warp.kernel->called[take(saved)];
    const uint32_t call = take(saved), start = take(saved), top = take(saved);
    for (auto slot = called.saved.rbegin(); slot != called.saved.rend(); ++slot)
      restore(warp, *slot, lane, saved);
    const Record &record = warp.kernel->code[call];
    const auto caller = uint32_t(warp.reg<const uint64_t>(record.op[0])[lane]);
    for (const ParameterCopy &copy : static_cast<const CallForm *>(record.aux)->results)
      copyLocal(warp, lane, caller + copy.caller, start + copy.callee, copy.bytes);
    warp.stackTop[lane] = top;
    targets[lane] = call + 1;
  });
  const uint32_t rest = warp.mask & ~mask, first = targets[firstLane(mask)];
  uint32_t same = 0;
  eachLane(mask, [&](unsigned lane) { same |= uint32_t(targets[lane] == first) << lane; });
  if (same == warp.mask) {
    warp.pc = first;
    return;
  }
  while (mask) {
    const uint32_t target = targets[firstLane(mask)];
    uint32_t group = 0;
    eachLane(mask, [&](unsigned lane) { group |= uint32_t(targets[lane] == target) << lane; });
    warp.fragments.push_back({target, group, warp.join, FragmentState::Ready, 0});
    mask &= ~group;
  }
  warp.mask = rest;
  if (!rest && !resume(warp))
    warp.stop();
}

void runFrameAddress(Warp &warp, const Record &record, uint32_t mask) {
  const uint64_t *base = warp.reg<const uint64_t>(record.op[1]);
  uint64_t results[laneCount];
  for (unsigned lane = 0; lane < laneCount; ++lane)
    results[lane] = base[lane] + uint64_t(record.imm);
  commit(warp.reg<uint64_t>(record.op[0]), results, mask);
}

void runEnterFrame(Warp &warp, const Record &record, uint32_t mask) { markFrame(warp, record, mask, localUnwritten); }
void runLeaveFrame(Warp &warp, const Record &record, uint32_t mask) { markFrame(warp, record, mask, localReturned); }

} // namespace weft::simulator::machine
