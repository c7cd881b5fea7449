// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/TileToWarp/LayoutRules.h"

#include "compiler/Conversion/TileToWarp/ChooseLayouts.h"
#include "dialects/Tile/IR/TileProgramOps.h"
#include "dialects/Warp/Layout/MmaLayouts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using llvm::SmallVector;
using weft::warp::InDim;
using weft::warp::LayoutAttr;
using weft::warp::LinearLayout;

namespace weft {

RankedTensorType tensorOf(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

OpKind kindOf(Operation *op) {
  if (isa<scf::ForOp, scf::WhileOp, scf::IfOp, scf::YieldOp, scf::ConditionOp>(op))
    return OpKind::Structured;
  bool tensorOperand = llvm::any_of(op->getOperands(), [](Value value) { return bool(tensorOf(value)); });
  bool tensorResult = llvm::any_of(op->getResults(), [](Value value) { return bool(tensorOf(value)); });
  if (!tensorOperand && !tensorResult)
    return OpKind::Scalar;
  if (isa<tile::SplatOp, tile::MakeRangeOp, arith::ConstantOp>(op))
    return OpKind::Source;
  if (isa<tile::ExpandDimsOp, tile::BroadcastOp>(op))
    return OpKind::View;
  if (isa<tile::PermuteOp, tile::ReshapeOp>(op))
    return OpKind::Reorder;
  if (isa<tile::LoadOp, tile::AtomicRMWOp, tile::AtomicCASOp, tile::DotOp, tile::RowDotOp, tile::ReduceOp, tile::ScanOp,
          tile::JoinOp, tile::SplitOp, tile::GatherOp, tile::HistogramOp, tile::InlineAsmOp, tile::MapOp>(op))
    return OpKind::Fixed;
  if (isa<tile::StoreOp, tile::AssertOp, tile::PrintOp>(op))
    return OpKind::Effect;
  bool elementwise =
      OpTrait::hasElementwiseMappableTraits(op) ||
      isa<tile::AddPtrOp, tile::PtrCastOp, tile::PtrToIntOp, tile::IntToPtrOp, tile::ShiftOp, tile::PromiseOp>(op);
  return elementwise && op->getNumRegions() == 0 ? OpKind::Elementwise : OpKind::Unknown;
}

LinearLayout joinedLayout(const LinearLayout &half) {
  SmallVector<int64_t> shape(half.shape());
  shape.push_back(2);
  LinearLayout whole(shape);
  whole.append(InDim::Register, uint32_t(1));
  for (InDim dim : {InDim::Register, InDim::Lane, InDim::Warp, InDim::Block})
    for (uint32_t basis : half.bases(dim))
      whole.append(dim, basis << 1);
  return whole;
}

std::optional<LinearLayout> splitLayout(const LinearLayout &whole) { return whole.ofPairs(whole.shape().drop_back()); }

/// The layout of a gather's indices and result beside its source's: the same along the other axes, as far as no lane
/// then repeats another.
static LinearLayout gatheredLayout(tile::GatherOp gather, const LinearLayout &source) {
  auto type = cast<RankedTensorType>(gather.getType());
  LinearLayout resized = source.resizeAxis(gather.getAxis(), type.getDimSize(gather.getAxis()));
  return resized.isInjective() ? resized : defaultLayout(type.getShape(), source.size(InDim::Warp));
}

LinearLayout DotPlan::sums(ArrayRef<int64_t> shape) const {
  LinearLayout layout = warp::mmaAccLayout(shape, warps, fragments());
  for (unsigned axis : {0, 1})
    if (interleaved[axis])
      layout = warp::interleaved(layout, axis);
  return layout;
}

LinearLayout DotPlan::operand(unsigned index, ArrayRef<int64_t> shape, unsigned elementBits, unsigned batch) const {
  auto which = index == 0 ? warp::MmaOperand::A : warp::MmaOperand::B;
  LinearLayout layout = warp::mmaOperandLayout(which, shape, warps, elementBits, fragments(), batch);
  if (neighboursAlongK > 2)
    layout = warp::byWordsAlongK(layout, index == 0 ? 1 : 0, neighboursAlongK);
  return interleaved[index] ? warp::interleaved(layout, index) : layout;
}

LayoutAttr LayoutRules::dotOperandLayout(Operation *op, LayoutAttr accumulator, unsigned index) const {
  if (index == 2)
    return accumulator;
  auto type = cast<RankedTensorType>(op->getOperand(index).getType());
  const DotPlan &plan = dot(op);
  if (plan.usesWarpgroups())
    return plan.operands[index];
  if (!plan.usesMma())
    return attr(fmaOperandLayout(accumulator.getLayout(), index, type.getDimSize(index == 0 ? 1 : 0)));
  return attr(plan.operand(index, type.getShape(), type.getElementTypeBitWidth(), cast<tile::DotOp>(op).getBatch()));
}

LayoutAttr LayoutRules::operandLayout(Operation *op, LayoutAttr layout, unsigned index) const {
  RankedTensorType type = tensorOf(op->getOperand(index));
  if (!type || !layout)
    return {};
  return TypeSwitch<Operation *, LayoutAttr>(op)
      .Case([&](tile::ExpandDimsOp expand) { return attr(layout.getLayout().dropAxis(expand.getAxis())); })
      .Case([&](tile::BroadcastOp broadcast) {
        LinearLayout source = layout.getLayout();
        for (unsigned axis = 0; axis < source.rank(); ++axis)
          if (type.getDimSize(axis) != broadcast.getType().getDimSize(axis))
            source = source.squeezeAxis(axis);
        return attr(source);
      })
      .Case([&](tile::PermuteOp permute) {
        SmallVector<int32_t> inverse(permute.getOrder().size());
        for (auto [to, from] : llvm::enumerate(permute.getOrder()))
          inverse[from] = to;
        return attr(layout.getLayout().permute(inverse));
      })
      .Case([&](tile::ReshapeOp) { return attr(layout.getLayout().reshape(type.getShape())); })
      .Case([&](tile::JoinOp) { return attr(*splitLayout(layout.getLayout())); })
      .Case([&](tile::DotOp) { return dotOperandLayout(op, layout, index); })
      .Case(
          [&](tile::GatherOp gather) { return index == 0 ? layout : attr(gatheredLayout(gather, layout.getLayout())); })
      .Default(layout);
}

LayoutAttr LayoutRules::resultLayout(Operation *op, LayoutAttr layout, unsigned index) const {
  if (!tensorOf(op->getResult(index)) || !layout)
    return {};
  return TypeSwitch<Operation *, LayoutAttr>(op)
      .Case([&](tile::ReduceOp reduce) { return attr(layout.getLayout().dropAxis(reduce.getAxis())); })
      .Case([&](tile::RowDotOp) { return attr(layout.getLayout().dropAxis(1)); })
      .Case([&](tile::SplitOp) { return attr(*splitLayout(layout.getLayout())); })
      .Case([&](tile::GatherOp gather) { return attr(gatheredLayout(gather, layout.getLayout())); })
      .Case([&](tile::HistogramOp histogram) {
        ArrayRef<int64_t> shape = cast<RankedTensorType>(histogram.getType()).getShape();
        return attr(defaultLayout(shape, layout.getLayout().size(InDim::Warp)));
      })
      .Default(layout);
}

LayoutAttr LayoutRules::layoutFromOperand(Operation *op, LayoutAttr operand) const {
  return TypeSwitch<Operation *, LayoutAttr>(op)
      .Case([&](tile::PermuteOp permute) { return attr(operand.getLayout().permute(permute.getOrder())); })
      .Case([&](tile::ReshapeOp reshape) { return attr(operand.getLayout().reshape(reshape.getType().getShape())); })
      .Case([&](tile::JoinOp) { return attr(joinedLayout(operand.getLayout())); })
      .Case([&](tile::SplitOp) { return splitLayout(operand.getLayout()) ? operand : LayoutAttr(); })
      .Case([&](tile::ShiftOp shift) {
        const bool half = tensorOf(shift.getSource()).getElementTypeBitWidth() == 16;
        return half ? attr(shiftedLayout(operand.getLayout(), shift.getAxis())) : operand;
      })
      .Default(operand);
}

} // namespace weft
