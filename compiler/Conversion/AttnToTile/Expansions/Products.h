// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What products with weights are to an expansion's kernel: the forms of tiles, pieces of heads, weights, tiles of
// gradients; and the interface by which a product takes part.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"
#include "compiler/Conversion/AttnToTile/Kernel/StoredValues.h"
#include "compiler/Conversion/AttnToTile/Rows/Channels.h"

namespace weft {

class ExpansionKernel;

/// The form of the tiles that a product multiplies (see ExpansionKernel.h).
enum class ProductForm : uint8_t {
  Signals, ///< rows are a token's channels: of all heads
  Rows     ///< rows are tokens, of heads that are all treated alike and apart
};

/// A value on the tile: signals, one tile for each piece; or rows, one for each chunk of each piece.
struct ExpansionTiles {
  bool asRows = false;
  llvm::SmallVector<mlir::Value> tiles;
};

/// Heads [first, first + width) of which `valid` exist; width is 4, 8, 16 or 32. As columns of a product they take at
/// least 8.
struct HeadPiece {
  int64_t first, width, valid;
  int64_t columns() const { return std::max<int64_t>(8, width); }
};
llvm::SmallVector<HeadPiece> headPieces(int64_t heads);

/// Whether a value is [B, H, N, D] with H and D that tiles can hold; and of 16-bit elements too: a product's operand.
bool hasProductShape(mlir::Value value);
bool isProductOperand(mlir::Value value);

/// Chunks of the last axis of rows, a multiple of 8: powers of two from 64 down.
llvm::SmallVector<Chunk> channelChunks(int64_t channels);

/// The parts of weights and biases that products take, read before a kernel's loop.
struct ProductWeights {
  /// Of each term of a convolution, or chunk of a linear map's inner axis, for each piece or chunk of its result:
  /// [inner, columns].
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> parts;
  /// For each piece or chunk of the result: [1, columns], f32; null without a bias.
  llvm::SmallVector<mlir::Value> bias;
};

/// Positions [first, first + size) along one axis, of which `valid` exist.
struct Span {
  int64_t first, size, valid;
};
/// Elements of a stored tensor at the product of spans, zeros where none exist, as `element`.
mlir::Value loadBlock(TileBuilder &b, const TensorParameter &tensor, llvm::ArrayRef<Span> spans, mlir::Type element);
/// A part of a stored bias (null: none): [1, size], f32.
mlir::Value loadBias(KernelFrame &frame, const StoredValues &stored, mlir::Value bias, Span span);

/// A signal moved along its channels, result[d] = signal[d + move], for each of some moves; a number for none.
using Moves = llvm::SmallVector<std::optional<int64_t>>;

/// One product of a weight's gradient: a piece (or chunk) of the gradient times one of the source, where one of the two
/// is moved by each of some taps. Where a move is none there are ones, whose sums are the bias' gradient.
struct GradientTile {
  unsigned left;
  std::optional<unsigned> right; ///< none for a product with ones alone
  Moves leftMoves, rightMoves;
  int64_t firstTap;
  bool bias; ///< whether it has the bias' gradient, in the last of the source's moves
  int64_t rows, columns;
};
/// Columns of a matrix instruction.
inline constexpr int64_t instructionColumns = 8;

/// An axis of a tile of sums: the step in memory that it takes, or null for 1, from the place at `start` on; of its
/// places those from `begin` to `end` are stored.
struct SumAxis {
  int64_t size, begin, end;
  mlir::Value stride;
  int64_t start = 0;
};
/// Stores what of a tile of sums is at the product of the axes' places, into part `part` of an output.
void storeAxes(TileBuilder &b, const TensorParameter &output, mlir::Value part, llvm::ArrayRef<SumAxis> axes,
               mlir::Value sum);

} // namespace weft

#include "compiler/Conversion/AttnToTile/Expansions/ProductOpInterface.h.inc"

namespace weft {

/// Whether an op is a product, or the gradient of a weight.
bool isProduct(mlir::Operation *op);
bool isWeightGradient(mlir::Operation *op);
/// The form of either; nothing of any other op (may be null).
std::optional<ProductForm> productForm(mlir::Operation *op);
/// Tiles of a gradient's sums; none of any other op.
llvm::SmallVector<GradientTile> gradientTiles(mlir::Operation *op);

/// Makes known to the context, with the dialect, which of its ops are products.
void registerProducts(mlir::DialectRegistry &registry);

} // namespace weft
