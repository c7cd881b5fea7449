// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Between which bounds the integers lie that ops of the tile dialect make: places in the grid, and elements that are
// only moved.

#include "dialects/Tile/IR/TileOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include <limits>

using namespace mlir;
using namespace weft::tile;

/// The most programs along an axis of a grid (CUDA C++ Programming Guide, compute capabilities).
static int64_t mostPrograms(Axis axis) { return axis == Axis::X ? std::numeric_limits<int32_t>::max() : 65535; }

static ConstantIntRanges between(int64_t lowest, int64_t highest) {
  return ConstantIntRanges::fromSigned(APInt(32, lowest, /*isSigned=*/true), APInt(32, highest, /*isSigned=*/true));
}

void ProgramIdOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  set(getResult(), between(0, mostPrograms(getAxis()) - 1));
}

void NumProgramsOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  set(getResult(), between(1, mostPrograms(getAxis())));
}

void MakeRangeOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  // The end is an i32 too, so that it may have wrapped.
  int64_t start = static_cast<int32_t>(getStart()), size = cast<RankedTensorType>(getType()).getDimSize(0);
  set(getResult(), between(start, start + size - 1));
}

void JoinOp::inferResultRanges(ArrayRef<ConstantIntRanges> ranges, SetIntRangeFn set) {
  set(getResult(), ranges[0].rangeUnion(ranges[1]));
}

void SplitOp::inferResultRanges(ArrayRef<ConstantIntRanges> ranges, SetIntRangeFn set) {
  for (Value half : getResults())
    set(half, ranges.front());
}

// Elements of the first operand are moved or repeated.
void SplatOp::inferResultRanges(ArrayRef<ConstantIntRanges> ranges, SetIntRangeFn set) {
  set(getResult(), ranges.front());
}
void ExpandDimsOp::inferResultRanges(ArrayRef<ConstantIntRanges> ranges, SetIntRangeFn set) {
  set(getResult(), ranges.front());
}
void BroadcastOp::inferResultRanges(ArrayRef<ConstantIntRanges> ranges, SetIntRangeFn set) {
  set(getResult(), ranges.front());
}
void ReshapeOp::inferResultRanges(ArrayRef<ConstantIntRanges> ranges, SetIntRangeFn set) {
  set(getResult(), ranges.front());
}
void PermuteOp::inferResultRanges(ArrayRef<ConstantIntRanges> ranges, SetIntRangeFn set) {
  set(getResult(), ranges.front());
}
void HistogramOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  set(getResult(), between(0, cast<RankedTensorType>(getValues().getType()).getNumElements()));
}
void GatherOp::inferResultRanges(ArrayRef<ConstantIntRanges> ranges, SetIntRangeFn set) {
  set(getResult(), ranges.front());
}
