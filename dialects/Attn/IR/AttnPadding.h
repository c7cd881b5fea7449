// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a tile holds where the tensor has no elements: rows past the end of a sequence, channels past the head size.
#pragma once

#include "mlir/IR/Region.h"
#include <optional>

namespace weft::attn {

/// What a value holds past the end of an axis, from what is known to nothing.
enum class Padding : uint8_t {
  Zero,
  Repeated, ///< what it holds elsewhere: it is the same all along the axis
  Finite,   ///< a number
  Unknown,  ///< anything, infinity and NaN too
};

/// Of what is multiplied by weights, which are repeated or 0 there, and added up.
inline Padding weighted(Padding source) { return source == Padding::Repeated ? Padding::Finite : source; }

/// The same with a bias, which is repeated.
inline Padding weightedWithBias(Padding source, bool bias) {
  return bias && source == Padding::Zero ? Padding::Finite : weighted(source);
}

/// Of what a scalar region yields as `result`, from its arguments': the region is folded with zeros. Positions on
/// `axis` of the map's results (on any where there is none) are numbers there, those on others are repeated.
///
/// A factor that is repeated counts as finite: where it is not, neither is what it makes of the elements that exist.
Padding paddingOfRegion(mlir::Region &region, llvm::ArrayRef<Padding> arguments, unsigned result,
                        std::optional<int64_t> axis);

} // namespace weft::attn
