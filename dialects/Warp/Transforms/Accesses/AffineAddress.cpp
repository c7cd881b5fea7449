// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See AffineAddress.h. Two addresses differ by a constant, by differences of coordinates, each in (-size, size), and by
// multiples of what loops move pointers by:
//
//   %p = x + 1024·i + at[0..1024)                  difference of two iterations: 1024·k + (a' - a), k > 0: never 0
//   %p = x + 64·row + at[0..32), %q = %p + 32      difference: 32 + 64·(r' - r) + (a' - a): never 0
#include "dialects/Warp/Transforms/Accesses/AffineAddress.h"

#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using namespace weft;
using namespace weft::warp;

using Found = std::optional<AffineAddress>;

/// Larger numbers could overflow in products of two.
static constexpr int64_t mostExact = int64_t(1) << 31;

static Found checked(AffineAddress sum) {
  auto isSmall = [](int64_t x) { return std::abs(x) < mostExact; };
  bool small = isSmall(sum.constant) && llvm::all_of(sum.axes, isSmall);
  for (auto *terms : {&sum.symbols, &sum.iterations}) {
    terms->remove_if([](const auto &term) { return term.second == 0; });
    small &= llvm::all_of(*terms, [&](const auto &term) { return isSmall(term.second); });
  }
  return small ? Found(std::move(sum)) : std::nullopt;
}

/// x + factor · y.
static Found sumOf(const Found &x, const Found &y, int64_t factor) {
  if (!x || !y)
    return std::nullopt;
  AffineAddress sum = *x;
  sum.constant += factor * y->constant;
  sum.axes.resize(std::max(x->axes.size(), y->axes.size()));
  for (auto [axis, coefficient] : llvm::enumerate(y->axes))
    sum.axes[axis] += factor * coefficient;
  for (auto &[symbol, coefficient] : y->symbols)
    sum.symbols[symbol] += factor * coefficient;
  for (auto &[loop, coefficient] : y->iterations)
    sum.iterations[loop] += factor * coefficient;
  return checked(std::move(sum));
}

static bool isConstant(const AffineAddress &sum) {
  return sum.symbols.empty() && sum.iterations.empty() && llvm::all_of(sum.axes, [](int64_t x) { return x == 0; });
}

static Found constantSum(int64_t value) {
  AffineAddress sum;
  sum.constant = value;
  return checked(std::move(sum));
}

namespace {
/// Follows a value to what it is a sum of.
class Walker {
public:
  Found of(Value value);

private:
  Found ofScalar(Value value);
  Found ofOp(Operation *op);
  Found ofCarried(scf::ForOp loop, BlockArgument argument);
  Found productOf(const Found &x, const Found &y);
  Found symbol(Value value) {
    AffineAddress sum;
    sum.symbols[value] = 1;
    return sum;
  }

  llvm::DenseSet<Value> open; // carried values that are being followed, and stand for themselves
  unsigned budget = 512;      // ops, as one may be reached on many ways
};
} // namespace

Found Walker::productOf(const Found &x, const Found &y) {
  if (!x || !y || (!isConstant(*x) && !isConstant(*y)))
    return std::nullopt;
  const AffineAddress &factor = isConstant(*x) ? *x : *y, &other = isConstant(*x) ? *y : *x;
  return sumOf(constantSum(0), other, factor.constant);
}

/// A pointer or index that a loop moves by a constant in every iteration.
Found Walker::ofCarried(scf::ForOp loop, BlockArgument argument) {
  if (open.contains(argument))
    return symbol(argument);
  open.insert(argument);
  Found moved = sumOf(of(loop.getTiedLoopYieldedValue(argument)->get()), symbol(argument), -1);
  open.erase(argument);
  if (!moved || !isConstant(*moved))
    return std::nullopt;
  Found start = of(loop.getTiedLoopInit(argument)->get());
  if (start)
    start->iterations[loop.getInductionVar()] += moved->constant;
  return start ? checked(std::move(*start)) : std::nullopt;
}

Found Walker::ofOp(Operation *op) {
  // Narrow numbers do wrap.
  Type type = op->getNumResults() == 1 ? getElementTypeOrSelf(op->getResult(0).getType()) : Type();
  if (!type || (type.isIntOrFloat() && type.getIntOrFloatBitWidth() < 32))
    return std::nullopt;
  auto operand = [&](unsigned index) { return of(op->getOperand(index)); };
  return TypeSwitch<Operation *, Found>(op)
      .Case([&](tile::MakeRangeOp range) {
        AffineAddress sum;
        sum.constant = range.getStart();
        sum.axes = {1};
        return Found(sum);
      })
      .Case<tile::SplatOp, ConvertLayoutOp, arith::ExtSIOp>([&](Operation *) { return operand(0); })
      .Case<arith::AddIOp, tile::AddPtrOp>([&](Operation *) { return sumOf(operand(0), operand(1), 1); })
      .Case([&](arith::SubIOp) { return sumOf(operand(0), operand(1), -1); })
      .Case([&](arith::MulIOp) { return productOf(operand(0), operand(1)); })
      .Case([&](tile::ExpandDimsOp expand) {
        Found sum = operand(0);
        if (sum) {
          sum->axes.resize(cast<RankedTensorType>(expand.getType()).getRank() - 1);
          sum->axes.insert(sum->axes.begin() + expand.getAxis(), 0);
        }
        return sum;
      })
      .Case([&](tile::BroadcastOp) {
        Found sum = operand(0);
        auto from = cast<RankedTensorType>(op->getOperand(0).getType());
        if (sum) {
          sum->axes.resize(from.getRank());
          for (int64_t axis = 0; axis < from.getRank(); ++axis)
            if (from.getDimSize(axis) == 1)
              sum->axes[axis] = 0;
        }
        return sum;
      })
      .Case([&](tile::PermuteOp permute) {
        Found sum = operand(0);
        if (sum) {
          sum->axes.resize(permute.getOrder().size());
          SmallVector<int64_t, 2> from = sum->axes;
          for (auto [to, axis] : llvm::enumerate(permute.getOrder()))
            sum->axes[to] = from[axis];
        }
        return sum;
      })
      .Default(std::nullopt);
}

/// A scalar that is no sum stands for itself.
Found Walker::ofScalar(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())) {
      IntegerAttr step;
      if (argument != loop.getInductionVar()) {
        Found carried = ofCarried(loop, argument);
        return carried ? carried : symbol(value);
      }
      if (!matchPattern(loop.getStep(), m_Constant(&step)))
        return symbol(value);
      AffineAddress counted;
      counted.iterations[value] = step.getInt();
      Found sum = sumOf(of(loop.getLowerBound()), checked(std::move(counted)), 1);
      return sum ? sum : symbol(value);
    }
  Found sum = value.getDefiningOp() ? ofOp(value.getDefiningOp()) : std::nullopt;
  return sum ? sum : symbol(value);
}

Found Walker::of(Value value) {
  if (budget == 0)
    return std::nullopt;
  --budget;
  APInt number;
  DenseElementsAttr elements;
  if (matchPattern(value, m_ConstantInt(&number)) && number.getBitWidth() <= 64)
    return constantSum(number.getSExtValue());
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat() && elements.getElementType().isInteger())
    return constantSum(elements.getSplatValue<APInt>().getSExtValue());
  if (!isa<RankedTensorType>(value.getType()))
    return ofScalar(value);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop ? ofCarried(loop, argument) : std::nullopt;
  }
  return ofOp(value.getDefiningOp());
}

Found weft::warp::affineAddressOf(Value value) { return Walker().of(value); }

// --- meeting ---

namespace {
/// Whether `constant` and multiples of the coefficients, each by less than its size, can sum up to 0: as it is, and with
/// any multiple but 0.
class Zeros {
public:
  Zeros(ArrayRef<int64_t> coefficients, ArrayRef<int64_t> sizes) {
    for (auto [coefficient, size] : llvm::zip_equal(coefficients, sizes))
      if (size > 1)
        terms.push_back({std::abs(coefficient), size - 1});
    llvm::sort(terms, [](const Term &a, const Term &b) { return a.coefficient > b.coefficient; });
  }
  /// The largest sum of the terms from `at` on.
  int64_t most(size_t at = 0) const {
    int64_t total = 0;
    for (const Term &term : ArrayRef(terms).drop_front(at))
      total += term.coefficient * term.most;
    return total;
  }
  Meeting find(int64_t constant) {
    visit(0, constant, /*moved=*/false);
    return budget == 0 || foundMoved ? Meeting::Unknown : foundStill ? Meeting::SameElement : Meeting::Nowhere;
  }

private:
  struct Term {
    int64_t coefficient, most;
  };
  void visit(size_t at, int64_t sum, bool moved) {
    if (budget == 0 || foundMoved)
      return;
    --budget;
    if (at == terms.size()) {
      (moved ? foundMoved : foundStill) |= sum == 0;
      return;
    }
    auto [coefficient, most] = terms[at];
    int64_t rest = this->most(at + 1);
    if (coefficient == 0) { // elements that share an address
      foundMoved |= std::abs(sum) <= rest;
      return;
    }
    // |sum + coefficient · x| <= rest
    int64_t low = std::max(-most, llvm::divideCeilSigned(-rest - sum, coefficient)),
            high = std::min(most, llvm::divideFloorSigned(rest - sum, coefficient));
    for (int64_t x = low; x <= high && budget > 0 && !foundMoved; ++x)
      visit(at + 1, sum + coefficient * x, moved || x != 0);
  }

  SmallVector<Term, 4> terms;
  unsigned budget = 256;
  bool foundStill = false, foundMoved = false;
};
} // namespace

static bool isOutsideOfLoops(Value value) { return isa<func::FuncOp>(value.getParentBlock()->getParentOp()); }

static SmallVector<int64_t> sizesOf(Value pointer, size_t rank) {
  auto type = dyn_cast<RankedTensorType>(pointer.getType());
  return type ? SmallVector<int64_t>(type.getShape()) : SmallVector<int64_t>(rank, 1);
}

/// Where one access meets another of the same tensor type, whose addresses have the same coefficients.
static Meeting meetingOfAlike(const AffineAddress &x, const AffineAddress &y, ArrayRef<int64_t> sizes,
                              bool sameIteration) {
  int64_t constant = y.constant - x.constant, stride = 0;
  Zeros zeros(x.axes, sizes);
  if (sameIteration)
    return zeros.find(constant);
  for (auto &[loop, coefficient] : x.iterations)
    stride = std::gcd(stride, coefficient);
  // What loops add is a multiple of the stride, so that it is nothing where all else is less.
  if (stride == 0 || std::abs(constant) + zeros.most() < stride)
    return zeros.find(constant);
  return Meeting::Unknown;
}

Meeting weft::warp::meetingOf(Value earlier, Value later, bool sameIteration) {
  if (tile::pointeeTypeOf(earlier.getType()) != tile::pointeeTypeOf(later.getType()) ||
      isa<RankedTensorType>(earlier.getType()) != isa<RankedTensorType>(later.getType()))
    return Meeting::Unknown;
  Found x = affineAddressOf(earlier), y = affineAddressOf(later);
  Found difference = sumOf(y, x, -1);
  if (!difference || !difference->symbols.empty() || !difference->iterations.empty())
    return Meeting::Unknown;
  if (!sameIteration && !llvm::all_of(x->symbols, [](const auto &term) { return isOutsideOfLoops(term.first); }))
    return Meeting::Unknown;
  size_t rank = std::max(x->axes.size(), y->axes.size());
  SmallVector<int64_t> sizes = sizesOf(earlier, rank), others = sizesOf(later, rank);
  rank = std::max(sizes.size(), rank);
  x->axes.resize(rank);
  y->axes.resize(rank);
  if (sizes == others && x->axes == y->axes)
    return meetingOfAlike(*x, *y, sizes, sameIteration);
  return Meeting::Unknown;
}
