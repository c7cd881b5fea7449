// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers and folds of the ops in AttnMixerOps.td (attn.softmax: AttnAttendOps.cpp).
#include "dialects/Attn/IR/AttnChecks.h"

using namespace mlir;
using namespace weft::attn;

LogicalResult MeanOp::verify() {
  if (getCuSeqlens() && getCausal())
    return emitOpError() << "expected a mean of packed sequences that is not causal";
  return checkCuSeqlens(*this, getCuSeqlens());
}

LogicalResult ToeplitzOp::verify() { return checkTaps(*this, tensorTypeOf(getTaps())); }

LogicalResult DiagOp::verify() {
  WholeTensorType gate = tensorTypeOf(getGate());
  return gate.getRank() == 3 ? success() : checkRank(*this, "a gate", gate, 4);
}

LogicalResult ApplyOp::verify() {
  if (getValues().empty())
    return emitOpError() << "expected values to apply the mixer to";
  for (Value value : getValues())
    if (failed(checkRank(*this, "values", tensorTypeOf(value), 4)) ||
        failed(checkFloats(*this, "values", tensorTypeOf(value))))
      return failure();
  auto result = cast<WholeTensorType>(getType());
  if (failed(checkRank(*this, "a result", result, 4)))
    return failure();
  WholeTensorType first = tensorTypeOf(getValues().front());
  return checkSizes(*this, "a result", result, {first.dim(0), result.dim(1), result.dim(2), first.dim(3)});
}

OpFoldResult ComposeOp::fold(FoldAdaptor) {
  auto lhs = getLhs().getDefiningOp<MeanOp>(), rhs = getRhs().getDefiningOp<MeanOp>();
  if (lhs && rhs && !lhs.getCausal() && !rhs.getCausal() && lhs.getCuSeqlens() == rhs.getCuSeqlens())
    return getRhs();
  return {};
}
