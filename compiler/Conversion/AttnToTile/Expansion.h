// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Expansions: trees of head convolutions, linear maps and element-wise maps over one operand, as one kernel.
#pragma once

#include "compiler/Conversion/AttnToTile/Lowerings.h"

namespace weft {

/// Ops that compute `root` from `source`, [B, H, N, D], and weights, and whose values nothing else takes:
/// `attn.head_conv`, `attn.linear` (neither transposed nor concatenated) and maps of values of one shape; two or more
/// of the first two. Everything in them is of one token: a kernel takes some tokens with all their heads.
struct Expansion {
  mlir::Value root, source;
  llvm::SmallVector<mlir::Operation *> ops; ///< in the order of the program; the last one makes `root`
};

/// The expansions of a program, none of which share an op.
llvm::SmallVector<Expansion> findExpansions(mlir::Block &program);

/// Stores the root of an expansion by one kernel, launched before it; source and weights have been stored.
void lowerExpansion(const Expansion &expansion, StoredValues &stored);

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
