// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The warp dialect's class, the layout attribute and the shared-memory type.
#pragma once

#include "dialects/Tile/IR/TileDialect.h"
#include "dialects/Warp/Layout/LinearLayout.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/TensorEncoding.h"

#include "dialects/Warp/IR/WarpDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Warp/IR/WarpAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Warp/IR/WarpTypes.h.inc"

namespace weft::warp {

/// On a kernel: tensor memory has not as many columns as its products would need, which are those of warps then.
inline constexpr llvm::StringLiteral lacksColumnsAttrName = "warp.lacks_columns";
/// The kernel's bytes of shared memory, set by `warp-allocate-shared`.
inline constexpr llvm::StringLiteral sharedBytesAttrName = "warp.shared_bytes";
/// How each tensor map is made that a kernel has behind its own parameters, set by `convert-warp-to-llvm`.
inline constexpr llvm::StringLiteral tensorMapsAttrName = "warp.tensor_maps";
/// Where the extents of its programs' grid begin among a persistent kernel's parameters, in bytes, set by
/// `convert-warp-to-llvm`.
inline constexpr llvm::StringLiteral programsAttrName = "warp.programs";
/// Byte offset of the scratch memory of an op that exchanges data, set by `warp-allocate-shared`.
inline constexpr llvm::StringLiteral scratchAttrName = "warp.scratch";
/// Elements that a load, store or copy may access at once: contiguous and aligned, as the pointer analysis found.
inline constexpr llvm::StringLiteral contiguityAttrName = "warp.contiguity";
/// Of the pointers of a load, store or atomic, for each axis: how many neighbours from a multiple of that number on count
/// up by an element. Longer than `contiguityAttrName`, as masks and alignment do not matter; promises do not count.
inline constexpr llvm::StringLiteral runsAttrName = "warp.runs";
/// Of the result of a load or of an op on integers, for each axis: how many neighbours from a multiple of that number on
/// are equal though what they are made of is not. Promises do not count.
inline constexpr llvm::StringLiteral constancyAttrName = "warp.constancy";
/// On a masked load: nothing reads what it gives where its mask is false.
inline constexpr llvm::StringLiteral unreadElsewhereAttrName = "warp.unread_elsewhere";
/// On a load: of the threads that hold an element, the one reads it that also writes what becomes of it.
inline constexpr llvm::StringLiteral ofOwnersAttrName = "warp.of_owners";
/// On a choice: its condition mostly holds, so that the other side stands out of the way.
inline constexpr llvm::StringLiteral mostlyHoldsAttrName = "warp.mostly_holds";
/// On a power of two of f32: of each `polynomialGroup` neighbouring registers, how many are computed by polynomials, two at
/// once, set by `warp-share-exponentials`.
inline constexpr llvm::StringLiteral byPolynomialAttrName = "warp.by_polynomial";
inline constexpr int polynomialGroup = 16;

/// The layout of a tensor type, or null when it has none.
LayoutAttr layoutAttrOf(mlir::Type type);
/// Which bits of a thread's number may differ in the threads that hold one element: those that the layout gives nothing
/// to, and those of warps that it does not have, in a block of `warps` warps. All of them for what is no tensor.
uint32_t repeatedThreadBits(const LinearLayout &layout, unsigned warps);
uint32_t repeatedThreadBits(mlir::Type type, unsigned warps);
/// The bits of an element's row-major number that say where it is in a run along an axis of a stride and a size.
uint32_t bitsOfRun(int32_t run, uint32_t stride, int64_t size);
/// The bits of an element's row-major number in which equal elements of an op's result differ (`warp.constancy`).
uint32_t equalBits(mlir::Operation *op, const LinearLayout &layout);
/// A tensor type with another layout.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type, const LinearLayout &layout);

} // namespace weft::warp
