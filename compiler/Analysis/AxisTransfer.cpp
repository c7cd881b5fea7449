// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Analysis/AxisTransfer.h"

#include "compiler/Analysis/IndexRanges.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Tile/IR/TileProgramOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>

using namespace mlir;

namespace weft {

int64_t lowestBit(int64_t value) {
  return value == 0 ? AxisInfo::maxDivisibility : std::min(value & -value, AxisInfo::maxDivisibility);
}

unsigned rankOf(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor ? tensor.getRank() : 0;
}

bool hasAxisInfo(Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  return element.isIntOrIndex() || isa<tile::PointerType>(element);
}

int64_t unitOf(Type type) {
  auto pointer = dyn_cast<tile::PointerType>(getElementTypeOrSelf(type));
  if (!pointer)
    return 1;
  Type pointee = pointer.getPointee();
  return pointee.isIntOrFloat() ? std::max<int64_t>(1, pointee.getIntOrFloatBitWidth() / 8) : 8;
}

namespace {

int64_t sizeOf(Value value, unsigned axis) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor && axis < tensor.getRank() ? tensor.getDimSize(axis) : 1;
}

/// A value whose elements all have the facts of a scalar that is divisible by `divisibility`.
AxisInfo uniform(Value value, int64_t divisibility, std::optional<int64_t> constant) {
  AxisInfo info = AxisInfo::unknown(rankOf(value));
  for (unsigned axis = 0; axis < info.rank(); ++axis) {
    info.divisibility[axis] = divisibility;
    info.constancy[axis] = sizeOf(value, axis);
  }
  info.constant = constant;
  return info;
}

/// Facts that hold for any function of the operands, element by element: it repeats where they all do.
AxisInfo elementwise(ArrayRef<AxisInfo> operands, Value result) {
  AxisInfo info = AxisInfo::unknown(rankOf(result));
  for (unsigned axis = 0; axis < info.rank(); ++axis) {
    info.constancy[axis] = sizeOf(result, axis);
    for (const AxisInfo &operand : operands)
      if (operand.rank() == info.rank()) // the condition of a select may be a scalar
        info.constancy[axis] = std::min(info.constancy[axis], operand.constancy[axis]);
  }
  return info;
}

/// `a + scale * b` and `a - b`: counts up where one side does and the other repeats; when `minus`, only the left side
/// may count up. `unit` is the step of the result and of a, in the units that divisibility is measured in.
AxisInfo sum(const AxisInfo &a, const AxisInfo &b, Value result, bool minus, int64_t unit) {
  AxisInfo info = elementwise({a, b}, result);
  int64_t scale = lowestBit(unit);
  for (unsigned axis = 0; axis < info.rank(); ++axis) {
    int64_t left = std::min(a.contiguity[axis], b.constancy[axis]);
    int64_t right = minus ? 1 : std::min(a.constancy[axis], b.contiguity[axis]);
    int64_t run = std::max({left, right, int64_t(1)});
    info.contiguity[axis] = run;
    info.divisibility[axis] = std::min(a.divisibilityAt(axis, run, unit), b.divisibilityAt(axis, run) * scale);
    info.divisibility[axis] = std::min(info.divisibility[axis], AxisInfo::maxDivisibility);
  }
  return info;
}

AxisInfo product(const AxisInfo &a, const AxisInfo &b, Value result) {
  if (a.constant == 1)
    return b;
  if (b.constant == 1)
    return a;
  AxisInfo info = elementwise({a, b}, result);
  for (unsigned axis = 0; axis < info.rank(); ++axis) {
    int64_t left = a.divisibilityAt(axis, 1), right = b.divisibilityAt(axis, 1);
    info.divisibility[axis] = left > AxisInfo::maxDivisibility / right ? AxisInfo::maxDivisibility : left * right;
  }
  return info;
}

/// Division by a power of two turns runs that count up from a multiple of it into runs that repeat.
AxisInfo quotient(const AxisInfo &a, const AxisInfo &b, Value result) {
  if (b.constant == 1)
    return a;
  AxisInfo info = elementwise({a, b}, result);
  for (unsigned axis = 0; axis < info.rank(); ++axis) {
    // A multiple is divided exactly, whatever its sign.
    if (b.constant && *b.constant > 0 && lowestBit(*b.constant) == *b.constant)
      info.divisibility[axis] = std::max<int64_t>(1, a.divisibilityAt(axis, 1) / *b.constant);
    if (!a.isNonNegative()) // C's division rounds towards zero, so runs below zero end elsewhere
      continue;
    int64_t divisor = b.divisibilityAt(axis, b.contiguity[axis]);
    int64_t runs = std::min({a.contiguity[axis], a.divisibility[axis], divisor, b.constancy[axis]});
    info.constancy[axis] = std::max(info.constancy[axis], runs);
  }
  return info;
}

/// The remainder by a multiple of g counts up in runs of g that begin at multiples of g.
AxisInfo remainder(const AxisInfo &a, const AxisInfo &b, Value result) {
  AxisInfo info = elementwise({a, b}, result);
  if (!a.isNonNegative())
    return info;
  for (unsigned axis = 0; axis < info.rank(); ++axis) {
    int64_t run = std::min({a.contiguity[axis], a.divisibility[axis], b.divisibilityAt(axis, 1), b.constancy[axis]});
    info.contiguity[axis] = std::max<int64_t>(run, 1);
    info.divisibility[axis] = std::min(a.divisibilityAt(axis, run), b.divisibilityAt(axis, 1));
  }
  return info;
}

/// A comparison of a run that counts up from a multiple of g with a multiple of g has one outcome for the whole run,
/// when equality falls on the side where the run begins.
AxisInfo comparison(arith::CmpIPredicate predicate, const AxisInfo &a, const AxisInfo &b, Value result) {
  using P = arith::CmpIPredicate;
  AxisInfo info = elementwise({a, b}, result);
  bool leftCounts = predicate == P::slt || predicate == P::sge || predicate == P::ult || predicate == P::uge;
  bool rightCounts = predicate == P::sgt || predicate == P::sle || predicate == P::ugt || predicate == P::ule;
  for (unsigned axis = 0; axis < info.rank(); ++axis) {
    auto outcome = [&](const AxisInfo &counts, const AxisInfo &repeats) {
      int64_t run = std::min({counts.contiguity[axis], counts.divisibility[axis], repeats.constancy[axis]});
      return std::min(run, repeats.divisibilityAt(axis, 1));
    };
    if (leftCounts)
      info.constancy[axis] = std::max(info.constancy[axis], outcome(a, b));
    if (rightCounts)
      info.constancy[axis] = std::max(info.constancy[axis], outcome(b, a));
  }
  return info;
}

AxisInfo constantInfo(arith::ConstantOp op) {
  if (auto integer = dyn_cast<IntegerAttr>(op.getValue()))
    return uniform(op, lowestBit(integer.getInt()), integer.getInt());
  if (auto dense = dyn_cast<DenseIntElementsAttr>(op.getValue()); dense && dense.isSplat()) {
    int64_t value = dense.getSplatValue<APInt>().getSExtValue();
    return uniform(op, lowestBit(value), value);
  }
  return AxisInfo::unknown(rankOf(op));
}

AxisInfo rangeInfo(tile::MakeRangeOp op) {
  AxisInfo info = AxisInfo::unknown(1);
  info.contiguity[0] = sizeOf(op.getResult(), 0);
  info.divisibility[0] = lowestBit(op.getStart());
  return info;
}

AxisInfo expandInfo(tile::ExpandDimsOp op, const AxisInfo &source) {
  AxisInfo info = source;
  int64_t unit = unitOf(op.getSource().getType());
  auto insert = [&](AxisInfo::Axes &axes, int64_t value) { axes.insert(axes.begin() + op.getAxis(), value); };
  insert(info.contiguity, 1);
  insert(info.divisibility, source.divisibilityOfAll(unit));
  insert(info.constancy, 1);
  return info;
}

AxisInfo broadcastInfo(tile::BroadcastOp op, const AxisInfo &source) {
  AxisInfo info = source;
  for (unsigned axis = 0; axis < info.rank(); ++axis)
    if (sizeOf(op.getSource(), axis) == 1)
      info.constancy[axis] = sizeOf(op.getResult(), axis);
  return info;
}

AxisInfo permuteInfo(tile::PermuteOp op, const AxisInfo &source) {
  AxisInfo info = source;
  for (auto [to, from] : llvm::enumerate(op.getOrder())) {
    info.contiguity[to] = source.contiguity[from];
    info.divisibility[to] = source.divisibility[from];
    info.constancy[to] = source.constancy[from];
  }
  return info;
}

/// A change of pointee type: contiguous runs were counted in other steps, so only what divides every element stays.
AxisInfo castInfo(Operation *op, const AxisInfo &source, Value result) {
  int64_t from = unitOf(op->getOperand(0).getType()), to = unitOf(result.getType());
  if (from == to)
    return source;
  AxisInfo info = elementwise({source}, result);
  for (unsigned axis = 0; axis < info.rank(); ++axis)
    info.divisibility[axis] = source.divisibilityAt(axis, 1, from);
  return info;
}

/// What holds whichever operand an element comes from.
AxisInfo eitherOf(const AxisInfo &a, const AxisInfo &b, AxisInfo choice) {
  AxisInfo info = join(a, b);
  for (unsigned axis = 0; axis < info.rank(); ++axis) {
    int64_t run =
        std::min(info.contiguity[axis], choice.rank() == info.rank() ? choice.constancy[axis] : info.contiguity[axis]);
    info.divisibility[axis] = std::min(a.divisibilityAt(axis, run), b.divisibilityAt(axis, run));
    info.contiguity[axis] = run;
    if (choice.rank() == info.rank())
      info.constancy[axis] = std::min(info.constancy[axis], choice.constancy[axis]);
  }
  return info;
}

/// What is loaded repeats where its address does, and whether it is read; memory that others change, nowhere.
AxisInfo loadInfo(tile::LoadOp load, ArrayRef<AxisInfo> operands, Value result) {
  if (load.getIsVolatile())
    return AxisInfo::unknown(rankOf(result));
  DenseElementsAttr elements;
  const bool isUniform = !load.getOther() || load.getOther().getDefiningOp<tile::SplatOp>() ||
                         (matchPattern(load.getOther(), m_Constant(&elements)) && elements.isSplat());
  return elementwise(isUniform ? operands.take_front(load.getMask() ? 2 : 1) : operands, result);
}

std::optional<int64_t> foldConstants(Operation *op, ArrayRef<AxisInfo> operands) {
  if (operands.size() != 2 || !operands[0].constant || !operands[1].constant)
    return std::nullopt;
  int64_t a = *operands[0].constant, b = *operands[1].constant;
  if (isa<arith::AddIOp>(op))
    return a + b;
  if (isa<arith::SubIOp>(op))
    return a - b;
  if (isa<arith::MulIOp>(op))
    return a * b;
  return std::nullopt;
}

AxisInfo transferAxes(Operation *op, ArrayRef<AxisInfo> operands, OpResult result) {
  if (std::optional<int64_t> constant = foldConstants(op, operands))
    return uniform(result, lowestBit(*constant), constant);
  return TypeSwitch<Operation *, AxisInfo>(op)
      .Case([&](arith::ConstantOp constant) { return constantInfo(constant); })
      .Case([&](tile::MakeRangeOp range) { return rangeInfo(range); })
      .Case([&](tile::SplatOp) { return uniform(result, operands[0].divisibility[0], operands[0].constant); })
      .Case([&](tile::ExpandDimsOp expand) { return expandInfo(expand, operands[0]); })
      .Case([&](tile::BroadcastOp broadcast) { return broadcastInfo(broadcast, operands[0]); })
      .Case([&](tile::PermuteOp permute) { return permuteInfo(permute, operands[0]); })
      .Case<tile::PtrCastOp, tile::PtrToIntOp, tile::IntToPtrOp>(
          [&](auto) { return castInfo(op, operands[0], result); })
      .Case([&](tile::PromiseOp) { return operands[0]; })
      .Case([&](tile::LoadOp load) { return loadInfo(load, operands, result); })
      // Index arithmetic is taken not to wrap, as a kernel that wraps would address outside its buffers anyway.
      .Case<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp, arith::IndexCastUIOp>(
          [&](auto) { return operands[0]; })
      .Case([&](tile::AddPtrOp) { return sum(operands[0], operands[1], result, false, unitOf(result.getType())); })
      .Case([&](arith::AddIOp) { return sum(operands[0], operands[1], result, false, 1); })
      .Case([&](arith::SubIOp) { return sum(operands[0], operands[1], result, true, 1); })
      .Case([&](arith::MulIOp) { return product(operands[0], operands[1], result); })
      .Case<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp>([&](auto shift) {
        std::optional<int64_t> bits = operands[1].constant;
        if (!bits || *bits < 0 || *bits > 40)
          return elementwise(operands, result);
        AxisInfo factor = uniform(result, int64_t(1) << *bits, int64_t(1) << *bits);
        return isa<arith::ShLIOp>(shift) ? product(operands[0], factor, result) : quotient(operands[0], factor, result);
      })
      .Case<arith::DivSIOp, arith::DivUIOp>([&](auto) { return quotient(operands[0], operands[1], result); })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](auto) { return remainder(operands[0], operands[1], result); })
      .Case([&](arith::CmpIOp compare) { return comparison(compare.getPredicate(), operands[0], operands[1], result); })
      .Case([&](arith::SelectOp) { return eitherOf(operands[1], operands[2], operands[0]); })
      // Where both repeat, so does which of them it is.
      .Case<arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp>(
          [&](auto) { return eitherOf(operands[0], operands[1], elementwise(operands, result)); })
      .Default([&](Operation *) {
        bool isElementwise = OpTrait::hasElementwiseMappableTraits(op);
        return isElementwise ? elementwise(operands, result) : AxisInfo::unknown(rankOf(result));
      });
}

} // namespace

AxisInfo transfer(Operation *op, ArrayRef<AxisInfo> operands, OpResult result) {
  AxisInfo info = transferAxes(op, operands, result);
  info.range = inferRange(op, operands, result);
  return info;
}

AxisInfo withPromises(Operation *op, AxisInfo info) {
  auto raise = [&](StringRef name, AxisInfo::Axes &axes) {
    if (auto one = op->getAttrOfType<IntegerAttr>(name))
      axes.back() = std::max(axes.back(), lowestBit(one.getInt()));
    if (auto many = op->getAttrOfType<DenseI32ArrayAttr>(name))
      for (unsigned axis = 0; axis < std::min<size_t>(axes.size(), many.size()); ++axis)
        axes[axis] = std::max(axes[axis], lowestBit(many[axis]));
  };
  raise("tile.contiguity", info.contiguity);
  raise("tile.divisibility", info.divisibility);
  raise("tile.constancy", info.constancy);
  return info;
}

} // namespace weft
