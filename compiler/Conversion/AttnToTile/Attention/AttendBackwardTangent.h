// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The kernels of the tangent of attention's gradient.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/ProgramKernels.h"
#include "dialects/Attn/IR/AttnOps.h"

namespace weft {

/// Writes the kernels of `op`, whose operands are stored, and of what is computed from its results row by row.
mlir::LogicalResult lowerAttendBackwardTangent(attn::AttendBackwardTangentOp op, ProgramKernels &program);

} // namespace weft
