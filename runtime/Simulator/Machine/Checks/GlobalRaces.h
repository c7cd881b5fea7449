// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Accesses to global memory that nothing orders.
#pragma once

#include "runtime/Simulator/Machine/State/Warp.h"

namespace weft::simulator::machine {

/// Compares the accesses of one instruction with those before them, lane by lane, and remembers them. Keeps the page
/// that it worked on last locked, so it must not outlive the instruction.
class GlobalAccesses {
public:
  GlobalAccesses(Warp &warp, const Record &record) : warp_(warp), shadow_(warp.block->grid->globalShadow) {
    if (shadow_.tracks())
      begin(record);
  }
  ~GlobalAccesses() {
    if (page_)
      unlock();
  }
  GlobalAccesses(const GlobalAccesses &) = delete;
  GlobalAccesses &operator=(const GlobalAccesses &) = delete;

  /// Whether races in global memory are looked for at all.
  bool tracks() const { return tracks_; }
  /// All lanes access one address.
  void setUniform() {
    order_ |= orderUniform;
    at_.order = order_;
  }
  /// Whether anything wrote some of the bytes in this launch.
  bool read(unsigned lane, uint64_t address, unsigned bytes);
  /// The same of several reads of `one` bytes, a power of two, one after another.
  bool read(unsigned lane, uint64_t address, unsigned bytes, unsigned one);
  /// All lanes read, one after another.
  void readAll(uint64_t address, unsigned bytes);
  /// A write, and the record that made it.
  struct Write {
    Stamp stamp;
    uint32_t pc = 0;
  };
  /// The last writes of a range in this launch, without repeats of neighbours.
  std::vector<Write> lastWrites(uint64_t address, uint32_t bytes);
  /// A copy in flight is done: its reads are over now.
  void land(unsigned lane, uint64_t address, unsigned bytes);
  /// Lets others at the page that was worked on last.
  void unlock();
  /// Before the bytes are written; `value`, where known, tells a race from equal values.
  void write(unsigned lane, uint64_t address, unsigned bytes, const std::byte *value);

  /// The same, lane by lane: those that come before the first which is not alone with its memory.
  uint32_t writeOwn(uint32_t mask, const uint64_t *addresses, unsigned bytes);

private:
  void begin(const Record &record);
  GlobalGranule *granule(uint64_t address);
  GlobalGranule *find(uint64_t address);
  Stamp stamp(unsigned lane) const { return first_.ofLane(lane); }
  void read(GlobalGranule &granule, Stamp me, uint64_t address, unsigned bytes);
  void readOther(GlobalGranule &granule, Stamp me, uint64_t address, unsigned bytes);
  bool rememberAmongTwo(GlobalGranule &granule, Stamp me);
  void rememberMore(GlobalGranule &granule, Stamp me);
  void addMore(GlobalGranule &granule, Stamp me, uint8_t order);
  void landBesideTwo(GlobalGranule &granule, Stamp me);
  bool writeOwn(GlobalGranule &granule, Stamp me);
  void writeOther(GlobalGranule &granule, Stamp me, uint64_t address, unsigned bytes, const std::byte *value);
  void checkLastWrite(const GlobalGranule &granule, Stamp me, uint64_t address, unsigned bytes, const std::byte *value);
  void checkReaders(const GlobalGranule &granule, Stamp me, uint64_t address, unsigned bytes);
  bool isReaderUnordered(const GlobalGranule &granule, unsigned reader, Stamp me) const;
  const MoreReader &unorderedAmongMore(uint32_t list, Stamp me);
  template <typename Visit> void each(uint64_t address, unsigned bytes, Visit visit);
  bool conflicts(Stamp me, Stamp other, uint8_t order, bool reads) const;
  std::string other(const char *did, Stamp stamp, uint32_t pc) const;
  std::string otherWarp(const char *did, Stamp stamp, uint32_t pc) const;
  Warp &warp_;
  GlobalShadow &shadow_;
  uint8_t order_ = 0;
  bool tracks_ = false;
  uint32_t pc_ = 0;
  AccessPlace at_; ///< pc_ and order_
  Stamp first_;    ///< of lane 0
  const Allocation *allocation_ = nullptr;
  GlobalPage *page_ = nullptr;
  GlobalGranule *granules_ = nullptr; ///< of the page
  uint64_t pageStart_ = 0;            ///< the address that its first granule is of
  uint64_t low_ = 0, bytes_ = 0;      ///< the part of the allocation that it is of
  // Neighbours mostly have the same list of readers, and get the same one, or the same answer.
  struct {
    uint32_t from = 0, to = 0;
    uint8_t order = 0;
  } added_;
  struct {
    uint32_t list = 0;
    MoreReader unordered;
  } asked_;
};

} // namespace weft::simulator::machine
