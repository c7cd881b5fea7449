// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Layout/ScratchLayout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>

using namespace llvm;
using namespace weft::warp;

namespace {
constexpr unsigned maxPieceBytes = 16, lineBytes = 128;
using Vectors = SmallVector<uint32_t, 16>;

/// A subspace of the elements, kept reduced, that answers whether a vector lies in it.
class Span {
public:
  explicit Span(ArrayRef<uint32_t> vectors = {}) {
    for (uint32_t vector : vectors)
      insert(vector);
  }
  /// Adds a vector; false when it was in the span.
  bool insert(uint32_t vector) {
    vector = reduce(vector);
    if (!vector)
      return false;
    basis.push_back(vector);
    return true;
  }
  bool contains(uint32_t vector) const { return reduce(vector) == 0; }

private:
  /// Each basis vector clears its own leading bit, in the order of insertion, until nothing changes.
  uint32_t reduce(uint32_t vector) const {
    for (bool changed = true; changed && vector;) {
      changed = false;
      for (uint32_t member : basis)
        if (vector && bit_floor(vector) == bit_floor(member)) {
          vector ^= member;
          changed = true;
        }
    }
    return vector;
  }
  Vectors basis;
};
} // namespace

SharedAccess weft::warp::accessOf(const LinearLayout &registers, const LinearLayout &shared, unsigned elementBytes) {
  SharedAccess access{*registers.composeInverse(shared), {}};
  const LinearLayout &offsets = access.offsets;
  ArrayRef<uint32_t> bases = offsets.bases(InDim::Register);
  uint32_t low = 0; // the offset bits inside a piece
  while ((2u << access.pieceBits.size()) * elementBytes <= maxPieceBytes) {
    uint32_t bit = 1u << access.pieceBits.size();
    const uint32_t *found = find(bases, bit);
    if (found == bases.end())
      break;
    // Every other direction must leave the piece whole.
    auto crosses = [&](uint32_t basis) { return (basis & (low | bit)) != 0; };
    bool whole = none_of(offsets.bases(InDim::Lane), crosses) && none_of(offsets.bases(InDim::Warp), crosses);
    for (auto [index, basis] : enumerate(bases))
      whole &= !crosses(basis) || index == static_cast<size_t>(found - bases.begin()) ||
               is_contained(access.pieceBits, index);
    if (!whole)
      break;
    access.pieceBits.push_back(found - bases.begin());
    low |= bit;
  }
  return access;
}

Wavefronts weft::warp::wavefrontsOf(const SharedAccess &access, unsigned elementBytes) {
  Wavefronts total;
  const unsigned pieces = access.pieces();
  SmallVector<uint32_t, 32> offsets;
  for (uint32_t lane = 0; lane < access.offsets.size(InDim::Lane); ++lane)
    offsets.push_back(access.offsets.apply(InDim::Lane, lane) * elementBytes);
  // All pieces of a warp conflict alike: they differ by a constant xor, which permutes banks.
  Wavefronts one = countWavefronts(offsets, access.pieceElements() * elementBytes);
  total.needed = one.needed * pieces;
  total.ideal = one.ideal * pieces;
  return total;
}

unsigned weft::warp::instructionsOf(const SharedAccess &access, unsigned elementBytes) {
  const unsigned registers = access.offsets.size(InDim::Register), inWord = std::max(1u, 4 / elementBytes);
  unsigned ordered = 0;
  while (ordered < access.pieceBits.size() && access.pieceBits[ordered] == ordered)
    ++ordered;
  const bool whole = (1u << ordered) >= inWord;
  return access.pieces() + (whole ? 0 : registers / inWord * (inWord - 1));
}

/// The lane directions that one wavefront covers when lanes access `pieceBytes` bytes each.
static Vectors lanesOfOneWavefront(const LinearLayout &layout, unsigned pieceBytes) {
  unsigned lanes = std::min(32u, lineBytes / std::max(pieceBytes, 4u));
  ArrayRef<uint32_t> bases = layout.bases(InDim::Lane);
  return Vectors(bases.take_front(std::min<size_t>(bases.size(), Log2_32(lanes))));
}

/// Those of the lane directions of one wavefront that are independent of each other and of `piece`. A side accesses as
/// much of a piece as its lanes hold.
static Vectors lanesBeside(ArrayRef<uint32_t> piece, const LinearLayout &side, unsigned elementBytes) {
  ArrayRef<uint32_t> held = side.bases(InDim::Register);
  const unsigned bytes =
      elementBytes << (find_if(piece, [&](uint32_t vector) { return !is_contained(held, vector); }) - piece.begin());
  Span span(piece);
  Vectors kept;
  for (uint32_t vector : lanesOfOneWavefront(side, bytes))
    if (span.insert(vector))
      kept.push_back(vector);
  return kept;
}

/// The directions along which rows may share banks, as neither side's lanes walk along them; the complement of both
/// sides' lanes first, as sums of lanes are needed only when that does not fill the rows.
static Vectors rowsOf(ArrayRef<uint32_t> piece, ArrayRef<uint32_t> writes, ArrayRef<uint32_t> reads,
                      uint32_t numElements) {
  Span writeSpan(piece), readSpan(piece), both(piece);
  for (uint32_t vector : writes)
    writeSpan.insert(vector), both.insert(vector);
  for (uint32_t vector : reads)
    readSpan.insert(vector), both.insert(vector);
  Vectors onlyWrites, onlyReads, rows;
  copy_if(writes, std::back_inserter(onlyWrites), [&](uint32_t vector) { return !readSpan.contains(vector); });
  copy_if(reads, std::back_inserter(onlyReads), [&](uint32_t vector) { return !writeSpan.contains(vector); });
  // Independent ones: sums of directions may meet where the two sides' spans do.
  Span rowSpan(piece);
  for (auto [write, read] : zip(onlyWrites, onlyReads))
    if (rowSpan.insert(write ^ read))
      rows.push_back(write ^ read);
  for (uint32_t bit = 1; bit < numElements; bit *= 2)
    if (both.insert(bit))
      rows.push_back(bit);
  std::reverse(rows.begin(), rows.end());
  return rows;
}

/// A scratch layout whose lowest offsets are `piece`.
static LinearLayout layoutAbove(const LinearLayout &source, const LinearLayout &result, ArrayRef<uint32_t> piece,
                                unsigned elementBytes) {
  Vectors writes = lanesBeside(piece, source, elementBytes), reads = lanesBeside(piece, result, elementBytes);
  Vectors rows = rowsOf(piece, writes, reads, source.numElements());
  unsigned bits = Log2_32(source.numElements());
  unsigned lineBits = std::min<unsigned>(bits, Log2_32(std::max(1u, lineBytes / elementBytes)));
  unsigned rowBits = bits - std::max<unsigned>(lineBits, piece.size());
  if (rows.size() > rowBits)
    rows.resize(rowBits);

  LinearLayout layout(source.shape());
  for (uint32_t vector : piece)
    layout.append(InDim::Offset, vector);
  Span taken(piece);
  for (uint32_t vector : rows)
    taken.insert(vector);
  for (ArrayRef<uint32_t> candidates : {ArrayRef<uint32_t>(reads), ArrayRef<uint32_t>(writes)})
    for (uint32_t vector : candidates)
      if (taken.insert(vector))
        layout.append(InDim::Offset, vector);
  for (uint32_t bit = 1; bit < source.numElements(); bit *= 2)
    if (taken.insert(bit))
      layout.append(InDim::Offset, bit);
  for (uint32_t vector : rows)
    layout.append(InDim::Offset, vector);
  assert(layout.size(InDim::Offset) == source.numElements() && "a basis of all elements");
  return layout;
}

/// Whether pieces of registers `bits`, in that order, are of one operand of a matrix instruction, in its order, or of whole
/// ones; see scratchLayout. Words of 32 bits are rounded before they are multiplied, into whichever register.
static bool isOfOperands(ArrayRef<unsigned> bits, unsigned elementBytes, unsigned operandBits) {
  if (!operandBits || elementBytes >= 4)
    return true;
  size_t inWord = Log2_32(4 / elementBytes), ordered = 0;
  while (ordered < bits.size() && bits[ordered] == ordered)
    ++ordered;
  return ordered == bits.size() || ordered < inWord || ordered >= inWord + operandBits;
}

LinearLayout weft::warp::scratchLayout(const LinearLayout &source, const LinearLayout &result, unsigned elementBytes,
                                       unsigned operandBits) {
  ArrayRef<uint32_t> written = source.bases(InDim::Register), read = result.bases(InDim::Register);
  Vectors shared;
  copy_if(read, std::back_inserter(shared), [&](uint32_t vector) { return vector && is_contained(written, vector); });

  std::optional<LinearLayout> best;
  std::pair<unsigned, unsigned> bestCost; // wavefronts, then instructions
  auto consider = [&](ArrayRef<uint32_t> order) {
    Span span;
    Vectors piece;
    for (uint32_t vector : order)
      if ((elementBytes << (piece.size() + 1)) <= maxPieceBytes && span.insert(vector))
        piece.push_back(vector);
    for (;; piece.pop_back()) {
      LinearLayout layout = layoutAbove(source, result, piece, elementBytes);
      SharedAccess write = accessOf(source, layout, elementBytes), load = accessOf(result, layout, elementBytes);
      std::pair<unsigned, unsigned> cost{wavefrontsOf(write, elementBytes).needed +
                                             wavefrontsOf(load, elementBytes).needed,
                                         instructionsOf(write, elementBytes) + instructionsOf(load, elementBytes)};
      bool isWhole = isOfOperands(load.pieceBits, elementBytes, operandBits);
      if (!best || (isWhole && cost < bestCost)) {
        best = layout;
        bestCost = isWhole ? cost : std::pair(~0u, ~0u);
      }
      if (piece.empty())
        return;
    }
  };
  // Neighbours that both sides hold in registers come first; then those of the reader, or of the writer. Operands have an
  // order of their own.
  SmallVector<Vectors> orders;
  for (ArrayRef<uint32_t> rest : {read, written}) {
    orders.push_back(shared);
    orders.back().append(rest.begin(), rest.end());
  }
  if (operandBits)
    orders.emplace_back(read.begin(), read.end());
  for (const Vectors &order : orders)
    consider(order);
  return *best;
}
