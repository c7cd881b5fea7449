// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Where a thread's register lies in a tensor.
#pragma once

#include "dialects/Warp/Layout/LinearLayout.h"

namespace weft::warp::test {

using Coordinates = llvm::SmallVector<int64_t, 4>;

inline Coordinates at(const LinearLayout &layout, uint32_t reg, uint32_t lane, uint32_t warp = 0) {
  Place place;
  place[InDim::Register] = reg;
  place[InDim::Lane] = lane;
  place[InDim::Warp] = warp;
  return layout.delinearize(layout.apply(place));
}

} // namespace weft::warp::test
