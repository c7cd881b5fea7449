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

} // namespace

void weft::attachMergeAdjoints(MLIRContext &context) {
  attn::MergeUnitsOp::attachInterface<MergeUnitsAdjoint>(context);
}
