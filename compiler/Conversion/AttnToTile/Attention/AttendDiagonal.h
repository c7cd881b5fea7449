// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The diagonal as a domain: every query has one key of it, its own token's. No block is walked for that; the row state
// of the forward starts from s(i, i), and in the backward it is a product of rows:
//
//   p = exp(s - lse);  ds = p (dO · v - delta);  dq = scale ds k;  dk = scale ds q;  dv = p dO
#pragma once

#include "compiler/Conversion/AttnToTile/Attention/AttendBackwardKernel.h"

namespace weft {

/// The first domain whose pattern is the diagonal of queries and keys that are the same tokens; nothing where there is
/// none, nor with counts: positions are then counted from the last key in use.
std::optional<unsigned> diagonalDomain(const Attend &attend);
/// The same for the backward: nothing too where tensors captured by a score_mod have gradients, which are added up over
/// blocks.
std::optional<unsigned> diagonalDomain(attn::AttendBackwardOp op);

/// A value at rows of a kernel, and, where it has them already, its chunks of channels.
struct RowSide {
  mlir::Value value;
  RowTile rows;
  llvm::ArrayRef<Chunk> chunks;
  llvm::SmallVector<mlir::Value> tiles = {};
};

/// [count] f32: for each row the sum over channels of the products of two sides: by matrix instructions where the
/// elements have 16 bits, else by multiply-adds.
mlir::Value rowProduct(KernelFrame &frame, Puller &puller, StoredValues &stored, const RowSide &a, const RowSide &c);

/// A region of scores (`score_mod` or its gradient) at the diagonal: `score` [count] is scale · q · k, `more` [count]
/// what the region takes after the indices. Gives [count].
mlir::Value evaluateAtDiagonal(KernelFrame &frame, StoredValues &stored, mlir::Region &region, const RowTile &queries,
                               mlir::Value score, mlir::ValueRange more = {});

/// P and the gradient of scale · q k at the diagonal, [count] f32 each.
struct DiagonalPairs {
  mlir::Value weights, dScores;
};
/// Of the tile of a kernel of dq.
DiagonalPairs pairsAtDiagonal(BackwardKernel &kernel, unsigned domain, const QuerySide &queries);
/// The diagonal's part of that kernel's sums: ds k, a chunk each.
llvm::SmallVector<mlir::Value> diagonalQuerySums(BackwardKernel &kernel, unsigned domain, const QuerySide &queries,
                                                 const DiagonalPairs &pairs);

/// Whether the gradients of the diagonal's keys and values are terms of what a later kernel of rows makes: a product of
/// rows each, for which that kernel needs two numbers a row, those of the pairs.
bool diagonalGradientsAreTerms(attn::AttendBackwardOp op, unsigned domain);
/// Stores the numbers, from the kernel of dq, before all else that it stores.
void storeDiagonalPairs(BackwardKernel &kernel, const QuerySide &queries, const DiagonalPairs &pairs);
/// Puts products of rows with them in the place of the gradients.
void makeDiagonalTerms(attn::AttendBackwardOp op, unsigned domain, mlir::ValueRange numbers, StoredValues &stored);

/// Otherwise: writes the kernel of dk and dv of the diagonal's keys, from all query heads that share them; as
/// lowerBackwardPart.
void lowerDiagonalGradients(attn::AttendBackwardOp op, const SoftmaxNumbers &numbers, unsigned domain,
                            llvm::ArrayRef<mlir::Value> roots, StoredValues &stored);

} // namespace weft
