// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Layout/MmaLayouts.h"
#include "dialects/Warp/Layout/LayoutWalk.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace llvm;
using namespace weft::warp;

// The bits of PTX ISA 9.7.14.5's figures: a lane is 4 groupID + threadID_in_group.
static constexpr FragmentBits accumulator16x8[] = {
    {InDim::Register, 1, 1}, {InDim::Lane, 1, 2}, {InDim::Lane, 0, 3}, {InDim::Register, 0, 1}};
static constexpr FragmentBits a16x8[] = {{InDim::Lane, 1, 2}, {InDim::Lane, 0, 3}, {InDim::Register, 0, 1}};
static constexpr FragmentBits b16x8[] = {{InDim::Lane, 0, 2}, {InDim::Lane, 1, 3}};

// One element of A and of B a lane, of f64.
static constexpr FragmentBits accumulator8x8[] = {{InDim::Register, 1, 1}, {InDim::Lane, 1, 2}, {InDim::Lane, 0, 3}};
static constexpr FragmentBits a8x8[] = {{InDim::Lane, 1, 2}, {InDim::Lane, 0, 3}};

const MmaFragments &weft::warp::fragments8x8() {
  static const MmaFragments fragments{accumulator8x8, a8x8, b16x8};
  return fragments;
}

const MmaFragments &weft::warp::fragments16x8() {
  static const MmaFragments fragments{accumulator16x8, a16x8, b16x8};
  return fragments;
}

const MmaFragments *weft::warp::fragmentsOf(ArrayRef<int32_t> shape) {
  if (shape.size() != 3 || shape[1] != 8)
    return nullptr;
  return shape[0] == 16 ? &fragments16x8() : shape[0] == 8 ? &fragments8x8() : nullptr;
}

LinearLayout weft::warp::mmaAccLayout(ArrayRef<int64_t> shape, WarpGrid warps, const MmaFragments &fragments) {
  constexpr unsigned M = 0, N = 1;
  return LayoutWalk(shape)
      .along(fragments.accumulator)
      .registersTo(N, shape[N] / warps.columns)
      .registersTo(M, shape[M] / warps.rows)
      .along(InDim::Warp, M, Log2_32(warps.rows))
      .along(InDim::Warp, N, Log2_32(warps.columns))
      .take();
}

/// Operand B [K, N] of a batch of products, each warp's by the rows that it has.
static LinearLayout batchedB(ArrayRef<int64_t> shape, WarpGrid warps, unsigned elementBits,
                             const MmaFragments &fragments, unsigned batch) {
  constexpr unsigned N = 1;
  const unsigned apart = std::min(warps.rows, batch), together = batch / apart;
  const int64_t columns = shape[N] / batch;
  LinearLayout one =
      mmaOperandLayout(MmaOperand::B, {shape[0], columns}, {warps.rows / apart, warps.columns}, elementBits, fragments);
  LinearLayout layout(shape);
  auto copy = [&](InDim dim, ArrayRef<uint32_t> bases) {
    for (uint32_t basis : bases)
      layout.append(dim, layout.linearize(one.delinearize(basis)));
  };
  const unsigned repeated = Log2_32(warps.rows / apart);
  copy(InDim::Register, one.bases(InDim::Register));
  layout.appendAxis(InDim::Register, N, Log2_32(together), columns);
  copy(InDim::Lane, one.bases(InDim::Lane));
  copy(InDim::Warp, one.bases(InDim::Warp).take_front(repeated));
  layout.appendAxis(InDim::Warp, N, Log2_32(apart), columns * together);
  copy(InDim::Warp, one.bases(InDim::Warp).drop_front(repeated));
  return layout;
}

LinearLayout weft::warp::mmaOperandLayout(MmaOperand operand, ArrayRef<int64_t> shape, WarpGrid warps,
                                          unsigned elementBits, const MmaFragments &fragments, unsigned batch) {
  if (operand == MmaOperand::B && batch > 1)
    return batchedB(shape, warps, elementBits, fragments, batch);
  // A register of 32 bits holds neighbours along K, one of 64 a single number; lanes walk on along K, then along the
  // other axis.
  const unsigned packed = Log2_32(std::max(1u, 32 / elementBits));
  if (operand == MmaOperand::A) {
    constexpr unsigned M = 0, K = 1;
    return LayoutWalk(shape)
        .along(InDim::Register, K, packed)
        .along(fragments.a)
        .registersTo(K, shape[K])
        .registersTo(M, shape[M] / warps.rows)
        .along(InDim::Warp, M, Log2_32(warps.rows))
        .repeatWarps(Log2_32(warps.columns))
        .take();
  }
  constexpr unsigned K = 0, N = 1;
  return LayoutWalk(shape)
      .along(InDim::Register, K, packed)
      .along(fragments.b)
      .registersTo(K, shape[K])
      .registersTo(N, shape[N] / warps.columns)
      .repeatWarps(Log2_32(warps.rows))
      .along(InDim::Warp, N, Log2_32(warps.columns))
      .take();
}

/// A layout in which `move` has put another place along an axis for each.
static LinearLayout moved(const LinearLayout &layout, unsigned axis, function_ref<int64_t(int64_t)> move) {
  LinearLayout result(layout.shape());
  for (InDim dim : {InDim::Register, InDim::Lane, InDim::Warp, InDim::Block})
    for (uint32_t basis : layout.bases(dim)) {
      SmallVector<int64_t> at = layout.delinearize(basis);
      at[axis] = move(at[axis]);
      result.append(dim, result.linearize(at));
    }
  return result;
}

LinearLayout weft::warp::interleaved(const LinearLayout &layout, unsigned axis) {
  constexpr int64_t inLanes = 7, inRegisters = 8; // bits of a place that fragments have there
  return moved(layout, axis, [](int64_t at) {
    return (at & ~(inLanes | inRegisters)) | (at & inLanes) << 1 | (at & inRegisters) >> 3;
  });
}

LinearLayout weft::warp::byWordsAlongK(const LinearLayout &layout, unsigned axis, unsigned neighbours) {
  // Of a place along K fragments have a bit in a register's halves, two in lanes and the others in registers.
  const unsigned more = Log2_32(neighbours) - 1;
  const int64_t taken = 4 * int64_t(neighbours) - 1, inLanes = 6, inRegisters = (int64_t(1) << more) - 1;
  return moved(layout, axis, [=](int64_t at) {
    return (at & ~taken) | (at & 1) | (at & inLanes) << more | (at >> 3 & inRegisters) << 1;
  });
}
