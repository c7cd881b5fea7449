// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The op interfaces of differentiation, and their implementations by family: an op's adjoint and its tangent rule stand
// side by side. Ops whose transpose is an op of their kind (attn::TransposableOpInterface) need none.
#pragma once

#include "compiler/Differentiate/Gradients.h"
#include "compiler/Differentiate/Tangents.h"

#include "compiler/Differentiate/DifferentiableOpInterface.h.inc"

namespace weft {

/// attn.map: derivatives of its scalars, summed to the inputs' shapes. (MapAdjoint.cpp)
void attachMapAdjoint(mlir::MLIRContext &context);
/// attn.attend: attn.attend_backward, with the row sums it takes. (AttendAdjoint.cpp)
void attachAttendAdjoint(mlir::MLIRContext &context);
/// The tangents of both. (AttendTangents.cpp)
void attachAttendTangents(mlir::MLIRContext &context);
/// attn.sum, convolve and its taps' gradient, rms_norm. (SequenceAdjoints.cpp)
void attachSequenceAdjoints(mlir::MLIRContext &context);
/// attn.merge_units, spread. (MergeAdjoints.cpp)
void attachMergeAdjoints(mlir::MLIRContext &context);
/// attn.head_conv, linear and their weights' gradients, mean_heads. (HeadAdjoints.cpp)
void attachHeadAdjoints(mlir::MLIRContext &context);
/// attn.recur. (RecurrenceAdjoint.cpp)
void attachRecurrenceAdjoint(mlir::MLIRContext &context);
/// All of them, once the attn dialect is loaded. (Differentiate.cpp)
void registerDerivatives(mlir::DialectRegistry &registry);

} // namespace weft
