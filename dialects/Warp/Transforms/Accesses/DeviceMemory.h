// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Accesses to device memory, and which of them may meet at an address in different threads.
#pragma once

#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "dialects/Warp/Transforms/Accesses/Meeting.h"
#include <optional>

namespace weft::warp {

/// The kernel's argument that a pointer, or each pointer of a tensor, is made from by moving it; null where it may be
/// more than one, or none.
mlir::BlockArgument argumentBehind(mlir::Value pointer);

/// What an op does to device memory.
struct DeviceAccess {
  mlir::Operation *op;
  mlir::Value pointer;      // null of a box whose map is not known
  mlir::Value mask;         // null: none
  mlir::BlockArgument base; // null: any
  bool reads, writes;
  bool isAtomic = false;
  bool isAsync = false;     // a copy, or a stored box, that is not waited for yet
  bool isMadeByAll = false; // by every thread that holds an element, of which there are several; else by one of them
};

/// The access of a load, store, atomic, asynchronous copy or stored box in a block of `warps` warps; none for any other op.
std::optional<DeviceAccess> deviceAccessOf(mlir::Operation *op, unsigned warps);

/// What an op asks for beyond its own access, for the whole program.
struct Ordering {
  bool releases = false, acquires = false;
  bool needsFence = false;  // the acquire is a fence's: a volatile load's
  bool hasBarriers = false; // one thread acts between two barriers of the op's own
};
Ordering orderingOf(mlir::Operation *op, unsigned warps);

/// On a kernel: its arrays are promised to share no memory.
inline constexpr llvm::StringLiteral arraysApartAttrName = "warp.arrays_apart";
/// On such a kernel: the pairs of arguments of which that was made use, numbers one after another.
inline constexpr llvm::StringLiteral reliedApartAttrName = "warp.relied_apart";

/// Whether `earlier` and `later`, in the order of the program, may touch one address in different threads, one of the
/// two a write. `sameIteration`: no back edge of a loop lies between them. Two arguments are taken to be different arrays.
bool needsOrder(const DeviceAccess &earlier, const DeviceAccess &later, bool sameIteration);

/// Of two accesses that need order: the stride with which they do not, if it is far. `sameIteration` as in `needsOrder`.
std::optional<FarStride> needsOrderUnless(const DeviceAccess &earlier, const DeviceAccess &later, bool sameIteration);

/// Whether two arguments, if they are one array under two names, as in a program in place, need order: a value that several
/// threads read, and a write of that type.
bool needsOrderInPlace(const DeviceAccess &earlier, const DeviceAccess &later);

/// Whether two accesses may be of one argument's memory, whichever threads make them.
bool mayShareBase(const DeviceAccess &a, const DeviceAccess &b);

} // namespace weft::warp
