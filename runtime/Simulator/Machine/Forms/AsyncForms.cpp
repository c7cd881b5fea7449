// Part of Weft. SPDX-License-Identifier: Apache-2.0
// cp.async (PTX ISA 9.7.9.25.3). A copy happens at the wait that awaits it, the latest moment PTX allows, so that a
// program that reads too early reads the old bytes.
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/GlobalRaces.h"
#include "runtime/Simulator/Machine/Checks/Poison.h"
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Decoding/OperandRules.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/Running/AsyncCopies.h"
#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

/// op[0] + aux offset: destination; op[1] + imm: source; op[2]: bytes to read or noRef; op[3]: predicate that ignores
/// the source or noRef. Record::vector: bytes.
struct CopyForm {
  int64_t destinationOffset = 0;
  bool destinationWide = false, ignoreNegated = false;
};

/// Whether the copy of a lane is another lane's too: of one instruction, from the same place to the same place.
bool isTwin(const AsyncCopy &copy, unsigned lane, const AsyncCopy &other, unsigned otherLane) {
  return other.pc == copy.pc && (other.mask >> otherLane & 1) && other.bytes == copy.bytes &&
         other.to[otherLane] == copy.to[lane] && other.from[otherLane] == copy.from[lane] &&
         other.count[otherLane] == copy.count[lane];
}

/// Whether the thread that has a copy on its way to where `lane` copies brings the same bytes. Copies by groups of
/// threads let those that have nothing to do repeat the last one.
bool repeatsCopy(const Warp &warp, const AsyncCopy &copy, unsigned lane) {
  const Granule &granule = warp.block->shadow.at(copy.to[lane]);
  if (!(granule.flags & Granule::Pending))
    return false;
  const unsigned thread = granule.writeThread, otherLane = thread % laneCount;
  if (thread == warp.index * laneCount + lane || thread / laneCount >= warp.block->warps.size())
    return false;
  if (thread / laneCount == warp.index && otherLane < lane && isTwin(copy, lane, copy, otherLane))
    return true;
  const auto &copies = warp.block->warps[thread / laneCount].async.copies;
  return std::any_of(copies.begin(), copies.end(),
                     [&](const AsyncCopy &other) { return isTwin(copy, lane, other, otherLane); });
}

/// Marks a destination as on its way, after checking it like a write.
void markPending(Warp &warp, const AsyncCopy &copy, unsigned lane) {
  const uint32_t offset = copy.to[lane];
  const unsigned bytes = copy.bytes;
  if (repeatsCopy(warp, copy, lane)) {
    report(warp, FindingKind::AsyncOverwrite, lane,
           format("copies {} bytes to byte {} of shared memory, as another thread does from the same place", bytes,
                  offset),
           {}, true);
    return;
  }
  shadowWrite(warp, lane, offset, bytes, nullptr);
  SharedShadow &shadow = warp.block->shadow;
  for (Granule *g = &shadow.at(offset), *end = &shadow.at(offset + bytes - 1) + 1; g != end; ++g)
    g->flags |= Granule::Pending;
}

void runCopy(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const CopyForm *>(record.aux);
  const unsigned bytes = record.vector;
  Record destination = record;
  destination.imm = form.destinationOffset;
  LaneAddresses to(warp, destination, record.op[0], form.destinationWide);
  LaneAddresses from(warp, record, record.op[1], record.wideAddress);
  uint32_t ignored = record.op[3] == noRef ? 0 : warp.predicate(record.op[3]) ^ (form.ignoreNegated ? ~0u : 0u);

  AsyncCopy copy;
  copy.pc = warp.here();
  copy.bytes = uint8_t(bytes);
  copy.unwritten = record.op[2] == noRef ? 0 : poisonOf(warp, record.op[2]);
  if (copy.unwritten)
    copy.origin = readHere(warp, originOf(warp, record.op[2], firstLane(copy.unwritten)));
  uint32_t whole = 0;
  eachLane(mask, [&](unsigned lane) {
    uint32_t wanted = record.op[2] == noRef ? bytes : std::min(warp.reg<const uint32_t>(record.op[2])[lane], bytes);
    copy.count[lane] = uint8_t((ignored >> lane & 1) ? 0 : wanted);
    whole |= uint32_t(copy.count[lane] == bytes) << lane;
  });
  Resolved target = resolveShared(warp, record, mask, to.at, bytes, AccessKind::Write);
  uint32_t readable =
      target.mask & whole ? resolveGlobal(warp, record, target.mask & whole, from.at, bytes, AccessKind::Read).mask : 0;
  eachLane(target.mask & ~whole, [&](unsigned lane) {
    // Fewer bytes, or none: checked byte by byte at both ends.
    bool good = true;
    if (copy.count[lane]) {
      uint64_t first[laneCount], last[laneCount];
      std::fill_n(first, laneCount, from.at[lane]);
      std::fill_n(last, laneCount, from.at[lane] + copy.count[lane] - 1);
      good = resolveGlobal(warp, record, 1u << lane, first, 1, AccessKind::Read).mask &&
             resolveGlobal(warp, record, 1u << lane, last, 1, AccessKind::Read).mask;
    }
    readable |= uint32_t(good) << lane;
  });
  copy.mask = readable;
  bool tracks = tracksShared(warp);
  eachLane(readable, [&](unsigned lane) {
    copy.to[lane] = uint32_t(to.at[lane] & windowOffsetMask);
    copy.from[lane] = from.at[lane];
    copy.group[lane] = warp.async.committed[lane];
    if (tracks)
      markPending(warp, copy, lane);
  });
  copy.sequence = warp.async.issued++;
  if (copy.mask)
    warp.async.copies.push_back(copy);
}

void runCommit(Warp &warp, const Record &, uint32_t mask) {
  eachLane(mask, [&](unsigned lane) { ++warp.async.committed[lane]; });
}
void runWaitGroup(Warp &warp, const Record &record, uint32_t mask) { awaitCopies(warp, mask, uint32_t(record.imm)); }
void runWaitAll(Warp &warp, const Record &, uint32_t mask) { awaitCopies(warp, mask, ~0u); }

void bindCopy(Binding &b) {
  CopyForm form;
  if (b.operandCount() < 3 || b.operandCount() > 5)
    b.fail("expected a destination, a source and a size");
  // Global memory's may be of 32 bits here, as shared memory's are.
  const AddressOperand to = addressIn(b, b.operand(0), ptx::Space::Shared),
                       from = addressIn(b, b.operand(1), ptx::Space::Shared);
  form.destinationOffset = to.offset;
  form.destinationWide = to.wide;
  b.record.op[0] = to.base;
  b.record.op[1] = from.base;
  b.record.imm = from.offset;
  b.record.wideAddress = from.wide;
  b.record.order = orderCopy;
  b.site.addressOperand = 1;
  const ptx::Operand &size = b.operand(2);
  if (size.kind != ptx::OperandKind::Integer || (size.bits != 4 && size.bits != 8 && size.bits != 16))
    b.fail(size, "expected 4, 8 or 16 bytes");
  if (b.modifier("cop") == "cg" && size.bits != 16)
    b.fail(size, format("expected 16 bytes with '.cg', but got {}", size.bits));
  b.record.vector = uint8_t(size.bits);
  size_t rest = b.operandCount() - (b.has("hint") ? 1 : 0);
  if (rest > 3) {
    const ptx::Operand &extra = b.operand(3);
    bool predicate =
        extra.kind == ptx::OperandKind::Register && b.decoder.registerType(b.frame, extra) == ptx::Type::Pred;
    if (predicate) {
      b.record.op[3] = b.predicate(extra);
      form.ignoreNegated = extra.negated;
    } else {
      expectAtMost(b, extra, size.bits);
      b.record.op[2] = b.source(extra, ptx::Type::U32);
    }
  }
  b.decoder.noteAccess(ptx::Space::Shared, b.record.vector);
  b.decoder.noteAccess(ptx::Space::Global, rest > 3 ? 1 : b.record.vector);
  b.decoder.kernel().usesAsync = true;
  b.keep(form);
  b.record.run = runCopy;
}

void bindWaitGroup(Binding &b) {
  const ptx::Operand &count = b.operand(0);
  if (count.kind != ptx::OperandKind::Integer || count.bits > 1u << 20)
    b.fail(count, "expected a number of groups");
  b.record.imm = int64_t(count.bits);
  b.record.run = runWaitGroup;
}

template <Executor run> void bindTo(Binding &b) { b.record.run = run; }

constexpr auto cls = InstructionClass::AsyncCopy;
const Form forms[] = {
    {"cp", "async cop=ca|cg to=shared|shared::cta global hint=L2::cache_hint? prefetch=L2::64B|L2::128B|L2::256B?", "*",
     cls, bindCopy},
    {"cp", "async commit_group", "", cls, bindTo<runCommit>},
    {"cp", "async wait_group", "*", cls, bindWaitGroup},
    {"cp", "async wait_all", "", cls, bindTo<runWaitAll>},
};

} // namespace

std::span<const Form> asyncForms() { return forms; }

} // namespace weft::simulator::machine
