// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Kernels over elements: maps of any shape, means over heads.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"
#include "compiler/Conversion/AttnToTile/Kernel/StoredValues.h"

namespace weft {

/// Stores a map of any shape by a kernel over its elements in row-major order. It is launched before `anchor`, where
/// what it reads is stored.
mlir::LogicalResult lowerFlatMap(attn::MapOp op, mlir::Operation *anchor, StoredValues &stored);

/// Stores means over heads, by a kernel over elements, which is launched before `anchor`, where what it reads is
/// stored.
mlir::LogicalResult lowerMeanHeads(attn::MeanHeadsOp op, mlir::Operation *anchor, StoredValues &stored);

} // namespace weft
