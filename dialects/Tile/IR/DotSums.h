// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How exactly products of 8-bit floats are summed.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace weft::tile {

/// On a `tile.dot` of 8-bit floats: its accumulator may be the matrix instruction's own, which keeps fewer bits than f32.
inline constexpr llvm::StringLiteral impreciseSumsAttrName = "tile.imprecise_sums";

} // namespace weft::tile
