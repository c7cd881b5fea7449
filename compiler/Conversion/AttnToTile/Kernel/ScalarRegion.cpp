// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See ScalarRegion.h.
#include "compiler/Conversion/AttnToTile/Kernel/ScalarRegion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft {

/// Whether all positions of a tile are known to be below a size: channels mostly are.
static bool isBelow(Value position, int64_t size) {
  // The largest position, as far as sums of ranges and constants tell.
  std::function<std::optional<int64_t>(Value)> largest = [&](Value value) -> std::optional<int64_t> {
    if (std::optional<int64_t> constant = TileBuilder::constantOf(value))
      return constant;
    Operation *op = value.getDefiningOp();
    if (auto range = dyn_cast_or_null<tile::MakeRangeOp>(op))
      return int64_t(range.getEnd()) - 1;
    if (isa_and_nonnull<tile::ExpandDimsOp, tile::BroadcastOp, tile::SplatOp>(op))
      return largest(op->getOperand(0));
    if (!isa_and_nonnull<arith::AddIOp>(op))
      return std::nullopt;
    std::optional<int64_t> a = largest(op->getOperand(0)), b = largest(op->getOperand(1));
    return a && b ? std::optional(*a + *b) : std::nullopt;
  };
  std::optional<int64_t> most = largest(position);
  return most && *most < size;
}

Value loadElement(KernelFrame &frame, Value tensor, ValueRange indices, Value inside, const WholePlaces &whole) {
  TileBuilder &b = frame.b;
  const TensorParameter parameter = frame.input(tensor);
  Value pointer = parameter.pointer, offset;
  for (auto [axis, index] : llvm::enumerate(indices)) {
    if (parameter.type.dim(axis) == "1")
      continue;
    // The positions of a tile at an end of the sequence lie past it; what is computed for them is not used.
    Value place = index;
    std::optional<int64_t> known = parameter.type.staticDim(axis);
    bool exists = place == whole.places && parameter.type.dim(axis) == whole.axis;
    if (isa<RankedTensorType>(place.getType()) && !exists && !(known && isBelow(place, *known)))
      place = b.min(place, b.sub(frame.size(parameter.type.dim(axis)), b.i32(1)));
    Value step = b.cast(place, b.getI64Type());
    if (axis < parameter.strides.size())
      step = b.mul(step, parameter.strides[axis]);
    offset = offset ? b.add(offset, step) : step;
  }
  Value address = offset ? b.addPtr(pointer, offset) : pointer;
  if (inside && isa<RankedTensorType>(inside.getType()))
    address = b.addPtr(address, b.full(TileBuilder::shapeOf(inside), 0, b.getI32Type()));
  Value loaded = b.load(address, inside);
  return b.cast(loaded, attn::scalarTypeOf(parameter.type));
}

/// An arithmetic op on tiles: operands brought to one shape, results of that shape.
static SmallVector<Value> cloneBroadcast(TileBuilder &b, Operation &op, ArrayRef<Value> operands) {
  SmallVector<int64_t> shape;
  bool tiles = false;
  for (Value operand : operands) {
    auto its = TileBuilder::shapeOf(operand);
    tiles |= isa<RankedTensorType>(operand.getType());
    if (its.size() > shape.size())
      shape.insert(shape.begin(), its.size() - shape.size(), 1);
    for (auto [i, size] : llvm::enumerate(llvm::reverse(its)))
      shape[shape.size() - 1 - i] = std::max(shape[shape.size() - 1 - i], size);
  }
  IRMapping mapping;
  for (auto [from, to] : llvm::zip(op.getOperands(), operands))
    mapping.map(from, tiles ? b.broadcast(to, shape) : to);
  Operation *clone = b.clone(op, mapping);
  if (tiles)
    for (OpResult result : clone->getResults())
      result.setType(RankedTensorType::get(shape, result.getType()));
  return SmallVector<Value>(clone->getResults());
}

/// Whether an integer of a region is a position of an axis.
static bool isPosition(const RegionContext &context, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return context.moved.empty() || !context.moved[argument.getArgNumber()];
  return isa<attn::IndexOp>(value.getDefiningOp());
}

/// What an integer of a region is known to be less than, where it is known not to be negative; arithmetic of 32 bits
/// wraps, so a sum or a product of such numbers is one only where it fits. Division by 0 gives any number. `depth` ops
/// are looked at, one below the other.
static std::optional<int64_t> naturalBelow(const RegionContext &context, Value value, int depth = 10) {
  constexpr int64_t positions = int64_t(1) << 30, numbers = int64_t(1) << 31;
  Operation *op = value.getDefiningOp();
  if (isPosition(context, value) || isa_and_nonnull<attn::SizeOp>(op))
    return positions;
  if (!op)
    return std::nullopt;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.isNonNegative() ? std::optional(constant.getSExtValue() + 1) : std::nullopt;
  bool select = isa<arith::SelectOp>(op);
  if (!select && !isa<arith::AddIOp, arith::MulIOp, arith::DivSIOp, arith::RemSIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return std::nullopt;
  if (depth == 0)
    return std::nullopt;
  std::optional<int64_t> a = naturalBelow(context, op->getOperand(select ? 1 : 0), depth - 1);
  std::optional<int64_t> b = naturalBelow(context, op->getOperand(select ? 2 : 1), depth - 1);
  if (isa<arith::MaxSIOp>(op) && (a || b))
    return a && b ? std::max(*a, *b) : numbers;
  if (!a || !b)
    return std::nullopt;
  auto fits = [](int64_t most) { return most < numbers ? std::optional(most + 1) : std::nullopt; };
  bool divides = matchPattern(op->getOperand(1), m_ConstantInt(&constant)) && constant.isStrictlyPositive();
  return TypeSwitch<Operation *, std::optional<int64_t>>(op)
      .Case<arith::AddIOp>([&](auto) { return fits((*a - 1) + (*b - 1)); })
      .Case<arith::MulIOp>([&](auto) { return fits((*a - 1) * (*b - 1)); })
      .Case<arith::DivSIOp>([&](auto) { return divides ? a : std::nullopt; })
      .Case<arith::RemSIOp>([&](auto) { return divides ? std::optional(std::min(*a, *b)) : std::nullopt; })
      .Case<arith::MinSIOp>([&](auto) { return std::min(*a, *b); })
      .Default([&](Operation *) { return std::max(*a, *b); });
}

/// Whether an index that is not negative is a constant below the axis' size, as far as that is known. 0 is below every
/// size but that of an axis without elements, of which no index is.
static bool isBefore(Value place, std::optional<int64_t> size) {
  APInt constant;
  return matchPattern(place, m_ConstantInt(&constant)) && (constant.isZero() || (size && constant.slt(*size)));
}

/// The indices of an element as a region computes them, kept inside of the tensor: `mapped` are those of the kernel.
/// Positions are inside; what is computed of them, or read from memory, may be any number. `loaded`: by loadElement,
/// which keeps tiles of positions below the size itself.
static SmallVector<Value> keptInside(const RegionContext &context, attn::WholeTensorType type, ValueRange indices,
                                     SmallVector<Value> mapped, bool loaded) {
  TileBuilder &b = context.frame.b;
  for (auto [axis, index] : llvm::enumerate(indices)) {
    if (isPosition(context, index) || type.dim(axis) == "1")
      continue;
    Value &place = mapped[axis];
    if (!naturalBelow(context, index))
      place = b.max(place, b.i32(0));
    if (!(loaded && isa<RankedTensorType>(place.getType())) && !isBefore(place, type.staticDim(axis)))
      place = b.min(place, b.sub(context.frame.size(type.dim(axis)), b.i32(1)));
  }
  return mapped;
}

SmallVector<Value> evaluateRegion(Region &region, ValueRange arguments, const RegionContext &context) {
  TileBuilder &b = context.frame.b;
  IRMapping mapping;
  mapping.map(region.getArguments(), arguments);
  auto inKernel = [&](Value value) {
    // Folding moves a region's constants up to the program; the kernel needs its own.
    Operation *definition = value.getDefiningOp();
    if (!mapping.contains(value) && isa_and_nonnull<arith::ConstantOp>(definition))
      mapping.map(value, b.clone(*definition)->getResult(0));
    return mapping.lookupOrDefault(value);
  };
  auto mapped = [&](ValueRange values) { return llvm::map_to_vector(values, inKernel); };
  for (Operation &op : region.front().without_terminator()) {
    SmallVector<Value> results;
    if (auto element = dyn_cast<attn::ElementOp>(op)) {
      auto type = cast<attn::WholeTensorType>(element.getTensor().getType());
      results = {context.element(element.getTensor(),
                                 keptInside(context, type, element.getIndices(), mapped(element.getIndices()),
                                            /*loaded=*/true))};
    } else if (auto index = dyn_cast<attn::IndexOp>(op)) {
      results = {context.index(index.getAxis())};
    } else if (auto size = dyn_cast<attn::SizeOp>(op)) {
      results = {context.frame.size(size.getSize())};
    } else if (auto accumulate = dyn_cast<attn::AccumulateOp>(op)) {
      auto backward = cast<attn::AttendBackwardOp>(region.getParentOp());
      Value gradient = backward.getGradients()[2 * backward.getKeys().size() + accumulate.getTarget()];
      auto type = cast<attn::WholeTensorType>(gradient.getType());
      context.accumulate(accumulate.getTarget(), inKernel(accumulate.getValue()),
                         keptInside(context, type, accumulate.getIndices(), mapped(accumulate.getIndices()),
                                    /*loaded=*/false));
    } else {
      // Constants stay scalars; they are splat where they meet tiles.
      results = cloneBroadcast(b, op, mapped(op.getOperands()));
    }
    for (auto [from, to] : llvm::zip(op.getResults(), results))
      mapping.map(from, to);
  }
  return mapped(region.front().getTerminator()->getOperands());
}

} // namespace weft
