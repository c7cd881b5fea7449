// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The tile dialect's class, its types, attributes and enumerations.
#pragma once

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/Types.h"

#include "dialects/Tile/IR/TileDialect.h.inc"
#include "dialects/Tile/IR/TileEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Tile/IR/TileTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Tile/IR/TileAttrs.h.inc"

namespace weft::tile {

/// Whether what follows an atomic of this order in its thread, or what precedes it, stays there.
inline bool acquires(MemoryOrder order) { return order == MemoryOrder::Acquire || order == MemoryOrder::AcqRel; }
inline bool releases(MemoryOrder order) { return order == MemoryOrder::Release || order == MemoryOrder::AcqRel; }

/// No index is as far from 0: bounds of indices beyond it are cut to it, and say the same (tile-narrow-indices).
inline constexpr int64_t beyondIndices = int64_t(1) << 30;

/// The names of the discardable attributes that the dialect gives a meaning to.
inline constexpr llvm::StringLiteral kernelAttrName = "tile.kernel";
inline constexpr llvm::StringLiteral scheduleAttrName = "tile.schedule";
/// On a kernel of the compiler's own: its threads' accesses to device memory meet nowhere, but where it has a barrier.
inline constexpr llvm::StringLiteral ordersAccessesAttrName = "tile.orders_accesses";
/// On an `scf.for`: how many iterations of its loads are in flight at once, instead of the schedule's number.
inline constexpr llvm::StringLiteral numStagesAttrName = "tile.num_stages";
/// Promises about a kernel's argument or an op's result, one number, or one for each axis.
inline constexpr llvm::StringLiteral divisibilityAttrName = "tile.divisibility";
inline constexpr llvm::StringLiteral contiguityAttrName = "tile.contiguity";
inline constexpr llvm::StringLiteral constancyAttrName = "tile.constancy";

/// A tensor's element type; any other type itself.
mlir::Type elementTypeOf(mlir::Type type);
/// A tensor's shape; empty for a scalar.
llvm::ArrayRef<int64_t> shapeOf(mlir::Type type);
/// `type` with another element type: a tensor keeps its shape and encoding.
mlir::Type withElementType(mlir::Type type, mlir::Type element);
/// The type of what a pointer, or each pointer of a tensor, points to.
mlir::Type pointeeTypeOf(mlir::Type type);
/// What a tensor holds, or the pointers of one point to, as people read it: "64x32xf16".
std::string textOf(llvm::ArrayRef<int64_t> shape, mlir::Type element);
std::string textOf(mlir::Type tensor);

} // namespace weft::tile
