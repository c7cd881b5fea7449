// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The heap of kernels that call malloc.
#pragma once

#include "runtime/Simulator/Interface/Memory.h"

#include <map>
#include <mutex>

namespace weft::simulator::machine {

/// What malloc and free of a kernel work on: first fit in one allocation.
class DeviceHeap {
public:
  static constexpr uint64_t bytes = 8u << 20; ///< as CUDA's default
  explicit DeviceHeap(Address base) : base_(base) { free_[base] = bytes; }
  /// 0 where nothing fits.
  Address allocate(uint64_t size);
  /// False for an address that is no live allocation's.
  bool release(Address address);
  /// What a range of the heap's bytes is: inside one live block, inside one that was freed, or neither.
  enum class Range : uint8_t { Live, Freed, Wild };
  Range rangeAt(Address address, uint64_t size) const;
  bool contains(Address address) const { return address >= base_ && address - base_ < bytes; }

  /// Which blocks there are, to go back to.
  struct State {
    std::map<Address, uint64_t> free, used, quarantine;
  };
  State state() const;
  void restore(State state);

private:
  void reuse();

  Address base_;
  mutable std::mutex mutex_;
  std::map<Address, uint64_t> free_, used_;
  std::map<Address, uint64_t> quarantine_; ///< freed, and given out again only when nothing else is left
};

} // namespace weft::simulator::machine
