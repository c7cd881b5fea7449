// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A tensor of any sizes as boxes whose sizes are powers of two, in the row-major order of the axes' pieces:
//
//   [80, 24]:  rows 64 + 16, columns 16 + 8        [64, 16] [64, 8]
//                                                   [16, 16] [16, 8]
#pragma once

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ValueRange.h"

namespace weft::tile {

using Sizes = llvm::SmallVector<int64_t, 4>;

/// A part of a tensor: its first element's coordinates, and its sizes.
struct Box {
  Sizes start, shape;
};

/// The part of an axis of `size` elements that one piece covers.
struct Span {
  int64_t start, size;
};

/// The pieces of an axis: powers of two, the greatest first.
llvm::SmallVector<Span> spansOf(int64_t size);

/// The pieces of a tensor.
llvm::SmallVector<Box> boxesOf(llvm::ArrayRef<int64_t> shape);

/// Whether a type is a tensor one of whose sizes is no power of two.
bool isSplit(mlir::Type type);

/// The type of a piece of `type`.
mlir::RankedTensorType typeOfPiece(mlir::Type type, llvm::ArrayRef<int64_t> shape);

/// The pieces of a tensor, found by their places among those of each axis.
class PieceGrid {
public:
  /// Of a tensor of `shape`, whose pieces are `values`.
  PieceGrid(llvm::ArrayRef<int64_t> shape, mlir::ValueRange values);

  /// How many pieces an axis has.
  int64_t count(unsigned axis) const { return counts[axis]; }
  mlir::Value at(llvm::ArrayRef<int64_t> place) const;

private:
  Sizes counts;
  mlir::ValueRange values;
};

/// The places of all pieces, in their order: [0, 0], [0, 1], [1, 0], ...
llvm::SmallVector<Sizes> placesOf(llvm::ArrayRef<int64_t> shape);

// --- moving elements (MovePieces.cpp) ---

/// The first or the second half of a tensor along an axis.
mlir::Value halfOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value, unsigned axis, bool second);

/// Two tensors of one type, one after the other along an axis.
mlir::Value concatenate(mlir::OpBuilder &b, mlir::Location loc, mlir::Value first, mlir::Value second, unsigned axis);

/// A tensor of zeros.
mlir::Value zerosOf(mlir::OpBuilder &b, mlir::Location loc, mlir::RankedTensorType type);

/// How many boxes a reshape from one shape to another takes apart, or `most` where that are more.
int64_t boxesOfReshape(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to, int64_t most);

/// The pieces of a tensor of `from`, whose pieces are `values`, under another shape of as many elements.
llvm::SmallVector<mlir::Value> reshapePieces(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange values,
                                             llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

} // namespace weft::tile
