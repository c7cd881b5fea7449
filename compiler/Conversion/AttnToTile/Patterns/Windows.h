// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Attention inside windows of a partition: a program takes rows of one window, in the window's own order, and meets
// keys of that window only. Where the window is no more than a tile, that is one block, and rows and keys are the same
// tokens.
#pragma once

#include "compiler/Conversion/AttnToTile/Patterns/Attend.h"

namespace weft {

/// Rows for a window of so many tokens: the power of two from 16 to 128 that wastes least.
int64_t windowRowCount(const WindowTiling &tiling);

/// Where a program of a windowed kernel stands; `attendGrid`'s place.
struct WindowStanding {
  mlir::Value window; ///< i32: number of the window
  mlir::Value tile;   ///< i32: tile of rows in it
  mlir::Value whole;  ///< i1: the window has all its tokens
};
WindowStanding windowStanding(TileBuilder &b, const WindowTiling &tiling, int64_t rows, mlir::Value length,
                              mlir::Value program);
/// The grid where a program takes `each` windows, more than one only where a window is one tile.
std::array<std::string, 3> windowGrid(const WindowTiling &tiling, attn::WholeTensorType tiled, int64_t rows,
                                      int64_t each = 1);
/// i32: how many windows `length` tokens have.
mlir::Value windowCount(TileBuilder &b, const WindowTiling &tiling, mlir::Value length);

/// Tile `tile` (i32) of the window's tokens. Batch, head, heads are left to the caller.
RowTile windowRows(TileBuilder &b, const WindowTiling &tiling, mlir::Value window, mlir::Value tile, int64_t count,
                   mlir::Value length);

} // namespace weft
