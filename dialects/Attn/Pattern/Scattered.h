// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which pairs a pattern may hold, whatever its scattered masks say.
#pragma once

#include "mlir/IR/Attributes.h"

namespace weft::attn {

/// The pattern without its scattered masks: every pair of the pattern is in it, so its blocks are those to walk. Where it
/// is another than the pattern, none of them is known to be whole.
mlir::Attribute withoutScattered(mlir::Attribute pattern);

} // namespace weft::attn
