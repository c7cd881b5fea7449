// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The op interface of differentiation, and its implementations by family. Ops whose transpose is an op of their kind
// (attn::TransposableOpInterface) need none.
#pragma once

#include "compiler/Differentiate/Gradients.h"

#include "compiler/Differentiate/DifferentiableOpInterface.h.inc"

namespace weft {

/// attn.map: derivatives of its scalars, summed to the inputs' shapes. (MapAdjoint.cpp)
void attachMapAdjoint(mlir::MLIRContext &context);
/// attn.attend: attn.attend_backward, with the row sums it takes. (AttendAdjoint.cpp)
void attachAttendAdjoint(mlir::MLIRContext &context);
/// attn.sum, convolve, rms_norm. (SequenceAdjoints.cpp)
void attachSequenceAdjoints(mlir::MLIRContext &context);
/// attn.merge_units. (MergeAdjoints.cpp)
void attachMergeAdjoints(mlir::MLIRContext &context);
/// attn.head_conv, linear, mean_heads. (HeadAdjoints.cpp)
void attachHeadAdjoints(mlir::MLIRContext &context);

} // namespace weft
