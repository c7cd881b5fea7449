// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/GlobalShadow.h"

namespace weft::simulator::machine {
namespace {

/// Bytes of shadow that a launch may take; memory beyond it is not tracked.
constexpr uint64_t maximumBytes = uint64_t{3} << 30;

} // namespace

GlobalShadow::Table::~Table() {
  for (size_t i = 0; pages && i < count; ++i) // moved-from ones have none
    delete pages[i].load();
}

void GlobalShadow::reset(const std::vector<uint64_t> &sizes, unsigned shift) {
  tables_.clear();
  pages_ = 0;
  shift_ = shift;
  for (uint64_t size : sizes) {
    Table table;
    table.count = size_t((size >> GlobalPage::shift) + 1);
    table.pages = std::make_unique<std::atomic<GlobalPage *>[]>(table.count);
    tables_.push_back(std::move(table));
  }
}

GlobalPage *GlobalShadow::page(size_t allocation, uint64_t offset) {
  std::atomic<GlobalPage *> &slot = tables_[allocation].pages[offset >> GlobalPage::shift];
  GlobalPage *page = slot.load(std::memory_order_acquire);
  if (page)
    return page;
  const size_t granules = size_t{1} << (GlobalPage::shift - shift_);
  if (++pages_ * granules * sizeof(GlobalGranule) > maximumBytes)
    return nullptr;
  auto fresh = std::make_unique<GlobalPage>(granules);
  if (slot.compare_exchange_strong(page, fresh.get(), std::memory_order_acq_rel))
    return fresh.release();
  return page; // another worker was first
}

void GlobalShadow::forget(size_t allocation, uint64_t offset, uint64_t bytes) {
  for (uint64_t at = offset; at < offset + bytes; at += uint64_t{1} << shift_) {
    GlobalPage *page = tables_[allocation].pages[at >> GlobalPage::shift].load();
    if (!page)
      continue;
    while (page->lock.test_and_set(std::memory_order_acquire)) {
    }
    page->granules[(at & ((1u << GlobalPage::shift) - 1)) >> shift_] = {};
    page->lock.clear(std::memory_order_release);
  }
}

} // namespace weft::simulator::machine
