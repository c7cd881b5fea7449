// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/TileToWarp/ChooseLayouts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

using llvm::ArrayRef;
using llvm::Log2_64;
using llvm::SmallVector;

using weft::warp::InDim;
using weft::warp::LinearLayout;
using weft::warp::WarpGrid;

namespace weft {
namespace {
/// What a cache fetches from at once.
constexpr int64_t lineBytes = 128;

/// Hands out the bits of a tensor's axes, each once, lowest first.
class AxisBits {
public:
  explicit AxisBits(ArrayRef<int64_t> shape) : layout(shape), used(shape.size(), 1) {}

  /// Up to `count` more bits of `dim` along `axis`; gives how many of them the axis still had.
  unsigned take(InDim dim, unsigned axis, unsigned count) {
    unsigned taken = std::min<unsigned>(count, left(axis));
    layout.appendAxis(dim, axis, taken, used[axis]);
    used[axis] <<= taken;
    return taken;
  }
  /// Bits of `dim` along the axes in turn, exactly `count`: those that no axis has left repeat the tensor.
  void fill(InDim dim, ArrayRef<unsigned> axes, unsigned count) {
    for (unsigned axis : axes)
      count -= take(dim, axis, count);
    for (; count > 0; --count)
      layout.append(dim, uint32_t(0));
  }
  /// Registers for all that is left.
  LinearLayout finish(ArrayRef<unsigned> axes) {
    for (unsigned axis : axes)
      take(InDim::Register, axis, left(axis));
    return layout;
  }
  unsigned left(unsigned axis) const { return Log2_64(layout.shape()[axis] / used[axis]); }

private:
  LinearLayout layout;
  SmallVector<int64_t> used;
};

/// Row-major index of one step along `axis`.
uint32_t strideOf(ArrayRef<int64_t> shape, unsigned axis) {
  uint32_t stride = 1;
  for (int64_t size : shape.drop_front(axis + 1))
    stride *= size;
  return stride;
}

/// The widest access along `axis` that the facts allow.
int64_t widthAllowed(const Access &access, unsigned axis) {
  int64_t width = std::min(access.mostElements, access.pointer.contiguity[axis]);
  if (access.mask)
    width = std::min(width, access.mask->constancy[axis]);
  while (width > 1 && access.pointer.divisibilityAt(axis, width, access.elementBytes) < width * access.elementBytes)
    width /= 2;
  return width;
}

/// The axis along which the registers count up, and how many of them do.
struct RegisterRun {
  unsigned axis;
  int64_t length;
};
RegisterRun registerRun(const LinearLayout &layout) {
  ArrayRef<uint32_t> bases = layout.bases(InDim::Register);
  for (unsigned axis = 0; axis < layout.rank(); ++axis) {
    uint32_t stride = strideOf(layout.shape(), axis);
    unsigned bits = 0;
    while (bits < bases.size() && (int64_t(1) << bits) < layout.shape()[axis] && bases[bits] == stride << bits)
      ++bits;
    if (bits > 0)
      return {axis, int64_t(1) << bits};
  }
  return {0, 1};
}

} // namespace

SmallVector<unsigned> fastestFirst(const AxisInfo &pointer) {
  SmallVector<unsigned> order(pointer.rank());
  std::iota(order.rbegin(), order.rend(), 0);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::pair(pointer.contiguity[a], a) > std::pair(pointer.contiguity[b], b);
  });
  return order;
}

LinearLayout blockedLayout(ArrayRef<int64_t> shape, ArrayRef<unsigned> order, int64_t vector, int warps,
                           unsigned lanesAlong, const llvm::SmallBitVector &summed) {
  AxisBits bits(shape);
  if (!order.empty())
    bits.take(InDim::Register, order.front(), Log2_64(vector));
  unsigned lanes = 5;
  if (!order.empty() && lanesAlong < 32) {
    SmallVector<unsigned> others(order.drop_front());
    lanes -= bits.take(InDim::Lane, order.front(), Log2_64(lanesAlong));
    for (unsigned axis : others)
      lanes -= bits.take(InDim::Lane, axis, lanes);
  }
  bits.fill(InDim::Lane, order, lanes);
  SmallVector<unsigned> ofWarps;
  for (bool last : {false, true})
    llvm::copy_if(llvm::reverse(order), std::back_inserter(ofWarps),
                  [&](unsigned axis) { return (!summed.empty() && summed.test(axis)) == last; });
  bits.fill(InDim::Warp, ofWarps, Log2_64(warps));
  return bits.finish(order);
}

LinearLayout defaultLayout(ArrayRef<int64_t> shape, int warps) {
  SmallVector<unsigned> order(shape.size());
  std::iota(order.rbegin(), order.rend(), 0);
  return blockedLayout(shape, order, 1, warps);
}

/// How many bytes lie between neighbours along an axis, as far as is known and more than none.
static int64_t bytesBetween(const Access &access, unsigned axis) {
  const AxisStep step = access.steps.empty() ? AxisStep() : access.steps[axis];
  bool isKnown = step.run > 1 && step.by != 0;
  return isKnown ? std::abs(step.by) * access.elementBytes : std::numeric_limits<int64_t>::max();
}

/// The axes in the order in which lanes follow them. Where the fastest one counts up in runs that end in a sector or has
/// no neighbours at all, those go first whose neighbours lie nearest.
static SmallVector<unsigned> nearestFirst(const Access &access, const TargetInfo &target) {
  SmallVector<unsigned> order = fastestFirst(access.pointer);
  if (order.size() < 2)
    return order;
  const int64_t run = access.pointer.contiguity[order.front()];
  if (run < access.shape[order.front()] && run * access.elementBytes < target.sectorBytes)
    std::sort(order.begin() + (run > 1), order.end(), [&](unsigned a, unsigned b) {
      auto key = [&](unsigned axis) {
        return std::tuple(bytesBetween(access, axis), -access.pointer.contiguity[axis], -int64_t(axis));
      };
      return key(a) < key(b);
    });
  return order;
}

LinearLayout coalescedLayout(const Access &access, int warps, const TargetInfo &target,
                             const llvm::SmallBitVector &summed) {
  SmallVector<unsigned> order = nearestFirst(access, target);
  int64_t elements = 1;
  for (int64_t size : access.shape)
    elements *= size;
  // A tensor too small to give every lane a full vector is better spread over all lanes.
  int64_t fairShare = std::max<int64_t>(1, elements / (int64_t(target.warpSize) * warps));
  int64_t vector = order.empty() ? 1 : std::min(widthAllowed(access, order.front()), fairShare);
  if (order.size() != 2 || summed.empty() || !summed.test(order.front())) {
    // Behind a run that ends in a sector, lanes go on where the sector does.
    int64_t run = order.empty() ? 1 : access.pointer.contiguity[order.front()];
    bool goesOn = order.size() > 1 && run > 1 && run < access.shape[order.front()] &&
                  bytesBetween(access, order[1]) < target.sectorBytes;
    unsigned along = goesOn ? std::max<int64_t>(1, run / vector) : target.warpSize;
    return blockedLayout(access.shape, order, vector, warps, along, summed);
  }
  // Of what is summed along its rows a lane takes more, as long as a row's lanes fill lines of memory and there are
  // rows for all.
  int64_t along = std::max<int64_t>(1, lineBytes / (vector * access.elementBytes));
  int64_t rows = elements / access.shape[order.front()];
  while (along < target.warpSize && rows * along < int64_t(target.warpSize) * warps)
    along *= 2;
  return blockedLayout(access.shape, order, vector, warps, along, summed);
}

int64_t accessWidth(const LinearLayout &layout, const Access &access) {
  RegisterRun run = registerRun(layout);
  return run.length == 1 ? 1 : std::min(run.length, widthAllowed(access, run.axis));
}

Access asWords(Access access) {
  constexpr int64_t wordBytes = 4;
  access.mask = std::nullopt;
  access.mostElements = std::max<int64_t>(1, wordBytes / access.elementBytes);
  return access;
}

int64_t bytesPerRun(const LinearLayout &layout, const Access &access) {
  SmallVector<unsigned> order = fastestFirst(access.pointer);
  if (order.empty())
    return access.elementBytes;
  int64_t width = accessWidth(layout, access);
  uint32_t stride = strideOf(layout.shape(), order.front());
  int64_t run = registerRun(layout).axis == order.front() ? width : 1;
  while (run < layout.shape()[order.front()] && llvm::is_contained(layout.bases(InDim::Lane), stride * run))
    run *= 2;
  return std::min(run, access.pointer.contiguity[order.front()]) * access.elementBytes;
}

int64_t sectorsTouched(const LinearLayout &layout, const Access &access, const TargetInfo &target) {
  const unsigned fastest = fastestFirst(access.pointer).front();
  const int64_t bytes = access.elementBytes * accessWidth(layout, access);
  std::set<SmallVector<int64_t, 4>> touched;
  for (unsigned lane = 0; lane < layout.size(InDim::Lane); ++lane) {
    SmallVector<int64_t, 4> place = layout.delinearize(layout.apply(InDim::Lane, lane));
    int64_t offset = 0; // in elements, within what `place` says
    for (unsigned axis = 0; axis < layout.rank(); ++axis) {
      int64_t at = place[axis];
      bool counts = axis == fastest && access.pointer.contiguity[axis] > 1;
      const AxisStep step = access.steps.empty() ? AxisStep() : access.steps[axis];
      int64_t run = counts ? access.pointer.contiguity[axis] : access.pointer.constancy[axis];
      if (step.run > run) {
        run = step.run;
        offset += at % run * step.by;
      } else if (counts) {
        offset += at % run;
      }
      place[axis] = at / run;
    }
    for (int64_t byte = 0; byte < bytes; byte += std::min<int64_t>(bytes, target.sectorBytes)) {
      place.push_back(llvm::divideFloorSigned(offset * access.elementBytes + byte, target.sectorBytes));
      touched.insert(place);
      place.pop_back();
    }
  }
  return touched.size();
}

int64_t registersThatDiffer(const LinearLayout &layout, ArrayRef<int64_t> equal, int64_t width) {
  std::set<SmallVector<int64_t, 4>> found;
  for (unsigned index = 0; index < layout.size(InDim::Register); index += width) {
    SmallVector<int64_t, 4> place = layout.delinearize(layout.apply(InDim::Register, index));
    for (unsigned axis = 0; axis < equal.size(); ++axis)
      place[axis] /= equal[axis];
    found.insert(place);
  }
  return found.size();
}

int64_t instructionsOf(const LinearLayout &layout, const Access &access, ArrayRef<int64_t> equal) {
  return registersThatDiffer(layout, equal, accessWidth(layout, access));
}

std::optional<LinearLayout> turnedLayout(const LinearLayout &from, const Access &access, int warps,
                                         const TargetInfo &target) {
  if (access.shape.size() != 2 || access.elementBytes != 2)
    return std::nullopt;
  SmallVector<unsigned> order = fastestFirst(access.pointer);
  RegisterRun run = registerRun(from);
  const int64_t vector = target.vectorBytes / access.elementBytes;
  if (run.axis == order.front() || run.length < vector || widthAllowed(access, order.front()) < vector)
    return std::nullopt;
  constexpr int64_t along = 4, beside = 8;
  if (access.shape[order[0]] < along * vector || access.shape[order[1]] < beside)
    return std::nullopt;
  LinearLayout layout = blockedLayout(access.shape, order, vector, warps, along);
  bool fills = layout.isInjective() && bytesPerRun(layout, access) >= target.sectorBytes;
  return fills ? std::optional(layout) : std::nullopt;
}

std::optional<LinearLayout> turnedBlocks(const Access &access, unsigned fast, int warps, const TargetInfo &target) {
  assert(access.shape.size() == 2 && "a matrix has another axis");
  const unsigned other = 1 - fast, vectorBits = Log2_64(target.vectorBytes / access.elementBytes);
  constexpr unsigned lanesOther = 2, lanesFast = 3;
  const unsigned fastBits = Log2_64(access.shape[fast]), otherBits = Log2_64(access.shape[other]);
  const unsigned warpBits = Log2_64(warps), needed = 2 * vectorBits + lanesOther + lanesFast + warpBits;
  if (fastBits < vectorBits + lanesFast || otherBits < vectorBits + lanesOther || fastBits + otherBits < needed)
    return std::nullopt;
  AxisBits bits(access.shape);
  for (unsigned axis : {fast, other})
    bits.take(InDim::Register, axis, vectorBits);
  bits.take(InDim::Lane, other, lanesOther);
  bits.take(InDim::Lane, fast, lanesFast);
  bits.fill(InDim::Warp, {fast, other}, warpBits);
  return bits.finish({fast, other});
}

LinearLayout sharedOutLayout(const LinearLayout &layout, int64_t width) {
  ArrayRef<uint32_t> left = layout.bases(InDim::Register);
  const unsigned kept = std::min<unsigned>(Log2_64(width), left.size());
  LinearLayout shared(layout.shape());
  for (uint32_t basis : left.take_front(kept))
    shared.append(InDim::Register, basis);
  left = left.drop_front(kept);
  for (uint32_t basis : layout.bases(InDim::Lane)) {
    bool takes = basis == 0 && !left.empty();
    shared.append(InDim::Lane, takes ? left.front() : basis);
    left = left.drop_front(takes ? 1 : 0);
  }
  for (uint32_t basis : left)
    shared.append(InDim::Register, basis);
  for (InDim dim : {InDim::Warp, InDim::Block})
    for (uint32_t basis : layout.bases(dim))
      shared.append(dim, basis);
  return shared;
}

WarpGrid warpGrid(int64_t M, int64_t N, std::array<int32_t, 3> instruction, int warps, bool chained,
                  int64_t leastRows) {
  int64_t mostRows = std::max<int64_t>(1, M / instruction[0]), mostColumns = std::max<int64_t>(1, N / instruction[1]);
  auto gridOf = [&](int64_t rows) { return WarpGrid{unsigned(rows), unsigned(warps / rows)}; };
  if (chained)
    return gridOf(std::min<int64_t>(warps, mostRows));
  WarpGrid best = gridOf(warps);
  int64_t fewest = std::numeric_limits<int64_t>::max();
  // Warps of several products are told apart by rows, of which none is idle then.
  for (int64_t rows = leastRows > 1 ? std::min<int64_t>(warps, mostRows) : warps; rows >= leastRows; rows /= 2) {
    WarpGrid grid = gridOf(rows);
    // What a warp reads of A and of B for one step along K; a grid larger than the product is idle warps.
    int64_t read = M / std::min<int64_t>(grid.rows, mostRows) + N / std::min<int64_t>(grid.columns, mostColumns);
    if (grid.rows > mostRows || grid.columns > mostColumns)
      read += M + N;
    if (read < fewest) {
      fewest = read;
      best = grid;
    }
  }
  return best;
}

/// The layout with the last registers' elements in warps that would repeat those of others.
static LinearLayout withoutRepeatedWarps(const LinearLayout &layout) {
  ArrayRef<uint32_t> left = layout.bases(InDim::Register), warps = layout.bases(InDim::Warp);
  const size_t moved = std::min<size_t>(llvm::count(warps, 0u), left.size() - 1);
  LinearLayout shared(layout.shape());
  for (uint32_t basis : left.drop_back(moved))
    shared.append(InDim::Register, basis);
  for (uint32_t basis : layout.bases(InDim::Lane))
    shared.append(InDim::Lane, basis);
  left = left.take_back(moved);
  for (uint32_t basis : warps) {
    bool takes = basis == 0 && !left.empty();
    shared.append(InDim::Warp, takes ? left.front() : basis);
    left = left.drop_front(takes ? 1 : 0);
  }
  return shared;
}

LinearLayout shiftedLayout(const LinearLayout &source, unsigned axis) {
  constexpr std::array<int32_t, 3> instruction{16, 8, 16};
  ArrayRef<int64_t> shape = source.shape();
  const unsigned last = source.rank() - 1;
  if (axis == last || !source.bases(InDim::Block).empty())
    return source;
  const int64_t columns = shape[last], rows = source.numElements() / columns;
  RegisterRun run = registerRun(source);
  if (rows < instruction[0] || columns == 1 || run.axis == last || run.length == 1)
    return source;
  const int warps = source.size(InDim::Warp);
  if (columns < instruction[1]) {
    SmallVector<unsigned> order(shape.size());
    std::iota(order.rbegin(), order.rend(), 0);
    return blockedLayout(shape, order, std::min<int64_t>(columns, source.size(InDim::Register)), warps);
  }
  LinearLayout sums =
      warp::mmaAccLayout({rows, columns}, warpGrid(rows, columns, instruction, warps, false), warp::fragments16x8());
  return withoutRepeatedWarps(sums).reshape(shape);
}

LinearLayout fmaLayout(ArrayRef<int64_t> shape, int warps) {
  constexpr unsigned M = 0, N = 1;
  AxisBits bits(shape);
  // Four neighbours are read together, as long as each thread has that many elements of its own.
  unsigned lanes = 5, ofAll = Log2_64(shape[M] * shape[N]), ofThreads = lanes + Log2_64(warps);
  int own = std::max(int(ofAll) - int(ofThreads), 0);
  bits.take(InDim::Register, N, std::min(own, 2));
  bits.take(InDim::Register, M, std::clamp(own - 2, 0, 2));
  lanes -= bits.take(InDim::Lane, M, 3);
  lanes -= bits.take(InDim::Lane, N, lanes);
  bits.fill(InDim::Lane, {M, N}, lanes);
  WarpGrid grid = warpGrid(shape[M], shape[N], {8, 16, 1}, warps, false);
  unsigned warpBits = Log2_64(warps);
  unsigned alongM = std::min<unsigned>(Log2_64(grid.rows), bits.left(M));
  warpBits -= bits.take(InDim::Warp, M, alongM);
  bits.fill(InDim::Warp, {N, M}, warpBits);
  return bits.finish({N, M});
}

LinearLayout fmaOperandLayout(const LinearLayout &accumulator, unsigned operand, int64_t K) {
  ArrayRef<int64_t> shape = accumulator.shape();
  bool isA = operand == 0;
  LinearLayout layout(isA ? ArrayRef<int64_t>{shape[0], K} : ArrayRef<int64_t>{K, shape[1]});
  unsigned kAxis = isA ? 1 : 0;
  auto project = [&](uint32_t basis) -> uint32_t {
    llvm::SmallVector<int64_t, 4> at = accumulator.delinearize(basis);
    at[kAxis] = 0;
    return layout.linearize(at);
  };
  auto ownRegisters = [&] {
    for (uint32_t basis : accumulator.bases(InDim::Register))
      if (uint32_t element = project(basis))
        layout.append(InDim::Register, element);
  };
  // Neighbours in memory come first so that they can be read together: along K for A, along N for B.
  if (!isA)
    ownRegisters();
  layout.appendAxis(InDim::Register, kAxis, Log2_64(K), 1);
  if (isA)
    ownRegisters();
  for (InDim dim : {InDim::Lane, InDim::Warp})
    for (uint32_t basis : accumulator.bases(dim))
      layout.append(dim, project(basis));
  return layout;
}

} // namespace weft
