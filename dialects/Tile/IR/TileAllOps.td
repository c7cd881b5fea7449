// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The whole dialect, for its reference page.
include "dialects/Tile/IR/TileOps.td"
include "dialects/Tile/IR/TileProgramOps.td"
