// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Numbers: values of a program that have no axis. What is computed from them alone is a few instructions, which the
// kernels that read it repeat; nobody waits for a launch that makes it.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"
#include "compiler/Conversion/AttnToTile/Kernel/StoredValues.h"

namespace weft {

/// Whether a value has no axis.
bool isNumber(mlir::Value value);

/// A number inside a kernel, as regions compute on it (f32, i32 or i1): loaded where it is stored, a map of other
/// numbers, or the sum of all elements of a stored tensor. Computed once, before the loops that ask for it.
mlir::Value numberOf(KernelFrame &frame, const StoredValues &stored, mlir::Value number);

/// `loadElement`, or where `tensor` is a number `numberOf`.
mlir::Value elementOf(KernelFrame &frame, const StoredValues &stored, mlir::Value tensor, mlir::ValueRange indices,
                      mlir::Value inside = {});

/// Stores numbers by a kernel of one program.
void lowerNumbers(mlir::Operation *anchor, llvm::ArrayRef<mlir::Value> numbers, StoredValues &stored);

} // namespace weft
