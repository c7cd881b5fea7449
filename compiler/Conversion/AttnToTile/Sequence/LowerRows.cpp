// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See LowerRows.h.
//
//   %y = attn.rms_norm %x : [B, H, N, 64]      ─▶      func.func @rows {                 grid [cdiv(N, 64), H, B]
//                                                        %rows = 64 · program x + 0 .. 63
//                                                        %x = load rows of x at (program z, program y)
//                                                        %s = tile.row_dot %x, %x        sums of squares, 64 numbers
//                                                        %r = rsqrt(%s / 64 + eps)
//                                                        store %x · %r, where %rows < N
//                                                      }
#include "compiler/Conversion/AttnToTile/Sequence/LowerRows.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "compiler/Conversion/AttnToTile/Sequence/RowSums.h"

using namespace mlir;

namespace weft {

int64_t rowsOfTile(int64_t channels) {
  int64_t rows = 64;
  while (rows > 16 && rows * channels > 8192)
    rows /= 2;
  return rows;
}

void lowerRows(Operation *anchor, const RowRoots &roots, StoredValues &stored) {
  if (walkRows(anchor, roots, stored))
    return;
  KernelFrame frame(anchor, "rows");
  TileBuilder &b = frame.b;
  SmallVector<Value> pulled = roots.pulled();
  RowNeeds needs = needsOf(pulled, stored);
  Puller puller(frame, stored, needs.widest);
  int64_t channels = 1;
  for (Value root : pulled)
    if (wholeType(root).getRank() == 4)
      channels = std::max(channels, *wholeType(root).staticDim(3));
  KernelTilings tilings{{rowsOfTile(channels), 4}, {}, {1, 2, 4, 8}};
  llvm::copy_if(ArrayRef<int64_t>{16, 32, 64, 128}, std::back_inserter(tilings.rows),
                [&](int64_t rows) { return rows == tilings.usual.rows || rows * channels <= 16384; });
  auto [count, warps] = frame.tiling(tilings);
  attn::WholeTensorType space = wholeType(pulled.front());
  Value start = b.mul(b.programId(tile::Axis::X), b.i32(count)), length = frame.size(space.dim(2));
  RowTile rows = programRows(b, space, start, count, length);
  RowTile read = needs.neighbours ? rows : rows.clamped(b, length);
  puller.storeAll(roots.values, read, nullptr, &rows);
  RowSums sums(frame, puller, roots.sums, count);
  for (unsigned i = 0; i < sums.size(); ++i)
    sums.store(i, sums.terms(i, read, rows.inside));
  auto results = frame.finish({{tilesOf(space, count), space.dim(1).str(), space.dim(0).str()}, warps, 2});
  stored.record(roots.values, results);
  sums.replace(ArrayRef(results).take_back(sums.size()), stored);
}

} // namespace weft
