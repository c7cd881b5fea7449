// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the verifiers of the attn dialect's ops share. Each check reports at `op` and says what was expected.
#pragma once

#include "dialects/Attn/IR/AttnOps.h"

namespace weft::attn {

/// No distance between positions is larger, so that sums of it and a position have 32 bits.
inline constexpr int64_t largestDistance = int64_t(1) << 30;

inline WholeTensorType tensorTypeOf(mlir::Value value) { return mlir::cast<WholeTensorType>(value.getType()); }

/// Whether two sizes are known to be different: both plain (an integer or a symbol) and spelled unlike, or unlike
/// multiples of one symbol. Of any other expression nothing is known until its symbols have values.
bool differ(llvm::StringRef a, llvm::StringRef b);

/// `what` has rank `rank`.
mlir::LogicalResult checkRank(mlir::Operation *op, llvm::StringRef what, WholeTensorType type, int64_t rank);
/// `what` has `sizes`, as far as is known.
mlir::LogicalResult checkSizes(mlir::Operation *op, llvm::StringRef what, WholeTensorType type,
                               llvm::ArrayRef<llvm::StringRef> sizes);
/// `what` has floats as elements, of any width.
mlir::LogicalResult checkFloats(mlir::Operation *op, llvm::StringRef what, WholeTensorType type);
/// `what` has i32 elements and rank `rank`.
mlir::LogicalResult checkIndices(mlir::Operation *op, llvm::StringRef what, WholeTensorType type, int64_t rank);

/// `cuSeqlens`, of packed sequences, is null or [S+1] of i32.
mlir::LogicalResult checkCuSeqlens(mlir::Operation *op, mlir::Value cuSeqlens);

/// Taps [K, H·C] of a convolution over `heads` heads of `channels` channels (empty where not known), which
/// `attn.toeplitz` and `attn.convolve` say.
mlir::LogicalResult checkTaps(mlir::Operation *op, WholeTensorType taps, bool centred, int64_t dilation,
                              std::optional<llvm::ArrayRef<int64_t>> grid, mlir::Value cuSeqlens,
                              WholeTensorType source = {});
template <typename Op> mlir::LogicalResult checkTaps(Op op, WholeTensorType taps, WholeTensorType source = {}) {
  return checkTaps(op, taps, op.getCentred(), op.getDilation(), op.getGrid(), op.getCuSeqlens(), source);
}

/// A scalar region of one block that takes `arguments` and yields `results`.
mlir::LogicalResult checkScalarRegion(mlir::Operation *op, llvm::StringRef what, mlir::Region &region,
                                      llvm::ArrayRef<mlir::Type> arguments, llvm::ArrayRef<mlir::Type> results);

/// Patterns: one for each of `domains`, naming operands and regions that there are and that fit.
mlir::LogicalResult checkPatterns(mlir::Operation *op, mlir::ArrayAttr patterns, size_t domains,
                                  mlir::ValueRange operands, size_t masks, llvm::StringRef heads);

} // namespace weft::attn
