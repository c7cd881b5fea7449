// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a kernel's threads do to shared memory in the order of its control flow, and where that order asks for barriers.
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>
#include <set>
#include <tuple>

namespace weft::warp {

/// Bytes of shared memory that an op reads or writes.
struct SharedBytes {
  int64_t first, end;
  bool isWrite;
  bool isUnderWay = false; ///< an asynchronous copy that nothing has waited for yet
  int productsSince = -1;  ///< of a product that may be under way, how many were started behind it; -1: of none

  bool isUnfinished() const { return isUnderWay || productsSince >= 0; }
  bool operator<(const SharedBytes &other) const {
    return std::tie(first, end, isWrite, isUnderWay, productsSince) <
           std::tie(other.first, other.end, other.isWrite, other.isUnderWay, other.productsSince);
  }
  bool conflictsWith(const SharedBytes &other) const {
    return first < other.end && other.first < end && (isWrite || other.isWrite);
  }
};

/// What threads wait for before they wait for one another.
struct Unfinished {
  bool copies = false, products = false;
};

/// What a walk over a kernel tells.
struct SharedFlowEvents {
  /// An op must wait for all threads, and before that for what is under way.
  llvm::function_ref<void(mlir::Operation *op, Unfinished before)> waits;
  /// An access follows an earlier one elsewhere, one of the two a write, with no barrier between them on some path.
  llvm::function_ref<void(const SharedBytes &earlier, const SharedBytes &later)> meets;
  /// Whether threads wait for one another before a kernel's ring ends. Where its bytes are nothing else behind they do
  /// not (`warp-own-bytes`).
  bool endsOrder = true;
};

/// Walks a kernel whose places in shared memory are known, and carries the accesses that no barrier has ordered yet. An
/// access that overlaps one of them, one of the two a write, waits for all threads, and so clears the list. An
/// asynchronous copy writes until a wait, and a product of warpgroups reads until one: a barrier before that does not
/// order it. A loop's body is walked until its end adds nothing to its start, so that ops in it are met more than once.
/// Rings are not looked at.
void walkSharedFlow(mlir::Region &kernel, const SharedFlowEvents &events);

} // namespace weft::warp
