// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How a tile is laid out in shared memory.
#pragma once

#include "dialects/Warp/Layout/LinearLayout.h"

namespace weft::warp {

/// The layout, in `offset`, of a tile whose elements of `elementBytes` bytes are neighbours along `contiguousAxis`:
/// lines along that axis one after the other, each in pieces of 16 bytes that are exchanged, by xor with bits of the
/// line's number, so that without a bank conflict
///   - 8 lines × one piece are read (`ldmatrix`, with or without `.trans`; 16-byte reads along a line by lanes of
///   different lines),
///   - 8 neighbouring pieces are written (`cp.async` and `st.shared` of 16 bytes),
///   - for 4-byte elements, 4 lines × 8 neighbours are read (the tf32 operand that ldmatrix cannot transpose), for
///     8-byte ones 4 lines × 4 neighbours (operands of f64, a half warp at a time).
/// Lines shorter than 128 bytes (all banks) share a line of banks; the xor then takes the bits above. Lines are numbered
/// by the other axes' coordinates, the last axis fastest: by the bits of that number in order, after those that
/// `firstBits` names: 8 lines that differ in its bits alone are then read as 8 neighbours are. Of `piecesTogether`, 2 or 4,
/// 4 lines × 32 bytes or 2 × 64 are read together, whatever the elements.
LinearLayout swizzledLayout(llvm::ArrayRef<int64_t> shape, unsigned contiguousAxis, unsigned elementBytes,
                            llvm::ArrayRef<unsigned> firstBits = {}, unsigned piecesTogether = 1);

/// The axis along which the registers of `layout` count up first; the last axis when none do.
unsigned contiguousAxis(const LinearLayout &layout);
/// The same, but where a thread has no neighbours, as where each element has a mask of its own, that of its fellows'.
unsigned neighbourAxis(const LinearLayout &layout);

} // namespace weft::warp
