// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/Readers/ReaderSets.h"

#include <algorithm>

namespace weft::simulator::machine {

void ReaderSets::reset(uint32_t readers) {
  readers_ = readers;
  limit_ = fewSets;
  wait_ = 0;
  reads_.assign(readers, {});
  next_.clear();
  lastKey_ = 0;
}

uint32_t ReaderSets::earliest(uint16_t set) const {
  uint32_t found = UINT32_MAX;
  for (uint32_t reader = 0; reader < readers_; ++reader)
    if (const WarpReads &reads = of(set, reader); reads.last)
      found = std::min(found, reads.first);
  return found;
}

uint16_t ReaderSets::with(uint16_t set, uint32_t reader, uint32_t clock) {
  const uint64_t key = uint64_t(set) << 40 | uint64_t(reader) << 32 | clock; // clocks begin with 1
  if (key == lastKey_)
    return lastSet_;
  auto [found, isNew] = next_.try_emplace(key, uint16_t(count()));
  if (isNew && of(set, reader).last >= clock) {
    found->second = set; // says nothing new
  } else if (isNew) {
    const size_t from = size_t(set) * readers_, at = reads_.size();
    reads_.resize(at + readers_);
    std::copy_n(reads_.begin() + ptrdiff_t(from), readers_, reads_.begin() + ptrdiff_t(at));
    WarpReads &reads = reads_[at + reader];
    reads = {reads.last ? reads.first : clock, clock};
  }
  lastKey_ = key;
  return lastSet_ = found->second;
}

std::vector<uint16_t> ReaderSets::keep(const std::vector<bool> &used) {
  std::vector<uint16_t> numbers(count(), 0);
  size_t kept = 1;
  for (size_t set = 1; set < numbers.size(); ++set) {
    if (!used[set])
      continue;
    std::copy_n(reads_.begin() + ptrdiff_t(set * readers_), readers_, reads_.begin() + ptrdiff_t(kept * readers_));
    numbers[set] = uint16_t(kept++);
  }
  reads_.resize(kept * readers_);
  next_.clear(); // by old numbers
  lastKey_ = 0;
  while (kept * 2 > limit_ && limit_ < mostSets)
    limit_ *= 2;
  wait_ = full() ? mostSets : 0;
  return numbers;
}

} // namespace weft::simulator::machine
