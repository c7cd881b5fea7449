// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Where two accesses to one array meet.
#pragma once

#include "mlir/IR/Value.h"
#include <optional>

namespace weft::warp {

/// Pointers, a scalar or a tensor, and the mask under which they are accessed, null where there is none.
struct Pointers {
  mlir::Value pointer, mask;
};

/// Where two accesses to one array touch an address: nowhere, only where both are of the same element of their tensors
/// and so by one thread if their layouts are equal, or who knows.
enum class Meeting : uint8_t { Nowhere, SameElement, Unknown };

/// Where accesses by two tensors of pointers, or two scalars, meet. `sameIteration`: no back edge of a loop lies
/// between them; else any iterations of the loops around them may be the two's.
Meeting meetingOf(const Pointers &earlier, const Pointers &later, bool sameIteration);

/// A stride, a scalar from outside of loops, that two accesses are some times apart: where it is at least `least`
/// elements, or at least `end`, which all columns are less than, either way, they touch no address twice but `inOne` row,
/// where they are no stride apart. One of the two bounds may not be known.
struct FarStride {
  mlir::Value stride;
  std::optional<int64_t> least;
  mlir::Value end;
  Meeting inOne;
};

/// The stride that says whether two accesses meet, by which a loop moves both, or which lies between them; none where no
/// single one does. `sameIteration` as in `meetingOf`.
std::optional<FarStride> farStrideOf(const Pointers &earlier, const Pointers &later, bool sameIteration);

} // namespace weft::warp
