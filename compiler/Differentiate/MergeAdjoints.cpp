// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Adjoints of the ops that merge tokens. Which tokens are merged carries no gradient; merging is linear, so its adjoint
// hands each unit's gradient to the unit's tokens.
//
//   %ku, %unit, ... = attn.merge_units %joins (%k)   =>   %dk = attn.spread %dku by %unit
#include "compiler/Differentiate/Adjoints.h"

using namespace mlir;
using namespace weft;

namespace {

struct MergeUnitsAdjoint : DifferentiableOpInterface::ExternalModel<MergeUnitsAdjoint, attn::MergeUnitsOp> {
  LogicalResult addAdjoint(Operation *op, Gradients &gradients) const {
    auto merge = cast<attn::MergeUnitsOp>(op);
    for (auto [i, source, merged] : llvm::enumerate(merge.getSources(), merge.getMerged())) {
      Value gradient = gradients.get(merged);
      if (!gradient || !gradients.wants(source))
        continue;
      attn::MergeMode mode = merge.modeOf(i);
      int64_t offset = merge.getOffsets()[i];
      Value unit = gradients.primal(merge.getUnit());
      Value lower = offset ? gradients.primal(merge.getLower()) : Value();
      Value ends = mode != attn::MergeMode::Sum ? gradients.primal(merge.getEnds()) : Value();
      gradients.add(source, attn::SpreadOp::create(gradients.b, gradients.contributionType(source), gradient, unit,
                                                   lower, ends, mode, offset));
    }
    return success();
  }
};

/// Values and their tangents are merged by one op, which finds the units once.
struct MergeUnitsTangent : LinearisableOpInterface::ExternalModel<MergeUnitsTangent, attn::MergeUnitsOp> {
  LogicalResult addTangent(Operation *op, Tangents &tangents) const {
    auto merge = cast<attn::MergeUnitsOp>(op);
    SmallVector<Value> sources = tangents.primals(merge.getSources());
    SmallVector<Type> types(merge.getMerged().getTypes());
    SmallVector<Attribute> modes(merge.getModes().getValue());
    SmallVector<int64_t> offsets(merge.getOffsets());
    SmallVector<Value> merged;
    for (auto [i, source, result] : llvm::enumerate(merge.getSources(), merge.getMerged())) {
      Value tangent = tangents.get(source);
      if (!tangent)
        continue;
      sources.push_back(tangent);
      types.push_back(result.getType());
      modes.push_back(modes[i]);
      offsets.push_back(offsets[i]);
      merged.push_back(result);
    }
    ImplicitLocOpBuilder &b = tangents.b;
    Value starts = merge.getCuSeqlens() ? tangents.primal(merge.getCuSeqlens()) : Value();
    auto both = attn::MergeUnitsOp::create(
        b, types, merge.getUnit().getType(), merge.getLower().getType(), merge.getUpper().getType(),
        merge.getEnds().getType(), merge.getFirst().getType(), merge.getPast().getType(), merge.getKept().getType(),
        tangents.primal(merge.getJoins()), starts, sources, merge.getMaxJoins(), b.getArrayAttr(modes), offsets);
    unsigned count = merge.getMerged().size();
    for (auto [from, to] : llvm::zip(merge.getMerged(), both.getMerged().take_front(count)))
      tangents.setPrimal(from, to);
    for (auto [from, to] :
         llvm::zip(merge->getResults().drop_front(count), both->getResults().drop_front(both.getMerged().size())))
      tangents.setPrimal(from, to);
    for (auto [result, tangent] : llvm::zip(merged, both.getMerged().drop_front(count)))
      tangents.set(result, tangent);
    return success();
  }
};

struct SpreadTangent : LinearisableOpInterface::ExternalModel<SpreadTangent, attn::SpreadOp> {
  LogicalResult addTangent(Operation *op, Tangents &tangents) const {
    if (Operation *term = tangents.cloneWithTangent(op, 0))
      tangents.setSum(op, term);
    return success();
  }
};

} // namespace

void weft::attachMergeAdjoints(MLIRContext &context) {
  attn::MergeUnitsOp::attachInterface<MergeUnitsAdjoint, MergeUnitsTangent>(context);
  attn::SpreadOp::attachInterface<SpreadTangent>(context);
}
