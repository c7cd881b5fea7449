// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Layout/LinearLayout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cassert>

using namespace llvm;
using namespace weft::warp;

StringRef weft::warp::stringify(InDim dim) {
  static constexpr StringRef names[] = {"register", "lane", "warp", "block", "offset"};
  return names[static_cast<size_t>(dim)];
}

// Solving over GF(2).

namespace {
/// The columns of a layout brought into echelon form, each remembering which input bits it is the xor of. Input bits
/// are numbered register first, then lane, warp, block and offset, so that lower inputs become pivots first and later
/// repetitions are the free ones.
class Echelon {
public:
  explicit Echelon(const LinearLayout &layout) {
    unsigned bit = 0;
    for (InDim dim : allInDims)
      for (uint32_t basis : layout.bases(dim))
        insert(basis, bit++);
  }

  /// The input bits whose xor is `element`, with zeros in free bits; none when there are none.
  std::optional<uint32_t> solve(uint32_t element) const {
    Pivot rest = reduce({element, 0});
    return rest.vector ? std::nullopt : std::optional(rest.bits);
  }
  /// Mask of the input bits that earlier ones already reach.
  uint32_t freeBits() const { return free; }
  unsigned rank() const { return pivots.size(); }

private:
  struct Pivot {
    uint32_t vector, bits;
  };
  Pivot reduce(Pivot value) const {
    for (const Pivot &pivot : pivots)
      if (value.vector & bit_floor(pivot.vector)) {
        value.vector ^= pivot.vector;
        value.bits ^= pivot.bits;
      }
    return value;
  }
  void insert(uint32_t basis, unsigned bit) {
    Pivot rest = reduce({basis, 1u << bit});
    if (!rest.vector) {
      free |= 1u << bit;
      return;
    }
    // Kept in order of falling leading bits, so that one pass reduces.
    auto place = find_if(pivots, [&](const Pivot &pivot) { return pivot.vector < rest.vector; });
    pivots.insert(place, rest);
  }

  SmallVector<Pivot, 20> pivots;
  uint32_t free = 0;
};

/// The bits of `mask`, a mask over all inputs of `layout`, by input.
Place splitBits(const LinearLayout &layout, uint32_t mask) {
  Place place;
  for (InDim dim : allInDims) {
    unsigned count = layout.bases(dim).size();
    place[dim] = mask & maskTrailingOnes<uint32_t>(count);
    mask >>= count;
  }
  return place;
}
} // namespace

// Making layouts.

LinearLayout::LinearLayout(ArrayRef<int64_t> shape) : dims(shape) {
  assert(all_of(shape, [](int64_t size) { return size > 0 && isPowerOf2_64(size); }) && "sizes must be powers of two");
}

uint32_t LinearLayout::numElements() const {
  uint32_t count = 1;
  for (int64_t size : dims)
    count *= size;
  return count;
}

LinearLayout &LinearLayout::append(InDim dim, uint32_t element) {
  assert(element < numElements() && "a basis must lie inside the tensor");
  map[static_cast<size_t>(dim)].push_back(element);
  return *this;
}

LinearLayout &LinearLayout::append(InDim dim, ArrayRef<int64_t> coordinates) {
  return append(dim, linearize(coordinates));
}

LinearLayout &LinearLayout::appendAxis(InDim dim, unsigned axis, unsigned count, int64_t from) {
  SmallVector<int64_t, 4> coordinates(rank(), 0);
  for (unsigned bit = 0; bit < count; ++bit) {
    int64_t at = from << bit;
    coordinates[axis] = at < dims[axis] ? at : 0;
    append(dim, coordinates);
  }
  return *this;
}

uint32_t LinearLayout::apply(InDim dim, uint32_t index) const {
  uint32_t element = 0;
  for (auto [bit, basis] : enumerate(bases(dim)))
    if (index >> bit & 1)
      element ^= basis;
  return element;
}

uint32_t LinearLayout::apply(const Place &place) const {
  uint32_t element = 0;
  for (InDim dim : allInDims)
    element ^= apply(dim, place[dim]);
  return element;
}

SmallVector<int64_t, 4> LinearLayout::delinearize(uint32_t element) const {
  SmallVector<int64_t, 4> coordinates(rank(), 0);
  for (unsigned axis = rank(); axis-- > 0;) {
    coordinates[axis] = element & (dims[axis] - 1);
    element >>= Log2_64(dims[axis]);
  }
  return coordinates;
}

uint32_t LinearLayout::linearize(ArrayRef<int64_t> coordinates) const {
  assert(coordinates.size() == rank() && "one coordinate an axis");
  uint32_t element = 0;
  for (auto [size, coordinate] : zip_equal(dims, coordinates))
    element = element << Log2_64(size) | static_cast<uint32_t>(coordinate);
  return element;
}

// Shape operations.

/// `layout` on a tensor of `shape`, each basis sent through `move`, which takes and gives coordinates.
template <typename Move> static LinearLayout moveBases(const LinearLayout &layout, ArrayRef<int64_t> shape, Move move) {
  LinearLayout result(shape);
  for (InDim dim : allInDims)
    for (uint32_t basis : layout.bases(dim))
      result.append(dim, ArrayRef<int64_t>(move(layout.delinearize(basis))));
  return result;
}

LinearLayout LinearLayout::reshape(ArrayRef<int64_t> shape) const {
  LinearLayout result(shape);
  assert(result.numElements() == numElements() && "a reshape keeps the elements");
  result.map = map;
  return result;
}

LinearLayout LinearLayout::permute(ArrayRef<int32_t> order) const {
  auto pick = [&](ArrayRef<int64_t> values) {
    SmallVector<int64_t, 4> picked;
    for (int32_t axis : order)
      picked.push_back(values[axis]);
    return picked;
  };
  return moveBases(*this, pick(dims), pick);
}

LinearLayout LinearLayout::dropAxis(unsigned axis) const {
  auto drop = [&](ArrayRef<int64_t> values) {
    SmallVector<int64_t, 4> kept(values);
    kept.erase(kept.begin() + axis);
    return kept;
  };
  return moveBases(*this, drop(dims), drop).withoutRepeatedRegisters();
}

LinearLayout LinearLayout::squeezeAxis(unsigned axis) const {
  SmallVector<int64_t, 4> shape(dims);
  shape[axis] = 1;
  return moveBases(*this, shape,
                   [&](ArrayRef<int64_t> coordinates) {
                     SmallVector<int64_t, 4> kept(coordinates);
                     kept[axis] = 0;
                     return kept;
                   })
      .withoutRepeatedRegisters();
}

std::optional<LinearLayout> LinearLayout::ofPairs(ArrayRef<int64_t> shape) const {
  LinearLayout pairs(shape);
  bool isFound = false;
  for (InDim dim : {InDim::Register, InDim::Lane, InDim::Warp, InDim::Block})
    for (uint32_t basis : bases(dim)) {
      if (basis == 1 && dim == InDim::Register && !isFound) {
        isFound = true;
        continue;
      }
      if (basis & 1)
        return std::nullopt;
      pairs.append(dim, basis >> 1);
    }
  return isFound ? std::optional(pairs) : std::nullopt;
}

LinearLayout LinearLayout::resizeAxis(unsigned axis, int64_t size) const {
  SmallVector<int64_t, 4> shape(dims);
  shape[axis] = size;
  LinearLayout result = moveBases(*this, shape, [&](ArrayRef<int64_t> coordinates) {
                          SmallVector<int64_t, 4> kept(coordinates);
                          kept[axis] &= size - 1;
                          return kept;
                        }).withoutRepeatedRegisters();
  if (size > dims[axis])
    result.appendAxis(InDim::Register, axis, Log2_64(size / dims[axis]), dims[axis]);
  return result;
}

LinearLayout LinearLayout::withoutRepeatedRegisters() const {
  LinearLayout result = *this;
  erase_if(result.map[static_cast<size_t>(InDim::Register)], [](uint32_t basis) { return basis == 0; });
  return result;
}

// Algebra.

bool LinearLayout::isSurjective() const { return 1u << Echelon(*this).rank() == numElements(); }
bool LinearLayout::isInjective() const { return Echelon(*this).freeBits() == 0; }
Place LinearLayout::freeBits() const { return splitBits(*this, Echelon(*this).freeBits()); }

std::optional<LinearLayout> LinearLayout::composeInverse(const LinearLayout &source) const {
  assert(dims == source.dims && "layouts of one tensor");
  SmallVector<int64_t, 4> places;
  if (!source.bases(InDim::Offset).empty() || source.numElements() == 1)
    places = {source.size(InDim::Offset)};
  if (source.bases(InDim::Offset).empty())
    for (InDim dim : {InDim::Block, InDim::Warp, InDim::Lane, InDim::Register})
      places.push_back(source.size(dim));
  LinearLayout result(places);
  Echelon echelon(source);
  for (InDim dim : allInDims)
    for (uint32_t basis : bases(dim)) {
      std::optional<uint32_t> bits = echelon.solve(basis);
      if (!bits)
        return std::nullopt;
      result.append(dim, *bits);
    }
  return result;
}

Place LinearLayout::placeOf(const LinearLayout &source, uint32_t element) { return splitBits(source, element); }

std::optional<SmallVector<uint32_t>> LinearLayout::registerPermutation(const LinearLayout &source) const {
  for (InDim dim : {InDim::Lane, InDim::Warp, InDim::Block})
    if (bases(dim) != source.bases(dim))
      return std::nullopt;
  LinearLayout registers(dims);
  registers.map[0] = source.map[0];
  Echelon echelon(registers);
  SmallVector<uint32_t> permutation;
  for (uint32_t index = 0; index < size(InDim::Register); ++index) {
    std::optional<uint32_t> from = echelon.solve(apply(InDim::Register, index));
    if (!from)
      return std::nullopt;
    permutation.push_back(*from);
  }
  return permutation;
}

LinearLayout LinearLayout::operator*(const LinearLayout &outer) const {
  assert(rank() == outer.rank() && "layouts of one rank");
  SmallVector<int64_t, 4> shape;
  for (auto [inner, copies] : zip_equal(dims, outer.dims))
    shape.push_back(inner * copies);
  LinearLayout result = moveBases(*this, shape, [](ArrayRef<int64_t> at) { return SmallVector<int64_t, 4>(at); });
  LinearLayout spread = moveBases(outer, shape, [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t, 4> scaled;
    for (auto [coordinate, inner] : zip_equal(at, dims))
      scaled.push_back(coordinate * inner);
    return scaled;
  });
  for (size_t dim = 0; dim < map.size(); ++dim)
    result.map[dim].append(spread.map[dim]);
  return result;
}

std::optional<LinearLayout> LinearLayout::divideLeft(const LinearLayout &tile) const {
  if (rank() != tile.rank())
    return std::nullopt;
  SmallVector<int64_t, 4> shape;
  for (auto [size, inner] : zip_equal(dims, tile.dims)) {
    if (size % inner)
      return std::nullopt;
    shape.push_back(size / inner);
  }
  LinearLayout quotient(shape);
  for (InDim dim : allInDims) {
    size_t inner = tile.bases(dim).size();
    if (bases(dim).size() < inner)
      return std::nullopt;
    for (uint32_t basis : bases(dim).drop_front(inner)) {
      SmallVector<int64_t, 4> at = delinearize(basis);
      for (auto [coordinate, size] : zip_equal(at, tile.dims)) {
        if (coordinate % size)
          return std::nullopt;
        coordinate /= size;
      }
      quotient.append(dim, ArrayRef<int64_t>(at));
    }
  }
  return tile * quotient == *this ? std::optional(quotient) : std::nullopt;
}

hash_code weft::warp::hash_value(const LinearLayout &layout) {
  hash_code hash = hash_combine_range(layout.dims);
  for (const LinearLayout::Bases &bases : layout.map)
    hash = hash_combine(hash, hash_combine_range(bases));
  return hash;
}

uint32_t LinearLayout::contiguousRegisters() const {
  uint32_t count = 1;
  for (uint32_t basis : bases(InDim::Register)) {
    if (basis != count)
      break;
    count *= 2;
  }
  return count;
}

std::string LinearLayout::str() const {
  std::string text;
  raw_string_ostream stream(text);
  stream << "[";
  interleaveComma(dims, stream);
  stream << "]";
  for (InDim dim : allInDims) {
    if (bases(dim).empty())
      continue;
    stream << ", " << stringify(dim) << " = [";
    interleaveComma(bases(dim), stream, [&](uint32_t basis) {
      stream << "[";
      interleaveComma(delinearize(basis), stream);
      stream << "]";
    });
    stream << "]";
  }
  return text;
}

// Shared memory.

Wavefronts weft::warp::countWavefronts(ArrayRef<uint32_t> byteOffsets, unsigned bytesPerLane) {
  constexpr unsigned bankBytes = 4, banks = 32;
  unsigned phases = std::max(1u, bytesPerLane / bankBytes);
  unsigned lanesPerPhase = std::max<unsigned>(1, byteOffsets.size() / phases);
  Wavefronts total;
  for (size_t first = 0; first < byteOffsets.size(); first += lanesPerPhase) {
    SmallVector<uint32_t, banks> words; // of this phase, each once
    std::array<unsigned, banks> ofBank{};
    unsigned needed = 1;
    for (uint32_t offset : byteOffsets.slice(first, std::min<size_t>(lanesPerPhase, byteOffsets.size() - first)))
      for (unsigned byte = 0; byte < std::max(bytesPerLane, 1u); byte += bankBytes)
        if (uint32_t word = (offset + byte) / bankBytes; !is_contained(words, word)) {
          words.push_back(word);
          needed = std::max(needed, ++ofBank[word % banks]);
        }
    total.needed += needed;
    ++total.ideal;
  }
  return total;
}
