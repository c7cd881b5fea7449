// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Layout/WgmmaLayouts.h"
#include "dialects/Warp/Layout/LayoutWalk.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace llvm;
using namespace weft::warp;

static constexpr unsigned M = 0, N = 1, K = 1;
static constexpr int64_t pieceBytes = 16, linesOfPattern = 8;

/// A row for each thread of a warpgroup.
static LayoutWalk alongLanes(ArrayRef<int64_t> shape, int64_t columns, WarpgroupGrid groups) {
  return LayoutWalk(shape)
      .registersTo(N, columns)
      .along(InDim::Lane, M, 5)
      .along(InDim::Warp, M, 2)
      .registersTo(M, shape[M] / groups.rows)
      .along(InDim::Warp, M, Log2_32(groups.rows));
}

LinearLayout weft::warp::wgmmaAccLayout(ArrayRef<int64_t> shape, WarpgroupGrid groups) {
  if (groups.m == tensorRows)
    return alongLanes(shape, shape[N] / groups.columns, groups).along(InDim::Warp, N, Log2_32(groups.columns)).take();
  return LayoutWalk(shape)
      .along(InDim::Register, N, 1)
      .along(InDim::Lane, N, 2)
      .along(InDim::Lane, M, 3)
      .along(InDim::Register, M, 1)
      .registersTo(N, shape[N] / groups.columns)
      .along(InDim::Warp, M, 2)
      .registersTo(M, shape[M] / groups.rows)
      .along(InDim::Warp, M, Log2_32(groups.rows))
      .along(InDim::Warp, N, Log2_32(groups.columns))
      .take();
}

LinearLayout weft::warp::wgmmaALayout(ArrayRef<int64_t> shape, WarpgroupGrid groups, unsigned elementBits) {
  if (groups.m == tensorRows)
    return alongLanes(shape, shape[K], groups).repeatWarps(Log2_32(groups.columns)).take();
  return LayoutWalk(shape)
      .along(InDim::Register, K, Log2_32(32 / elementBits))
      .along(InDim::Lane, K, 2)
      .along(InDim::Lane, M, 3)
      .along(InDim::Register, M, 1)
      .registersTo(K, shape[K])
      .along(InDim::Warp, M, 2)
      .registersTo(M, shape[M] / groups.rows)
      .along(InDim::Warp, M, Log2_32(groups.rows))
      .repeatWarps(Log2_32(groups.columns))
      .take();
}

std::optional<WarpgroupGrid> weft::warp::wgmmaGridOf(const LinearLayout &layout) {
  constexpr unsigned groupWarps = 4;
  if (layout.rank() != 2 || layout.size(InDim::Warp) < groupWarps)
    return std::nullopt;
  unsigned groups = layout.size(InDim::Warp) / groupWarps;
  for (unsigned m : {wgmmaRows, tensorRows})
    for (unsigned rows = 1; rows <= groups; rows *= 2) {
      WarpgroupGrid grid{rows, groups / rows, m};
      bool fits = layout.shape()[M] >= int64_t(m) * grid.rows && layout.shape()[N] >= int64_t(8) * grid.columns;
      if (fits && wgmmaAccLayout(layout.shape(), grid) == layout)
        return grid;
    }
  return std::nullopt;
}

std::optional<LinearLayout> weft::warp::wgmmaTileLayout(ArrayRef<int64_t> shape, unsigned contiguousAxis,
                                                        unsigned elementBytes, int64_t longestLine) {
  if (shape.size() != 2)
    return std::nullopt;
  unsigned lineAxis = 1 - contiguousAxis;
  int64_t lineBytes = std::min<int64_t>(longestLine, shape[contiguousAxis] * elementBytes);
  if (lineBytes < 2 * pieceBytes || shape[lineAxis] < linesOfPattern)
    return std::nullopt;
  LinearLayout layout(shape);
  unsigned lineBits = Log2_64(lineBytes / elementBytes), pieceBits = Log2_64(lineBytes / pieceBytes);
  layout.appendAxis(InDim::Offset, contiguousAxis, lineBits, 1);
  // Bits 4 and up of an address are exchanged by bits 7 and up, the number of a line of 128 bytes: lines that share one
  // are exchanged alike.
  unsigned firstBit = Log2_64(wgmmaLongestLine / lineBytes);
  for (unsigned bit = 0; bit < Log2_64(shape[lineAxis]); ++bit) {
    std::array<int64_t, 2> element{0, 0};
    element[lineAxis] = int64_t(1) << bit;
    if (bit >= firstBit && bit - firstBit < pieceBits)
      element[contiguousAxis] = (pieceBytes / elementBytes) << (bit - firstBit);
    layout.append(InDim::Offset, element);
  }
  layout.appendAxis(InDim::Offset, contiguousAxis, Log2_64(shape[contiguousAxis]) - lineBits, int64_t(1) << lineBits);
  return layout;
}

std::optional<int64_t> weft::warp::wgmmaLineBytes(const LinearLayout &layout, unsigned contiguousAxis,
                                                  unsigned elementBytes) {
  for (int64_t longest = wgmmaLongestLine; longest >= 2 * pieceBytes; longest /= 2)
    if (wgmmaTileLayout(layout.shape(), contiguousAxis, elementBytes, longest) == layout)
      return std::min<int64_t>(longest, layout.shape()[contiguousAxis] * elementBytes);
  return std::nullopt;
}

int64_t WgmmaOperand::offset(int64_t outer, int64_t inner) const {
  auto [along, line] = turned ? std::pair(outer, inner) : std::pair(inner, outer);
  int64_t alongBytes = along * elementBytes;
  return alongBytes / lineBytes * panelBytes + line * lineBytes + alongBytes % lineBytes;
}

uint64_t WgmmaOperand::descriptor() const {
  // Along K the leading offset is not read where lines are swizzled; turned, it leads to the next panel.
  uint64_t leading = turned ? panelBytes : pieceBytes, stride = linesOfPattern * lineBytes;
  uint64_t swizzle = lineBytes == 128 ? 1 : lineBytes == 64 ? 2 : 3;
  return leading >> 4 << 16 | stride >> 4 << 32 | swizzle << 62;
}

std::optional<WgmmaOperand> weft::warp::wgmmaOperand(const LinearLayout &layout, unsigned innerAxis,
                                                     unsigned elementBytes) {
  for (unsigned axis : {innerAxis, 1 - innerAxis})
    if (std::optional<int64_t> bytes = wgmmaLineBytes(layout, axis, elementBytes))
      return WgmmaOperand{axis != innerAxis, unsigned(*bytes), *bytes * layout.shape()[1 - axis], elementBytes};
  return std::nullopt;
}
