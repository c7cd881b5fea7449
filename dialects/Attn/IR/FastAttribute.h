// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The word by which a program allows gradients that differ in their last bits from run to run.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace weft::attn {

/// On an `attn.softmax` or `attn.attend`, a unit: sums in its gradients may be taken in an order that changes from run
/// to run. The `attn.attend_backward` that it gives rise to is `fast`.
inline constexpr llvm::StringLiteral fastAttrName = "attn.fast";

} // namespace weft::attn
