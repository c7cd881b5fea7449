// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Padding: scalar regions folded with zeros, and what ops say of theirs.
#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weft::attn;

namespace {

/// A scalar of a region at padding.
struct Known {
  bool finite = false;     ///< it is a number
  bool repeated = false;   ///< it is what it is elsewhere
  Attribute constant = {}; ///< its value, where that is known

  bool isZero() const {
    if (auto number = dyn_cast_or_null<FloatAttr>(constant))
      return number.getValue().isZero();
    auto integer = dyn_cast_or_null<IntegerAttr>(constant);
    return integer && integer.getValue().isZero();
  }
  /// Whether a quotient by it is finite, where that of the elements that exist is.
  bool divides() const { return constant ? finite && !isZero() : repeated; }
  Padding asPadding() const {
    if (!finite)
      return Padding::Unknown;
    return isZero() ? Padding::Zero : repeated ? Padding::Repeated : Padding::Finite;
  }

  static Known of(Attribute constant, bool repeated) {
    auto number = dyn_cast<FloatAttr>(constant);
    return {!number || number.getValue().isFinite(), repeated, constant};
  }
  static Known of(Padding padding, Type type) {
    if (padding == Padding::Zero)
      return of(Builder(type.getContext()).getZeroAttr(type), /*repeated=*/false);
    return {padding != Padding::Unknown, padding == Padding::Repeated};
  }
};

using Operands = ArrayRef<Known>;

} // namespace

/// The result of an op on constants; null where nobody knows it.
static Attribute folded(Operation &op, ArrayRef<Attribute> constants) {
  SmallVector<OpFoldResult> results;
  Operation *copy = op.clone(); // folding may change an op in place
  bool folds = succeeded(copy->fold(constants, results)) && results.size() == 1;
  Attribute found = folds ? dyn_cast<Attribute>(results.front()) : Attribute();
  copy->destroy();
  return found;
}

/// Whether an op makes a number of numbers, whatever they are, short of overflow.
static bool keepsFinite(Operation &op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::MulFOp, arith::MaximumFOp, arith::MinimumFOp,
             arith::MaxNumFOp, arith::MinNumFOp, arith::ExtFOp, arith::TruncFOp, math::AbsFOp, math::SinOp, math::CosOp,
             math::TanhOp, math::ErfOp, math::AtanOp, math::FloorOp, math::CeilOp, math::RoundOp, math::RoundEvenOp,
             math::TruncOp, math::CopySignOp, math::FmaOp>(op);
}

/// What an op makes of operands of which not all are known.
static Padding paddingOfScalar(Operation &op, Operands operands) {
  bool finite = llvm::all_of(operands, [](const Known &each) { return each.finite; });
  auto zero = [&](unsigned i) { return operands[i].isZero(); };
  if (isa<arith::MulFOp, arith::MulIOp, arith::AndIOp>(op) && finite && (zero(0) || zero(1)))
    return Padding::Zero;
  if (isa<arith::DivFOp>(op) && operands[0].finite && operands[1].divides())
    return zero(0) ? Padding::Zero : Padding::Finite;
  if (isa<math::FmaOp>(op) && finite && (zero(0) || zero(1)) && zero(2))
    return Padding::Zero;
  if (isa<arith::SelectOp>(op)) {
    if (auto condition = dyn_cast_or_null<IntegerAttr>(operands[0].constant))
      return operands[condition.getValue().isZero() ? 2 : 1].asPadding();
    if (zero(1) && zero(2))
      return Padding::Zero;
    return operands[1].finite && operands[2].finite ? Padding::Finite : Padding::Unknown;
  }
  // Integers and booleans are never infinite or NaN.
  if (!isa<FloatType>(op.getResult(0).getType()) || isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return Padding::Finite;
  return finite && keepsFinite(op) ? Padding::Finite : Padding::Unknown;
}

static Known evaluate(Operation &op, Operands operands, std::optional<int64_t> axis) {
  Type type = op.getResult(0).getType();
  bool repeated = llvm::all_of(operands, [](const Known &each) { return each.repeated; });
  if (auto index = dyn_cast<IndexOp>(op))
    repeated = axis && static_cast<int64_t>(index.getAxis()) != *axis;
  // A number of a tensor is finite as far as the tensor's are: past the end, another element of it is read.
  if (isa<IndexOp, ElementOp>(op))
    return {true, repeated};
  auto constants = llvm::map_to_vector(operands, [](const Known &each) { return each.constant; });
  if (!llvm::is_contained(constants, Attribute()))
    if (Attribute found = folded(op, constants))
      return Known::of(found, repeated);
  return repeated ? Known{true, true} : Known::of(paddingOfScalar(op, operands), type);
}

Padding weft::attn::paddingOfRegion(Region &region, ArrayRef<Padding> arguments, unsigned result,
                                    std::optional<int64_t> axis) {
  llvm::DenseMap<Value, Known> known;
  for (auto [argument, padding] : llvm::zip_equal(region.getArguments(), arguments))
    known[argument] = Known::of(padding, argument.getType());
  auto lookup = [&](Value value) {
    Attribute constant; // folding may have moved it out of the region
    return matchPattern(value, m_Constant(&constant)) ? Known::of(constant, /*repeated=*/true) : known.lookup(value);
  };
  for (Operation &op : region.front().without_terminator()) {
    auto element = dyn_cast<ElementOp>(op); // its operand is a tensor, not a scalar of the region
    ValueRange scalars = element ? ValueRange(element.getIndices()) : ValueRange(op.getOperands());
    Known made = evaluate(op, llvm::map_to_vector(scalars, lookup), axis);
    for (Value each : op.getResults())
      known[each] = made;
  }
  return lookup(region.front().getTerminator()->getOperand(result)).asPadding();
}
