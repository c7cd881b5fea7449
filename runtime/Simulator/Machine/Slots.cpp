// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Registers to slots. PTX has thousands of registers, most of them alive for a few instructions: sharing slots keeps a
// warp's registers in the first-level caches. The same analysis finds registers that may be read before a write.
#include "runtime/Simulator/Machine/Blocks.h"

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

/// Registers live at the start of each block.
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

struct Interval {
  uint32_t first = ~0u, last = 0;
  void include(uint32_t at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
};

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

} // namespace

void assignSlots(Kernel &kernel, const std::vector<ptx::Type> &registers,
                 const std::function<std::string(uint32_t)> &nameOf) {
  std::vector<BasicBlock> blocks = basicBlocks(kernel);
  std::vector<Interval> intervals(registers.size());
  for (uint32_t i = 0; i < kernel.code.size(); ++i)
    eachRegister(kernel.code[i], kernel.sites[i], [&](uint32_t reg, bool) { intervals[reg].include(i + 1); });
  for (const SpecialSlot &special : kernel.specials)
    intervals[special.ref & ~virtualRef].include(0);

  // Registers numbered densely by use, so that the analysis costs what the kernel uses, not what it declares.
  std::vector<uint32_t> special;
  for (const SpecialSlot &slot : kernel.specials)
    special.push_back(slot.ref & ~virtualRef);
  std::vector<uint32_t> uninitialised; // of the kernel, then of the functions that it calls
  std::vector<uint32_t> until(kernel.called.size() + 1);
  uint64_t cost = uint64_t(blocks.size()) * registers.size();
  if (cost < uint64_t{1} << 31) {
    std::vector<Bits> in = liveIn(kernel, blocks, registers.size());
    for (size_t b = 0; b < blocks.size(); ++b)
      for (uint32_t w = 0; w < in[b].size(); ++w)
        for (uint64_t bits = in[b][w]; bits; bits &= bits - 1) {
          uint32_t reg = w * 64 + uint32_t(__builtin_ctzll(bits));
          intervals[reg].include(blocks[b].begin);
          // Live out of every predecessor: their ends are inside the interval too.
        }
    for (size_t i = 0; i <= kernel.called.size(); ++i) {
      const uint32_t start = i == 0 ? 0 : kernel.called[i - 1].begin;
      const auto first = std::find_if(blocks.begin(), blocks.end(), [&](const auto &b) { return b.begin == start; });
      const uint32_t frame = i == 0 ? 0 : kernel.called[i - 1].frame & ~virtualRef;
      for (uint32_t reg = 1; reg < registers.size(); ++reg)
        if (test(in[size_t(first - blocks.begin())], reg) && reg != frame &&
            std::find(special.begin(), special.end(), reg) == special.end())
          uninitialised.push_back(reg);
      until[i] = uint32_t(uninitialised.size());
    }
    for (size_t b = 0; b < blocks.size(); ++b)
      for (uint32_t next : blocks[b].successors)
        for (uint32_t w = 0; w < in[next].size(); ++w)
          for (uint64_t bits = in[next][w]; bits; bits &= bits - 1)
            intervals[w * 64 + uint32_t(__builtin_ctzll(bits))].include(blocks[b].end);
  } else {
    for (Interval &interval : intervals)
      if (interval.first != ~0u)
        interval = {0, uint32_t(kernel.code.size()) + 1};
  }

  std::vector<uint32_t> byStart;
  for (uint32_t reg = 1; reg < registers.size(); ++reg)
    if (intervals[reg].first != ~0u)
      byStart.push_back(reg);
  std::sort(byStart.begin(), byStart.end(),
            [&](uint32_t a, uint32_t b) { return intervals[a].first < intervals[b].first; });
  // Predicates first, packed; then the vectors, aligned to their size.
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

  for (CalledFunction &called : kernel.called)
    called.saved = savedBy(kernel, called, registers, slots);
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
  kernel.entryUninitialised = until[0];
  for (size_t i = 0; i < kernel.called.size(); ++i) {
    CalledFunction &called = kernel.called[i];
    called.firstUninitialised = until[i];
    called.lastUninitialised = until[i + 1];
    called.frame = slots[called.frame & ~virtualRef];
  }
  for (uint32_t reg : uninitialised)
    kernel.maybeUninitialised.push_back({slots[reg], nameOf(reg)});
}

} // namespace weft::simulator::machine
