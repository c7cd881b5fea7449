// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What is known, before the kernel runs, about the integers and pointers in its tensors: where they count up, where
// they repeat, what divides them. Vector widths and coalescing follow from it.
#pragma once

#include "compiler/Analysis/AddressSteps.h"
#include "mlir/IR/ValueRange.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <memory>
#include <optional>

namespace weft {

/// Bounds of every element, taking index arithmetic not to wrap; none where nothing is known.
using IndexRange = std::optional<mlir::ConstantIntRanges>;

/// Facts on an integer or pointer tensor, for each axis (a scalar has one axis of size 1). All are powers of two. A
/// *run of g along an axis* is g neighbours that begin at a multiple of g.
struct AxisInfo {
  using Axes = llvm::SmallVector<int64_t, 2>;

  /// Every run of this many elements counts up by one (a pointer: by one pointee).
  Axes contiguity;
  /// Divides the first element of every run of `contiguity` elements (a pointer: its address in bytes). Of 0, every
  /// power of two up to `maxDivisibility`.
  Axes divisibility;
  /// Every run of this many elements is equal.
  Axes constancy;
  /// The value of all elements, where it is known.
  std::optional<int64_t> constant;
  /// Bounds of an integer's elements.
  IndexRange range;

  static constexpr int64_t maxDivisibility = int64_t(1) << 40;

  /// Nothing known, for a value of `rank` axes (0 counts as 1).
  static AxisInfo unknown(unsigned rank);
  unsigned rank() const { return contiguity.size(); }
  /// What divides the first element of every run of `run` elements along `axis`; `unit` is how much an element differs
  /// from its neighbour inside a contiguous run (1, or the bytes of a pointee).
  int64_t divisibilityAt(unsigned axis, int64_t run, int64_t unit = 1) const;
  /// What divides every element.
  int64_t divisibilityOfAll(int64_t unit = 1) const;
  /// Whether no element is negative.
  bool isNonNegative() const { return range && range->smin().isNonNegative(); }
  bool operator==(const AxisInfo &other) const {
    return contiguity == other.contiguity && divisibility == other.divisibility && constancy == other.constancy &&
           constant == other.constant && range == other.range;
  }
};

/// The facts that hold for both.
AxisInfo join(const AxisInfo &a, const AxisInfo &b);

class Assumptions;

/// Whether an analysis believes promises on ops, and that integers fit where they are cut or taken to be unsigned.
/// Kernels promise more than they keep, such as that indices which wrap at a matrix's end count up over a whole tile, and
/// compute indices below zero that they mask: that is harmless for the width of a vector, which divides the matrix.
enum class Promises : uint8_t { Believed, Ignored };

/// Facts on every integer and pointer value of a function, found by going over it until nothing changes. Reads
/// `tile.divisibility` on arguments, the promises `tile.divisibility`, `tile.contiguity` and `tile.constancy` (i32
/// or array of i32, one for each axis) on ops, and `tile.assume`.
class AxisAnalysis {
public:
  explicit AxisAnalysis(mlir::Operation *function, Promises promises = Promises::Believed);
  ~AxisAnalysis();
  /// The facts on a value; for one the analysis has not seen, nothing known.
  AxisInfo lookup(mlir::Value value) const;
  /// The steps of a tensor of pointers, which are looked for once.
  const AxisSteps &stepsOf(mlir::Value pointers) const;

private:
  void visit(mlir::Operation *op);
  void visitFor(mlir::Operation *op);
  void visitWhile(mlir::Operation *op);
  void update(mlir::Value value, const AxisInfo &info);
  void meet(mlir::Value value, mlir::ValueRange sources, bool carried);
  /// The facts on an operand where `op` stands; none where the walk has not reached it.
  std::optional<AxisInfo> operandInfo(mlir::Operation *op, mlir::Value operand) const;

  Promises promises;
  llvm::DenseMap<mlir::Value, AxisInfo> known;
  mutable llvm::DenseMap<mlir::Value, AxisSteps> steps;
  std::unique_ptr<Assumptions> assumptions;
  llvm::DenseSet<mlir::Operation *> waiting; // what another visit may tell more, as a fact that it asks for has changed
};

} // namespace weft
