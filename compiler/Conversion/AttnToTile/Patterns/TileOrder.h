// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The order in which programs of an attention begin. A multiprocessor that is done takes the next one: what begins last
// should be short. Under #attn.causal, of 4 tiles and 4 heads, two of them abreast (%x of %y):
//
//   %y = 0:  tile 3 of heads 1, 0; tile 2 of heads 1, 0; ...       %y = 1:  tile 3 of heads 3, 2; ...
//
// Heads one after another would each begin with their longest tile, the last one too, for which all others then wait; all
// heads at once would read more keys and values at a time than the L2 cache holds.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"

namespace weft {

struct Attend;

/// How a launch's programs go through tiles and heads.
struct TileOrder {
  bool lastFirst = false;    ///< of tiles
  std::string abreast = "1"; ///< how many heads stand side by side, whose number this divides: an expression

  /// The grid of tiles, heads and batches in this order: x counts heads that stand side by side, then tiles.
  std::array<std::string, 3> grid(std::array<std::string, 3> tiles) const;
};

/// The order of tiles of queries, or of `keys`, whose grid has `heads`: in which they come where all take as long.
TileOrder tileOrder(const Attend &attend, llvm::StringRef heads, bool keys);

/// Where a program stands among the tiles of its head, and its head among those of the grid.
struct TilePlace {
  mlir::Value tile, head; ///< i32
};
TilePlace placeIn(KernelFrame &frame, const TileOrder &order);

} // namespace weft
