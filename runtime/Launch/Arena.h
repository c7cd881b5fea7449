// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Where the buffers of a plan lie in its workspace.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::launch {

/// A buffer: its size, and the steps from the one that writes it to the last that reads it.
struct BufferLife {
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0;
};

/// Offsets in one piece of memory.
struct ArenaLayout {
  std::vector<uint64_t> offsets; ///< multiples of 256
  uint64_t bytes = 0;            ///< of the whole, a multiple of 256
};

/// Lays buffers out so that those that live at the same step never overlap: each, in the order given, at the lowest
/// place that is free.
ArenaLayout layOut(std::span<const BufferLife> buffers);

} // namespace weft::launch
