// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What kernels know of convolutions over tokens (attn.convolve, and the gradient of its taps).
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"
#include <cmath>

namespace weft {

/// Where the taps of a convolution lie: tap j of a line is direction (j - centre) tokens back, tap (i, j) of a grid as
/// much in each coordinate.
struct TapGeometry {
  bool grid;
  int64_t side;      ///< taps of a line, or of a side of a grid
  int64_t centre;    ///< the tap at the token itself
  int64_t direction; ///< the dilation; negative for the transpose

  /// Of an `attn.convolve` or `attn.convolve_taps_grad` with so many taps.
  template <typename Op> static TapGeometry of(Op op, int64_t taps) {
    bool grid = op.getGrid().has_value();
    int64_t side = grid ? std::llround(std::sqrt(double(taps))) : taps;
    return {grid, side, op.getCentred() || grid ? (side - 1) / 2 : 0,
            (op.getTransposed() ? -1 : 1) * int64_t(op.getDilation())};
  }
};

/// Whether a convolution is one of products of chunks: causal, with a number of taps that is not known, or many.
template <typename Op> bool isLongConvolution(Op op, attn::WholeTensorType taps) {
  return !op.getCuSeqlens() && !op.getCentred() && !op.getGrid() && op.getDilation() == 1 &&
         taps.staticDim(0).value_or(33) > 32;
}

} // namespace weft
