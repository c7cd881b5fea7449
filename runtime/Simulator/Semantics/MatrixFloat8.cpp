// Part of Weft. SPDX-License-Identifier: Apache-2.0
// mma.sync and mma.sp of 8-bit floats: what ptxas makes of it where tensor cores have them, and where they do not.
#include "runtime/Simulator/Semantics/Convert.h"
#include "runtime/Simulator/Semantics/Matrix.h"

#include <array>

namespace weft::simulator::semantics {
namespace {

using Words = std::array<uint32_t, 32>;

/// Elements `2 * half` and the next of each lane's register, as f16: exact.
Words widened(MatrixType type, const void *lanes, unsigned half) {
  const auto *words = static_cast<const uint32_t *>(lanes);
  const auto widen = [&](uint32_t byte) {
    return type == MatrixType::E4M3 ? halfFromE4M3(uint8_t(byte)) : halfFromE5M2(uint8_t(byte));
  };
  Words result;
  for (unsigned i = 0; i < result.size(); ++i) {
    const uint32_t pair = words[i] >> 16 * half;
    result[i] = widen(pair & 0xff) | uint32_t(widen(pair >> 8 & 0xff)) << 16;
  }
  return result;
}

} // namespace

void multiplyHalves(const MatrixProduct &product, const void *const *a, const void *const *b, const void *const *c,
                    void *const *d) {
  MatrixProduct part = product;
  part.shape.k = 16;
  if (product.shape.k == 16)
    return multiply(part, a, b, c, d);
  // The first half's sums lie apart: D may be written over what the second half reads.
  std::array<Words, 4> half;
  void *sums[] = {&half[0], &half[1], &half[2], &half[3]};
  multiply(part, a, b, c, sums);
  multiply(part, a + 2, b + 1, sums, d); // A's registers walk m before k
}

void multiplyWidened(const MatrixProduct &product, const void *const *a, const void *const *b, const void *const *c,
                     void *const *d) {
  // A register's two halves lie beside each other along k, in A and B alike; the order of k within one product is free.
  const unsigned parts = product.shape.k / 16;
  MatrixProduct part = product;
  part.a = part.b = MatrixType::F16;
  part.shape.k = uint16_t(8 * parts);
  std::array<Words, 8> left;
  std::array<Words, 4> right;
  for (unsigned half = 0; half < 2; ++half) {
    for (unsigned i = 0; i < 2 * parts; ++i)
      left[half * 2 * parts + i] = widened(product.a, a[i], half);
    for (unsigned i = 0; i < parts; ++i)
      right[half * parts + i] = widened(product.b, b[i], half);
  }
  for (unsigned half = 0; half < 2; ++half) {
    const void *lefts[4], *rights[2];
    for (unsigned i = 0; i < 2 * parts; ++i)
      lefts[i] = &left[half * 2 * parts + i];
    for (unsigned i = 0; i < parts; ++i)
      rights[i] = &right[half * parts + i];
    multiply(part, lefts, rights, half ? d : c, d);
  }
}

void multiplySparseHalves(const MatrixProduct &product, const SparseRows &rows, const void *const *a,
                          const void *const *b, const void *const *c, void *const *d) {
  // 16 stored elements, which are those of 32, at a time. The first's sums lie apart: D may be written over operands.
  MatrixProduct part = product;
  part.shape.k = 32;
  std::array<Words, 4> half;
  void *sums[] = {&half[0], &half[1], &half[2], &half[3]};
  SparseRows first = rows, second = rows;
  first.stored = second.stored = 16;
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned i = 0; i < 16; ++i)
      second.of[row][i] = uint8_t(rows.of[row][16 + i] - 32);
  multiplySparse(part, first, a, b, c, sums);
  multiplySparse(part, second, a + 2, b + 2, sums, d); // A's registers walk m before k
}

void multiplySparseWidened(const MatrixProduct &product, const SparseRows &rows, const void *const *a,
                           const void *const *b, const void *const *c, void *const *d) {
  // A register's two halves of four become registers of their own; the elements of k are numbered by where they lie then.
  MatrixProduct part = product;
  part.a = part.b = MatrixType::F16;
  std::array<Words, 8> left, right;
  const void *lefts[8], *rights[8];
  for (unsigned half = 0; half < 2; ++half)
    for (unsigned i = 0; i < 4; ++i) {
      left[4 * half + i] = widened(product.a, a[i], half);
      lefts[4 * half + i] = &left[4 * half + i];
      right[2 * i + half] = widened(product.b, b[i], half);
      rights[2 * i + half] = &right[2 * i + half];
    }
  for (unsigned half = 0; half < 2; ++half) {
    SparseRows own;
    own.stored = 16;
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned i = 0; i < 16; ++i) {
        const unsigned k = rows.of[row][16 * (i / 8) + 4 * (i % 8 / 2) + 2 * half + i % 2];
        own.of[row][i] = uint8_t(8 * (2 * (k / 16) + k % 4 / 2) + 2 * (k % 16 / 4) + k % 2);
      }
    multiplySparse(part, own, lefts + 4 * half, rights, half ? d : c, d);
  }
}

} // namespace weft::simulator::semantics
