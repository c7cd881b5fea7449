// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Tiles of any axes of whole tensors: where their elements lie, and how a value's part there is had. (RowTile.h is for
// tiles of rows of one head; here a tile may run over heads, tokens and channels at once.)
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"
#include "compiler/Conversion/AttnToTile/Kernel/StoredValues.h"

namespace weft {

/// Positions on one axis: `start` + `offsets`.
struct AxisIndex {
  mlir::Value start;   ///< an i32 scalar, or null for 0
  mlir::Value offsets; ///< i32, of the tile's rank, or null for 0

  mlir::Value whole(TileBuilder &b) const;
};

/// Where the elements of a tile lie in a whole tensor.
struct Place {
  llvm::SmallVector<AxisIndex> axes; ///< one for each axis of the tensor
  llvm::SmallVector<int64_t> shape;  ///< of the tile
  mlir::Value exists;                ///< i1 that broadcasts to the shape, or null: which elements there are
};

/// [0, size) along axis `axis` of tiles of rank `rank`: i32, of size 1 elsewhere.
mlir::Value axisRange(TileBuilder &b, int64_t size, int64_t axis, int64_t rank);
/// Both conditions; either may be null for true.
mlir::Value andAlso(TileBuilder &b, mlir::Value one, mlir::Value other);

/// Gives the parts of values inside one kernel: loaded where they are stored, computed element by element otherwise.
class ElementPuller {
public:
  /// `stored` as Puller's.
  ElementPuller(KernelFrame &frame, StoredValues &stored) : frame(frame), b(frame.b), stored(stored) {}

  /// A value computed in this kernel. All places that are asked for from now on are where `tile` is.
  void provide(mlir::Value value, mlir::Value tile) { provided[value] = tile; }
  /// The part of `value` at a place of its shape, in its element type; 0 where nothing exists.
  mlir::Value pull(mlir::Value value, const Place &place);
  /// Makes an output for each value, in order; `storeAt` fills them tile by tile.
  void makeOutputs(mlir::ValueRange values);
  void storeAt(mlir::ValueRange values, const Place &place);
  /// Stores a tile in an output of the kernel, as its element type.
  void store(const TensorParameter &tensor, const Place &place, mlir::Value tile);

private:
  mlir::Value load(mlir::Value value, mlir::Value outside, const Place &place);
  mlir::Value loadAt(const TensorParameter &tensor, const Place &place);
  mlir::Value pointers(const TensorParameter &tensor, const Place &place);
  mlir::Value map(attn::MapOp op, mlir::Value value, const Place &place);
  mlir::Value meanHeads(attn::MeanHeadsOp op, const Place &place);

  KernelFrame &frame;
  TileBuilder &b;
  StoredValues &stored;
  llvm::DenseMap<mlir::Value, mlir::Value> provided;
  llvm::SmallVector<TensorParameter> outputs;
};

/// Whether an element puller can compute `op`.
bool isElementwise(mlir::Operation *op);

} // namespace weft
