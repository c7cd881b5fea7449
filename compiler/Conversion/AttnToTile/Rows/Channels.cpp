// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Channels.h.
#include "compiler/Conversion/AttnToTile/Rows/Channels.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace weft {

SmallVector<Chunk> chunksOf(int64_t size, int64_t most) {
  SmallVector<Chunk> chunks;
  for (int64_t first = 0; first < size;) {
    int64_t left = size - first;
    int64_t width = left >= 16 ? std::min<int64_t>(most, int64_t(1) << llvm::Log2_64(left)) : 16;
    chunks.push_back({first, width, std::min(width, left)});
    first += width;
  }
  return chunks;
}

Value Chunk::inside(TileBuilder &b) const {
  if (limit)
    return b.less(b.add(start(b), b.range(width)), b.i32(limit));
  return valid < width ? b.less(b.range(width), b.i32(valid)) : Value();
}

SmallVector<Chunk> WideValues::chunksAt(Value base) const {
  SmallVector<Chunk> chunks = chunksOf(width);
  for (Chunk &chunk : chunks) {
    chunk.base = base;
    chunk.limit = parts * width == channels ? 0 : channels;
  }
  return chunks;
}

std::optional<WideValues> splitChannels(int64_t channels, int64_t most) {
  if (channels <= most)
    return std::nullopt;
  int64_t parts = (channels + most - 1) / most, each = (channels + parts - 1) / parts;
  return WideValues{channels, (each + 15) / 16 * 16, parts};
}

std::array<std::string, 3> overParts(std::array<std::string, 3> grid, const std::optional<WideValues> &wide) {
  if (wide)
    grid[0] = "(" + grid[0] + ") * " + std::to_string(wide->parts);
  return grid;
}

} // namespace weft
