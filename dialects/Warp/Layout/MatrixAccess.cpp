// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Layout/MatrixAccess.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace llvm;
using namespace weft::warp;

static constexpr unsigned rowBits = 128; // 16 bytes

/// The shape of one matrix: the bits of register and lane walk along a row, then from row to row, in the order that
/// ldmatrix has, or, transposed, the upper three lane bits along a row and the others from row to row. None when
/// `offsets` has another order.
static std::optional<MatrixAccess> matrixShape(const LinearLayout &offsets, unsigned elementBits, bool transposed) {
  ArrayRef<uint32_t> registers = offsets.bases(InDim::Register), lanes = offsets.bases(InDim::Lane);
  const unsigned packed = Log2_32(32 / elementBits);
  if (registers.size() < packed || lanes.size() != 5)
    return std::nullopt;
  SmallVector<uint32_t, 8> order(registers.take_front(packed));
  order.append(lanes.begin(), lanes.end());
  unsigned alongRow = packed + 2;
  if (transposed) {
    std::rotate(order.begin(), order.begin() + alongRow, order.end());
    alongRow = 3;
  }
  for (unsigned bit = 0; bit < alongRow; ++bit)
    if (order[bit] != 1u << bit)
      return std::nullopt;
  MatrixAccess access;
  access.transposed = transposed;
  access.packedBits = packed;
  access.laneOffsets.assign(order.begin() + alongRow, order.end());

  // Everything else steps by whole rows: their addresses are multiples of 16 bytes.
  auto leavesRows = [&](uint32_t offset) { return offset % (rowBits / elementBits) == 0; };
  bool whole = all_of(access.laneOffsets, leavesRows) && all_of(registers.drop_front(packed), leavesRows) &&
               all_of(offsets.bases(InDim::Warp), leavesRows) && all_of(offsets.bases(InDim::Block), leavesRows);
  return whole ? std::optional(access) : std::nullopt;
}

std::optional<MatrixAccess> weft::warp::matrixAccess(const LinearLayout &offsets, unsigned elementBits,
                                                     unsigned together) {
  if (elementBits != 8 && elementBits != 16 && elementBits != 32)
    return std::nullopt;
  std::optional<MatrixAccess> access = matrixShape(offsets, elementBits, /*transposed=*/false);
  if (!access && elementBits == 16)
    access = matrixShape(offsets, elementBits, /*transposed=*/true);
  if (!access)
    return std::nullopt;

  // A register bit that shares offset bits with the rows (a swizzle) costs an xor for each of its values, unless the
  // lanes' addresses take it in. A bit that shares none costs nothing anywhere: it is an immediate offset.
  ArrayRef<uint32_t> registers = offsets.bases(InDim::Register);
  uint32_t rows = 0;
  for (uint32_t offset : access->laneOffsets)
    rows |= offset;
  const uint32_t repeated = offsets.freeBits()[InDim::Register];
  const unsigned firstBit = access->packedBits, firstFree = firstBit + together;
  for (unsigned bit = firstBit; bit < std::min<size_t>(firstFree, registers.size()); ++bit)
    if (!(repeated >> bit & 1))
      access->matrixBits.push_back(bit);
  for (bool shares : {true, false})
    for (unsigned bit = firstFree; bit < registers.size() && access->matrixBits.size() < 2; ++bit)
      if (!(repeated >> bit & 1) && ((registers[bit] & rows) != 0) == shares)
        access->matrixBits.push_back(bit);
  uint32_t inside = repeated | maskTrailingOnes<uint32_t>(access->packedBits);
  for (unsigned bit : access->matrixBits) {
    access->laneOffsets.push_back(registers[bit]);
    inside |= 1u << bit;
  }
  for (uint32_t reg = 0; reg < offsets.size(InDim::Register); ++reg)
    if (!(reg & inside))
      access->first.push_back(reg);
  return access;
}

std::optional<PairedAccess> weft::warp::pairedAccess(const LinearLayout &offsets, unsigned elementBits) {
  constexpr unsigned packed = 2; // bits of the registers in a word
  const unsigned pairBit = find(offsets.bases(InDim::Register), 1u) - offsets.bases(InDim::Register).begin();
  if (elementBits != 8 || pairBit < packed)
    return std::nullopt;
  std::optional<LinearLayout> pairs = offsets.ofPairs(int64_t(offsets.numElements()) / 2);
  std::optional<MatrixAccess> matrices = pairs ? matrixAccess(*pairs, 16) : std::nullopt;
  if (!matrices || !matrices->transposed)
    return std::nullopt;
  return PairedAccess{std::move(*pairs), std::move(*matrices), pairBit};
}

std::optional<MatrixAccess> weft::warp::matrixStore(const SharedAccess &access, unsigned elementBits) {
  std::optional<MatrixAccess> matrices = matrixAccess(access.offsets, elementBits);
  return matrices && matrices->first.size() < access.distinctPieces() ? matrices : std::nullopt;
}

uint32_t MatrixAccess::registerAt(uint32_t start, unsigned index) const {
  for (auto [position, bit] : enumerate(matrixBits))
    if (index >> position & 1)
      start |= 1u << bit;
  return start;
}

Wavefronts weft::warp::wavefrontsOf(const MatrixAccess &access, const LinearLayout &offsets, unsigned elementBytes) {
  Wavefronts total;
  for (uint32_t start : access.first)
    for (unsigned matrix = 0; matrix < access.matrices(); ++matrix) {
      // The eight rows of a matrix are served together: 32 words.
      SmallVector<uint32_t, 32> words;
      for (uint32_t row = 0; row < 8; ++row) {
        uint32_t offset = offsets.apply(InDim::Register, access.registerAt(start, matrix));
        for (unsigned bit = 0; bit < 3; ++bit)
          offset ^= row >> bit & 1 ? access.laneOffsets[bit] : 0;
        for (uint32_t byte = 0; byte < rowBits / 8; byte += 4)
          words.push_back(offset * elementBytes + byte);
      }
      Wavefronts one = countWavefronts(words, 4);
      total.needed += one.needed;
      total.ideal += one.ideal;
    }
  return total;
}
