// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Indices and addresses as sums of products: what a tensor of pointers is along each of its axes.
//
//   p + row0 * stride + make_range(64)[:, None] * stride + make_range(32)[None, :]
//
//   base p, offset row0 * stride, steps [stride, 1]
//
// Arithmetic on indices is taken not to overflow, as addresses that did would be of nothing.
#pragma once

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>
#include <vector>

namespace weft::warp {

/// A sum of products of integers that the kernel computes or is given, each with a constant factor.
class IndexSum {
public:
  using Factors = llvm::SmallVector<mlir::Value, 2>; ///< in any order; one value may stand twice

  IndexSum() = default;
  explicit IndexSum(int64_t constant) { add({}, constant); }
  explicit IndexSum(mlir::Value value) { add({value}, 1); }

  /// Adds a product.
  void add(Factors factors, int64_t coefficient);
  IndexSum operator+(const IndexSum &other) const;
  IndexSum operator-(const IndexSum &other) const { return *this + other * IndexSum(-1); }
  IndexSum operator*(const IndexSum &other) const;
  bool operator==(const IndexSum &other) const { return (*this - other).isZero(); }
  static bool areSame(const Factors &a, const Factors &b) {
    return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
  }
  /// The quotient by a constant that divides every coefficient; none where one is not divided.
  std::optional<IndexSum> dividedBy(int64_t divisor) const;

  bool isZero() const { return terms.empty(); }
  /// The sum's value where it has no factors.
  std::optional<int64_t> constant() const;
  /// Whether it has no factors but arguments of the kernel.
  bool isOfLaunch() const;
  /// What divides it whatever its factors are: a power of two, by what `tile.divisibility` promises of them and what
  /// computes them shows.
  int64_t divisibility() const;
  /// Whether it is 0 or more whatever its factors are, as far as what computes them shows. A quotient of an index is
  /// taken to be an index.
  bool isNeverNegative() const;
  /// Whether a product is subtracted, so that it may be negative though its factors are indices.
  bool subtracts() const;
  /// Computes it, in `type`, where the builder stands, which its factors must dominate.
  mlir::Value emit(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type) const;

  /// In the order in which they were added, so that what is made of them is the same each time.
  llvm::SmallVector<std::pair<Factors, int64_t>, 2> terms;
};

/// Whether an integer is 0 or more, as far as what computes it shows. Arguments and what is loaded may be anything.
bool isNeverNegative(mlir::Value value);

/// Whether a value is an argument of the kernel.
bool isArgumentOfKernel(mlir::Value value);

/// An integer or a pointer, or a tensor of them whose element (i, j, ..) is base + offset + i · steps[0] + j · steps[1]
/// + .. .
struct IndexForm {
  mlir::Value base; ///< a pointer; null for integers
  IndexSum offset;  ///< in elements
  llvm::SmallVector<IndexSum, 2> steps;
  /// Forms that are negative where the value is this one, and elsewhere anything.
  std::vector<IndexForm> ends = {};
};

/// Finds forms, inside of the loop where they are used.
class IndexForms {
public:
  /// `unwraps`: indices that wrap unread (`tile.wraps_unread`) are taken as they are, and end where they would wrap.
  explicit IndexForms(mlir::scf::ForOp loop, bool unwraps = false) : loop(loop), unwraps(unwraps) {}

  /// The form of a value; none for tensors and pointers that have none. An integer that is computed otherwise, as a remainder
  /// is, stands for itself.
  std::optional<IndexForm> of(mlir::Value value);
  /// That of a scalar integer.
  IndexSum sumOf(mlir::Value value) { return of(value)->offset; }

private:
  std::optional<IndexForm> compute(mlir::Value value);
  std::optional<IndexForm> computeShaped(mlir::Operation *op);
  std::optional<IndexForm> computeArithmetic(mlir::Operation *op);
  /// A value that the loop moves by the same distance in each iteration, by the loop's variable.
  std::optional<IndexForm> carried(mlir::BlockArgument argument);

  /// An index that wraps unread.
  std::optional<IndexForm> unwrapped(mlir::Operation *op);

  mlir::scf::ForOp loop;
  bool unwraps;
  llvm::DenseMap<mlir::Value, std::optional<IndexForm>> known;
};

} // namespace weft::warp
