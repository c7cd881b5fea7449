// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/SwizzledLayout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <optional>

using namespace llvm;
using namespace weft::warp;

namespace {
constexpr unsigned pieceBytes = 16, bankLineBytes = 128;

/// Offsets walk along the contiguous axis, then along the others from the last to the first.
LinearLayout plainLayout(ArrayRef<int64_t> shape, unsigned contiguousAxis) {
  LinearLayout layout(shape);
  layout.appendAxis(InDim::Offset, contiguousAxis, Log2_64(shape[contiguousAxis]), 1);
  for (unsigned axis = shape.size(); axis-- > 0;)
    if (axis != contiguousAxis)
      layout.appendAxis(InDim::Offset, axis, Log2_64(shape[axis]), 1);
  return layout;
}
/// The axis along which the first of several registers or lanes count up by one.
std::optional<unsigned> axisOfFirst(const LinearLayout &layout, InDim dim) {
  if (ArrayRef<uint32_t> bases = layout.bases(dim); !bases.empty())
    for (auto [axis, at] : enumerate(layout.delinearize(bases.front())))
      if (at == 1)
        return axis;
  return std::nullopt;
}
} // namespace

/// Of lines along the last of two axes, longer than a piece.
static LinearLayout swizzledLines(int64_t lines, int64_t lineElements, unsigned elementBytes,
                                  ArrayRef<unsigned> firstBits, unsigned piecesTogether) {
  const int64_t lineBytes = lineElements * elementBytes, piece = pieceBytes / elementBytes;
  unsigned pieceBits = Log2_64(std::min<int64_t>(lineBytes, bankLineBytes) / pieceBytes);
  unsigned firstLineBit = lineBytes < bankLineBytes ? Log2_64(bankLineBytes / lineBytes) : 0;
  // With 4-byte elements, 8 neighbours are two pieces, with 8-byte elements 4: lines 0 to 3 must then differ in the
  // piece bits above the lowest.
  unsigned rotation = Log2_32(std::max(piecesTogether, elementBytes >= 4 ? 2u : 1u));

  LinearLayout layout({lines, lineElements});
  layout.appendAxis(InDim::Offset, 1, Log2_64(lineElements), 1);
  SmallVector<unsigned> lineBits(firstBits);
  for (unsigned bit = 0; bit < Log2_64(lines); ++bit)
    if (!is_contained(firstBits, bit))
      lineBits.push_back(bit);
  for (auto [bit, coordinateBit] : enumerate(lineBits)) {
    SmallVector<int64_t, 2> element{int64_t(1) << coordinateBit, 0};
    if (bit >= firstLineBit && bit - firstLineBit < pieceBits)
      element[1] = piece << (bit - firstLineBit + rotation) % pieceBits;
    layout.append(InDim::Offset, element);
  }
  return layout;
}

LinearLayout weft::warp::swizzledLayout(ArrayRef<int64_t> shape, unsigned contiguousAxis, unsigned elementBytes,
                                        ArrayRef<unsigned> firstBits, unsigned piecesTogether) {
  if (shape.size() < 2 || shape[contiguousAxis] * elementBytes <= pieceBytes)
    return plainLayout(shape, contiguousAxis);
  SmallVector<int32_t> order, back(shape.size());
  SmallVector<int64_t> turned;
  int64_t lines = 1;
  for (unsigned axis = 0; axis < shape.size(); ++axis)
    if (axis != contiguousAxis) {
      order.push_back(axis);
      lines *= shape[axis];
    }
  order.push_back(contiguousAxis);
  for (auto [to, from] : enumerate(order)) {
    back[from] = to;
    turned.push_back(shape[from]);
  }
  return swizzledLines(lines, shape[contiguousAxis], elementBytes, firstBits, piecesTogether)
      .reshape(turned)
      .permute(back);
}

unsigned weft::warp::contiguousAxis(const LinearLayout &layout) {
  return axisOfFirst(layout, InDim::Register).value_or(layout.rank() - 1);
}

unsigned weft::warp::neighbourAxis(const LinearLayout &layout) {
  std::optional<unsigned> own = axisOfFirst(layout, InDim::Register);
  return own ? *own : axisOfFirst(layout, InDim::Lane).value_or(layout.rank() - 1);
}
