// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What each op does to the facts of AxisInfo. Internal to the analysis.
#pragma once

#include "compiler/Analysis/AxisInfo.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"

namespace weft {

/// The highest power of two that divides `value`, at most AxisInfo::maxDivisibility (which is also what divides 0).
int64_t lowestBit(int64_t value);
/// Axes of a tensor, 0 for a scalar.
unsigned rankOf(mlir::Value value);
/// Whether the value is an integer, an index, a pointer or a tensor of those.
bool hasAxisInfo(mlir::Value value);
/// Bytes from one element to the next in memory when `type` is a pointer (or tensor of pointers), else 1.
int64_t unitOf(mlir::Type type);
/// The facts on `result` of `op`, an op without regions that matter, given those on its operands.
AxisInfo transfer(mlir::Operation *op, llvm::ArrayRef<AxisInfo> operands, mlir::OpResult result);
/// `info`, with what the op's own attributes promise.
AxisInfo withPromises(mlir::Operation *op, AxisInfo info);

} // namespace weft
