// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Windows.h.
#include "compiler/Conversion/AttnToTile/Patterns/Windows.h"

using namespace mlir;

namespace weft {

int64_t windowRowCount(const WindowTiling &tiling) {
  // Of the sizes with the fewest rows that are no token's, the smallest that holds the window: its keys are then read
  // once.
  int64_t best = 128;
  for (int64_t rows : {64, 32, 16}) {
    bool fewer = tiling.tilesOf(rows) * rows < tiling.tilesOf(best) * best;
    if ((fewer && rows >= 64) || rows >= tiling.tokens)
      best = rows;
  }
  return best;
}

WindowStanding windowStanding(TileBuilder &b, const WindowTiling &tiling, int64_t rows, Value length, Value program) {
  int64_t tiles = tiling.tilesOf(rows);
  WindowStanding standing{b.div(program, b.i32(tiles)), b.rem(program, b.i32(tiles)), {}};
  if (tiling.grid.empty()) {
    Value end = b.mul(b.add(standing.window, b.i32(1)), b.i32(tiling.window[0]));
    standing.whole = b.compareInt(arith::CmpIPredicate::sle, end, length);
    return standing;
  }
  int64_t across = llvm::divideCeil(tiling.grid[1], tiling.window[1]);
  Value down = b.div(standing.window, b.i32(across)), right = b.rem(standing.window, b.i32(across));
  auto fits = [&](Value index, int axis) {
    if (tiling.grid[axis] % tiling.window[axis] == 0)
      return b.i1(true);
    return b.compareInt(arith::CmpIPredicate::sle, b.mul(b.add(index, b.i32(1)), b.i32(tiling.window[axis])),
                        b.i32(tiling.grid[axis]));
  };
  standing.whole = b.both(fits(down, 0), fits(right, 1));
  return standing;
}

/// The number of windows over a grid.
static int64_t windowsOfGrid(const WindowTiling &tiling) {
  return llvm::divideCeil(tiling.grid[0], tiling.window[0]) * llvm::divideCeil(tiling.grid[1], tiling.window[1]);
}

std::array<std::string, 3> windowGrid(const WindowTiling &tiling, attn::WholeTensorType tiled, int64_t rows,
                                      int64_t each) {
  std::string windows;
  if (tiling.grid.empty())
    windows = "cdiv(" + tiled.dim(2).str() + ", " + std::to_string(tiling.window[0] * each) + ")";
  else
    windows = std::to_string(llvm::divideCeil(windowsOfGrid(tiling), each));
  return {windows + " * " + std::to_string(tiling.tilesOf(rows)), tiled.dim(1).str(), tiled.dim(0).str()};
}

Value windowCount(TileBuilder &b, const WindowTiling &tiling, Value length) {
  return tiling.grid.empty() ? b.ceilDiv(length, tiling.window[0]) : b.i32(windowsOfGrid(tiling));
}

RowTile windowRows(TileBuilder &b, const WindowTiling &tiling, Value window, Value tile, int64_t count, Value length) {
  RowTile rows;
  rows.count = count;
  if (tiling.tilesOf(count) == 1) {
    rows.lines = tiling.grid.empty() ? 1 : tiling.window[0];
    rows.columns = tiling.window.back();
  }
  Value start = b.mul(tile, b.i32(count)), index = b.add(start, b.range(count));
  if (tiling.grid.empty()) {
    rows.scalarStart = b.add(b.mul(window, b.i32(tiling.window[0])), start);
    rows.offsets = b.range(count);
    rows.token = b.add(rows.scalarStart, rows.offsets);
    rows.inside = b.less(rows.token, length);
    if (tiling.tokens % count)
      rows.inside = b.both(rows.inside, b.less(index, b.i32(tiling.tokens)));
    return rows;
  }
  int64_t across = llvm::divideCeil(tiling.grid[1], tiling.window[1]);
  Value columns = b.i32(tiling.window[1]);
  Value top = b.mul(b.div(window, b.i32(across)), b.i32(tiling.window[0]));
  Value left = b.mul(b.rem(window, b.i32(across)), columns);
  if (rows.columns) {
    rows.top = top;
    rows.left = left;
    rows.gridColumns = tiling.grid[1];
  }
  Value y = b.add(top, b.div(index, columns)), x = b.add(left, b.rem(index, columns));
  rows.token = b.add(b.mul(y, b.i32(tiling.grid[1])), x);
  rows.inside = b.both(b.less(index, b.i32(tiling.tokens)),
                       b.both(b.less(y, b.i32(tiling.grid[0])), b.less(x, b.i32(tiling.grid[1]))));
  return rows;
}

} // namespace weft
