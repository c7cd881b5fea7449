// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Tensors of 64-bit indices as what is the same for all elements, and what differs.
#pragma once

#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace weft::tile {

/// Bounds that are known, ends included; none where an end leaves `most`.
struct Bounds {
  int64_t lowest, highest;

  /// Sums and differences of these do not leave 64 bits.
  static constexpr int64_t most = int64_t(1) << 61;
};
using MaybeBounds = std::optional<Bounds>;

/// What a tensor of i64 is: `uniform` for all elements, plus `varying`.
struct WideForm {
  mlir::Value uniform;       ///< an i64; null for 0
  MaybeBounds ofUniform;     ///< {0, 0} for 0
  mlir::Value varying;       ///< a tensor of i32, or of i64 where 32 bits might not do; null for 0
  Bounds ofVarying = {0, 0}; ///< where it is of i32

  bool isNarrow() const { return !varying || elementTypeOf(varying.getType()).isInteger(32); }
};

/// Bounds that lie within `most` of 0; else none.
MaybeBounds within(int64_t most, __int128 lowest, __int128 highest);

/// Finds the forms of tensors of i64. What a form needs is computed where its tensor is.
class WideForms {
public:
  /// `solver` has run MLIR's analysis of integer ranges on the function.
  WideForms(const mlir::DataFlowSolver &solver, mlir::MLIRContext *context) : solver(solver), b(context) {}

  WideForm of(mlir::Value value);
  /// The bounds of a value that the function had to begin with.
  MaybeBounds boundsOf(mlir::Value value, int64_t most) const;

private:
  std::optional<WideForm> compute(mlir::Operation *op);
  WideForm ofUniform(mlir::Value scalar) const;
  std::optional<WideForm> sumOf(const WideForm &x, const WideForm &y, int sign, mlir::Location loc);
  std::optional<WideForm> productOf(const WideForm &x, const WideForm &factor, mlir::RankedTensorType type,
                                    mlir::Location loc);
  std::optional<WideForm> movedBy(mlir::Operation *op);
  mlir::Value widened(mlir::Value tensor, mlir::Location loc);
  template <typename Op> mlir::Value combine(mlir::Value x, mlir::Value y, mlir::Location loc);

  const mlir::DataFlowSolver &solver;
  mlir::OpBuilder b;
  llvm::DenseMap<mlir::Value, WideForm> known;
};

} // namespace weft::tile
