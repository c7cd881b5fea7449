// Part of Weft. SPDX-License-Identifier: Apache-2.0
// mma.sp and wgmma.mma_async.sp: where metadata lie, and what they say.
//
// Four bits of metadata say which two of four neighbours in a row of A are stored: the low two bits have the first
// one's index, the high two the second's. The neighbours are elements of 8 and 16 bits, pairs of 4-bit elements, and
// halves of 32-bit ones, whose two halves are stored together: 0b0100 is the first element, 0b1110 the second.
#include "runtime/Simulator/Semantics/Matrix.h"

namespace weft::simulator::semantics {
namespace {

/// Elements of A that four bits of metadata are for.
unsigned elementsPerIndex(MatrixType type) {
  const unsigned bits = bitsOf(type);
  return bits == 4 ? 8 : bits == 32 ? 2 : 4;
}

/// Which lane holds the metadata of a row's `chunk`, and from which bit on.
struct MetadataPlace {
  unsigned lane, bit;
};

MetadataPlace placeOf(const SparseProduct &sparse, unsigned row, unsigned chunk) {
  const unsigned group = 4 * (row % 8), lower = row / 8;
  switch (selectorsOf(sparse.product)) {
  case 4: // one thread has both rows
    return {group + sparse.selector, 16 * lower + 4 * chunk};
  case 2:
    if (bitsOf(sparse.product.a) >= 16) // each of two has half of both rows
      return {group + 2 * sparse.selector + chunk / 4, 16 * lower + 4 * (chunk % 4)};
    return {group + 2 * sparse.selector + lower, 4 * chunk}; // each has a row
  default:                                                   // each of four has half of a row
    return {group + lower + 2 * (chunk / 8), 4 * (chunk % 8)};
  }
}

bool isIndex(const SparseProduct &sparse, unsigned bits) {
  const unsigned first = bits & 3, second = bits >> 2;
  if (bitsOf(sparse.product.a) == 32)
    return bits == 0b0100 || bits == 0b1110;
  return sparse.ordered ? first < second : first != second;
}

} // namespace

unsigned selectorsOf(const MatrixProduct &product) {
  const unsigned bits = 4 * 16 * product.shape.k / elementsPerIndex(product.a);
  return 32 * 32 / bits; // all lanes' bits, of which each selector has as many
}

uint32_t metadataLanes(const SparseProduct &sparse) {
  const unsigned selectors = selectorsOf(sparse.product);
  const unsigned ofFour = selectors == 4 ? 1u << sparse.selector : selectors == 2 ? 3u << 2 * sparse.selector : 0xfu;
  return ofFour * 0x11111111u;
}

bool isSparseMmaProduct(const MatrixProduct &product) {
  MatrixProduct stored = product;
  stored.shape.k /= 2;
  const unsigned bits = bitsOf(product.a);
  if (bits > 32 || bits == 1 || product.shape.m != 16 || product.shape.n != 8 || product.shape.k % 2)
    return false;
  if (isFloat8(product.a) && (product.shape.k != 64 || product.c != AccumulatorType::F32))
    return false;
  return isMmaProduct(stored);
}

Metadata readMetadata(const SparseProduct &sparse, const uint32_t lanes[32], uint32_t ignored) {
  const MatrixType type = sparse.product.a;
  const unsigned bits = bitsOf(type), each = elementsPerIndex(type);
  Metadata result;
  result.rows.stored = sparse.product.shape.k / 2u;
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned chunk = 0; chunk < sparse.product.shape.k / each; ++chunk) {
      const MetadataPlace place = placeOf(sparse, row, chunk);
      const unsigned index = lanes[place.lane] >> place.bit & 0xf;
      if (!result.fault && !(ignored >> place.lane & 1) && !isIndex(sparse, index))
        result.fault = MetadataFault{place.lane, index, row, chunk * each};
      uint8_t *to = result.rows.of[row] + chunk * each / 2;
      const unsigned first = index & 3, second = index >> 2;
      if (bits == 32) {
        to[0] = uint8_t(chunk * 2 + first / 2);
      } else if (bits == 4) {
        for (unsigned i = 0; i < 4; ++i)
          to[i] = uint8_t(chunk * 8 + 2 * (i < 2 ? first : second) + i % 2);
      } else {
        to[0] = uint8_t(chunk * 4 + first), to[1] = uint8_t(chunk * 4 + second);
      }
    }
  return result;
}

} // namespace weft::simulator::semantics
