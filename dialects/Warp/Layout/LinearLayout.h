// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The one layout abstraction: a linear map over bits, as in "Linear Layouts" (Zhou et al., 2025).
//
// A layout sends a place in the machine (register r, lane l, warp w, block b), or a place in shared memory (element
// offset o), to an element of a tensor. All sizes are powers of two and the map is linear over GF(2): the element at r
// ^ r' is the element at r xor the element at r'. It is therefore given by where each single bit of an input goes, its
// *bases*.
//
// An element is written as its row-major index. With sizes powers of two that index is the concatenation of the
// coordinates' bits, so xor acts on each coordinate by itself, and a reshape leaves the bases as they are.
//
// A tensor of 4 x 4 elements in two registers of each of eight lanes:
//
//   #warp.layout<[4, 4], register = [[0, 1]], lane = [[0, 2], [1, 0], [2, 0]]>
//
//   register 1 of lane 5 = 0b101:   [0, 1] ^ [0, 2] ^ [2, 0] = [2, 3], which is element 2 * 4 + 3 = 11 = 0b10'11
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace weft::warp {

/// What a layout maps from. Register, Lane, Warp and Block describe a distributed tensor, Offset a tensor in shared
/// memory.
enum class InDim : uint8_t { Register, Lane, Warp, Block, Offset };
inline constexpr std::array<InDim, 5> allInDims{InDim::Register, InDim::Lane, InDim::Warp, InDim::Block, InDim::Offset};
/// "register", "lane", "warp", "block" or "offset".
llvm::StringRef stringify(InDim dim);

/// A place in the machine, one index for each input; those a layout lacks are 0.
struct Place {
  std::array<uint32_t, allInDims.size()> index{};
  uint32_t &operator[](InDim dim) { return index[static_cast<size_t>(dim)]; }
  uint32_t operator[](InDim dim) const { return index[static_cast<size_t>(dim)]; }
};

class LinearLayout {
public:
  using Bases = llvm::SmallVector<uint32_t, 8>;

  /// The layout of no bits onto a tensor of `shape` (sizes powers of two): element 0 everywhere.
  explicit LinearLayout(llvm::ArrayRef<int64_t> shape = {});

  llvm::ArrayRef<int64_t> shape() const { return dims; }
  unsigned rank() const { return dims.size(); }
  /// Number of elements of the tensor.
  uint32_t numElements() const;
  /// Where each bit of `dim` goes, lowest bit first, as row-major element indices.
  llvm::ArrayRef<uint32_t> bases(InDim dim) const { return map[static_cast<size_t>(dim)]; }
  /// 2^(number of bases): how many registers, lanes, ... the layout covers.
  uint32_t size(InDim dim) const { return 1u << bases(dim).size(); }
  /// This layout with one more high bit of `dim`, which goes to `element`; 0 repeats the tensor along that bit.
  LinearLayout &append(InDim dim, uint32_t element);
  /// As above with the element given by coordinates.
  LinearLayout &append(InDim dim, llvm::ArrayRef<int64_t> coordinates);
  /// This layout with `count` more bits of `dim` that walk along `axis`, starting at coordinate `from` (a power of
  /// two); bits past the end of the axis go to 0 (repetition).
  LinearLayout &appendAxis(InDim dim, unsigned axis, unsigned count, int64_t from);

  /// The row-major element index at a place.
  uint32_t apply(const Place &place) const;
  uint32_t apply(InDim dim, uint32_t index) const;
  /// Coordinates of a row-major element index, and back.
  llvm::SmallVector<int64_t, 4> delinearize(uint32_t element) const;
  uint32_t linearize(llvm::ArrayRef<int64_t> coordinates) const;

  // --- shape operations: how an op on the tensor acts on its layout ---
  /// Same places, same row-major order, another shape of as many elements.
  LinearLayout reshape(llvm::ArrayRef<int64_t> shape) const;
  /// Result axis i is this layout's axis order[i] (as tile.permute).
  LinearLayout permute(llvm::ArrayRef<int32_t> order) const;
  /// The tensor with `axis` removed (as after a reduction): bits along it go to 0 and registers that have become
  /// repetitions go.
  LinearLayout dropAxis(unsigned axis) const;
  /// The tensor cut to size 1 along `axis`, rank kept: the source of a broadcast along it.
  LinearLayout squeezeAxis(unsigned axis) const;
  /// The tensor with another size along `axis`: coordinates past a smaller one start anew, registers walk on along a
  /// larger one.
  LinearLayout resizeAxis(unsigned axis, int64_t size) const;
  /// Onto pairs of neighbours, of `shape`: without the register bit that tells the two apart. None where none does, or
  /// where another bit does too.
  std::optional<LinearLayout> ofPairs(llvm::ArrayRef<int64_t> shape) const;
  /// Without the register bits that go to 0.
  LinearLayout withoutRepeatedRegisters() const;

  // --- algebra ---
  /// Whether every element is held somewhere; whether none is held twice.
  bool isSurjective() const;
  bool isInjective() const;
  /// Of each input, the bits that do not change the element: masks, one per InDim. Bits of lower inputs (register
  /// before lane before warp) are kept first, so a lane bit is free when registers and lower lane bits already reach
  /// the same element.
  Place freeBits() const;
  /// For a place of `this`, the place of `source` that holds the same element, as a layout from this layout's inputs to
  /// the (flattened) places of `source`: source⁻¹ ∘ this. None when `source` does not hold every element that `this`
  /// asks for. Among several places the one with zeros in `source`'s free bits is taken. The result's shape is made of
  /// `source`'s sizes, so that its row-major index splits back into a place by `placeOf`:
  ///
  ///     [block, warp, lane, register]    `source` is in registers
  ///     [offset]                         `source` is in shared memory
  std::optional<LinearLayout> composeInverse(const LinearLayout &source) const;
  /// The place of `source` encoded by an element of `composeInverse(source)`.
  static Place placeOf(const LinearLayout &source, uint32_t element);
  /// Whether converting from `source` to this layout only renames registers: every lane keeps its elements. Gives, for
  /// each register of this layout, the register of `source`.
  std::optional<llvm::SmallVector<uint32_t>> registerPermutation(const LinearLayout &source) const;
  /// The product: this layout's bits first, then `outer`'s in each input, where `outer` tiles copies of this layout's
  /// tensor (shape of the result: product per axis).
  LinearLayout operator*(const LinearLayout &outer) const;
  /// The layout q with tile * q == this, if there is one.
  std::optional<LinearLayout> divideLeft(const LinearLayout &tile) const;

  /// How many consecutive elements along the row-major order the lowest registers hold (a power of two): the widest
  /// vector access when memory is row-major.
  uint32_t contiguousRegisters() const;

  bool operator==(const LinearLayout &other) const { return dims == other.dims && map == other.map; }
  bool operator!=(const LinearLayout &other) const { return !(*this == other); }
  friend llvm::hash_code hash_value(const LinearLayout &layout);
  std::string str() const;

private:
  llvm::SmallVector<int64_t, 4> dims;
  std::array<Bases, allInDims.size()> map;
};

/// How many wavefronts (128-byte passes over 32 four-byte banks) one warp's access needs, when lane l touches
/// `bytesPerLane` bytes at element offset `offsets[l]` (elements of `elementBytes`); and the fewest it could need.
/// 8-byte accesses are served by half warps, 16-byte ones by quarters.
struct Wavefronts {
  unsigned needed = 0, ideal = 0;
};
Wavefronts countWavefronts(llvm::ArrayRef<uint32_t> byteOffsets, unsigned bytesPerLane);

} // namespace weft::warp
