// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See HeldValues.h.
#include "dialects/Warp/Transforms/Copies/HeldValues.h"

#include "dialects/Warp/IR/WarpDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace weft::warp {

/// The fewest iterations of a period: the choice and what grows are some five instructions, an entry and the addresses of
/// it some eleven.
static constexpr int64_t fewestIterations = 2;

namespace {
/// How a scalar changes from iteration to iteration of a period.
struct Change {
  SmallVector<HeldTerm, 2> growth;      // none: the same number
  std::optional<int64_t> multiple = {}; // of the induction variable, which it is
  bool isLoaded = false;                // from a load
  bool isRemainder = false;
  /// Whether, as a narrow number, it may overflow, where what it is widened to would go on.
  bool mayOverflow() const { return !isConstant() && !multiple && !isRemainder; }
  bool isConstant() const { return growth.empty(); }
};

class Changes {
public:
  Changes(const Slice &slice, scf::ForOp loop) : loop(loop) {
    if (getConstantIntValue(loop.getStep()) != 1)
      return;
    changes[loop.getInductionVar()] = {{{1, {}}}, 1};
    for (Operation *op : inOrder(slice, loop))
      if (op->getNumResults() == 1 && op->getNumRegions() == 0 && !isa<ShapedType>(op->getResult(0).getType()))
        if (std::optional<Change> change = changeOf(op))
          changes[op->getResult(0)] = *change;
  }

  /// Null where it is not known.
  const Change *of(Value value) {
    if (auto found = changes.find(value); found != changes.end())
      return &found->second;
    return loop.isDefinedOutsideOfLoop(value) ? &unchanged : nullptr;
  }

  int64_t period = 0;                              // iterations; 0: none
  SmallVector<HeldValue, 4> remainders, quotients; // of the induction variable

private:
  std::optional<Change> changeOf(Operation *op);
  std::optional<Change> ofParts(Operation *op);
  std::optional<Change> ofSum(Operation *op);
  std::optional<Change> ofProduct(Operation *op);
  std::optional<Change> ofUnchanged(Operation *op);

  scf::ForOp loop;
  llvm::DenseMap<Value, Change> changes;
  Change unchanged;
};
} // namespace

std::optional<Change> Changes::changeOf(Operation *op) {
  if (isa<arith::ShRSIOp, arith::AndIOp>(op))
    if (std::optional<Change> part = ofParts(op))
      return part;
  if (isa<arith::AddIOp, tile::AddPtrOp>(op))
    return ofSum(op);
  if (isa<arith::MulIOp, arith::ShLIOp>(op))
    return ofProduct(op);
  if (isa<arith::ExtSIOp, arith::ExtUIOp>(op)) {
    const Change *narrow = of(op->getOperand(0));
    if (!narrow || narrow->mayOverflow())
      return std::nullopt;
    return Change{narrow->growth, std::nullopt, narrow->isLoaded};
  }
  return ofUnchanged(op);
}

/// The quotient, or the remainder, of a multiple of the induction variable and a power of two: whole periods.
std::optional<Change> Changes::ofParts(Operation *op) {
  const Change *number = of(op->getOperand(0));
  std::optional<int64_t> constant = getConstantIntValue(op->getOperand(1));
  bool isQuotient = isa<arith::ShRSIOp>(op);
  if (!number || !number->multiple || !constant || *constant < 1 || (isQuotient && *constant > 30))
    return std::nullopt;
  int64_t divisor = isQuotient ? int64_t(1) << *constant : *constant + 1;
  if (!llvm::isPowerOf2_64(divisor) || divisor % *number->multiple != 0)
    return std::nullopt;
  int64_t its = divisor / *number->multiple;
  if (period != 0 && its != period)
    return std::nullopt;
  period = its;
  Value result = op->getResult(0);
  if (isQuotient) {
    quotients.push_back({result, {}, HeldValue::Begin::Next});
    return Change{};
  }
  remainders.push_back({result, number->growth, HeldValue::Begin::Zero, divisor - *number->multiple});
  Change change{number->growth};
  change.isRemainder = true;
  return change;
}

std::optional<Change> Changes::ofSum(Operation *op) {
  const Change *first = of(op->getOperand(0)), *second = of(op->getOperand(1));
  bool isPlace = isa<tile::AddPtrOp>(op) && !op->getOperand(1).getType().isInteger(64);
  if (!first || !second || (isPlace && second->mayOverflow()))
    return std::nullopt;
  Change sum{first->growth, std::nullopt, first->isLoaded || second->isLoaded};
  llvm::append_range(sum.growth, second->growth);
  return sum;
}

/// A number that changes, times one that does not. Where the latter is no constant they are of 64 bits, of which no
/// address has more.
std::optional<Change> Changes::ofProduct(Operation *op) {
  const Change *first = of(op->getOperand(0)), *second = of(op->getOperand(1));
  if (!first || !second)
    return std::nullopt;
  Value factor = op->getOperand(1);
  if (isa<arith::MulIOp>(op) && first->isConstant()) {
    std::swap(first, second);
    factor = op->getOperand(0);
  }
  if (first->isConstant())
    return ofUnchanged(op);
  std::optional<int64_t> count = getConstantIntValue(factor);
  if (isa<arith::ShLIOp>(op)) {
    if (!count || *count < 0 || *count > 30)
      return std::nullopt;
    count = int64_t(1) << *count;
  }
  if (!count && (!loop.isDefinedOutsideOfLoop(factor) || !factor.getType().isInteger(64)))
    return std::nullopt;
  Change product{first->growth, std::nullopt, first->isLoaded};
  for (HeldTerm &term : product.growth) {
    term.count *= count.value_or(1);
    if (!count)
      term.factors.push_back(factor);
  }
  if (count && *count > 0 && first->multiple)
    product.multiple = *first->multiple * *count;
  return product;
}

/// What is computed from numbers that stay the same.
std::optional<Change> Changes::ofUnchanged(Operation *op) {
  auto load = dyn_cast<tile::LoadOp>(op);
  if (!load && !isMemoryEffectFree(op))
    return std::nullopt;
  Change change;
  change.isLoaded = load != nullptr;
  for (Value operand : op->getOperands()) {
    const Change *its = of(operand);
    if (!its || !its->isConstant())
      return std::nullopt;
    change.isLoaded |= its->isLoaded;
  }
  return change;
}

/// Ops of the slice that `results` need, but for those of `stops`.
static llvm::DenseSet<Operation *> neededFor(ArrayRef<Value> results, const llvm::DenseSet<Value> &stops,
                                             const Slice &slice) {
  llvm::DenseSet<Operation *> needed;
  SmallVector<Value> open(results);
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (stops.contains(value) || !op || !slice.ops.contains(op) || !needed.insert(op).second)
      continue;
    llvm::append_range(open, op->getOperands());
  }
  return needed;
}

/// The scalars that need a load and that what is no such scalar reads; none where one grows in too few bits.
static SmallVector<HeldValue, 4> loadedValues(Changes &changes, const Slice &slice, ArrayRef<Value> results,
                                              scf::ForOp loop) {
  SmallVector<HeldValue, 4> found;
  for (Operation *op : inOrder(slice, loop)) {
    const Change *change = op->getNumResults() == 1 ? changes.of(op->getResult(0)) : nullptr;
    if (!change || !change->isLoaded)
      continue;
    Value value = op->getResult(0);
    bool isRead = llvm::is_contained(results, value) || llvm::any_of(op->getUsers(), [&](Operation *user) {
                    return slice.ops.contains(user) && !(user->getNumResults() == 1 && changes.of(user->getResult(0)));
                  });
    if (!isRead)
      continue;
    if (!change->isConstant() && !value.getType().isInteger(64) && !isa<tile::PointerType>(value.getType()))
      return {};
    found.push_back({value, change->growth});
  }
  return found;
}

HeldValues findHeldValues(const Slice &slice, ArrayRef<Value> results, scf::ForOp loop) {
  Changes changes(slice, loop);
  if (changes.period < fewestIterations || changes.remainders.empty())
    return {};
  SmallVector<HeldValue, 4> loaded = loadedValues(changes, slice, results, loop);
  if (loaded.empty())
    return {};
  HeldValues found;
  llvm::append_range(found.values, changes.remainders);
  llvm::append_range(found.values, changes.quotients);
  llvm::DenseSet<Value> stops;
  for (const HeldValue &held : found.values)
    stops.insert(held.value);
  found.needed = neededFor(llvm::map_to_vector(loaded, [](const HeldValue &held) { return held.value; }), stops, slice);
  for (Operation *op : found.needed)
    if (llvm::is_contained(op->getOperands(), loop.getInductionVar()))
      return {};
  llvm::append_range(found.values, loaded);
  for (const HeldValue &held : loaded)
    stops.insert(held.value);
  found.others = neededFor(results, stops, slice);
  return found;
}

/// A constant of the type of a scalar, or of what is added to a pointer.
static Value constantFor(OpBuilder &b, Location loc, Type type, int64_t number) {
  Type integer = isa<tile::PointerType>(type) ? b.getI64Type() : type;
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(integer, number));
}

SmallVector<Value> HeldValues::growths(OpBuilder &b, Location loc) const {
  return llvm::map_to_vector(values, [&](const HeldValue &held) -> Value {
    Value sum;
    for (const HeldTerm &term : held.growth) {
      Value product = constantFor(b, loc, held.value.getType(), term.count);
      for (Value factor : term.factors)
        product = arith::MulIOp::create(b, loc, product, factor);
      sum = sum ? arith::AddIOp::create(b, loc, sum, product).getResult() : product;
    }
    return sum;
  });
}

static Value sumOf(OpBuilder &b, Location loc, Value value, Value growth) {
  if (!growth)
    return value;
  if (isa<tile::PointerType>(value.getType()))
    return tile::AddPtrOp::create(b, loc, value.getType(), value, growth);
  return arith::AddIOp::create(b, loc, value, growth);
}

void HeldValues::mapBehind(OpBuilder &b, Location loc, ArrayRef<Operation *> slice, IRMapping &mapping,
                           ValueRange before, ValueRange growths) const {
  auto clone = [&](const llvm::DenseSet<Operation *> &ops, IRMapping &into) {
    for (Operation *op : slice)
      if (ops.contains(op))
        b.clone(*op, into);
  };
  auto number = [&](Value like, int64_t count) { return constantFor(b, loc, like.getType(), count); };
  Value last = number(before.front(), values.front().last);
  Value goesOn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, before.front(), last);
  auto choice = scf::IfOp::create(b, loc, before.getTypes(), goesOn, /*withElseRegion=*/true);
  choice->setAttr(mostlyHoldsAttrName, b.getUnitAttr());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    SmallVector<Value> grown;
    for (auto [value, growth] : llvm::zip_equal(before, growths))
      grown.push_back(sumOf(b, loc, value, growth));
    scf::YieldOp::create(b, loc, grown);
    b.setInsertionPointToStart(choice.elseBlock());
    IRMapping made = mapping;
    for (auto [held, value] : llvm::zip_equal(values, before)) {
      if (held.begin == HeldValue::Begin::Zero)
        made.map(held.value, number(value, 0));
      if (held.begin == HeldValue::Begin::Next)
        made.map(held.value, sumOf(b, loc, value, number(value, 1)));
    }
    clone(needed, made);
    scf::YieldOp::create(b, loc,
                         llvm::map_to_vector(values, [&](const HeldValue &held) { return made.lookup(held.value); }));
  }
  for (auto [held, result] : llvm::zip_equal(values, choice.getResults()))
    mapping.map(held.value, result);
  clone(others, mapping);
}
} // namespace weft::warp
