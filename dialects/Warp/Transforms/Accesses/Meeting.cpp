// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Meeting.h. Two addresses differ by a constant, by differences of coordinates, each in (-size, size), by multiples of
// what loops move pointers by, and by multiples of strides that are no constants:
//
//   %p = x + 1024·i + at[0..1024)                  difference of two iterations: 1024·k + (a' - a), k > 0: never 0
//   %p = x + 64·row + at[0..32), %q = %p + 32      difference: 32 + 64·(r' - r) + (a' - a): never 0
//   %p = x + w·row + at[0..32), at < w             difference: w·(r' - r) + (a' - a), |a' - a| < w: 0 for r' = r alone
//   %p = x + w·i + at[0..64)                       difference of two iterations: w·k + (a' - a): never 0 if |w| >= 64
//   %p = x + w·i + at[0..64), %q = %p + w          difference: w + (a' - a): never 0 if |w| >= 64
//   %p = x + w·row + 32·i + at[0..32), 32·i + at < n   difference: w·(r' - r) + (c' - c), |c' - c| < n: 0 for r' = r and
//                                                  c' = c alone if |w| >= n
//   %p = x + 96·i + at[0..128), at < 96            difference of two iterations: 96·k + (a' - a), |a' - a| < 96: never 0
//
// Under a mask that says of a column that it is less than the stride of rows, two numbers are 0 if the address is: the rows'
// difference and the columns'.
#include "dialects/Warp/Transforms/Accesses/Meeting.h"

#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Transforms/Accesses/AffineAddress.h"
#include "dialects/Warp/Transforms/Copies/IndexSums.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <numeric>

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
/// Something that two accesses may differ in: a coordinate, or how often a loop has run. It counts in each of several sums
/// by a coefficient.
struct Difference {
  SmallVector<int64_t, 2> coefficients;
  std::optional<int64_t> most; // unknown: any number
  bool isOfElement;
};

/// Sums of differences, each of which is 0 where two accesses touch the same address.
struct Equations {
  SmallVector<int64_t, 2> constants;
  SmallVector<Difference> differences;

  size_t size() const { return constants.size(); }
  /// The most that known differences from `first` on add to a sum.
  int64_t most(size_t sum, size_t first = 0) const {
    int64_t total = 0;
    for (const Difference &each : ArrayRef(differences).drop_front(first))
      total += std::abs(each.coefficients[sum]) * each.most.value_or(0);
    return total;
  }
};

/// Where all sums are 0, by trial, of known differences: with the same coordinates, and with others.
class Zeros {
public:
  explicit Zeros(const Equations &equations) : equations(equations) {}
  Meeting find() {
    visit(0, equations.constants, /*moved=*/false);
    return budget == 0 || foundMoved ? Meeting::Unknown : foundStill ? Meeting::SameElement : Meeting::Nowhere;
  }

private:
  void visit(size_t at, ArrayRef<int64_t> sums, bool moved) {
    if (budget == 0 || foundMoved)
      return;
    --budget;
    if (at == equations.differences.size()) {
      (moved ? foundMoved : foundStill) |= llvm::all_of(sums, [](int64_t sum) { return sum == 0; });
      return;
    }
    const Difference &each = equations.differences[at];
    int64_t low = -*each.most, high = *each.most;
    for (auto [i, sum] : llvm::enumerate(sums)) { // |sum + coefficient · x| <= rest
      int64_t coefficient = each.coefficients[i], rest = equations.most(i, at + 1);
      if (coefficient == 0 && std::abs(sum) > rest)
        return;
      if (coefficient == 0)
        continue;
      int64_t bounds[] = {-rest - sum, rest - sum};
      if (coefficient < 0)
        std::swap(bounds[0], bounds[1]);
      low = std::max(low, llvm::divideCeilSigned(bounds[0], coefficient));
      high = std::min(high, llvm::divideFloorSigned(bounds[1], coefficient));
    }
    for (int64_t x = low; x <= high && budget > 0 && !foundMoved; ++x) {
      SmallVector<int64_t, 2> next(sums);
      for (auto [sum, coefficient] : llvm::zip_equal(next, each.coefficients))
        sum += coefficient * x;
      visit(at + 1, next, moved || (each.isOfElement && x != 0));
    }
  }

  const Equations &equations;
  unsigned budget = 256;
  bool foundStill = false, foundMoved = false;
};

/// How many strides lie between two accesses that count rows alike: `apart`, and any multiple of `step` more.
struct RowsApart {
  int64_t apart, step;

  bool mayBeNone() const { return step == 0 ? apart == 0 : apart % step == 0; }
  /// The fewest, other than none; 0 where there are never any.
  int64_t least() const { return std::gcd(apart, step); }
};
} // namespace

/// Takes unknown differences out: what they add to a sum is a multiple of something, so that it is nothing where all else is
/// less, and then the only one among them is 0 itself. Sums that they may make anything of go.
static Equations settled(Equations equations, ArrayRef<int64_t> multiples) {
  llvm::SmallBitVector isSettled(equations.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < equations.size(); ++i) {
      int64_t stride = multiples[i];
      SmallVector<Difference *, 2> unknown;
      for (Difference &each : equations.differences)
        if (!each.most && each.coefficients[i] != 0) {
          stride = std::gcd(stride, each.coefficients[i]);
          unknown.push_back(&each);
        }
      isSettled[i] = stride == 0 || std::abs(equations.constants[i]) + equations.most(i) < stride;
      if (isSettled[i] && unknown.size() == 1 && multiples[i] == 0) {
        unknown.front()->most = 0;
        changed = true;
      }
    }
  }
  Equations left;
  for (unsigned i : isSettled.set_bits())
    left.constants.push_back(equations.constants[i]);
  for (const Difference &each : equations.differences) {
    SmallVector<int64_t, 2> coefficients;
    for (unsigned i : isSettled.set_bits())
      coefficients.push_back(each.most ? each.coefficients[i] : 0);
    left.differences.push_back({coefficients, each.most.value_or(0), each.isOfElement});
  }
  return left;
}

static bool isOfOutside(const AffineSum &sum) {
  return llvm::all_of(sum.symbols, [](const auto &term) { return isOutsideOfLoops(term.first); });
}

static std::optional<int64_t> tripsOf(AffineSum::Count count) {
  auto loop = dyn_cast<scf::ForOp>(cast<BlockArgument>(count.first).getOwner()->getParentOp());
  const bool countsIterations = count.second == static_cast<unsigned>(CountedBy::Iterations);
  std::optional<APInt> trips = loop && countsIterations ? loop.getStaticTripCount() : std::nullopt;
  return trips && trips->getActiveBits() < 31 ? std::optional<int64_t>(trips->getZExtValue()) : std::nullopt;
}

/// Whether what an index is summed of, but for its constant, is never less than 0.
static bool countsUp(const AffineSum &index) {
  auto isIndex = [](const auto &term) { return term.second >= 0 && isNeverNegative(term.first); };
  auto isUp = [](const auto &term) { return term.second >= 0; };
  return llvm::all_of(index.symbols, isIndex) && llvm::all_of(index.iterations, isUp) &&
         llvm::all_of(index.axes, [](int64_t x) { return x >= 0; });
}

static SmallVector<int64_t> shapeOf(Value pointer, size_t rank) {
  auto type = dyn_cast<RankedTensorType>(pointer.getType());
  return type ? SmallVector<int64_t>(type.getShape()) : SmallVector<int64_t>(rank, 1);
}

/// How many elements are accessed along each axis: no more than constant bounds in the mask leave.
static SmallVector<int64_t> sizesOf(const Pointers &access, size_t rank) {
  SmallVector<int64_t> sizes = shapeOf(access.pointer, rank);
  for (const IndexBound &bound : boundsOf(access.mask)) {
    if (bound.end || !countsUp(bound.index))
      continue;
    const int64_t last = std::max<int64_t>(bound.constant - 1 - bound.index.constant, 0);
    for (auto [axis, size] : llvm::enumerate(sizes))
      if (int64_t step = bound.index.along(axis))
        size = std::min(size, last / step + 1);
  }
  return sizes;
}

/// How many elements are accessed along each axis by one of two accesses of the same shape.
static SmallVector<int64_t> sizesOf(const Pointers &one, const Pointers &another, size_t rank) {
  SmallVector<int64_t> sizes = sizesOf(one, rank);
  for (auto [size, other] : llvm::zip_equal(sizes, sizesOf(another, rank)))
    size = std::max(size, other);
  return sizes;
}

template <typename Terms> static bool isSame(const Terms &a, const Terms &b) {
  return a.size() == b.size() && llvm::all_of(a, [&](const auto &term) {
           auto found = b.find(term.first);
           return found != b.end() && found->second == term.second;
         });
}

/// Whether two sums count up alike, from element to element and from iteration to iteration.
static bool haveSameSlope(const AffineSum &x, const AffineSum &y, size_t rank) {
  return isSame(x.iterations, y.iterations) &&
         llvm::all_of(llvm::seq<size_t>(0, rank), [&](size_t axis) { return x.along(axis) == y.along(axis); });
}

/// Whether two sums differ by a constant for the same element in the same iteration.
static bool isAlike(const AffineSum &x, const AffineSum &y, size_t rank) {
  return isSame(x.symbols, y.symbols) && haveSameSlope(x, y, rank);
}

/// What is 0, for accesses whose sums are alike.
static Equations equationsOf(ArrayRef<std::pair<const AffineSum *, const AffineSum *>> sums, ArrayRef<int64_t> sizes,
                             bool sameIteration) {
  Equations equations;
  auto add = [&](auto coefficientOf, std::optional<int64_t> most, bool isOfElement) {
    if (most == 0)
      return;
    SmallVector<int64_t, 2> coefficients;
    for (auto [x, y] : sums)
      coefficients.push_back(coefficientOf(*x));
    equations.differences.push_back({coefficients, most, isOfElement});
  };
  llvm::SmallSetVector<AffineSum::Count, 4> loops;
  for (auto [x, y] : sums) {
    equations.constants.push_back(y->constant - x->constant);
    for (auto &[loop, coefficient] : x->iterations)
      loops.insert(loop);
  }
  for (auto [axis, size] : llvm::enumerate(sizes))
    add([axis = axis](const AffineSum &sum) { return sum.along(axis); }, size - 1, true);
  if (!sameIteration)
    for (AffineSum::Count loop : loops) {
      std::optional<int64_t> trips = tripsOf(loop);
      add([&](const AffineSum &sum) { return sum.iterations.lookup(loop); },
          trips ? std::optional(std::max<int64_t>(*trips - 1, 0)) : std::nullopt, false);
    }
  llvm::sort(equations.differences, [](const Difference &a, const Difference &b) { // large ones leave few choices
    auto largest = [](const Difference &each) {
      int64_t found = 0;
      for (int64_t coefficient : each.coefficients)
        found = std::max(found, std::abs(coefficient));
      return found;
    };
    return largest(a) > largest(b);
  });
  return equations;
}

/// What a stride is a multiple of.
static int64_t divisorOf(Value stride) {
  std::optional<AffineAddress> sum = affineAddressOf(stride);
  if (!sum || !sum->strided.empty() || !sum->isFixed())
    return 1;
  int64_t divisor = std::abs(sum->constant);
  for (auto &[symbol, coefficient] : sum->symbols)
    divisor = std::gcd(divisor, coefficient);
  return divisor;
}

static int64_t divisorOfStrides(const AffineAddress &x, const AffineAddress &y) {
  int64_t divisor = 0;
  for (const AffineAddress *sum : {&x, &y})
    for (auto &[stride, counted] : sum->strided)
      divisor = std::gcd(divisor, divisorOf(stride));
  return divisor;
}

/// The part of an address that is not counted in a stride, but for what is the same in all elements and iterations, where a
/// mask says that it is less than `end`, if that is given, or any scalar, and it is no less than 0.
static std::optional<IndexBound> columnOf(const AffineAddress &address, Value end, Value mask, size_t rank) {
  for (const IndexBound &bound : boundsOf(mask)) {
    const AffineSum &column = bound.index;
    bool isNeverLess = column.constant >= 0 && countsUp(column);
    if (bound.end && (!end || bound.end == end) && haveSameSlope(column, address, rank) && isNeverLess)
      return bound;
  }
  return std::nullopt;
}

/// What two accesses, whose parts that are not counted in a stride are alike, have these less apart than: `end`, if that is
/// given, or any scalar from outside of loops; null where no mask says so.
static Value endOfColumns(const AffineAddress &x, const AffineAddress &y, Value end, const Pointers &earlier,
                          const Pointers &later, size_t rank) {
  std::optional<IndexBound> a = columnOf(x, end, earlier.mask, rank);
  std::optional<IndexBound> b = a ? columnOf(y, a->end, later.mask, rank) : std::nullopt;
  const bool isInBoth = b && isOutsideOfLoops(a->end) && isOfOutside(a->index) &&
                        isSame(a->index.symbols, b->index.symbols) &&
                        b->index.constant - a->index.constant == y.constant - x.constant;
  return isInBoth ? a->end : Value();
}

/// Whether what two sums count in strides is the same for all elements in one iteration.
static bool haveSameStrides(const AffineAddress &x, const AffineAddress &y, size_t rank) {
  return x.strided.size() == y.strided.size() && llvm::all_of(x.strided, [&](const auto &term) {
           auto found = y.strided.find(term.first);
           return found != y.strided.end() && isAlike(term.second, found->second, rank) &&
                  term.second.constant == found->second.constant &&
                  llvm::all_of(term.second.axes, [](int64_t coefficient) { return coefficient == 0; });
         });
}

/// Where one access meets another of the same tensor type, whose sums are alike.
static Meeting meetingOfAlike(const AffineAddress &x, const AffineAddress &y, const Pointers &earlier,
                              const Pointers &later, bool sameIteration) {
  SmallVector<int64_t> sizes = sizesOf(earlier, later, x.axes.size());
  SmallVector<std::pair<const AffineSum *, const AffineSum *>, 2> sums = {{&x, &y}};
  const bool countsNone = sameIteration && haveSameStrides(x, y, sizes.size());
  SmallVector<int64_t, 2> multiples = {countsNone ? 0 : divisorOfStrides(x, y)};
  if (x.strided.size() == 1 && y.strided.size() == 1) {
    auto &[stride, rows] = *x.strided.begin();
    auto &[another, others] = *y.strided.begin();
    if (stride == another && isAlike(rows, others, sizes.size()) && (sameIteration || isOfOutside(rows)) &&
        endOfColumns(x, y, stride, earlier, later, sizes.size())) {
      sums.push_back({&rows, &others});
      multiples = {0, 0};
    }
  }
  Equations left = settled(equationsOf(sums, sizes, sameIteration), multiples);
  return left.size() == 0 ? Meeting::Unknown : Zeros(left).find();
}

/// Whether two accesses never meet, of whatever elements they are: no multiple of what strides and loops are multiples of
/// lies between the least and the greatest difference.
static bool isApart(const AffineAddress &x, const AffineAddress &y, const Pointers &earlier, const Pointers &later,
                    bool sameIteration) {
  int64_t least = y.constant - x.constant, greatest = least, multiple = divisorOfStrides(x, y);
  auto add = [&](int64_t low, int64_t high) {
    least += std::min<int64_t>(low, 0);
    greatest += std::max<int64_t>(high, 0);
  };
  auto addAxes = [&](const AffineSum &sum, ArrayRef<int64_t> sizes, int64_t sign) {
    for (auto [axis, coefficient] : llvm::enumerate(sum.axes)) {
      int64_t end = sign * coefficient * ((axis < sizes.size() ? sizes[axis] : 1) - 1);
      add(end, end);
    }
  };
  addAxes(x, sizesOf(earlier, x.axes.size()), -1);
  addAxes(y, sizesOf(later, y.axes.size()), 1);
  if (!isSame(x.iterations, y.iterations))
    return false;
  if (!sameIteration)
    for (auto &[loop, coefficient] : x.iterations) {
      std::optional<int64_t> trips = tripsOf(loop);
      int64_t end = std::abs(coefficient) * (trips ? std::max<int64_t>(*trips - 1, 0) : 0);
      trips ? add(-end, end) : void(multiple = std::gcd(multiple, coefficient));
    }
  if (multiple == 0)
    return least > 0 || greatest < 0;
  return llvm::divideFloorSigned(greatest, multiple) < llvm::divideCeilSigned(least, multiple);
}

/// Takes out of two addresses what both count in a stride alike, the same for all elements and in all iterations that
/// the two may be of.
static void takeOutAlike(AffineAddress &x, AffineAddress &y, bool sameIteration) {
  auto isAlikeInBoth = [&](const auto &term) {
    auto other = y.strided.find(term.first);
    const AffineSum &rows = term.second;
    return other != y.strided.end() && rows.isFixed() && other->second.isFixed() &&
           isSame(rows.symbols, other->second.symbols) && rows.constant == other->second.constant &&
           (sameIteration || isOfOutside(rows));
  };
  SmallVector<Value, 1> alike;
  for (const auto &term : x.strided)
    if (isAlikeInBoth(term))
      alike.push_back(term.first);
  for (Value stride : alike) {
    x.strided.erase(stride);
    y.strided.erase(stride);
  }
}

Meeting weft::warp::meetingOf(const Pointers &earlier, const Pointers &later, bool sameIteration) {
  Type type = earlier.pointer.getType(), other = later.pointer.getType();
  if (tile::pointeeTypeOf(type) != tile::pointeeTypeOf(other) ||
      isa<RankedTensorType>(type) != isa<RankedTensorType>(other))
    return Meeting::Unknown;
  std::optional<AffineAddress> x = affineAddressOf(earlier.pointer), y = affineAddressOf(later.pointer);
  if (!x || !y || !isSame(x->symbols, y->symbols) || (!sameIteration && !isOfOutside(*x)))
    return Meeting::Unknown;
  size_t rank = std::max(x->axes.size(), y->axes.size());
  SmallVector<int64_t> sizes = shapeOf(earlier.pointer, rank);
  x->axes.resize(std::max(sizes.size(), rank));
  y->axes.resize(std::max(sizes.size(), rank));
  takeOutAlike(*x, *y, sameIteration);
  if (isApart(*x, *y, earlier, later, sameIteration))
    return Meeting::Nowhere;
  if (sizes == shapeOf(later.pointer, rank) && isAlike(*x, *y, x->axes.size()))
    return meetingOfAlike(*x, *y, earlier, later, sameIteration);
  return Meeting::Unknown;
}

static std::optional<RowsApart> rowsApart(const AffineSum &rows, const AffineSum &others, size_t rank,
                                          bool sameIteration) {
  if (!isAlike(rows, others, rank))
    return std::nullopt;
  RowsApart found{others.constant - rows.constant, 0};
  for (int64_t coefficient : rows.axes)
    found.step = std::gcd(found.step, coefficient);
  if (!sameIteration)
    for (auto &[loop, coefficient] : rows.iterations)
      found.step = std::gcd(found.step, coefficient);
  return found;
}

/// The one stride that rows of two accesses are counted in, or of which they have different numbers; null where there are
/// more.
static Value strideBetween(const AffineAddress &x, const AffineAddress &y) {
  llvm::SmallSetVector<Value, 2> strides;
  for (auto [one, other] : {std::pair(&x, &y), std::pair(&y, &x)}) {
    for (auto &[stride, counted] : one->strided)
      strides.insert(stride);
    for (auto &[symbol, coefficient] : one->symbols)
      if (other->symbols.lookup(symbol) != coefficient)
        strides.insert(symbol);
  }
  constexpr unsigned wholeBits = 32; // of narrower strides the bound might be no number
  const bool isOne = strides.size() == 1 && isOutsideOfLoops(strides.front()) &&
                     strides.front().getType().isSignlessInteger() &&
                     strides.front().getType().getIntOrFloatBitWidth() >= wholeBits;
  return isOne ? strides.front() : Value();
}

/// Takes the rows that an address counts in a stride out of it.
static AffineSum takeRows(AffineAddress &address, Value stride) {
  AffineSum rows = address.strided.lookup(stride);
  rows.constant += address.symbols.lookup(stride);
  address.symbols.erase(stride);
  return rows;
}

/// Where two accesses meet, if rows and columns of what meets are the same.
static Meeting meetingInOneRow(const AffineAddress &x, const AffineAddress &y, const AffineSum &rows,
                               const AffineSum &others, ArrayRef<int64_t> sizes, bool sameIteration) {
  Equations left = settled(equationsOf({{&x, &y}, {&rows, &others}}, sizes, sameIteration), {0, 0});
  return left.size() == 0 ? Meeting::Unknown : Zeros(left).find();
}

/// Where a stride is at least what the mask of both says that columns are less than, rows and columns of what meets are the
/// same.
static std::optional<FarStride> farByMask(const AffineAddress &x, const AffineAddress &y, const AffineSum &rows,
                                          const AffineSum &others, Value stride, const Pointers &earlier,
                                          const Pointers &later, bool sameIteration) {
  SmallVector<int64_t> sizes = sizesOf(earlier, later, x.axes.size());
  Value end = endOfColumns(x, y, {}, earlier, later, sizes.size());
  if (!end || !isAlike(rows, others, sizes.size()) || !(sameIteration || isOfOutside(rows)))
    return std::nullopt;
  return FarStride{stride, std::nullopt, end, meetingInOneRow(x, y, rows, others, sizes, sameIteration)};
}

/// Where a stride is farther than elements of a tile reach from the first.
static std::optional<FarStride> farByReach(const AffineAddress &x, const AffineAddress &y, const AffineSum &rows,
                                           const AffineSum &others, Value stride, const Pointers &earlier,
                                           const Pointers &later, bool sameIteration) {
  SmallVector<int64_t> sizes = sizesOf(earlier, later, x.axes.size());
  std::optional<RowsApart> between = rowsApart(rows, others, sizes.size(), sameIteration);
  const bool isOfOneRound = sameIteration || (x.iterations.empty() && isOfOutside(x) && isOfOutside(rows));
  if (!between || between->least() == 0 || !isOfOneRound)
    return std::nullopt;
  Equations equations = equationsOf({{&x, &y}}, sizes, /*sameIteration=*/true);
  const int64_t reach = std::abs(equations.constants.front()) + equations.most(/*sum=*/0);
  FarStride far{stride, reach / between->least() + 1, {}, Meeting::Nowhere};
  if (between->mayBeNone())
    far.inOne = meetingInOneRow(x, y, rows, others, sizes, sameIteration);
  return far;
}

std::optional<FarStride> weft::warp::farStrideOf(const Pointers &earlier, const Pointers &later, bool sameIteration) {
  if (earlier.pointer.getType() != later.pointer.getType())
    return std::nullopt;
  std::optional<AffineAddress> x = affineAddressOf(earlier.pointer), y = affineAddressOf(later.pointer);
  if (x && y)
    takeOutAlike(*x, *y, sameIteration);
  Value stride = x && y ? strideBetween(*x, *y) : Value();
  if (!stride)
    return std::nullopt;
  AffineSum rows = takeRows(*x, stride), others = takeRows(*y, stride);
  if (!isAlike(*x, *y, x->axes.size()))
    return std::nullopt;
  std::optional<FarStride> reach = farByReach(*x, *y, rows, others, stride, earlier, later, sameIteration);
  std::optional<FarStride> mask = farByMask(*x, *y, rows, others, stride, earlier, later, sameIteration);
  if (!reach || reach->inOne == Meeting::Unknown || !mask || mask->inOne == Meeting::Unknown)
    return mask && mask->inOne != Meeting::Unknown ? mask : reach;
  return FarStride{stride, reach->least, mask->end, reach->inOne == mask->inOne ? reach->inOne : Meeting::SameElement};
}
