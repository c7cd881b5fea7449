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

/// A stride, a scalar from outside of loops, by which a loop moves both of two accesses: where it is at least `least`
/// elements, either way, those of different iterations touch no address twice. `inOne`: where they meet in one iteration.
struct FarStride {
  mlir::Value stride;
  int64_t least;
  Meeting inOne;
};

/// The stride that says whether accesses of different iterations meet; none where no single one does.
std::optional<FarStride> farStrideOf(const Pointers &earlier, const Pointers &later);

} // namespace weft::warp
