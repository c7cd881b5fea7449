// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Layout/LayoutWords.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

using llvm::SmallVector;

namespace weft::warp {
namespace {

/// What the bits of one input cover: along each axis, and how often they repeat that. A bit that moves along several
/// axes at once (of a swizzled layout) counts for the first.
struct Cover {
  SmallVector<int64_t> sizes;
  int64_t times = 1;
};

Cover coverOf(const LinearLayout &layout, InDim dim) {
  Cover cover{SmallVector<int64_t>(layout.rank(), 1)};
  for (uint32_t basis : layout.bases(dim)) {
    auto at = layout.delinearize(basis);
    auto axis = llvm::find_if(at, [](int64_t step) { return step != 0; });
    (axis == at.end() ? cover.times : cover.sizes[axis - at.begin()]) *= 2;
  }
  return cover;
}

/// The axis along which a thread's first registers hold neighbours, and how many: 1 where they hold none.
std::pair<unsigned, int64_t> neighbours(const LinearLayout &layout) {
  for (unsigned axis = 0; axis < layout.rank(); ++axis) {
    int64_t count = 1;
    for (uint32_t basis : layout.bases(InDim::Register)) {
      SmallVector<int64_t> step(layout.rank(), 0);
      step[axis] = count;
      if (count >= layout.shape()[axis] || layout.linearize(step) != basis)
        break;
      count *= 2;
    }
    if (count > 1)
      return {axis, count};
  }
  return {0, 1};
}

} // namespace

std::string inWords(const LinearLayout &layout) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (auto [name, dim] : {std::pair("registers ", InDim::Register), std::pair(", lanes ", InDim::Lane),
                           std::pair(", warps ", InDim::Warp)}) {
    Cover cover = coverOf(layout, dim);
    stream << name;
    llvm::interleave(cover.sizes, stream, "x");
    if (cover.sizes.empty())
      stream << "1";
    auto [axis, count] = neighbours(layout);
    if (dim == InDim::Register && count > 1)
      stream << " (" << count << " neighbours along axis " << axis << ")";
    if (cover.times > 1)
      stream << " repeated " << cover.times << " times";
  }
  return text;
}

} // namespace weft::warp
