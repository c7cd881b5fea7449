// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/Atomics.h"

#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/State/Lanes.h"

#include <optional>

namespace weft::simulator::machine {
namespace {

using ptx::Space;

/// Exchanges the T at `at` by compute's result; returns what was there.
template <typename T> T change(std::byte *at, const AtomicForm &form, T b, T c, bool global, bool &changed) {
  auto *cell = reinterpret_cast<T *>(at);
  T old = __atomic_load_n(cell, __ATOMIC_SEQ_CST);
  T wanted;
  do
    wanted = T(form.compute(old, b, c, global));
  while (!__atomic_compare_exchange_n(cell, &old, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  changed |= wanted != old;
  return old;
}

/// The bytes of an operand that nothing wrote.
uint32_t unwrittenOf(const Warp &warp, Ref ref, unsigned lane, unsigned bytes) {
  uint32_t unwritten = 0;
  if (ref == noRef || !(poisonOf(warp, ref) >> lane & 1))
    return 0;
  const BytePoison poison = bytePoisonOf(warp, ref);
  for (unsigned i = 0; i < bytes; ++i)
    unwritten |= (poison[i] >> lane & 1) << i;
  return unwritten;
}

/// What a lane's atomic reads and leaves unwritten of one element: `before`, of its `bytes`, nothing wrote.
struct Unwritten {
  uint32_t before = 0, after = 0, origin = 0;

  Unwritten(Warp &warp, const AtomicForm &form, Ref value, unsigned lane, const std::byte *at, bool read,
            unsigned bytes) {
    const uint32_t whole = (1u << bytes) - 1;
    if (read)
      before = unwrittenBytes(warp, at, bytes);
    const uint32_t operand = unwrittenOf(warp, value, lane, bytes);
    if (before)
      origin = originAt(warp, at, bytes, before);
    else if (operand)
      origin = readNow(warp, originOf(warp, value, lane));
    // A compare-and-swap of a word that nothing wrote leaves what nobody knows; of a part of one, what it was given.
    after = form.mixing == AtomicForm::None    ? operand
            : form.mixing == AtomicForm::Bytes ? (form.swaps && before != whole ? operand : before | operand)
            : before | operand                 ? whole
                                               : 0;
  }
};

/// Takes down what a lane's atomic leaves unwritten of `bytes` at `at`, once it has run.
void keepUnwritten(Warp &warp, unsigned lane, const std::byte *at, unsigned bytes, const Unwritten &unwritten,
                   bool writes, bool shared) {
  if (unwritten.before && !shared)
    markWritten(warp, at, bytes);
  const uint32_t left = writes ? unwritten.after : unwritten.before;
  if (!left)
    return;
  rememberOrigin(warp, at, bytes, left, unwritten.origin);
  if (!markUnwritten(warp, at, bytes, left))
    report(warp, FindingKind::Uninitialised, lane,
           unwritten.before ? "atomically changes memory that nothing wrote"
                            : "writes to memory a value that nothing wrote",
           describeOrigin(warp, unwritten.origin));
}

/// What the lanes' results of one element take from memory that nothing wrote.
struct Unread {
  BytePoison bytes{};
  uint32_t origins[laneCount];

  void add(unsigned lane, const Unwritten &unwritten) {
    for (unsigned i = 0; i < bytes.size(); ++i)
      bytes[i] |= (unwritten.before >> i & 1) << lane;
    origins[lane] = unwritten.origin;
  }
  void mark(Warp &warp, Ref result) const {
    poisonBytes(warp, result, bytes);
    for (uint32_t byte : bytes)
      eachLane(byte, [&](unsigned lane) { setOrigin(warp, result, 1u << lane, origins[lane]); });
  }
};

Resolved resolveAtomic(Warp &warp, const Record &record, uint32_t mask, const LaneAddresses &addresses,
                       unsigned bytes) {
  const Space space = static_cast<const AtomicForm *>(record.aux)->space;
  warp.spun = true;
  return space == Space::Shared   ? resolveShared(warp, record, mask, addresses.at, bytes, AccessKind::Atomic)
         : space == Space::Global ? resolveGlobal(warp, record, mask, addresses.at, bytes, AccessKind::Atomic)
                                  : resolveGeneric(warp, record, mask, addresses.at, bytes, AccessKind::Atomic);
}

bool inShared(const AtomicForm &form, uint64_t address) {
  return form.space == Space::Shared || address >> windowShift == sharedWindow >> windowShift;
}

bool tracksUnwritten(const Warp &warp, const Resolved &to) {
  return to.poison || (warp.anyPoison && warp.block->grid->options.checks.uninitialised);
}

/// One element of the lanes' operands, which lies `offset` bytes into them in memory.
template <typename T>
void runElement(Warp &warp, const Record &record, uint32_t mask, const LaneAddresses &addresses, const Resolved &to,
                unsigned offset, Ref result, Ref operand, Ref swapped) {
  const auto &form = *static_cast<const AtomicForm *>(record.aux);
  const SlotOf<T> *b = warp.reg<const SlotOf<T>>(operand);
  const SlotOf<T> *c = swapped == noRef ? b : warp.reg<const SlotOf<T>>(swapped);
  SlotOf<T> results[laneCount] = {};
  Unread unread;
  const bool tracks = tracksUnwritten(warp, to);
  eachLane(to.mask, [&](unsigned lane) {
    std::byte *at = to.at[lane] + offset;
    const uint64_t address = addresses.at[lane] + offset;
    const auto unwritten = tracks ? std::optional<Unwritten>(std::in_place, warp, form, form.swaps ? swapped : operand,
                                                             lane, at, to.poison >> lane & 1, unsigned(sizeof(T)))
                                  : std::nullopt;
    const bool shared = inShared(form, address);
    if (shared && tracksShared(warp))
      shadowWrite(warp, lane, uint32_t(address & windowOffsetMask), sizeof(T), nullptr, true);
    StrongAccess access(warp, record.order, orderKey(warp, address, shared));
    bool changed = false;
    results[lane] = change<T>(at, form, T(b[lane]), T(c[lane]), !shared, changed);
    warp.worker->changed |= changed;
    // A compare-and-swap that does not swap only reads.
    const bool writes = changed || !form.swaps || results[lane] == SlotOf<T>(T(b[lane]));
    access.done(true, writes, true);
    if (!unwritten)
      return;
    unread.add(lane, *unwritten);
    keepUnwritten(warp, lane, at, sizeof(T), *unwritten, writes, shared);
  });
  if (result == noRef)
    return;
  commit(warp.reg<SlotOf<T>>(result), results, mask);
  unread.mark(warp, result);
}

__extension__ using Wide = unsigned __int128;

#ifdef __x86_64__
[[gnu::target("cx16")]]
#endif
[[gnu::noinline]] Wide swapWide(Wide *cell, Wide compare, Wide wanted) {
  return __sync_val_compare_and_swap(cell, compare, wanted);
}

/// Exchanges the 128 bits at `at` by `value`, where they are `compare` if that is given; returns what was there.
Wide changeWide(std::byte *at, const Wide *compare, Wide value, bool &changed) {
  auto *cell = reinterpret_cast<Wide *>(at);
  Wide old = swapWide(cell, 0, 0); // reads: it stores 0 over 0 only
  while (!compare || old == *compare) {
    const Wide seen = swapWide(cell, old, value);
    changed |= seen == old && value != old;
    if (seen == old)
      break;
    old = seen;
  }
  return old;
}

} // namespace

template <typename T> void runAtomic(Warp &warp, const Record &record, uint32_t mask) {
  LaneAddresses addresses(warp, record, record.op[1], record.wideAddress);
  const Resolved to = resolveAtomic(warp, record, mask, addresses, sizeof(T));
  runElement<T>(warp, record, mask, addresses, to, 0, record.op[0], record.op[2], record.op[3]);
}

template <typename T> void runAtomicVector(Warp &warp, const Record &record, uint32_t mask) {
  LaneAddresses addresses(warp, record, record.op[1], record.wideAddress);
  const Resolved to = resolveAtomic(warp, record, mask, addresses, sizeof(T) * record.vector);
  const bool returns = static_cast<const AtomicForm *>(record.aux)->returns;
  for (unsigned i = 0; i < record.vector; ++i)
    runElement<T>(warp, record, mask, addresses, to, i * unsigned(sizeof(T)), returns ? record.wide[i] : noRef,
                  record.wide[i + (returns ? record.vector : 0)], noRef);
}

void runAtomicWide(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const AtomicForm *>(record.aux);
  LaneAddresses addresses(warp, record, record.op[1], record.wideAddress);
  const Resolved to = resolveAtomic(warp, record, mask, addresses, sizeof(Wide));
  const uint64_t *halves[6] = {};
  for (unsigned i = 2; i < (form.swaps ? 6 : 4); ++i)
    halves[i] = warp.reg<const uint64_t>(record.wide[i]);
  auto operand = [&](unsigned at, unsigned lane) { return Wide(halves[at + 1][lane]) << 64 | halves[at][lane]; };
  uint64_t results[2][laneCount] = {};
  Unread unread[2];
  const bool tracks = tracksUnwritten(warp, to);
  eachLane(to.mask, [&](unsigned lane) {
    const bool shared = inShared(form, addresses.at[lane]);
    std::optional<Unwritten> unwritten[2];
    for (unsigned i = 0; i < 2 && tracks; ++i)
      unwritten[i].emplace(warp, form, record.wide[(form.swaps ? 4 : 2) + i], lane, to.at[lane] + 8 * i,
                           to.poison >> lane & 1, 8);
    if (shared && tracksShared(warp))
      shadowWrite(warp, lane, uint32_t(addresses.at[lane] & windowOffsetMask), sizeof(Wide), nullptr, true);
    StrongAccess access(warp, record.order, orderKey(warp, addresses.at[lane], shared));
    bool changed = false;
    const Wide compare = operand(2, lane);
    const Wide old =
        changeWide(to.at[lane], form.swaps ? &compare : nullptr, operand(form.swaps ? 4 : 2, lane), changed);
    results[0][lane] = uint64_t(old);
    results[1][lane] = uint64_t(old >> 64);
    warp.worker->changed |= changed;
    const bool writes = !form.swaps || old == compare;
    access.done(true, writes, true);
    for (unsigned i = 0; i < 2 && tracks; ++i) {
      unread[i].add(lane, *unwritten[i]);
      keepUnwritten(warp, lane, to.at[lane] + 8 * i, 8, *unwritten[i], writes, shared);
    }
  });
  for (unsigned i = 0; i < 2; ++i) {
    commit(warp.reg<uint64_t>(record.wide[i]), results[i], mask);
    unread[i].mark(warp, record.wide[i]);
  }
}

template void runAtomic<uint16_t>(Warp &warp, const Record &record, uint32_t mask);
template void runAtomic<uint32_t>(Warp &warp, const Record &record, uint32_t mask);
template void runAtomic<uint64_t>(Warp &warp, const Record &record, uint32_t mask);
template void runAtomicVector<uint16_t>(Warp &warp, const Record &record, uint32_t mask);
template void runAtomicVector<uint32_t>(Warp &warp, const Record &record, uint32_t mask);

} // namespace weft::simulator::machine
