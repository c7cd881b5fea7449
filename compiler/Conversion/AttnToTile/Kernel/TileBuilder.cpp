// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See TileBuilder.h.
#include "compiler/Conversion/AttnToTile/Kernel/TileBuilder.h"
#include "dialects/Attn/IR/AttnDialect.h"
#include "dialects/Tile/IR/DotSums.h"
#include "dialects/Tile/IR/LoopAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace weft {

static bool isFloat(Value value) { return isa<FloatType>(TileBuilder::elementOf(value)); }

Value TileBuilder::i32(int64_t value) { return arith::ConstantIntOp::create(*this, value, 32); }
Value TileBuilder::i64(int64_t value) { return arith::ConstantIntOp::create(*this, value, 64); }
Value TileBuilder::i1(bool value) { return arith::ConstantIntOp::create(*this, value, 1); }
Value TileBuilder::f32(double value) { return arith::ConstantOp::create(*this, getFloatAttr(getF32Type(), value)); }

std::optional<int64_t> TileBuilder::constantOf(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

Value TileBuilder::integerLike(Value value, int64_t number) {
  auto attribute = [&]() -> Attribute {
    auto scalar = getIntegerAttr(elementOf(value), number);
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    return tensor ? Attribute(DenseElementsAttr::get(tensor, Attribute(scalar))) : Attribute(scalar);
  };
  return arith::ConstantOp::create(*this, ::llvm::cast<TypedAttr>(attribute()));
}

Value TileBuilder::full(Shape shape, double value, Type element) {
  auto type = RankedTensorType::get(shape, element);
  Attribute scalar = isa<FloatType>(element) ? Attribute(getFloatAttr(element, value))
                                             : Attribute(getIntegerAttr(element, static_cast<int64_t>(value)));
  return arith::ConstantOp::create(*this, DenseElementsAttr::get(type, scalar));
}

TileBuilder::Shape TileBuilder::shapeOf(Value value) { return tile::shapeOf(value.getType()); }
Type TileBuilder::elementOf(Value value) { return tile::elementTypeOf(value.getType()); }

Value TileBuilder::expand(Value value, int64_t axis) {
  SmallVector<int64_t> shape(shapeOf(value));
  shape.insert(shape.begin() + axis, 1);
  return tile::ExpandDimsOp::create(*this, RankedTensorType::get(shape, elementOf(value)), value,
                                    getI32IntegerAttr(axis));
}

Value TileBuilder::broadcast(Value value, Shape shape) {
  auto type = RankedTensorType::get(shape, elementOf(value));
  if (value.getType() == type)
    return value;
  if (!isa<RankedTensorType>(value.getType()))
    return tile::SplatOp::create(*this, type, value);
  while (shapeOf(value).size() < shape.size())
    value = expand(value, 0);
  return value.getType() == type ? value : Value(tile::BroadcastOp::create(*this, type, value));
}

Value TileBuilder::range(int64_t size) {
  return tile::MakeRangeOp::create(*this, RankedTensorType::get({size}, getI32Type()), getI32IntegerAttr(0),
                                   getI32IntegerAttr(size));
}

Value TileBuilder::transpose(Value value) {
  Shape shape = shapeOf(value);
  return tile::PermuteOp::create(*this, RankedTensorType::get({shape[1], shape[0]}, elementOf(value)), value,
                                 getDenseI32ArrayAttr({1, 0}));
}

Value TileBuilder::reshape(Value value, Shape shape) {
  return tile::ReshapeOp::create(*this, RankedTensorType::get(shape, elementOf(value)), value);
}

std::pair<Value, Value> TileBuilder::together(Value a, Value b) {
  if (shapeOf(a) == shapeOf(b) && isa<RankedTensorType>(a.getType()) == isa<RankedTensorType>(b.getType()))
    return {a, b};
  SmallVector<int64_t> shape(std::max(shapeOf(a).size(), shapeOf(b).size()), 1);
  for (Value value : {a, b})
    for (auto [i, size] : llvm::enumerate(llvm::reverse(shapeOf(value))))
      shape[shape.size() - 1 - i] = std::max(shape[shape.size() - 1 - i], size);
  return {broadcast(a, shape), broadcast(b, shape)};
}

template <typename IntOp, typename FloatOp> Value TileBuilder::binary(Value a, Value b) {
  std::tie(a, b) = together(a, b);
  return isFloat(a) ? createOrFold<FloatOp>(a, b) : createOrFold<IntOp>(a, b);
}

Value TileBuilder::add(Value a, Value b) { return binary<arith::AddIOp, arith::AddFOp>(a, b); }
Value TileBuilder::sub(Value a, Value b) { return binary<arith::SubIOp, arith::SubFOp>(a, b); }
Value TileBuilder::mul(Value a, Value b) { return binary<arith::MulIOp, arith::MulFOp>(a, b); }
Value TileBuilder::min(Value a, Value b) { return binary<arith::MinSIOp, arith::MinimumFOp>(a, b); }
Value TileBuilder::max(Value a, Value b) { return binary<arith::MaxSIOp, arith::MaximumFOp>(a, b); }

Value TileBuilder::upTo(Value last, Value indices) {
  Value least = min(indices, last);
  least.getDefiningOp()->setAttr(tile::wrapsUnreadAttrName, getUnitAttr());
  return least;
}

Value TileBuilder::div(Value a, Value b) {
  if (isFloat(a))
    return binary<arith::DivFOp, arith::DivFOp>(a, b);
  std::optional<int64_t> divisor = constantOf(b);
  if (divisor == 1)
    return a;
  std::tie(a, b) = together(a, b);
  if (divisor && llvm::isPowerOf2_64(*divisor))
    return createOrFold<arith::ShRSIOp>(a, integerLike(a, llvm::Log2_64(*divisor)));
  // Truncating division, one less where something negative remains. (b > 0 is what every caller has.)
  Value quotient = createOrFold<arith::DivSIOp>(a, b);
  Value remainder = sub(a, mul(quotient, b));
  return select(less(remainder, integerLike(a, 0)), sub(quotient, integerLike(a, 1)), quotient);
}

Value TileBuilder::rem(Value a, Value b) {
  std::optional<int64_t> divisor = constantOf(b);
  if (divisor && llvm::isPowerOf2_64(*divisor)) {
    std::tie(a, b) = together(a, b);
    return createOrFold<arith::AndIOp>(a, integerLike(a, *divisor - 1));
  }
  return sub(a, mul(div(a, b), b));
}

Value TileBuilder::compareInt(arith::CmpIPredicate predicate, Value a, Value b) {
  std::tie(a, b) = together(a, b);
  return createOrFold<arith::CmpIOp>(predicate, a, b);
}
Value TileBuilder::compareFloat(arith::CmpFPredicate predicate, Value a, Value b) {
  std::tie(a, b) = together(a, b);
  return createOrFold<arith::CmpFOp>(predicate, a, b);
}
Value TileBuilder::both(Value a, Value b) { return binary<arith::AndIOp, arith::AndIOp>(a, b); }
Value TileBuilder::either(Value a, Value b) { return binary<arith::OrIOp, arith::OrIOp>(a, b); }
Value TileBuilder::negate(Value a) { return binary<arith::XOrIOp, arith::XOrIOp>(a, i1(true)); }

Value TileBuilder::select(Value condition, Value yes, Value no) {
  std::tie(yes, no) = together(yes, no);
  if (isa<RankedTensorType>(condition.getType())) {
    Value ignored;
    std::tie(condition, ignored) = together(condition, yes);
    std::tie(yes, ignored) = together(yes, condition);
    std::tie(no, ignored) = together(no, condition);
  }
  return createOrFold<arith::SelectOp>(condition, yes, no);
}

Value TileBuilder::selectColumns(Value exists, Value yes, Value no) {
  Value selected = select(exists, yes, no);
  if (auto op = selected.getDefiningOp<arith::SelectOp>(); op && selected != yes && selected != no)
    op->setAttr(tile::leavesRowsAttrName, getUnitAttr());
  return selected;
}

Value TileBuilder::cast(Value value, Type element) {
  Type from = elementOf(value);
  if (from == element)
    return value;
  Type type = tile::withElementType(value.getType(), element);
  auto width = [](Type t) { return t.getIntOrFloatBitWidth(); };
  if (isa<FloatType>(from) && isa<FloatType>(element)) {
    // An f8 that is an f32 on its way to 16 bits is one of 16 bits without rounding.
    auto extended = value.getDefiningOp<arith::ExtFOp>();
    if (extended && attn::isFloat8(elementOf(extended.getIn())) && width(element) == 16)
      return cast(extended.getIn(), element);
    if (width(from) < width(element))
      return createOrFold<arith::ExtFOp>(type, value);
    if (width(from) > width(element))
      return createOrFold<arith::TruncFOp>(type, value);
    return cast(cast(value, getF32Type()), element); // between f16 and bf16
  }
  if (isa<FloatType>(element))
    return from.isInteger(1) ? createOrFold<arith::UIToFPOp>(type, value) : createOrFold<arith::SIToFPOp>(type, value);
  if (isa<FloatType>(from))
    return createOrFold<arith::FPToSIOp>(type, value);
  if (width(from) > width(element))
    return createOrFold<arith::TruncIOp>(type, value);
  return from.isInteger(1) ? createOrFold<arith::ExtUIOp>(type, value) : createOrFold<arith::ExtSIOp>(type, value);
}

Value TileBuilder::exp2(Value value) { return math::Exp2Op::create(*this, value); }
Value TileBuilder::log2(Value value) { return math::Log2Op::create(*this, value); }
Value TileBuilder::rsqrt(Value value) { return math::RsqrtOp::create(*this, value); }

Value TileBuilder::ceilDiv(Value a, int64_t b) { return div(add(a, i32(b - 1)), i32(b)); }

Value TileBuilder::addPtr(Value pointer, Value offset) {
  SmallVector<int64_t> shape(std::max(shapeOf(pointer).size(), shapeOf(offset).size()), 1);
  if (!shape.empty()) {
    for (Value value : {pointer, offset})
      for (auto [i, size] : llvm::enumerate(llvm::reverse(shapeOf(value))))
        shape[shape.size() - 1 - i] = std::max(shape[shape.size() - 1 - i], size);
    pointer = broadcast(pointer, shape);
    offset = broadcast(offset, shape);
  }
  return createOrFold<tile::AddPtrOp>(pointer, offset);
}

Value TileBuilder::load(Value pointer, Value mask) {
  Type pointee = tile::pointeeTypeOf(pointer.getType());
  Type type = tile::withElementType(pointer.getType(), pointee);
  Value other;
  if (mask) {
    if (isa<RankedTensorType>(type)) {
      mask = broadcast(mask, shapeOf(pointer));
      other = full(shapeOf(pointer), 0, pointee);
    } else {
      other = arith::ConstantOp::create(*this, getZeroAttr(pointee));
    }
  }
  return tile::LoadOp::create(*this, type, pointer, mask, other);
}

void TileBuilder::store(Value pointer, Value value, Value mask) {
  if (mask && isa<RankedTensorType>(pointer.getType()))
    mask = broadcast(mask, shapeOf(pointer));
  tile::StoreOp::create(*this, pointer, value, mask);
}

/// The 8-bit floats that an operand of a product is converted from, lying as it does; null where there are none.
static Value float8Behind(TileBuilder &b, Value operand) {
  auto permute = operand.getDefiningOp<tile::PermuteOp>();
  auto extended = (permute ? permute.getSource() : operand).getDefiningOp<arith::ExtFOp>();
  if (!extended || !attn::isFloat8(TileBuilder::elementOf(extended.getIn())))
    return {};
  return permute ? b.transpose(extended.getIn()) : extended.getIn();
}

Value TileBuilder::dot(Value a, Value b, Value acc, tile::Precision precision) {
  return tile::DotOp::create(*this, acc.getType(), a, b, acc, precision);
}

Value TileBuilder::dotOfFloat8(Value a, Value b, Value acc) {
  constexpr int64_t leastInner = 32; // of instructions for 8-bit floats; others take them as f16
  Value narrowA = float8Behind(*this, a), narrowB = float8Behind(*this, b);
  if (!narrowA || !narrowB || elementOf(narrowA) != elementOf(narrowB) || shapeOf(a).back() < leastInner)
    return {};
  auto dot = tile::DotOp::create(*this, acc.getType(), narrowA, narrowB, acc);
  dot->setAttr(tile::impreciseSumsAttrName, getUnitAttr()); // of parts of one sum
  return dot;
}

Value TileBuilder::reduce(Value value, int64_t axis, llvm::function_ref<Value(TileBuilder &, Value, Value)> combine) {
  SmallVector<int64_t> shape(shapeOf(value));
  Type element = elementOf(value);
  shape.erase(shape.begin() + axis);
  Type type = shape.empty() ? element : Type(RankedTensorType::get(shape, element));
  auto op = tile::ReduceOp::create(*this, TypeRange(type), ValueRange(value), getI32IntegerAttr(axis));
  OpBuilder::InsertionGuard guard(*this);
  Block *block = createBlock(&op.getCombiner(), {}, {element, element}, {getLoc(), getLoc()});
  Value combined = combine(*this, block->getArgument(0), block->getArgument(1));
  tile::YieldOp::create(*this, ValueRange(combined));
  return op.getResult(0);
}

Value TileBuilder::reduceSum(Value value, int64_t axis) {
  return reduce(value, axis, [](TileBuilder &b, Value x, Value y) { return b.add(x, y); });
}
Value TileBuilder::reduceMax(Value value, int64_t axis) {
  return reduce(value, axis, [](TileBuilder &b, Value x, Value y) { return b.max(x, y); });
}

Value TileBuilder::scan(Value value, llvm::function_ref<Value(TileBuilder &, Value, Value)> combine) {
  auto scanned =
      tile::ScanOp::create(*this, TypeRange(value.getType()), ValueRange(value), getI32IntegerAttr(0), UnitAttr());
  OpBuilder::InsertionGuard guard(*this);
  Type element = elementOf(value);
  Block *block = createBlock(&scanned.getCombiner(), {}, {element, element}, {getLoc(), getLoc()});
  tile::YieldOp::create(*this, ValueRange(combine(*this, block->getArgument(0), block->getArgument(1))));
  return scanned.getResult(0);
}

Value TileBuilder::prefixSum(Value value) {
  return scan(value, [](TileBuilder &b, Value x, Value y) { return b.add(x, y); });
}
Value TileBuilder::prefixMax(Value value) {
  return scan(value, [](TileBuilder &b, Value x, Value y) { return b.max(x, y); });
}

Value TileBuilder::programId(tile::Axis axis) { return tile::ProgramIdOp::create(*this, getI32Type(), axis); }
Value TileBuilder::numPrograms(tile::Axis axis) { return tile::NumProgramsOp::create(*this, getI32Type(), axis); }

} // namespace weft
