// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Random layouts, and what a layout says when every place is tried.
#pragma once

#include "dialects/Warp/Layout/LinearLayout.h"
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

namespace weft::warp::test {

/// The seed of a test's random numbers: WEFT_SEED, or a new one for each run. Tests print it where they fail.
inline uint32_t seed() {
  static const uint32_t value = [] {
    const char *given = std::getenv("WEFT_SEED");
    return given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  }();
  return value;
}

class RandomLayouts {
public:
  explicit RandomLayouts(uint32_t seed) : numbers(seed) {}

  unsigned below(unsigned bound) { return std::uniform_int_distribution<unsigned>(0, bound - 1)(numbers); }

  std::vector<int64_t> shape() {
    std::vector<int64_t> sizes(1 + below(3));
    for (int64_t &size : sizes)
      size = int64_t(1) << below(5);
    return sizes;
  }
  /// Any map: repeated, missing and mixed elements.
  LinearLayout any(llvm::ArrayRef<int64_t> shape) {
    LinearLayout layout(shape);
    const InDim dims[] = {InDim::Register, InDim::Lane, InDim::Warp};
    for (InDim dim : dims)
      for (unsigned bits = below(5); bits > 0; --bits)
        layout.append(dim, below(layout.numElements()));
    return layout;
  }
  /// A layout that holds every element, some of them more than once: random vectors of full rank, and a few more, dealt
  /// out at random.
  LinearLayout covering(llvm::ArrayRef<int64_t> shape, unsigned repeats) {
    for (;;) {
      LinearLayout layout(shape);
      unsigned bits = 0;
      while ((1u << bits) < layout.numElements())
        ++bits;
      for (unsigned bit = 0; bit < bits + repeats; ++bit)
        layout.append(static_cast<InDim>(below(3)), below(layout.numElements()));
      if (layout.isSurjective())
        return layout;
    }
  }
  /// A bijection from offsets.
  LinearLayout offsets(llvm::ArrayRef<int64_t> shape) {
    for (;;) {
      LinearLayout layout(shape);
      while (layout.size(InDim::Offset) < layout.numElements())
        layout.append(InDim::Offset, below(layout.numElements()));
      if (layout.isSurjective())
        return layout;
    }
  }

private:
  std::mt19937 numbers;
};

/// Every place of a layout, registers fastest.
inline std::vector<Place> placesOf(const LinearLayout &layout) {
  std::vector<Place> places(1);
  for (InDim dim : {InDim::Offset, InDim::Block, InDim::Warp, InDim::Lane, InDim::Register}) {
    std::vector<Place> more;
    for (const Place &place : places)
      for (uint32_t index = 0; index < layout.size(dim); ++index) {
        more.push_back(place);
        more.back()[dim] = index;
      }
    places = std::move(more);
  }
  return places;
}

} // namespace weft::warp::test
