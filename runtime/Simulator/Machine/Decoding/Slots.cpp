// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Registers to slots. PTX has thousands of registers, most of them alive for a few instructions: sharing slots keeps a
// warp's registers in the first-level caches. The same analysis finds registers that may be read before a write.
#include "runtime/Simulator/Machine/Decoding/BasicBlocks.h"
#include "runtime/Simulator/Machine/Decoding/Decode.h"

#include <algorithm>
#include <map>
#include <queue>

namespace weft::simulator::machine {
namespace {

/// Calls visit(register, isWritten) for every register of a record.
template <typename Visit> void eachRegister(const Record &record, const Site &site, Visit visit) {
  auto isRegister = [](Ref ref) { return !(ref & constantRef) && (ref & virtualRef); };
  if (isRegister(record.guard))
    visit(record.guard & ~virtualRef, false);
  for (unsigned i = 0; i < 6; ++i)
    if (isRegister(record.op[i]))
      visit(record.op[i] & ~virtualRef, (site.destinations >> i & 1) != 0);
  for (unsigned i = 0; i < site.wideCount; ++i)
    if (isRegister(record.wide[i]))
      visit(record.wide[i] & ~virtualRef, i < site.wideDestinations);
}

using Bits = std::vector<uint64_t>;
bool test(const Bits &bits, uint32_t i) { return bits[i / 64] >> (i % 64) & 1; }
void set(Bits &bits, uint32_t i) { bits[i / 64] |= uint64_t{1} << (i % 64); }

/// Registers live at the start of each basic block.
std::vector<Bits> liveIn(const Kernel &kernel, const std::vector<BasicBlock> &blocks, size_t registerCount) {
  size_t words = (registerCount + 63) / 64;
  std::vector<Bits> in(blocks.size(), Bits(words)), defined(blocks.size(), Bits(words)),
      used(blocks.size(), Bits(words));
  for (size_t b = 0; b < blocks.size(); ++b)
    for (uint32_t i = blocks[b].begin; i < blocks[b].end; ++i) {
      const Record &record = kernel.code[i];
      eachRegister(record, kernel.sites[i], [&](uint32_t reg, bool written) {
        if (!written && !test(defined[b], reg))
          set(used[b], reg);
      });
      if (record.guard == noRef) // a guarded write leaves the old value in some lanes
        eachRegister(record, kernel.sites[i], [&](uint32_t reg, bool written) {
          if (written)
            set(defined[b], reg);
        });
    }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = blocks.size(); b-- > 0;)
      for (size_t w = 0; w < words; ++w) {
        uint64_t out = 0;
        for (uint32_t next : blocks[b].successors)
          out |= in[next][w];
        uint64_t value = used[b][w] | (out & ~defined[b][w]);
        changed |= value != in[b][w];
        in[b][w] = value;
      }
  }
  return in;
}

/// The records, counted from 1, between the first and last of which a register's value is needed. 0 is before the
/// kernel.
struct Interval {
  uint32_t first = ~0u, last = 0;
  bool used() const { return first != ~0u; }
  void include(uint32_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
};

/// Calls visit(register) for each that a set holds.
template <typename Visit> void eachSet(const Bits &bits, Visit visit) {
  for (uint32_t w = 0; w < bits.size(); ++w)
    for (uint64_t rest = bits[w]; rest; rest &= rest - 1)
      visit(w * 64 + uint32_t(__builtin_ctzll(rest)));
}

/// The interval of each register, from the records that name it alone.
std::vector<Interval> intervalsOfUses(const Kernel &kernel, size_t registerCount) {
  std::vector<Interval> intervals(registerCount);
  for (uint32_t i = 0; i < kernel.code.size(); ++i)
    eachRegister(kernel.code[i], kernel.sites[i], [&](uint32_t reg, bool) { intervals[reg].include(i + 1); });
  for (const SpecialSlot &special : kernel.specials)
    intervals[special.ref & ~virtualRef].include(0);
  return intervals;
}

/// Makes intervals hold the whole of each basic block that a register is live into or out of.
void includeLiveBlocks(std::vector<Interval> &intervals, const std::vector<BasicBlock> &blocks,
                       const std::vector<Bits> &in) {
  for (size_t b = 0; b < blocks.size(); ++b) {
    eachSet(in[b], [&](uint32_t reg) { intervals[reg].include(blocks[b].begin); });
    for (uint32_t next : blocks[b].successors)
      eachSet(in[next], [&](uint32_t reg) { intervals[reg].include(blocks[b].end); });
  }
}

/// Registers that may be read before a write: live at the start of the kernel, and of each function that it calls.
/// The machine fills special registers, and a function's caller its frame.
std::vector<std::vector<uint32_t>> liveAtStarts(const Kernel &kernel, const std::vector<BasicBlock> &blocks,
                                                const std::vector<Bits> &in) {
  std::vector<uint32_t> special;
  for (const SpecialSlot &slot : kernel.specials)
    special.push_back(slot.ref & ~virtualRef);
  auto atStart = [&](uint32_t start, uint32_t frame) {
    const auto first = std::find_if(blocks.begin(), blocks.end(), [&](const auto &b) { return b.begin == start; });
    std::vector<uint32_t> live;
    eachSet(in[size_t(first - blocks.begin())], [&](uint32_t reg) {
      if (reg && reg != frame && std::find(special.begin(), special.end(), reg) == special.end())
        live.push_back(reg);
    });
    return live;
  };
  std::vector<std::vector<uint32_t>> live{atStart(0, 0)};
  for (const CalledFunction &called : kernel.called)
    live.push_back(atStart(called.begin, called.frame & ~virtualRef));
  return live;
}

/// Slots of one size, given out again when their interval is over.
class SlotPool {
public:
  SlotPool(uint32_t bytes, uint32_t &top) : bytes_(bytes), top_(top) {}
  uint32_t take(uint32_t now, uint32_t until) {
    while (!busy_.empty() && busy_.top().first < now) {
      free_.push_back(busy_.top().second);
      busy_.pop();
    }
    uint32_t slot;
    if (free_.empty()) {
      slot = top_;
      top_ += bytes_;
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    busy_.emplace(until, slot);
    return slot;
  }

private:
  uint32_t bytes_;
  uint32_t &top_;
  std::vector<uint32_t> free_;
  std::priority_queue<std::pair<uint32_t, uint32_t>, std::vector<std::pair<uint32_t, uint32_t>>, std::greater<>> busy_;
};

/// The slots that a function writes, and the register of its frame.
std::vector<SavedSlot> savedBy(const Kernel &kernel, const CalledFunction &called,
                               const std::vector<ptx::Type> &registers, const std::vector<uint32_t> &slots) {
  std::map<Ref, SavedSlot::Kind> saved;
  auto add = [&](uint32_t reg) {
    const ptx::Type type = registers[reg];
    if (slots[reg] != noRef)
      saved[slots[reg]] = type == ptx::Type::Pred     ? SavedSlot::Predicate
                          : ptx::typeBits(type) == 64 ? SavedSlot::Double
                                                      : SavedSlot::Word;
  };
  add(called.frame & ~virtualRef);
  for (uint32_t i = called.begin; i < called.end; ++i)
    eachRegister(kernel.code[i], kernel.sites[i], [&](uint32_t reg, bool written) {
      if (written)
        add(reg);
    });
  std::vector<SavedSlot> list;
  for (const auto &[ref, kind] : saved)
    list.push_back({kind, ref});
  return list;
}

/// Registers of wgmma are in use beyond the instruction, until a wait: nobody shares their slots.
void keepOperands(const Kernel &kernel, std::vector<Interval> &intervals) {
  for (size_t i = 0; i < kernel.code.size(); ++i)
    if (kernel.sites[i].instruction && kernel.sites[i].instruction->mnemonic == "wgmma")
      for (unsigned k = 0; k < kernel.sites[i].wideCount; ++k)
        if (const Ref ref = kernel.code[i].wide[k]; !(ref & constantRef) && (ref & virtualRef))
          intervals[ref & ~virtualRef] = {0, uint32_t(kernel.code.size()) + 1};
}

/// A slot for each register that is used: predicates first, packed; then the vectors, aligned to their size. Sets the
/// kernel's sizes.
std::vector<uint32_t> slotsOf(Kernel &kernel, const std::vector<ptx::Type> &registers,
                              const std::vector<Interval> &intervals) {
  std::vector<uint32_t> byStart;
  for (uint32_t reg = 1; reg < registers.size(); ++reg)
    if (intervals[reg].used())
      byStart.push_back(reg);
  std::sort(byStart.begin(), byStart.end(),
            [&](uint32_t a, uint32_t b) { return intervals[a].first < intervals[b].first; });
  uint32_t top = 4;
  SlotPool predicates(4, top);
  std::vector<uint32_t> slots(registers.size());
  for (uint32_t reg : byStart)
    if (registers[reg] == ptx::Type::Pred)
      slots[reg] = predicates.take(intervals[reg].first, intervals[reg].last);
  top = (top + slotBytes - 1) / slotBytes * slotBytes;
  kernel.vectorStart = top;
  SlotPool words(slotBytes, top), doubles(2 * slotBytes, top);
  for (uint32_t reg : byStart)
    if (registers[reg] != ptx::Type::Pred)
      slots[reg] =
          (ptx::typeBits(registers[reg]) == 64 ? doubles : words).take(intervals[reg].first, intervals[reg].last);
  kernel.meetingStart = top;
  if (std::any_of(kernel.code.begin(), kernel.code.end(), [](const Record &record) { return record.members >= 0; }))
    top += meetingBytes;
  kernel.registerBytes = top;
  return slots;
}

/// Writes slots where records name registers.
void placeSlots(Kernel &kernel, const std::vector<uint32_t> &slots) {
  auto place = [&](Ref &ref) {
    if (!(ref & constantRef) && (ref & virtualRef))
      ref = slots[ref & ~virtualRef];
  };
  for (Record &record : kernel.code) {
    place(record.guard);
    for (Ref &ref : record.op)
      place(ref);
  }
  for (std::vector<Ref> &list : kernel.wideLists)
    for (Ref &ref : list)
      place(ref);
  for (SpecialSlot &slot : kernel.specials)
    place(slot.ref);
  for (CalledFunction &called : kernel.called)
    called.frame = slots[called.frame & ~virtualRef];
}

} // namespace

void assignSlots(Kernel &kernel, const std::vector<ptx::Type> &registers,
                 const std::function<std::string(uint32_t)> &nameOf) {
  std::vector<BasicBlock> blocks = basicBlocks(kernel);
  std::vector<Interval> intervals = intervalsOfUses(kernel, registers.size());
  std::vector<std::vector<uint32_t>> uninitialised(kernel.called.size() + 1);
  // Liveness takes time and memory of basic blocks times registers. Where that is too much, all live throughout.
  if (uint64_t(blocks.size()) * registers.size() < uint64_t{1} << 31) {
    std::vector<Bits> in = liveIn(kernel, blocks, registers.size());
    includeLiveBlocks(intervals, blocks, in);
    uninitialised = liveAtStarts(kernel, blocks, in);
  } else {
    for (Interval &interval : intervals)
      if (interval.used())
        interval = {0, uint32_t(kernel.code.size()) + 1};
  }
  if (kernel.usesProducts)
    keepOperands(kernel, intervals);
  std::vector<uint32_t> slots = slotsOf(kernel, registers, intervals);
  for (CalledFunction &called : kernel.called)
    called.saved = savedBy(kernel, called, registers, slots);
  placeSlots(kernel, slots);
  auto note = [&](const std::vector<uint32_t> &list) {
    for (uint32_t reg : list)
      kernel.maybeUninitialised.push_back({slots[reg], nameOf(reg)});
    return uint32_t(kernel.maybeUninitialised.size());
  };
  kernel.entryUninitialised = note(uninitialised[0]);
  for (size_t i = 0; i < kernel.called.size(); ++i) {
    kernel.called[i].firstUninitialised = uint32_t(kernel.maybeUninitialised.size());
    kernel.called[i].lastUninitialised = note(uninitialised[i + 1]);
  }
}

} // namespace weft::simulator::machine
