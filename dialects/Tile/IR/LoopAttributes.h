// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a lowering knows of a loop that it writes, for the passes that schedule it.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace weft::tile {

/// On an `scf.for`: it has about as few iterations as are in flight at once, so that work for ones that it has not counts.
inline constexpr llvm::StringLiteral fewIterationsAttrName = "tile.few_iterations";

} // namespace weft::tile
