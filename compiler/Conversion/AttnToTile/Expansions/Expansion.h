// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Expansions: products with weights (head convolutions, linear maps) and element-wise maps that belong together, as one
// kernel; with gradients of their weights.
#pragma once

#include "compiler/Conversion/AttnToTile/Expansions/Products.h"

namespace weft {

/// Ops that compute `roots` from `sources`, [B, H, N, D], and weights: products (ProductOpInterface), maps of
/// values of one shape, and gradients of weights. Everything in them but those is of one token:
/// a kernel takes some tokens with all their heads.
struct Expansion {
  llvm::SmallVector<mlir::Value> roots;     ///< what others take, gradients of weights apart
  llvm::SmallVector<mlir::Operation *> ops; ///< in the order of the program; the kernel is launched before the last

  /// What they compute from: to be stored, all of the same batches and tokens. (Not kept: what is lowered before an
  /// expansion may put another value in the place of one of its operands.)
  llvm::SmallVector<mlir::Value> sources() const;
  bool has(mlir::Operation *op) const { return op && llvm::is_contained(ops, op); }
  /// Whether it sums up gradients of weights.
  bool sums() const;
  /// Whether heads are all treated alike and apart: a program has one of them.
  bool byHead() const;
  /// Whether a value's tiles are rows (see ExpansionKernel.h): of a source, for a linear map; else what is computed by
  /// one.
  bool comesAsRows(mlir::Value value) const;
  /// An op that multiplies signals where its operand comes as rows, which no kernel turns; null where there is none.
  mlir::Operation *takesRowsAsSignals() const;
  /// The type that its products multiply in.
  mlir::Type element() const;
};

/// Expansions of one root and one source, without gradients of weights, of ops that are not `taken`; none share an op.
llvm::SmallVector<Expansion> findExpansions(mlir::Block &program, const llvm::DenseSet<mlir::Operation *> &taken);

/// Those that sum up gradients of weights. Ops of the program may be cloned, where computing a value once more costs
/// less than keeping it, and are put in an order in which each expansion's sources come before it and what takes its
/// roots after it.
llvm::SmallVector<Expansion> findGradientExpansions(mlir::Block &program);

/// Whether an op can be one of an expansion's.
bool isExpansionPart(mlir::Operation *op);
/// What it computes from, weights apart.
mlir::ValueRange sourcesOf(mlir::Operation *op);

/// Stores the roots of an expansion, and its gradients of weights, by one kernel; sources and weights have been stored.
mlir::LogicalResult lowerExpansion(const Expansion &expansion, StoredValues &stored);

/// How a kernel for an expansion is spread: `tokens` at a time, `rounds` times, by `warps` warps.
struct ExpansionTiling {
  int64_t tokens, rounds, warps;
};
/// By the tiling that is chosen for the kernel: the rows of a program are tokens.
ExpansionTiling expansionTiling(const Expansion &expansion, KernelFrame &frame);

} // namespace weft
