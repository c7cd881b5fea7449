// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The backward kernels of attention.
#pragma once

#include "compiler/Conversion/AttnToTile/Patterns/Attend.h"

namespace weft {

/// One kernel of a backward: the results of the op that it makes. Their rows are those of one side.
struct BackwardPart {
  /// Diagonal: keys too, of a domain that is the diagonal.
  /// OnePass: dk and dv (of wide values dk alone), and dq by sums in device memory.
  enum class Kind { Query, Keys, Values, Diagonal, Window, OnePass } kind;
  unsigned domain = 0;                    ///< of Keys, Values and Diagonal
  llvm::SmallVector<mlir::Value> results; ///< dq; dk and dv of the domain, or each by itself; or all three
};

/// Queries are padded to a multiple of this in SoftmaxNumbers.
inline constexpr int64_t numbersTile = 128;

/// Numbers of each query that the kernels begin from, stored by a launch as f32 [B, H, tiles, numbersTile], so that
/// heads are aligned. Null where a kernel finds them itself.
struct SoftmaxNumbers {
  mlir::Value minusShift; ///< -lse · log2 e; -inf, which makes every weight 0, where lse is -inf or there is no query
  mlir::Value minusDelta; ///< where sums of dOut · v begin
};
/// Writes their kernel. (In a walk over queries each would else be computed for every tile of keys, in every lane that
/// has a part of its column.)
SoftmaxNumbers lowerSoftmaxNumbers(attn::AttendBackwardOp op, StoredValues &stored);

/// The kernels that `op` becomes: one for dq and one for each domain's dk and dv, or one for each of these where
/// `makesValuesApart` (ScheduleTable.h); or one for all where each program's keys are its queries' own tokens, a window
/// of them.
llvm::SmallVector<BackwardPart> backwardParts(attn::AttendBackwardOp op);

/// Writes the kernel of a part and of what is computed from its results row by row, and its launch before `op`. `roots`
/// as those of `lowerAttend`. Gradients of captured tensors that the part makes are stored too. Fails with a diagnostic
/// where the op cannot be lowered.
mlir::LogicalResult lowerBackwardPart(attn::AttendBackwardOp op, const BackwardPart &part,
                                      const SoftmaxNumbers &numbers, llvm::ArrayRef<mlir::Value> roots,
                                      StoredValues &stored);

/// The part that makes dv alone; as lowerBackwardPart.
void lowerValueGradients(attn::AttendBackwardOp op, const SoftmaxNumbers &numbers, unsigned domain,
                         llvm::ArrayRef<mlir::Value> roots, StoredValues &stored);

/// The part that makes all gradients in one pass over the keys: dq is added up in device memory, in f32 and in any
/// order. Gives that tensor, which has to be scaled and rounded.
mlir::Value lowerOnePass(attn::AttendBackwardOp op, const BackwardPart &part, const SoftmaxNumbers &numbers,
                         llvm::ArrayRef<mlir::Value> roots, StoredValues &stored);
/// Whether `op` becomes that part: it is of a form that the one pass is faster for, and `fast` or able to take turns.
bool takesOnePass(attn::AttendBackwardOp op);
/// Why it does not; empty where it does.
llvm::StringRef whyNotOnePass(attn::AttendBackwardOp op);

} // namespace weft
