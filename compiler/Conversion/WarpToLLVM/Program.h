// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Families of `convert-warp-to-llvm` for what a program says of itself, beside what it computes.
#pragma once

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Tile/IR/TileDialect.h"

namespace weft {

/// The index of the program along an axis of the grid, i32.
mlir::Value programId(tile::Axis axis, Emitter &e);

void addPrintLowerings(LoweringTable &table);     // tile: print, assert
void addInlineAsmLowerings(LoweringTable &table); // tile.inline_asm, tile.map

} // namespace weft
