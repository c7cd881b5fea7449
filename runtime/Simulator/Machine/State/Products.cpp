// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/Products.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

/// More are made anew each time: no kernel's loop has as many.
constexpr size_t keptPieces = 4096;

} // namespace

MatrixDescriptor MatrixDescriptor::decode(uint64_t bits) {
  static constexpr uint32_t spans[] = {16, 128, 64, 32};
  MatrixDescriptor descriptor;
  descriptor.start = uint32_t(bits & 0x3fff) << 4;
  descriptor.leading = uint32_t(bits >> 16 & 0x3fff) << 4;
  descriptor.stride = uint32_t(bits >> 32 & 0x3fff) << 4;
  descriptor.span = spans[bits >> 62];
  descriptor.valid = (bits >> 49 & 7) == 0; // patterns begin at multiples of their size
  return descriptor;
}

MatrixDescriptor MatrixDescriptor::decodeTensor(uint64_t bits) {
  static constexpr uint32_t spans[] = {16, 128, 128, 16, 64, 16, 32, 16};
  MatrixDescriptor descriptor = decode(bits);
  descriptor.span = spans[bits >> 61];
  descriptor.coarse = bits >> 61 == 1;
  return descriptor;
}

uint32_t MatrixDescriptor::swizzled(uint32_t address) const {
  if (coarse)
    return address ^ ((address >> 7 & 3) << 5);
  return address ^ ((address >> 7 & (span / 16 - 1)) << 4);
}

uint32_t MatrixDescriptor::alongK(uint32_t row, uint32_t chunk) const {
  const uint32_t address = start + row / 8 * stride + row % 8 * span;
  return swizzled(address + (span == 16 ? chunk * leading : chunk * 16));
}

uint32_t MatrixDescriptor::alongRows(uint32_t group, uint32_t k) const {
  const uint32_t perSpan = span / 16;
  const uint32_t spans = perSpan == 1 ? stride : leading, eights = perSpan == 1 ? leading : stride;
  const uint32_t lines = coarse ? 4 : 8;
  return swizzled(start + group / perSpan * spans + group % perSpan * 16 + k / lines * eights + k % lines * span);
}

std::shared_ptr<const OperandPieces> KnownPieces::of(uint64_t descriptor, bool transposed, uint32_t row, uint32_t rows,
                                                     uint32_t parts) {
  const Key key{descriptor, row, rows, parts, transposed};
  if (auto found = known_.find(key); found != known_.end())
    return found->second;
  const MatrixDescriptor from = MatrixDescriptor::decode(descriptor);
  auto pieces = std::make_shared<OperandPieces>();
  pieces->valid = from.valid;
  // Nothing says where the second 32 bytes of a row lie whose pattern has 32.
  pieces->tooWide = !transposed && from.span > 16 && from.span < 16 * parts;
  for (uint32_t at = row; at < row + rows; at += 8)
    for (uint32_t part = 0; part < parts; ++part)
      for (uint32_t i = 0; i < 8; ++i)
        pieces->begins.push_back(transposed ? from.alongRows(at / 8, 8 * part + i) : from.alongK(at + i, part));
  pieces->last = *std::ranges::max_element(pieces->begins);
  if (known_.size() < keptPieces)
    known_.emplace(key, pieces);
  return pieces;
}

} // namespace weft::simulator::machine
