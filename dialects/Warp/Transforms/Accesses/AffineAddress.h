// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Pointers as sums, in which it can be seen that two accesses do not meet.
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace weft::warp {

/// A scalar or tensor of pointers or integers: symbols, coordinates and counts of iterations, each times a constant.
/// Pointers count in elements. Index arithmetic is taken not to wrap, as by the pointer analysis.
struct AffineAddress {
  using Terms = llvm::SmallMapVector<mlir::Value, int64_t, 4>;

  Terms symbols;    // scalars, the same in every thread
  Terms iterations; // of a loop, by its induction variable: 0, 1, ...
  llvm::SmallVector<int64_t, 2> axes;
  int64_t constant = 0;
};

/// `value` as such a sum; none for what is not one.
std::optional<AffineAddress> affineAddressOf(mlir::Value value);

/// Where two accesses to one array touch an address: nowhere, only where both are of the same element of their tensors
/// and so by one thread if their layouts are equal, or who knows.
enum class Meeting : uint8_t { Nowhere, SameElement, Unknown };

/// Where accesses by two tensors of pointers, or two scalars, meet. `sameIteration`: no back edge of a loop lies
/// between them; else any iterations of the loops around them may be the two's.
Meeting meetingOf(mlir::Value earlier, mlir::Value later, bool sameIteration);

} // namespace weft::warp
