// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How the choice of tilings reaches the kernels that attn-to-tile makes, and what it notes of them.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace weft::attn {

/// On a module, from attn-choose-schedules to attn-to-tile: rows and warps by the place of a kernel,
/// {forward.rows.0 = array<i64: 32, 4>}.
inline constexpr llvm::StringLiteral tilingChoicesAttrName = "attn.tiling_choices";

/// On a program, from attn-to-tile on: an array of {place, tiling, rows, warps}, a kernel's tiling and what it can
/// take.
inline constexpr llvm::StringLiteral tilingsAttrName = "attn.tilings";

} // namespace weft::attn
