// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Elements that a masked load leaves undefined.
#pragma once

#include "mlir/IR/Value.h"

namespace weft::warp {

/// Whether a sine or cosine is marked, by `afn`, to be of an angle of at most 2^31, as that of a position is: no long
/// division finds its turns.
bool isOfSmallAngle(mlir::Operation *op);

/// Whether a value, by way of others made of it, decides whether memory is read, or a branch of the compiler's own.
/// The program may mask what comes of it: it must be some number, where else the simulator would report that nothing
/// wrote it.
bool decidesAWay(mlir::Value loaded);

} // namespace weft::warp
