// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Copies/IndexSums.h"

#include "dialects/Tile/IR/LoopAttributes.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Copies/Wraps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;

namespace weft::warp {

void IndexSum::add(Factors factors, int64_t coefficient) {
  auto same = llvm::find_if(terms, [&](const auto &term) { return areSame(term.first, factors); });
  if (same == terms.end()) {
    if (coefficient != 0)
      terms.emplace_back(std::move(factors), coefficient);
    return;
  }
  same->second += coefficient;
  if (same->second == 0)
    terms.erase(same);
}

IndexSum IndexSum::operator+(const IndexSum &other) const {
  IndexSum sum = *this;
  for (const auto &[factors, coefficient] : other.terms)
    sum.add(factors, coefficient);
  return sum;
}

IndexSum IndexSum::operator*(const IndexSum &other) const {
  IndexSum product;
  for (const auto &[ours, a] : terms)
    for (const auto &[theirs, b] : other.terms) {
      Factors factors = ours;
      llvm::append_range(factors, theirs);
      product.add(factors, a * b);
    }
  return product;
}

std::optional<IndexSum> IndexSum::dividedBy(int64_t divisor) const {
  IndexSum quotient;
  for (const auto &[factors, coefficient] : terms) {
    if (coefficient % divisor != 0)
      return std::nullopt;
    quotient.add(factors, coefficient / divisor);
  }
  return quotient;
}

std::optional<int64_t> IndexSum::constant() const {
  if (terms.empty())
    return 0;
  return terms.size() == 1 && terms.front().first.empty() ? std::optional(terms.front().second) : std::nullopt;
}

bool isArgumentOfKernel(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

bool IndexSum::isOfLaunch() const {
  return llvm::all_of(terms, [](const auto &term) { return llvm::all_of(term.first, isArgumentOfKernel); });
}

constexpr int64_t mostDivisibility = int64_t(1) << 30;

/// The largest power of two that divides a number.
static int64_t powerIn(int64_t number) {
  return number == 0 ? mostDivisibility : std::min(mostDivisibility, number & -number);
}

/// A power of two that divides a factor whatever it is: what is promised of it, or what computes it shows.
static int64_t divisibilityOf(Value factor, unsigned depth = 0) {
  constexpr unsigned enough = 16;
  APInt number;
  if (matchPattern(factor, m_ConstantInt(&number)))
    return powerIn(number.getSExtValue());
  if (depth == enough)
    return 1;
  auto of = [&](Value value) { return divisibilityOf(value, depth + 1); };
  if (auto argument = dyn_cast<BlockArgument>(factor)) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(owner))
      return argument == loop.getInductionVar() ? std::min(of(loop.getLowerBound()), of(loop.getStep())) : 1;
    auto kernel = dyn_cast<func::FuncOp>(owner);
    auto promised = kernel ? kernel.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), tile::divisibilityAttrName)
                           : IntegerAttr();
    return promised ? powerIn(promised.getInt()) : 1;
  }
  Operation *op = factor.getDefiningOp();
  if (auto promised = op->getAttrOfType<IntegerAttr>(tile::divisibilityAttrName))
    return powerIn(promised.getInt());
  auto least = [&](ValueRange values) {
    int64_t common = mostDivisibility;
    for (Value each : values)
      common = std::min(common, of(each));
    return common;
  };
  if (isa<arith::MulIOp>(op))
    return std::min(mostDivisibility, of(op->getOperand(0)) * of(op->getOperand(1)));
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp, arith::MaxUIOp, arith::RemSIOp,
          arith::RemUIOp>(op))
    return least(op->getOperands());
  if (isa<arith::SelectOp>(op))
    return least(op->getOperands().drop_front());
  if (isa<arith::AndIOp>(op))
    return std::max(of(op->getOperand(0)), of(op->getOperand(1)));
  if (isa<arith::ExtSIOp, arith::ExtUIOp>(op) && !op->getOperand(0).getType().isInteger(1))
    return of(op->getOperand(0));
  APInt bits;
  if (isa<arith::ShLIOp>(op) && matchPattern(op->getOperand(1), m_ConstantInt(&bits)) && bits.ult(30))
    return std::min(mostDivisibility, of(op->getOperand(0)) << bits.getZExtValue());
  return 1;
}

int64_t IndexSum::divisibility() const {
  int64_t common = mostDivisibility;
  for (const auto &[factors, coefficient] : terms) {
    int64_t each = powerIn(coefficient);
    for (Value factor : factors)
      each = std::min(mostDivisibility, each * divisibilityOf(factor));
    common = std::min(common, each);
  }
  return common;
}

/// Whether a value is the quotient of two, rounded toward zero or, as that less one where a condition holds, down.
static bool isQuotient(Value value, Value dividend, Value divisor) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::DivSIOp, arith::DivUIOp>(op))
    return op->getOperand(0) == dividend && op->getOperand(1) == divisor;
  auto select = dyn_cast_or_null<arith::SelectOp>(op);
  auto lessOne = select ? select.getTrueValue().getDefiningOp<arith::SubIOp>() : arith::SubIOp();
  return lessOne && matchPattern(lessOne.getRhs(), m_One()) && lessOne.getLhs() == select.getFalseValue() &&
         isQuotient(select.getFalseValue(), dividend, divisor);
}

/// What a value is the remainder of, x of x - x / y * y; null where it is none.
static Value dividendOf(Value value) {
  auto difference = value.getDefiningOp<arith::SubIOp>();
  auto product = difference ? difference.getRhs().getDefiningOp<arith::MulIOp>() : arith::MulIOp();
  if (!product)
    return {};
  Value x = difference.getLhs(), a = product.getLhs(), b = product.getRhs();
  return isQuotient(a, x, b) || isQuotient(b, x, a) ? x : Value();
}

/// Whether a difference is the number of a program counted from the last: programs - 1 - program.
static bool countsFromLast(arith::SubIOp difference) {
  auto number = difference.getRhs().getDefiningOp<tile::ProgramIdOp>();
  auto last = difference.getLhs().getDefiningOp<arith::SubIOp>();
  auto count = last && matchPattern(last.getRhs(), m_One()) ? last.getLhs().getDefiningOp<tile::NumProgramsOp>()
                                                            : tile::NumProgramsOp();
  return number && count && number.getAxis() == count.getAxis();
}

bool isNeverNegative(Value value) {
  IntegerAttr number;
  if (matchPattern(value, m_Constant(&number)))
    return !number.getValue().isNegative();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && argument == loop.getInductionVar() && isNeverNegative(loop.getLowerBound());
  }
  Operation *op = value.getDefiningOp();
  auto first = [&] { return isNeverNegative(op->getOperand(0)); };
  auto second = [&] { return isNeverNegative(op->getOperand(1)); };
  if (isa<tile::ProgramIdOp, tile::NumProgramsOp, arith::ExtUIOp>(op))
    return true;
  if (isa<arith::MaxSIOp, arith::AndIOp>(op))
    return first() || second();
  if (isa<arith::AddIOp, arith::MulIOp, arith::MinSIOp>(op))
    return first() && second();
  if (isa<arith::SelectOp>(op))
    return second() && isNeverNegative(op->getOperand(2));
  if (Value dividend = dividendOf(value))
    return isNeverNegative(dividend);
  if (auto difference = dyn_cast<arith::SubIOp>(op))
    return countsFromLast(difference);
  return isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::ShRSIOp, arith::ShRUIOp,
             arith::ShLIOp, arith::ExtSIOp>(op) &&
         first();
}

bool IndexSum::subtracts() const {
  return llvm::any_of(terms, [](const auto &term) { return term.second < 0; });
}

bool IndexSum::isNeverNegative() const {
  return llvm::all_of(terms, [](const auto &term) {
    return term.second >= 0 && llvm::all_of(term.first, [](Value each) { return warp::isNeverNegative(each); });
  });
}

Value IndexSum::emit(OpBuilder &b, Location loc, Type type) const {
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  };
  auto inType = [&](Value value) -> Value {
    unsigned from = value.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
    if (from == to)
      return value;
    if (from < to)
      return arith::ExtSIOp::create(b, loc, type, value);
    return arith::TruncIOp::create(b, loc, type, value);
  };
  Value sum;
  for (const auto &[factors, coefficient] : terms) {
    Value product;
    for (Value factor : factors) {
      Value each = inType(factor);
      product = product ? arith::MulIOp::create(b, loc, product, each).getResult() : each;
    }
    if (!product)
      product = number(coefficient);
    else if (coefficient != 1)
      product = arith::MulIOp::create(b, loc, product, number(coefficient));
    sum = sum ? arith::AddIOp::create(b, loc, sum, product).getResult() : product;
  }
  return sum ? sum : number(0);
}

// --- forms ---

static size_t rankOf(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor ? tensor.getRank() : 0;
}

static IndexForm uniform(Value like, IndexSum offset, Value base = {}) {
  return {base, std::move(offset), SmallVector<IndexSum, 2>(rankOf(like)), {}};
}

std::optional<IndexForm> IndexForms::of(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  std::optional<IndexForm> form = compute(value);
  if (!form && value.getType().isIntOrIndex())
    form = uniform(value, IndexSum(value));
  known[value] = form;
  return form;
}

std::optional<IndexForm> IndexForms::compute(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (isArgumentOfKernel(argument) && isa<tile::PointerType>(argument.getType()))
      return uniform(value, IndexSum(), argument);
    bool isCarried = loop && argument.getOwner() == loop.getBody() && argument != loop.getInductionVar();
    return isCarried ? carried(argument) : std::nullopt;
  }
  IntegerAttr number;
  if (matchPattern(value, m_Constant(&number)))
    return uniform(value, IndexSum(number.getValue().getSExtValue()));
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat() && isa<IntegerType>(elements.getElementType()))
    return uniform(value, IndexSum(elements.getSplatValue<APInt>().getSExtValue()));
  Operation *op = value.getDefiningOp();
  if (std::optional<IndexForm> form = computeShaped(op))
    return form;
  return computeArithmetic(op);
}

/// The form that an op gives its operand's elements.
static IndexForm reshaped(Operation *op, const IndexForm &source) {
  IndexForm form = source;
  if (isa<tile::SplatOp>(op))
    form.steps.assign(rankOf(op->getResult(0)), IndexSum());
  else if (auto expand = dyn_cast<tile::ExpandDimsOp>(op))
    form.steps.insert(form.steps.begin() + expand.getAxis(), IndexSum());
  else if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    for (auto [step, size] : llvm::zip(form.steps, cast<RankedTensorType>(op->getOperand(0).getType()).getShape()))
      if (size == 1)
        step = IndexSum();
  } else if (auto permute = dyn_cast<tile::PermuteOp>(op)) {
    for (auto [step, from] : llvm::zip(form.steps, permute.getOrder()))
      step = source.steps[from];
  }
  for (IndexForm &end : form.ends)
    end = reshaped(op, end);
  return form;
}

std::optional<IndexForm> IndexForms::unwrapped(Operation *op) {
  std::optional<Wrapped> wrapped = wrappedBy(op);
  std::optional<IndexForm> index = wrapped ? of(wrapped->index) : std::nullopt;
  if (!index)
    return std::nullopt;
  IndexForm end = *index;
  std::optional<int64_t> number = getConstantIntValue(wrapped->size);
  end.offset = index->offset - (number ? IndexSum(*number) : sumOf(cast<Value>(wrapped->size)));
  index->ends.push_back(std::move(end));
  return index;
}

std::optional<IndexForm> IndexForms::computeShaped(Operation *op) {
  if (auto range = dyn_cast<tile::MakeRangeOp>(op)) {
    IndexForm form = uniform(range.getResult(), IndexSum(int64_t(range.getStart())));
    form.steps.front() = IndexSum(1);
    return form;
  }
  if (!isa<tile::SplatOp, tile::ExpandDimsOp, tile::BroadcastOp, tile::PermuteOp, ConvertLayoutOp>(op))
    return std::nullopt;
  std::optional<IndexForm> source = of(op->getOperand(0));
  if (!source)
    return std::nullopt;
  return reshaped(op, *source);
}

/// The bound that tile-narrow-indices has cut to 32 bits, so that beyond every index it says the same; else null.
static Value uncut(arith::TruncIOp op) {
  constexpr int64_t most = tile::beyondIndices;
  auto constant = [](Value value, int64_t number) {
    APInt found;
    return matchPattern(value, m_ConstantInt(&found)) && found == APInt(found.getBitWidth(), number, /*isSigned=*/true);
  };
  auto lower = op.getIn().getDefiningOp<arith::MaxSIOp>();
  auto upper = lower ? lower.getLhs().getDefiningOp<arith::MinSIOp>() : arith::MinSIOp();
  return upper && constant(lower.getRhs(), -most) && constant(upper.getRhs(), most) ? upper.getLhs() : Value();
}

std::optional<IndexForm> IndexForms::computeArithmetic(Operation *op) {
  if (auto cut = dyn_cast<arith::TruncIOp>(op))
    if (Value bound = uncut(cut))
      return of(bound);
  if (isa<arith::ExtSIOp, arith::TruncIOp>(op)) // of i1 it is no index
    return op->getOperand(0).getType().isInteger(1) ? std::nullopt : of(op->getOperand(0));
  if (unwraps && op->hasAttr(tile::wrapsUnreadAttrName))
    return unwrapped(op);
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ShLIOp, tile::AddPtrOp>(op))
    return std::nullopt;
  // A remainder is one index, though it is a difference: neither of its terms is one.
  if (dividendOf(op->getResult(0)))
    return std::nullopt;
  std::optional<IndexForm> x = of(op->getOperand(0)), y = of(op->getOperand(1));
  if (!x || !y)
    return std::nullopt;
  IndexForm form = *x;
  form.ends.insert(form.ends.end(), y->ends.begin(), y->ends.end());
  if (isa<arith::AddIOp, arith::SubIOp, tile::AddPtrOp>(op)) {
    IndexSum sign(isa<arith::SubIOp>(op) ? -1 : 1);
    form.offset = x->offset + y->offset * sign;
    for (auto [step, other] : llvm::zip_equal(form.steps, y->steps))
      step = step + other * sign;
    return form;
  }
  auto isUniform = [](const IndexForm &each) { return llvm::all_of(each.steps, [](auto &s) { return s.isZero(); }); };
  if (isa<arith::ShLIOp>(op)) {
    std::optional<int64_t> bits = isUniform(*y) ? y->offset.constant() : std::nullopt;
    if (!bits || *bits < 0 || *bits > 31)
      return std::nullopt;
    y->offset = IndexSum(int64_t(1) << *bits);
  } else if (!isUniform(*y)) {
    if (!isUniform(*x))
      return std::nullopt;
    std::swap(*x, *y);
  }
  form.offset = x->offset * y->offset;
  for (auto [step, each] : llvm::zip_equal(form.steps, x->steps))
    step = each * y->offset;
  return form;
}

std::optional<IndexForm> IndexForms::carried(BlockArgument argument) {
  unsigned index = argument.getArgNumber() - 1;
  IntegerAttr step;
  if (!matchPattern(loop.getStep(), m_Constant(&step)))
    return std::nullopt;
  bool isPointer = isa<tile::PointerType>(tile::elementTypeOf(argument.getType()));
  if (!isPointer && rankOf(argument) != 0)
    return std::nullopt;
  std::optional<IndexForm> first = of(loop.getInitArgs()[index]);
  if (!first)
    return std::nullopt;
  // What an iteration adds, to the value as it is at its begin. Forms by way of that are of no other use.
  IndexForms inside(loop, unwraps);
  inside.known[argument] = isPointer ? uniform(argument, IndexSum(), argument) : uniform(argument, IndexSum(argument));
  std::optional<IndexForm> next = inside.of(loop.getYieldedValues()[index]);
  if (!next || !next->ends.empty() || (isPointer && next->base != argument) ||
      !llvm::all_of(next->steps, [](const IndexSum &each) { return each.isZero(); }))
    return std::nullopt;
  IndexSum added = isPointer ? next->offset : next->offset - IndexSum(argument);
  for (const auto &[factors, coefficient] : added.terms)
    for (Value factor : factors)
      if (!loop.isDefinedOutsideOfLoop(factor))
        return std::nullopt;
  std::optional<IndexSum> each = added.dividedBy(step.getValue().getSExtValue());
  if (!each)
    return std::nullopt;
  IndexSum passed = sumOf(loop.getInductionVar()) - sumOf(loop.getLowerBound());
  first->offset = first->offset + passed * *each;
  return first;
}

} // namespace weft::warp
