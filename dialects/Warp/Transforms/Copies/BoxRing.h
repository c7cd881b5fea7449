// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A loop's ring of tiles filled by bulk copies: a barrier for each stage, at which the bytes of its tiles arrive.
#pragma once

#include "dialects/Warp/Transforms/Copies/Boxes.h"
#include "mlir/IR/IRMapping.h"

namespace weft::warp {

/// A box's map, made at the kernel's begin, and its coordinates, computed at the copy.
struct MappedBox {
  mlir::Value map;
  llvm::SmallVector<mlir::Value> coordinates;
  explicit operator bool() const { return map != nullptr; }
};

/// Makes what a copy of the box would need where `op` stands, which stays.
MappedBox mapBox(const Box &box, mlir::Operation *op);

/// The coordinates of a part, from those of the box.
llvm::SmallVector<mlir::Value> coordinatesOf(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange box,
                                             const BoxPart &part);

/// Starts the copies of a box, which begins at the coordinates, to a tile. One thread does.
void copyParts(mlir::OpBuilder &b, mlir::Location loc, const Box &box, mlir::Value map, mlir::ValueRange coordinates,
               mlir::Value tile, mlir::Value barrier);

/// A ring that boxes fill.
struct BoxTarget {
  const Box *box;
  const MappedBox *mapped;
  mlir::Value ring;
  const mlir::IRMapping *mapping; ///< holds what the copies' coordinates are at the time
};

/// Copies that are made where a condition holds; null: always.
struct BoxCopies {
  llvm::ArrayRef<BoxTarget> targets;
  mlir::Value condition;
};

/// How rings of so many stages go round, whose tiles are `pitch` bytes behind one another.
struct RingSteps {
  int64_t stages, pitch;

  /// The place (bytes before it) of the tile behind that of a place.
  mlir::Value placeBehind(mlir::OpBuilder &b, mlir::Location loc, mlir::Value place) const;
  /// The turn (`warp.ring_start`) of the tile behind that of a place and its turn.
  mlir::Value turnBehind(mlir::OpBuilder &b, mlir::Location loc, mlir::Value place, mlir::Value turn) const;
  /// The parity of the phase that ends when a turn's tile has come.
  mlir::Value parity(mlir::OpBuilder &b, mlir::Location loc, mlir::Value turn) const;

private:
  bool countsTurns() const;
  mlir::Value isLast(mlir::OpBuilder &b, mlir::Location loc, mlir::Value place) const;
};

class BoxRing {
public:
  static SharedType typeOf(mlir::MLIRContext *context, int stages);

  /// Allocates the barriers, beside the rings of tiles that stand before.
  BoxRing(mlir::OpBuilder &b, mlir::Location loc, int stages);
  SharedType type() const { return mlir::cast<SharedType>(ring.getType()); }
  /// Behind a barrier of the block: `pitch` bytes lie between the tiles of one stage and the next.
  void begin(mlir::OpBuilder &b, mlir::Location loc, int64_t pitch);
  /// Starts the copies into a stage's tiles.
  void copy(mlir::OpBuilder &b, mlir::Location loc, const BoxCopies &copies, mlir::Value stage);
  /// The same of the tiles of one iteration, `own`, and those that are read late, of the iteration before: where that is
  /// the last, there are no others.
  void copyWithLate(mlir::OpBuilder &b, mlir::Location loc, const BoxCopies &own, const BoxCopies &late,
                    mlir::Value stage);
  void wait(mlir::OpBuilder &b, mlir::Location loc, mlir::Value stage, mlir::Value parity);
  /// Behind a barrier of the block, after the last wait. `next`: as of `warp.mbarrier_inval`.
  void end(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange next);
  mlir::Value barriers() const { return ring; }

private:
  // In one thread:
  void expect(mlir::OpBuilder &b, mlir::Location loc, int64_t bytes, mlir::Value stage);
  void start(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<BoxTarget> targets, mlir::Value stage);
  mlir::Value barrierOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value stage);

  mlir::Value ring;
  int64_t pitch = 0;
};

} // namespace weft::warp
