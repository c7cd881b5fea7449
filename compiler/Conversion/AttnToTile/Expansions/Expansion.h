// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Expansions: head convolutions, linear maps and element-wise maps that belong together, as one kernel; with gradients
// of their weights.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"
#include "compiler/Conversion/AttnToTile/Kernel/StoredValues.h"
#include "compiler/Conversion/AttnToTile/Rows/Channels.h"

namespace weft {

/// Ops that compute `roots` from `sources`, [B, H, N, D], and weights: `attn.head_conv`, `attn.linear` (not
/// concatenated), maps of values of one shape, and gradients of weights. Everything in them but those is of one token:
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

/// Heads [first, first + width) of which `valid` exist; width is 4, 8, 16 or 32. As columns of a product they take at
/// least 8.
struct HeadPiece {
  int64_t first, width, valid;
  int64_t columns() const { return std::max<int64_t>(8, width); }
};
llvm::SmallVector<HeadPiece> headPieces(int64_t heads);

/// How a kernel for an expansion is spread: `tokens` at a time, `rounds` times, by `warps` warps.
struct ExpansionTiling {
  int64_t tokens, rounds, warps;
};
ExpansionTiling expansionTiling(const Expansion &expansion);

/// One product of a convolution with a part of its weight: heads of one piece at `taps` taps from `firstTap` on, those
/// past the last one 0. More than one tap where a piece has fewer heads than a matrix instruction's inner size: index
/// (head, tap) of the inner axis.
struct ConvTerm {
  unsigned piece;
  int64_t firstTap, taps;
};
llvm::SmallVector<ConvTerm> convTerms(llvm::ArrayRef<HeadPiece> pieces, int64_t taps);

/// The parts of weights and biases that products take, read before a kernel's loop.
struct ProductWeights {
  /// Of each term of a convolution, or chunk of a linear map's inner axis, for each piece or chunk of its result:
  /// [inner, columns].
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> parts;
  /// For each piece or chunk of the result: [1, columns], f32; null without a bias.
  llvm::SmallVector<mlir::Value> bias;
};
ProductWeights loadWeights(KernelFrame &frame, const StoredValues &stored, attn::HeadConvOp op, mlir::Type element);
/// `inner`: chunks of the source's channels.
ProductWeights loadWeights(KernelFrame &frame, const StoredValues &stored, attn::LinearOp op,
                           llvm::ArrayRef<Chunk> inner, mlir::Type element);

/// Chunks of the last axis of rows, a multiple of 8: powers of two from 64 down.
llvm::SmallVector<Chunk> channelChunks(int64_t channels);

} // namespace weft
