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

/// The metadata of one row of A, four bits for each chunk from the low ones on.
uint64_t rowOf(const SparseProduct &sparse, unsigned selectors, unsigned row, const uint32_t lanes[32]) {
  const uint32_t *group = lanes + 4 * (row % 8);
  const unsigned lower = row / 8;
  if (selectors == 4) // one thread has both rows
    return group[sparse.selector] >> 16 * lower & 0xffff;
  if (selectors == 1) // each of four has half of a row
    return group[lower] | uint64_t(group[lower + 2]) << 32;
  const uint32_t *pair = group + 2 * sparse.selector;
  if (bitsOf(sparse.product.a) < 16) // each of two has a row
    return pair[lower];
  return (pair[0] >> 16 * lower & 0xffff) | (pair[1] >> 16 * lower & 0xffff) << 16; // each has half of both rows
}

/// The same place by place, for what is wrong in a row.
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

/// The first four bits of a row that are no indices, but for those of lanes that `ignored` has.
std::optional<MetadataFault> faultIn(const SparseProduct &sparse, unsigned row, const uint32_t lanes[32],
                                     uint32_t ignored) {
  const unsigned each = elementsPerIndex(sparse.product.a);
  for (unsigned chunk = 0; chunk < sparse.product.shape.k / each; ++chunk) {
    const MetadataPlace place = placeOf(sparse, row, chunk);
    const unsigned index = lanes[place.lane] >> place.bit & 0xf;
    if (!(ignored >> place.lane & 1) && !isIndex(sparse, index))
      return MetadataFault{place.lane, index, row, chunk * each};
  }
  return std::nullopt;
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
  const unsigned bits = bitsOf(sparse.product.a), each = elementsPerIndex(sparse.product.a);
  const unsigned chunks = sparse.product.shape.k / each, selectors = selectorsOf(sparse.product);
  uint32_t valid = 0; // of the sixteen values of four bits
  for (unsigned index = 0; index < 16; ++index)
    valid |= uint32_t(isIndex(sparse, index)) << index;
  Metadata result;
  result.rows.stored = sparse.product.shape.k / 2u;
  for (unsigned row = 0; row < 16; ++row) {
    uint64_t indices = rowOf(sparse, selectors, row, lanes);
    uint8_t *to = result.rows.of[row];
    bool good = true;
    for (unsigned chunk = 0; chunk < chunks; ++chunk, indices >>= 4) {
      const unsigned index = indices & 0xf, first = index & 3, second = index >> 2, from = chunk * each;
      good &= valid >> index & 1;
      if (bits == 32) {
        *to++ = uint8_t(from + first / 2);
      } else if (bits == 4) {
        for (unsigned i = 0; i < 4; ++i)
          *to++ = uint8_t(from + 2 * (i < 2 ? first : second) + i % 2);
      } else {
        *to++ = uint8_t(from + first);
        *to++ = uint8_t(from + second);
      }
    }
    if (!good && !result.fault)
      result.fault = faultIn(sparse, row, lanes, ignored);
  }
  return result;
}

} // namespace weft::simulator::semantics
