// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How layouts of matrix instructions' operands are written down.
#pragma once

#include "dialects/Warp/Layout/MmaLayouts.h"
#include "llvm/Support/MathExtras.h"

namespace weft::warp {

/// Builds a layout bit by bit and remembers how far along each axis it has come.
class LayoutWalk {
public:
  explicit LayoutWalk(llvm::ArrayRef<int64_t> shape) : layout(shape), reached(shape.size(), 1) {}

  /// The next `count` bits of `dim` walk on along `axis`.
  LayoutWalk &along(InDim dim, unsigned axis, unsigned count) {
    layout.appendAxis(dim, axis, count, reached[axis]);
    reached[axis] <<= count;
    return *this;
  }
  /// The bits of a fragment, one part after another.
  LayoutWalk &along(llvm::ArrayRef<FragmentBits> fragment) {
    for (const FragmentBits &bits : fragment)
      along(bits.dim, bits.axis, bits.count);
    return *this;
  }
  /// Registers walk on along `axis` up to `end`.
  LayoutWalk &registersTo(unsigned axis, int64_t end) {
    if (end > reached[axis])
      along(InDim::Register, axis, llvm::Log2_64(end / reached[axis]));
    return *this;
  }
  /// Warps that all hold the same.
  LayoutWalk &repeatWarps(unsigned count) {
    for (unsigned bit = 0; bit < count; ++bit)
      layout.append(InDim::Warp, 0u);
    return *this;
  }
  LinearLayout take() { return layout.withoutRepeatedRegisters(); }

private:
  LinearLayout layout;
  llvm::SmallVector<int64_t, 2> reached;
};

} // namespace weft::warp
