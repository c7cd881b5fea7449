// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Kernels over elements: maps of any shape, means over heads, products with weights.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"
#include "compiler/Conversion/AttnToTile/Kernel/StoredValues.h"

namespace weft {

/// Stores a map of any shape by a kernel over its elements in row-major order. It is launched before `anchor`, where
/// what it reads is stored.
mlir::LogicalResult lowerFlatMap(attn::MapOp op, mlir::Operation *anchor, StoredValues &stored);

/// A product with a weight (LowerHeadConv.cpp, LowerLinear.cpp): stores `roots`, its result or what is computed from it
/// element by element. Its source is pulled element by element.
mlir::LogicalResult lowerHeadConv(attn::HeadConvOp op, llvm::ArrayRef<mlir::Value> roots, StoredValues &stored);
mlir::LogicalResult lowerLinear(attn::LinearOp op, llvm::ArrayRef<mlir::Value> roots, StoredValues &stored);
/// The gradients of their weights; both operands are pulled element by element.
mlir::LogicalResult lowerHeadConvWeightGrad(attn::HeadConvWeightGradOp op, StoredValues &stored);
mlir::LogicalResult lowerLinearWeightGrad(attn::LinearWeightGradOp op, StoredValues &stored);
/// Stores means over heads, by a kernel over elements, which is launched before `anchor`, where what it reads is
/// stored.
mlir::LogicalResult lowerMeanHeads(attn::MeanHeadsOp op, mlir::Operation *anchor, StoredValues &stored);

} // namespace weft
