// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The words by which a program lets attention be less exact than it is otherwise.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace weft::attn {

/// On an `attn.softmax` or `attn.attend`, a unit: sums in its gradients may be taken in an order that changes from run
/// to run. The `attn.attend_backward` that it gives rise to is `fast`.
inline constexpr llvm::StringLiteral fastAttrName = "attn.fast";

/// On an `attn.softmax` or `attn.attend`, a unit: queries and keys that are converted from 8-bit floats may be multiplied
/// as such, by instructions whose sums over a head's channels keep fewer bits than float32 has.
inline constexpr llvm::StringLiteral float8AttrName = "attn.float8";

} // namespace weft::attn
