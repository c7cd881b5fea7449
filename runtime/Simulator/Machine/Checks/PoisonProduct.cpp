// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What nothing wrote, through matrix products: a row of A reaches a row of the result, a column of B a column. Tiles at
// an edge are often filled in part only, and the rest of the product thrown away.
#include "runtime/Simulator/Machine/Checks/Poison.h"
#include "runtime/Simulator/Machine/State/MatrixProduct.h"

#include <algorithm>
#include <span>

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;

/// Which element an accumulator's register holds in a lane (PTX ISA 9.7.14, the fragments of m16n8 and m8n8).
struct ElementPlace {
  unsigned row, column, columns;
};

ElementPlace accumulatorPlace(unsigned m, unsigned registers, unsigned index, unsigned lane) {
  const unsigned group = lane / 4, pair = lane % 4 * 2;
  if (m == 8)
    return {group, pair + index, 1};
  if (registers == 2) // two halves in one register
    return {group + 8 * index, pair, 2};
  return {group + 8 * (index / 2), pair + index % 2, 1};
}

/// What left one of the operands unwritten.
uint32_t anyOrigin(Warp &warp, std::span<const Ref> operands) {
  for (Ref ref : operands)
    if (const uint32_t lanes = poisonOf(warp, ref))
      return readNow(warp, originOf(warp, ref, firstLane(lanes)));
  return 0;
}

/// movmatrix: op[0] = op[1] transposed.
void poisonMoved(Warp &warp, const Record &record) {
  const BytePoison from = bytePoisonOf(warp, record.op[1]);
  BytePoison to{};
  uint32_t origins[laneCount] = {};
  for (unsigned row = 0; row < 8; ++row)
    for (unsigned i = 0; i < 16; ++i) {
      const LaneByte source = matrixByte(row, i, false), target = matrixByte(row, i, true);
      if (!(from[source.byte] >> source.lane & 1))
        continue;
      to[target.byte] |= 1u << target.lane;
      origins[target.lane] = readNow(warp, originOf(warp, record.op[1], source.lane));
    }
  std::fill_n(&warp.poison[record.op[0] >> 2], 9, 0); // the whole warp executes it
  poisonBytes(warp, record.op[0], to);
  for (unsigned lane = 0; lane < laneCount; ++lane)
    if (origins[lane])
      setOrigin(warp, record.op[0], 1u << lane, origins[lane]);
}

} // namespace

bool poisonProduct(Warp &warp, const Record &record, uint32_t mask) {
  const Site &site = warp.kernel->sites[warp.here()];
  if (site.instruction && site.instruction->mnemonic == "movmatrix") {
    poisonMoved(warp, record);
    return true;
  }
  if (!site.instruction || site.instruction->mnemonic != "mma")
    return false;
  const auto &p = *static_cast<const Product *>(record.aux);
  const unsigned m = p.product.shape.m;
  const bool known = !p.quadPairs && p.product.shape.n == 8 && (m == 8 || m == 16) &&
                     site.wideCount == p.dCount + p.aCount + p.bCount + p.cCount + p.sparse && p.cCount == p.dCount &&
                     p.dCount == (m == 8 ? 2u : p.dCount) && (p.dCount == 2 || p.dCount == 4);
  if (!known)
    return false;
  const Ref *d = record.wide, *a = d + p.dCount, *b = a + p.aCount, *c = b + p.bCount;
  uint32_t rows = 0, columns = 0;
  for (unsigned i = 0; i < p.aCount; ++i)
    eachLane(poisonOf(warp, a[i]), [&](unsigned lane) { rows |= 1u << (lane / 4 + (m == 16 ? 8 * (i % 2) : 0)); });
  for (unsigned i = 0; i < p.bCount; ++i)
    eachLane(poisonOf(warp, b[i]), [&](unsigned lane) { columns |= 1u << lane / 4; });
  if (p.sparse) // where a row's elements lie
    eachLane(poisonOf(warp, c[p.cCount]) & sem::metadataLanes({p.product, p.selector, p.ordered}),
             [&](unsigned lane) { rows |= 0x101u << lane / 4; });
  std::array<uint32_t, 4> results{};
  for (unsigned i = 0; i < p.dCount; ++i) {
    results[i] = poisonOf(warp, c[i]);
    for (unsigned lane = 0; lane < laneCount && (rows | columns); ++lane) {
      const ElementPlace at = accumulatorPlace(m, p.dCount, i, lane);
      const bool reached = (rows >> at.row & 1) || (columns >> at.column & ((1u << at.columns) - 1));
      results[i] |= uint32_t(reached) << lane;
    }
  }
  const uint32_t origin = anyOrigin(warp, {a, size_t(p.aCount + p.bCount + p.cCount + p.sparse)});
  for (unsigned i = 0; i < p.dCount; ++i) {
    std::fill_n(&warp.poison[d[i] >> 2], 9, 0); // the whole warp executes it
    if (results[i] & mask)
      poisonRegister(warp, d[i], results[i] & mask, origin);
  }
  return true;
}

} // namespace weft::simulator::machine
