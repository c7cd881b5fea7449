// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See WideValues.h.
#include "compiler/Conversion/AttnToTile/WideValues.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft {

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

std::optional<WideValues> splitValues(const Attend &attend, int64_t most) {
  return splitChannels(attend.valueSize(), most);
}

static constexpr int64_t widest = 256;

std::optional<WideValues> splitOverGrid(const Attend &attend) {
  if (attend.valueSize() <= widest)
    return std::nullopt;
  return splitValues(attend, attend.storage().isF32() ? widest / 2 : widest);
}

std::optional<WideValues> splitInLoop(const Attend &attend) {
  if (attend.valueSize() <= widest)
    return std::nullopt;
  constexpr int64_t width = 64;
  return WideValues{attend.valueSize(), width, (attend.valueSize() + width - 1) / width};
}

ChannelPart partOf(TileBuilder &b, const WideValues &wide, const Standing &standing) {
  return {wide.channels, wide.chunksAt(b.mul(standing.part, b.i32(wide.width))),
          b.compareInt(arith::CmpIPredicate::eq, standing.part, b.i32(0))};
}

std::array<std::string, 3> overParts(std::array<std::string, 3> grid, const std::optional<WideValues> &wide) {
  if (wide)
    grid[0] = "(" + grid[0] + ") * " + std::to_string(wide->parts);
  return grid;
}

} // namespace weft
