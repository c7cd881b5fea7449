// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Pairs of a query and a key as bits: what a mask says of a tensor's element for each pair is asked once, by the kernel
// that lists blocks, and kept as a bit for whoever walks them. A tensor of bytes is read once, and an eighth of it after
// that.
#pragma once

#include "compiler/Conversion/AttnToTile/Patterns/Attend.h"

namespace weft {

/// Whether a domain's pairs are kept as bits: its blocks are listed, and a mask reads an element of a tensor at each
/// pair's own place, for every batch and head that the pattern tells apart. The bits are less than that tensor then.
bool keepsPairBits(const Attend &attend, unsigned domain);

/// How many pairs are an i32's bits, the lowest, where blocks have so many columns: no two blocks share one.
int64_t pairBitsWidth(int64_t columns);

/// Truths of a tile [.., n, ..] as i32 [.., n / width, ..]: bit i of a number is place i of its `width`, 0 where `exist`
/// ([n] of i1; null for everywhere) is false.
mlir::Value packBits(TileBuilder &b, mlir::Value truths, mlir::Value exist, int64_t axis, int64_t width);

/// i32 [rows, n] of `width` bits each as truths [rows, n * width].
mlir::Value unpackBits(TileBuilder &b, mlir::Value words, int64_t width);

} // namespace weft
