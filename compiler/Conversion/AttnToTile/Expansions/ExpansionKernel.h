// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The kernel of an expansion. A program takes some tokens of one batch with all their heads, a few at a time; where
// nothing mixes heads, it takes tokens of one head.
//
// A value lives on the tile in one of two forms, both of whole matrix instructions for any number of heads:
//   signals  [tokens · D, heads of a piece]: rows are a token's channels. A convolution is a product for each tap: rows
//            shifted along the channels, times the tap's weights. Its sums have this form.
//   rows     [tokens · heads of a piece, channels of a chunk]. A linear map is a product of them; its sums have this
//            form and are the next one's operand without leaving their registers.
// Heads are cut into pieces of powers of two (36 = 32 + 4), channels into chunks, so that next to nothing is multiplied
// in vain. Sums stay in f32 from the first product to the store; operands are rounded to the products' element type.
// A residual is what a product's sums start from.
//
// Gradients of weights are products of the same tiles, summed over all tokens of a program: partial sums, which are
// added as those of any other gradient are.
//
// ExpansionKernel.cpp has what is computed, ExpansionMemory.cpp how values get there and change their form,
// ExpansionGradients.cpp gradients of weights; Products has one file for each kind of product.
#pragma once

#include "compiler/Conversion/AttnToTile/Expansions/Expansion.h"

namespace weft {

class ExpansionKernel {
public:
  ExpansionKernel(const Expansion &expansion, StoredValues &stored);
  mlir::LogicalResult run();

  // What products ask for.
  using Value = mlir::Value;
  using Tiles = ExpansionTiles;
  /// [tokens, D, width] of each piece, as operands are stored.
  llvm::SmallVector<Value> signals(Value value);
  /// [tokens · D, (head, move)], `none` where there is no move.
  Value operandOf(Value signal, const Moves &moves, double none = 0);
  /// A value's tiles as rows, those of signals of all channels.
  Tiles rowsOf(Value value);
  /// The sums that a product's tile starts from.
  Value startOf(const Tiles *start, unsigned index, Value bias, llvm::ArrayRef<int64_t> shape);
  int64_t channels(Value value) const { return *wholeType(value).staticDim(3); }
  llvm::SmallVector<HeadPiece> pieces(Value value) const;
  const ProductWeights &weightsOf(mlir::Operation *op) const { return weights.find(op)->second; }

private:
  const Expansion &expansion;
  StoredValues &stored;
  KernelFrame frame;

public:
  ExpansionTiling tiling;
  TileBuilder &b;
  mlir::Type element; ///< that products multiply

private:
  // What is computed.
  void loadAllWeights();
  const Tiles &compute(Value value);
  Tiles product(mlir::Operation *op, const Tiles *start);
  Tiles map(attn::MapOp op);
  /// The product that a map adds something to, if it does nothing else and the product can start from that.
  mlir::Operation *residualOf(attn::MapOp op, Value &added);
  /// Everything of the tokens at hand: stores the roots; gives `sums` with the tokens' part of the weights' gradients.
  llvm::SmallVector<Value> computeTokens(llvm::ArrayRef<TensorParameter> outputs, mlir::ValueRange sums);
  void runTokens();
  mlir::LogicalResult runParts();

  // Forms.
  Value moved(Value signal, int64_t move);
  Value firstHeads(Value signal, const HeadPiece &piece);
  /// A value's tiles as rows in chunks, as sums of a linear map are.
  Tiles chunkedRowsOf(Value value);

  // Memory.
  const Tiles &loadSource(Value source, bool asRows);
  Value address(const TensorParameter &tensor, const HeadPiece &piece, const Chunk &chunk,
                llvm::ArrayRef<int64_t> order, int64_t heads);
  Value exists(const HeadPiece &piece, llvm::ArrayRef<int64_t> order, int64_t heads);
  void store(const TensorParameter &output, Value value);
  Value along(Value vector, int64_t axis, int64_t rank);

  // Gradients of weights (ExpansionGradients.cpp): the partial sums of each in order.
  llvm::SmallVector<Value> zeroSums();
  llvm::SmallVector<Value> addGradients(mlir::Operation *op, mlir::ValueRange sums);
  void storeSums(mlir::Operation *op, llvm::ArrayRef<TensorParameter> outputs, mlir::ValueRange sums);
  /// A tile whose first axis is tokens, with zeros for those that do not exist.
  Value ofTokens(Value tile);

  /// Chunks of a value's channels as rows: of signals, all at once.
  llvm::SmallVector<Chunk> chunksOfRows(Value value) const;
  bool isInside(Value value) const { return expansion.has(value.getDefiningOp()); }

  attn::WholeTensorType type; // of a source: what all have alike
  llvm::DenseMap<mlir::Operation *, ProductWeights> weights;
  std::map<void *, Tiles> known;                     // by value
  std::map<std::pair<void *, bool>, Tiles> loaded;   // by source and form
  std::map<void *, llvm::SmallVector<Value>> signal; // by value
  Value batch, head;                                 // i32; no head where a program has all
  Value firstToken, tokensLeft;                      // i32: of the tokens at hand
  llvm::SmallVector<Value> turned;                   // signals as rows, in the order in which they were turned
};

/// Tensors of one shape, as many as a power of two, side by side on new last axes, in their order.
mlir::Value joined(TileBuilder &b, llvm::ArrayRef<mlir::Value> tensors);

/// Axes in another order.
mlir::Value permuteAxes(TileBuilder &b, mlir::Value value, llvm::ArrayRef<int32_t> order);

/// What a value of an expansion, whose sources are read as zeros, holds past the end of an axis of [B, H, N, D].
attn::Padding paddingOf(const Expansion &expansion, mlir::Value value, int64_t axis);

} // namespace weft
