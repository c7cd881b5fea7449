// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the kernels of products with weights (Elements/Products) share.
#pragma once

#include "compiler/Conversion/AttnToTile/Elements/ElementTile.h"
#include "compiler/Conversion/AttnToTile/Rows/Channels.h"

namespace weft {

/// The type in which a product multiplies: the narrower of its operands' element types.
mlir::Type factorType(mlir::Value one, mlir::Value other);
/// How it multiplies: f32 with f32's accuracy.
inline constexpr tile::Precision factorPrecision = tile::Precision::TF32x3;

/// Accumulators of one product, a tile for each pair of chunks, row by row.
using Sums = llvm::SmallVector<mlir::Value>;

/// Zeros for every pair of chunks.
Sums zeroSums(TileBuilder &b, llvm::ArrayRef<Chunk> rows, llvm::ArrayRef<Chunk> columns);
/// `sums` with the products of `lefts` [rows, K] and `rights` [K, columns] added.
Sums addProducts(TileBuilder &b, mlir::ValueRange sums, llvm::ArrayRef<mlir::Value> lefts,
                 llvm::ArrayRef<mlir::Value> rights);

/// index < size along an axis: null where the chunk ends there anyway (`whole` of them exist).
mlir::Value below(TileBuilder &b, mlir::Value index, mlir::Value size, bool whole);

/// At most so many partial sums of a weight's gradient, as an expression: `tiles` of work there are, and each partial
/// sum has `elements`.
std::string partsOf(llvm::StringRef tiles, int64_t elements);
/// The type of the partial sums of a gradient, an op's result.
attn::WholeTensorType partsType(mlir::Value result, llvm::StringRef parts);

/// Where the partial sums of a weight's gradient go: of a chunk of its rows by one of its columns; and of its bias'.
using PlaceOfSums = llvm::function_ref<Place(int64_t row, int64_t column)>;
using PlaceOfBias = llvm::function_ref<Place(int64_t row)>;
/// The sums of part x of a weight's gradient, which program x has made: for each of `rows` chunks of the weight's rows
/// those of `columns` chunks of its columns and, where there is a bias, the bias'; and where they go.
struct GradientSums {
  mlir::ValueRange sums;
  int64_t rows, columns;
  PlaceOfSums place;
  PlaceOfBias placeOfBias;
};
/// The end of a weight gradient's kernel: stores the sums, at places that the part is put before, launches the kernel,
/// and adds up the parts.
mlir::LogicalResult finishParts(KernelFrame &frame, ElementPuller &puller, mlir::Operation *op,
                                const GradientSums &sums, const KernelShape &shape, StoredValues &stored);

/// A right factor [rows, 16] whose products are sums: of a gradient, the bias' gradient, in each of 16 columns.
mlir::Value ones(TileBuilder &b, int64_t rows, mlir::Type factor);
inline constexpr Chunk onesChunk{0, 16, 1};

} // namespace weft
