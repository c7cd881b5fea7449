// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Launch/Arena.h"

#include <algorithm>

namespace weft::launch {

static uint64_t roundUp(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

ArenaLayout layOut(std::span<const BufferLife> buffers) {
  ArenaLayout layout;
  std::vector<std::pair<uint64_t, uint64_t>> taken; // by buffers that live at the same time
  for (size_t i = 0; i < buffers.size(); ++i) {
    taken.clear();
    for (size_t j = 0; j < i; ++j)
      if (buffers[j].first <= buffers[i].last && buffers[i].first <= buffers[j].last)
        taken.emplace_back(layout.offsets[j], layout.offsets[j] + roundUp(buffers[j].bytes));
    std::ranges::sort(taken);
    uint64_t at = 0, bytes = roundUp(buffers[i].bytes);
    for (auto [begin, end] : taken) {
      if (at + bytes <= begin)
        break;
      at = std::max(at, end);
    }
    layout.offsets.push_back(at);
    layout.bytes = std::max(layout.bytes, at + bytes);
  }
  return layout;
}

} // namespace weft::launch
