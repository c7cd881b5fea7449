// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See AffineAddress.h.
#include "dialects/Warp/Transforms/Accesses/AffineAddress.h"

#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;
using namespace weft::warp;

using Found = std::optional<AffineAddress>;

/// Larger numbers could overflow in products of two.
static constexpr int64_t mostExact = int64_t(1) << 31;

bool AffineSum::isFixed() const {
  return iterations.empty() && llvm::all_of(axes, [](int64_t x) { return x == 0; });
}

/// Drops what is times 0. False where a number is too large.
static bool normalise(AffineSum &sum) {
  auto isSmall = [](int64_t x) { return std::abs(x) < mostExact; };
  bool small = isSmall(sum.constant) && llvm::all_of(sum.axes, isSmall);
  auto settle = [&](auto &terms) {
    terms.remove_if([](const auto &term) { return term.second == 0; });
    small &= llvm::all_of(terms, [&](const auto &term) { return isSmall(term.second); });
  };
  settle(sum.symbols);
  settle(sum.iterations);
  return small;
}

static bool isZero(const AffineSum &sum) { return sum.isFixed() && sum.symbols.empty() && sum.constant == 0; }

static Found checked(AffineAddress sum) {
  bool small = normalise(sum);
  for (auto &[stride, counted] : sum.strided)
    small &= normalise(counted);
  sum.strided.remove_if([](const auto &term) { return isZero(term.second); });
  return small ? Found(std::move(sum)) : std::nullopt;
}

static void addTo(AffineSum &sum, const AffineSum &other, int64_t factor) {
  sum.constant += factor * other.constant;
  sum.axes.resize(std::max(sum.axes.size(), other.axes.size()));
  for (auto [axis, coefficient] : llvm::enumerate(other.axes))
    sum.axes[axis] += factor * coefficient;
  for (auto &[symbol, coefficient] : other.symbols)
    sum.symbols[symbol] += factor * coefficient;
  for (auto &[loop, coefficient] : other.iterations)
    sum.iterations[loop] += factor * coefficient;
}

/// x + factor · y.
static Found sumOf(const Found &x, const Found &y, int64_t factor) {
  if (!x || !y)
    return std::nullopt;
  AffineAddress sum = *x;
  addTo(sum, *y, factor);
  for (auto &[stride, counted] : y->strided)
    addTo(sum.strided[stride], counted, factor);
  return checked(std::move(sum));
}

static bool isConstant(const AffineAddress &sum) { return sum.isFixed() && sum.symbols.empty() && sum.strided.empty(); }

/// Whether a sum is more than one symbol.
static bool isSumOfOthers(const AffineSum &sum) {
  return sum.constant != 0 || sum.symbols.size() > 1 ||
         llvm::any_of(sum.symbols, [](const auto &term) { return term.second != 1; });
}

static Found constantSum(int64_t value) {
  AffineAddress sum;
  sum.constant = value;
  return checked(std::move(sum));
}

bool weft::warp::isOutsideOfLoops(Value value) {
  auto block = dyn_cast<BlockArgument>(value);
  Operation *parent = block ? block.getOwner()->getParentOp() : value.getDefiningOp()->getParentOp();
  return !isa<LoopLikeOpInterface>(parent) && !parent->getParentOfType<LoopLikeOpInterface>();
}

/// The scalar that a value is, in every element, if it is from outside of loops.
static Value fixedScalar(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tile::SplatOp, tile::BroadcastOp, tile::ExpandDimsOp, ConvertLayoutOp, arith::ExtSIOp>(op))
      break;
    value = op->getOperand(0);
  }
  return isOutsideOfLoops(value) && value.getType().isSignlessInteger() ? value : Value();
}

/// What an op that gives a tensor another shape makes of a sum of its elements; none for another op.
static Found reshaped(Operation *op, Found sum) {
  if (!sum)
    return sum;
  auto ofEach = [&](auto reshape) {
    reshape(sum->axes);
    for (auto &[stride, counted] : sum->strided)
      reshape(counted.axes);
    return sum;
  };
  return TypeSwitch<Operation *, Found>(op)
      .Case<tile::SplatOp, ConvertLayoutOp>([&](Operation *) { return sum; })
      .Case([&](tile::ExpandDimsOp expand) {
        return ofEach([&](SmallVectorImpl<int64_t> &axes) {
          axes.resize(cast<RankedTensorType>(expand.getType()).getRank() - 1);
          axes.insert(axes.begin() + expand.getAxis(), 0);
        });
      })
      .Case([&](tile::BroadcastOp) {
        auto from = cast<RankedTensorType>(op->getOperand(0).getType());
        return ofEach([&](SmallVectorImpl<int64_t> &axes) {
          axes.resize(from.getRank());
          for (int64_t axis = 0; axis < from.getRank(); ++axis)
            if (from.getDimSize(axis) == 1)
              axes[axis] = 0;
        });
      })
      .Case([&](tile::PermuteOp permute) {
        return ofEach([&](SmallVectorImpl<int64_t> &axes) {
          axes.resize(permute.getOrder().size());
          SmallVector<int64_t, 2> from(axes.begin(), axes.end());
          for (auto [to, axis] : llvm::enumerate(permute.getOrder()))
            axes[to] = from[axis];
        });
      })
      .Default(std::nullopt);
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
  Found productOf(Value x, Value y);
  Found symbol(Value value) {
    AffineAddress sum;
    sum.symbols[value] = 1;
    return sum;
  }

  llvm::DenseSet<Value> open; // carried values that are being followed, and stand for themselves
  unsigned budget = 512;      // ops, as one may be reached on many ways
};
} // namespace

Found Walker::productOf(Value left, Value right) {
  Found x = of(left), y = of(right);
  if (!x || !y)
    return std::nullopt;
  if (isConstant(*x))
    return sumOf(constantSum(0), y, x->constant);
  if (isConstant(*y))
    return sumOf(constantSum(0), x, y->constant);
  // What varies, or is a sum, counted in a stride. What is neither, a scalar, is a symbol.
  for (auto [counted, by] : {std::pair(&*x, right), std::pair(&*y, left)})
    if (Value stride = fixedScalar(by);
        stride && counted->strided.empty() && (!counted->isFixed() || isSumOfOthers(*counted))) {
      AffineAddress product;
      product.strided[stride] = *counted;
      return product;
    }
  return std::nullopt;
}

static AffineSum::Count countOf(scf::ForOp loop, CountedBy by) {
  return {loop.getInductionVar(), static_cast<unsigned>(by)};
}

/// What counts up by `step` in every iteration of a loop: by a constant, or by a scalar from outside of loops.
static Found countedBy(const AffineAddress &step, scf::ForOp loop) {
  AffineAddress counted;
  if (isConstant(step)) {
    counted.iterations[countOf(loop, CountedBy::Iterations)] = step.constant;
    return counted;
  }
  if (!step.isFixed() || !step.strided.empty() || step.constant != 0 || step.symbols.size() != 1)
    return std::nullopt;
  auto [stride, coefficient] = *step.symbols.begin();
  if (!isOutsideOfLoops(stride) || !stride.getType().isSignlessInteger())
    return std::nullopt;
  if (stride.getDefiningOp<tile::NumProgramsOp>())
    counted.iterations[countOf(loop, CountedBy::Programs)] = coefficient;
  else
    counted.strided[stride].iterations[countOf(loop, CountedBy::Iterations)] = coefficient;
  return counted;
}

/// A pointer or index that a loop moves by the same in every iteration.
Found Walker::ofCarried(scf::ForOp loop, BlockArgument argument) {
  if (open.contains(argument))
    return symbol(argument);
  open.insert(argument);
  Found moved = sumOf(of(loop.getTiedLoopYieldedValue(argument)->get()), symbol(argument), -1);
  open.erase(argument);
  if (!moved)
    return std::nullopt;
  return sumOf(of(loop.getTiedLoopInit(argument)->get()), countedBy(*moved, loop), 1);
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
      .Case([&](arith::ExtSIOp) { return operand(0); })
      .Case<arith::AddIOp, tile::AddPtrOp>([&](Operation *) { return sumOf(operand(0), operand(1), 1); })
      .Case([&](arith::SubIOp) { return sumOf(operand(0), operand(1), -1); })
      .Case([&](arith::MulIOp) { return productOf(op->getOperand(0), op->getOperand(1)); })
      .Case<tile::SplatOp, tile::ExpandDimsOp, tile::BroadcastOp, tile::PermuteOp, ConvertLayoutOp>(
          [&](Operation *) { return reshaped(op, operand(0)); })
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
      AffineAddress counted;
      if (matchPattern(loop.getStep(), m_Constant(&step)))
        counted.iterations[countOf(loop, CountedBy::Iterations)] = step.getInt();
      else
        counted.iterations[countOf(loop, CountedBy::Steps)] = 1;
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

static void collectBounds(Value mask, SmallVectorImpl<IndexBound> &bounds, function_ref<Found(Found)> shaped) {
  Operation *op = mask ? mask.getDefiningOp() : nullptr;
  if (!op)
    return;
  if (isa<arith::AndIOp>(op)) {
    collectBounds(op->getOperand(0), bounds, shaped);
    collectBounds(op->getOperand(1), bounds, shaped);
  } else if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    using Is = arith::CmpIPredicate;
    bool isLess = compare.getPredicate() == Is::slt;
    if (!isLess && compare.getPredicate() != Is::sgt)
      return;
    Value end = isLess ? compare.getRhs() : compare.getLhs(), scalar = fixedScalar(end);
    Found index = shaped(affineAddressOf(isLess ? compare.getLhs() : compare.getRhs()));
    if (!index || !index->strided.empty())
      return;
    if (Found number = affineAddressOf(end); number && isConstant(*number))
      bounds.push_back({*index, {}, number->constant});
    else if (scalar)
      bounds.push_back({*index, scalar});
  } else if (isa<tile::SplatOp, tile::ExpandDimsOp, tile::BroadcastOp, tile::PermuteOp, ConvertLayoutOp>(op)) {
    collectBounds(op->getOperand(0), bounds, [&](Found index) { return shaped(reshaped(op, std::move(index))); });
  }
}

SmallVector<IndexBound, 2> weft::warp::boundsOf(Value mask) {
  SmallVector<IndexBound, 2> bounds;
  collectBounds(mask, bounds, [](Found index) { return index; });
  return bounds;
}
