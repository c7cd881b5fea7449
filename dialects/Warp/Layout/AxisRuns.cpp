// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Layout/AxisRuns.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace weft::warp {

std::optional<AxisRuns> runsAlong(const LinearLayout &layout, unsigned axis) {
  uint64_t ofRegisters = 0, ofOthers = 0;
  for (uint32_t base : layout.bases(InDim::Register)) {
    auto at = layout.delinearize(base);
    int64_t along = at[axis];
    if (along == 0)
      continue;
    at[axis] = 0;
    if (!llvm::isPowerOf2_64(along) || !llvm::all_of(at, [](int64_t each) { return each == 0; }) ||
        (ofRegisters & along))
      return std::nullopt;
    ofRegisters |= along;
  }
  for (InDim dim : {InDim::Lane, InDim::Warp, InDim::Block})
    for (uint32_t base : layout.bases(dim))
      ofOthers |= layout.delinearize(base)[axis];
  if (ofRegisters & ofOthers)
    return std::nullopt;
  AxisRuns runs;
  runs.run = llvm::countr_one(ofRegisters);
  runs.count = llvm::popcount(ofRegisters);
  uint64_t between = ofRegisters >> runs.run << runs.run;
  runs.distance = between ? llvm::countr_zero(between) : runs.run;
  if (between && !llvm::isShiftedMask_64(between))
    return std::nullopt;
  return runs;
}

LinearLayout rowsAlong(const LinearLayout &layout, unsigned axis) {
  llvm::SmallVector<int64_t> shape(layout.shape());
  shape[axis] = 1;
  LinearLayout rows(shape);
  for (InDim dim : {InDim::Register, InDim::Lane, InDim::Warp, InDim::Block})
    for (uint32_t base : layout.bases(dim)) {
      auto at = layout.delinearize(base);
      at[axis] = 0;
      rows.append(dim, llvm::ArrayRef<int64_t>(at));
    }
  return rows;
}

} // namespace weft::warp
