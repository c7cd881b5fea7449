// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Global memory of the simulated device: separate allocations, each with a guard around it, found by address.
#pragma once

#include "runtime/Simulator/Interface/Export.h"
#include "runtime/Support/Status.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weft::simulator {

/// An address as kernels see it. 0 is never part of an allocation.
using Address = uint64_t;

/// Which bytes of an allocation were ever written; absent for memory that was born initialised.
/// They cost memory only where they are touched.
class WrittenBytes {
public:
  explicit WrittenBytes(uint64_t size)
      : bytes_(static_cast<uint8_t *>(std::calloc(size ? size : 1, 1))), size_(bytes_ ? size : 0) {}
  ~WrittenBytes() { std::free(bytes_); }
  WrittenBytes(const WrittenBytes &) = delete;
  WrittenBytes &operator=(const WrittenBytes &) = delete;
  /// One mark per byte of the allocation, non-zero once written; null where there was no memory for them.
  uint8_t *data() { return bytes_; }
  const uint8_t *data() const { return bytes_; }
  uint64_t size() const { return size_; }

private:
  uint8_t *bytes_;
  uint64_t size_;
};

/// One allocation, live or freed. Freed ones are remembered, so that a late access can be told from a wild one.
struct Allocation {
  Address base = 0;
  uint64_t size = 0;
  std::byte *host = nullptr;             ///< where the bytes are; null once freed
  std::shared_ptr<WrittenBytes> written; ///< null: treated as initialised throughout
  std::string name;                      ///< for messages: "buffer", or a module variable's name
  bool constant = false;                 ///< kernels may read it only
  bool live = true;

  Address end() const { return base + size; }
  bool contains(Address address, uint64_t bytes) const {
    return address >= base && bytes <= size && address - base <= size - bytes;
  }
};

/// All allocations at one moment, sorted by base: what a launch checks accesses against.
class MemoryView {
public:
  explicit MemoryView(std::vector<Allocation> sorted) : allocations_(std::move(sorted)) {}
  /// The live allocation that holds all of [address, address + bytes), or null.
  const Allocation *find(Address address, uint64_t bytes) const;
  /// The allocation, live or freed, nearest to an address, for messages; null when there is none at all.
  const Allocation *nearest(Address address) const;
  /// All of them, by address.
  const std::vector<Allocation> &allocations() const { return allocations_; }

private:
  std::vector<Allocation> allocations_;
};

/// A device's global memory. All functions may be called from several threads.
class Memory {
public:
  WEFT_SIMULATOR_API Memory();
  WEFT_SIMULATOR_API ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  /// Of one allocation or mapping: more than any machine has, and too few for sums of addresses to overflow.
  static constexpr uint64_t mostBytes = uint64_t{1} << 46;

  /// 256-byte aligned memory that nothing has written. 0 bytes give an address that may be freed but not read.
  /// Errors: OutOfMemory.
  /// `fill` writes a pattern that no program expects into it; without, it costs memory only where it is touched.
  Result<Address> allocate(uint64_t bytes, std::string name = "buffer", bool fill = true);
  /// Makes the caller's memory addressable in place, initialised, until `unmap`. Errors: InvalidArgument where it
  /// overlaps another mapping, or is more than a process can have.
  WEFT_SIMULATOR_API Result<Address> map(void *host, uint64_t bytes, std::string name = "buffer");
  /// Frees what `allocate` gave. Errors: InvalidArgument for any other address, naming a double free.
  Status free(Address base);
  /// Ends a mapping that `map` made.
  Status unmap(Address base);

  /// Copies host bytes in, out, or within; the whole range must lie in one allocation each (InvalidArgument).
  Status write(Address to, std::span<const std::byte> bytes);
  Status read(std::span<std::byte> to, Address from) const;
  Status copy(Address to, Address from, uint64_t bytes);
  Status fill(Address to, uint8_t value, uint64_t bytes);

  /// What a launch checks against; a cheap copy while nothing was allocated or freed since the last call.
  std::shared_ptr<const MemoryView> view() const;

  /// The memory of a module's own variables on this device, made on first use and kept; `make` is called once per key
  /// under a lock and returns their addresses.
  template <typename Make> Result<std::vector<Address>> variablesOf(uint64_t moduleKey, Make make) {
    std::lock_guard lock(variablesMutex_);
    if (auto known = variables_.find(moduleKey); known != variables_.end())
      return known->second;
    Result<std::vector<Address>> made = make();
    if (made)
      variables_.emplace(moduleKey, *made);
    return made;
  }

  /// What launches on this memory share besides, such as the heap of malloc: made by the first that asks.
  template <typename T, typename Make> Result<std::shared_ptr<T>> shared(Make make) {
    std::lock_guard lock(variablesMutex_);
    if (!shared_) {
      Result<std::shared_ptr<T>> made = make();
      if (!made)
        return made;
      shared_ = *made;
    }
    return std::static_pointer_cast<T>(shared_);
  }

private:
  Result<Allocation> locate(Address address, uint64_t bytes) const;
  Status drop(Address base, bool mapped);

  mutable std::mutex mutex_;
  std::map<Address, Allocation> allocations_; ///< live ones and mapped ones
  std::vector<Allocation> freed_;             ///< the last ones freed, oldest first; their memory is kept as a guard
  std::map<Address, void *> raw_;             ///< what to give back to the heap, by base
  mutable std::shared_ptr<const MemoryView> view_;
  std::mutex variablesMutex_;
  std::map<uint64_t, std::vector<Address>> variables_;
  std::shared_ptr<void> shared_;
};

} // namespace weft::simulator
