// Part of Weft. SPDX-License-Identifier: Apache-2.0
// dv by itself: tiles of keys, and of values that are too wide for one program parts of the channels,
//
//   for each block of queries of each head:  Pᵀ = 2^(scale k qᵀ - lse);  dv += Pᵀ dOut
//
// in a kernel of its own where values are wide, as every part computes the probabilities again, and dk, which needs all
// channels, is not split; or where dk and dv fill a warpgroup's registers: five products then in place of four, of tiles
// that keep the matrix units busy (one for dv again; dk needs its own scores anyway).
#include "compiler/Conversion/AttnToTile/Attention/AttendBackwardKernel.h"
#include "compiler/Conversion/AttnToTile/Attention/ScheduleTable.h"

using namespace mlir;

namespace weft {

void lowerValueGradients(attn::AttendBackwardOp op, const SoftmaxNumbers &numbers, unsigned domain,
                         ArrayRef<Value> roots, StoredValues &stored) {
  attn::ScheduleAttr schedule = valueGradientSchedule(op);
  BackwardKernel kernel(op, numbers, stored, "attend_backward_values", schedule, /*queriesDown=*/false);
  kernel.split = splitOverGrid(kernel.attend, schedule);
  kernel.readsValues = false;
  RowTile rows = kernel.begin(domain);
  KeySide keys = kernel.pullKeys(domain, kernel.asKeys(domain, rows, kernel.standing.head));
  auto walkHead = [&](Value head, ValueRange initial) {
    return kernel.walk(domain, keys.rows, head, initial, [&](const RowTile &columns, Fullness full, ValueRange sums) {
      QuerySide queries = kernel.pullQueries(kernel.asQueries(columns, head));
      return kernel.accumulateProducts(kernel.weights(domain, queries, keys, full).weights, queries.g, sums);
    });
  };
  SmallVector<Value> sums = kernel.overHeads(kernel.zeroSums(kernel.valueChunks), walkHead);
  kernel.provide(op.getGradients()[2 * domain + 1], keys.rows, kernel.valueChunks, sums, 1);
  kernel.finish(roots, keys.rows);
}

} // namespace weft
