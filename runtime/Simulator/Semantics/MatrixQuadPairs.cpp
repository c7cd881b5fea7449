// Part of Weft. SPDX-License-Identifier: Apache-2.0
// mma.m8n8k4 of f16: four independent 8x8x4 products, each on the lanes q..q+3 and q+16..q+19 for q = 0, 4, 8, 12.
#include "runtime/Simulator/Semantics/Half.h"
#include "runtime/Simulator/Semantics/Matrix.h"

namespace weft::simulator::semantics {
namespace {

/// The f16 in half `element` of lane `lane`'s registers, widened.
float halfAt(const void *const *registers, unsigned lane, unsigned element) {
  const uint32_t word = static_cast<const uint32_t *>(registers[element / 2])[lane];
  return halfToFloat(uint16_t(word >> element % 2 * 16));
}

/// Where accumulator `element` of the lane with rank `rank` (0-3, or 4-7 in the upper half warp) lies.
Position quadAccumulatorPosition(AccumulatorType type, unsigned rank, unsigned element) {
  if (type == AccumulatorType::F16)
    return {uint16_t(rank), uint16_t(element)};
  const unsigned lane = rank % 4;
  return {uint16_t((lane & 1) + (element & 2) + rank / 4 * 4), uint16_t((element & 4) + (lane & 2) + (element & 1))};
}

void multiplyQuadPair(unsigned quad, const QuadPairProduct &product, const void *const *a, const void *const *b,
                      const void *const *c, void *const *d) {
  const auto [aByColumn, bByRow, cType, dType] = product;
  float left[8][4], right[4][8], sums[8][8];
  for (unsigned rank = 0; rank < 8; ++rank) {
    const unsigned lane = quad * 4 + rank % 4 + rank / 4 * 16, base = rank / 4 * 4;
    for (unsigned i = 0; i < 4; ++i) {
      (aByColumn ? left[base + i][rank % 4] : left[rank][i]) = halfAt(a, lane, i);
      (bByRow ? right[rank % 4][base + i] : right[i][rank]) = halfAt(b, lane, i);
    }
    for (unsigned i = 0; i < 8; ++i) {
      const Position at = quadAccumulatorPosition(cType, rank, i);
      sums[at.row][at.col] =
          cType == AccumulatorType::F16 ? halfAt(c, lane, i) : static_cast<const float *>(c[i])[lane];
    }
  }
  for (unsigned row = 0; row < 8; ++row)
    for (unsigned col = 0; col < 8; ++col) {
      float sum = left[row][0] * right[0][col]; // exact, as are the others: no fused operation is needed
      for (unsigned k = 1; k < 4; ++k)
        sum += left[row][k] * right[k][col];
      sums[row][col] = canonicalNaN(sum + sums[row][col]);
    }
  for (unsigned rank = 0; rank < 8; ++rank) {
    const unsigned lane = quad * 4 + rank % 4 + rank / 4 * 16;
    for (unsigned i = 0; i < 8; ++i) {
      const Position at = quadAccumulatorPosition(dType, rank, i);
      const float value = sums[at.row][at.col];
      if (dType == AccumulatorType::F32) {
        static_cast<float *>(d[i])[lane] = value;
        continue;
      }
      uint32_t &word = static_cast<uint32_t *>(d[i / 2])[lane];
      word = i % 2 ? (word & 0xffff) | uint32_t(floatToHalf(value)) << 16 : floatToHalf(value);
    }
  }
}

} // namespace

void multiplyQuadPairs(const QuadPairProduct &product, const void *const *a, const void *const *b, const void *const *c,
                       void *const *d) {
  for (unsigned quad = 0; quad < 4; ++quad)
    multiplyQuadPair(quad, product, a, b, c, d);
}

} // namespace weft::simulator::semantics
