// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Interface/Memory.h"

#include "runtime/Support/Format.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace weft::simulator {
namespace {

/// Room on both sides of an allocation, so that a small overrun lands in no other one.
constexpr uint64_t guardBytes = 4096;
/// How many freed allocations are remembered, their addresses kept from being given out again.
constexpr size_t rememberedFrees = 64;

} // namespace

const Allocation *MemoryView::find(Address address, uint64_t bytes) const {
  auto after = std::upper_bound(allocations_.begin(), allocations_.end(), address,
                                [](Address a, const Allocation &allocation) { return a < allocation.base; });
  if (after == allocations_.begin())
    return nullptr;
  const Allocation &candidate = *std::prev(after);
  return candidate.live && candidate.contains(address, bytes) ? &candidate : nullptr;
}

const Allocation *MemoryView::nearest(Address address) const {
  const Allocation *best = nullptr;
  uint64_t bestDistance = ~uint64_t{0};
  for (const Allocation &allocation : allocations_) {
    uint64_t distance = address < allocation.base     ? allocation.base - address
                        : address >= allocation.end() ? address - allocation.end() + 1
                                                      : 0;
    if (distance < bestDistance) {
      best = &allocation;
      bestDistance = distance;
    }
  }
  return best;
}

Memory::Memory() = default;

Memory::~Memory() {
  for (auto &[base, raw] : raw_)
    std::free(raw);
}

Result<Address> Memory::allocate(uint64_t bytes, std::string name, bool fill) {
  if (bytes > mostBytes)
    return failure(StatusCode::OutOfMemory, format("expected at most 2^46 bytes, but got {}", bytes));
  uint64_t padded = (bytes + 255) / 256 * 256 + 2 * guardBytes;
  void *raw = std::aligned_alloc(256, padded);
  auto written = std::make_shared<WrittenBytes>(bytes);
  if (!raw || !written->data()) {
    std::free(raw);
    return failure(StatusCode::OutOfMemory, format("no memory for {} bytes", bytes));
  }
  if (fill)
    std::memset(raw, 0xA5, padded);
  Address base = reinterpret_cast<Address>(raw) + guardBytes;
  std::lock_guard lock(mutex_);
  allocations_[base] = {base, bytes, reinterpret_cast<std::byte *>(base), std::move(written), std::move(name)};
  raw_[base] = raw;
  view_.reset();
  return base;
}

Result<Address> Memory::map(void *host, uint64_t bytes, std::string name) {
  Address base = reinterpret_cast<Address>(host);
  if (bytes > mostBytes || base > UINT64_MAX - bytes)
    return failure(StatusCode::InvalidArgument,
                   format("expected at most 2^46 bytes of host memory, but got {} at {:#x}", bytes, base));
  std::lock_guard lock(mutex_);
  auto after = allocations_.lower_bound(base);
  bool overlaps = after != allocations_.end() && after->first - base < std::max<uint64_t>(bytes, 1);
  if (after != allocations_.begin())
    overlaps |= std::prev(after)->second.end() > base;
  if (overlaps)
    return failure(StatusCode::InvalidArgument,
                   format("the host memory at {:#x} ({} bytes) overlaps memory that is mapped already", base, bytes));
  allocations_[base] = {base, bytes, static_cast<std::byte *>(host), nullptr, std::move(name)};
  view_.reset();
  return base;
}

Status Memory::drop(Address base, bool mapped) {
  std::lock_guard lock(mutex_);
  auto found = allocations_.find(base);
  bool owned = raw_.contains(base);
  if (found == allocations_.end() || owned == mapped) {
    for (const Allocation &old : freed_)
      if (old.base == base)
        return failure(StatusCode::InvalidArgument, format("the memory at {:#x} was freed before", base));
    return failure(StatusCode::InvalidArgument, format("expected the start of an allocation, but got {:#x}", base));
  }
  Allocation allocation = std::move(found->second);
  allocations_.erase(found);
  view_.reset();
  if (mapped)
    return {};
  allocation.live = false;
  allocation.written.reset();
  freed_.push_back(std::move(allocation));
  // Big blocks go back at once: what their address range means then is no longer ours to say.
  auto release = [&](size_t index) {
    auto raw = raw_.find(freed_[index].base);
    std::free(raw->second);
    raw_.erase(raw);
    freed_.erase(freed_.begin() + index);
  };
  if (freed_.back().size > (16u << 20))
    release(freed_.size() - 1);
  else if (freed_.size() > rememberedFrees)
    release(0);
  return {};
}

Status Memory::free(Address base) { return drop(base, false); }
Status Memory::unmap(Address base) { return drop(base, true); }

Result<Allocation> Memory::locate(Address address, uint64_t bytes) const {
  std::lock_guard lock(mutex_);
  auto after = allocations_.upper_bound(address);
  if (after != allocations_.begin() && std::prev(after)->second.contains(address, bytes))
    return std::prev(after)->second;
  return failure(StatusCode::InvalidArgument,
                 format("expected {} bytes at {:#x} inside one allocation, but they are not", bytes, address));
}

namespace {
void markWritten(const Allocation &allocation, Address to, uint64_t bytes) {
  if (allocation.written && bytes)
    std::memset(allocation.written->data() + (to - allocation.base), 1, bytes);
}
} // namespace

Status Memory::write(Address to, std::span<const std::byte> bytes) {
  Result<Allocation> target = locate(to, bytes.size());
  if (!target)
    return std::unexpected(target.error());
  if (!bytes.empty())
    std::memcpy(target->host + (to - target->base), bytes.data(), bytes.size());
  markWritten(*target, to, bytes.size());
  return {};
}

Status Memory::read(std::span<std::byte> to, Address from) const {
  Result<Allocation> source = locate(from, to.size());
  if (!source)
    return std::unexpected(source.error());
  if (!to.empty())
    std::memcpy(to.data(), source->host + (from - source->base), to.size());
  return {};
}

Status Memory::copy(Address to, Address from, uint64_t bytes) {
  Result<Allocation> target = locate(to, bytes), source = locate(from, bytes);
  if (!target || !source)
    return std::unexpected(!target ? target.error() : source.error());
  if (bytes == 0)
    return {};
  std::memmove(target->host + (to - target->base), source->host + (from - source->base), bytes);
  if (target->written) {
    uint8_t *marks = target->written->data() + (to - target->base);
    if (source->written)
      std::memmove(marks, source->written->data() + (from - source->base), bytes);
    else
      std::memset(marks, 1, bytes);
  }
  return {};
}

Status Memory::fill(Address to, uint8_t value, uint64_t bytes) {
  Result<Allocation> target = locate(to, bytes);
  if (!target)
    return std::unexpected(target.error());
  if (bytes)
    std::memset(target->host + (to - target->base), value, bytes);
  markWritten(*target, to, bytes);
  return {};
}

std::shared_ptr<const MemoryView> Memory::view() const {
  std::lock_guard lock(mutex_);
  if (!view_) {
    std::vector<Allocation> all;
    for (auto &[base, allocation] : allocations_)
      if (allocation.size)
        all.push_back(allocation);
    for (const Allocation &allocation : freed_)
      if (allocation.size)
        all.push_back(allocation);
    std::sort(all.begin(), all.end(), [](const Allocation &a, const Allocation &b) { return a.base < b.base; });
    view_ = std::make_shared<MemoryView>(std::move(all));
  }
  return view_;
}

} // namespace weft::simulator
