// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The ops of the tile dialect that compute and access memory, one family a file. Those of TileProgramOps.td are apart.
#ifndef WEFT_DIALECTS_TILE_IR_TILEOPS_TD
#define WEFT_DIALECTS_TILE_IR_TILEOPS_TD

include "dialects/Tile/IR/TileOpBase.td"
include "dialects/Tile/IR/TileShapeOps.td"
include "dialects/Tile/IR/TileMemoryOps.td"
include "dialects/Tile/IR/TileComputeOps.td"

#endif // WEFT_DIALECTS_TILE_IR_TILEOPS_TD
