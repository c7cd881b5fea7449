// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How sums, means, convolutions of many taps and merges become kernels.
#include "compiler/Conversion/AttnToTile/Kernel/Numbers.h"
#include "compiler/Conversion/AttnToTile/Kernel/ProgramKernels.h"
#include "compiler/Conversion/AttnToTile/Rows/Convolution.h"
#include "compiler/Conversion/AttnToTile/Sequence/LowerSequence.h"
#include "compiler/Conversion/AttnToTile/Sequence/LowerSum.h"
#include "compiler/Conversion/AttnToTile/Sequence/RowSums.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {

/// Maps of a merge's computed sources that attention takes: the merge has their rows at hand.
static SmallVector<Value> attendedAlong(attn::MergeUnitsOp merge, const StoredValues &stored) {
  llvm::SetVector<Value> along;
  auto isSource = [&](Value value) { return llvm::is_contained(merge.getSources(), value); };
  for (Value source : merge.getSources())
    for (Operation *user : source.getUsers()) {
      auto map = dyn_cast<attn::MapOp>(user);
      if (!map || stored.contains(source) || map.getNumResults() != 1 || !llvm::all_of(map.getInputs(), isSource))
        continue;
      Value result = map.getResult(0);
      if (wholeType(result).getDims() == wholeType(source).getDims() && !stored.contains(result) &&
          llvm::any_of(result.getUsers(), llvm::IsaPred<attn::AttendOp>))
        along.insert(result);
    }
  return along.takeVector();
}

namespace {
struct SumKernel : KernelOpInterface::ExternalModel<SumKernel, attn::SumOp> {
  LogicalResult lower(Operation *op, ProgramKernels &program) const {
    auto sum = cast<attn::SumOp>(op);
    if (isNumber(sum.getResult())) // A single number is computed by whoever reads it, or beside what it sums up.
      return success();
    bool ofRows = sumsTokens(sum) || sumsTokensAndMore(sum);
    if (failed(ofRows ? program.makePullable(sum.getSource(), op) : program.store(sum.getSource(), op)))
      return failure();
    return lowerSum(sum, program.stored);
  }
};

struct PrefixMeanKernel : KernelOpInterface::ExternalModel<PrefixMeanKernel, attn::PrefixMeanOp> {
  LogicalResult lower(Operation *op, ProgramKernels &program) const {
    auto mean = cast<attn::PrefixMeanOp>(op);
    return failed(program.store(mean.getSource(), op)) ? failure() : lowerPrefixMean(mean, program.stored);
  }
};

struct SequenceMeanKernel : KernelOpInterface::ExternalModel<SequenceMeanKernel, attn::SequenceMeanOp> {
  LogicalResult lower(Operation *op, ProgramKernels &program) const {
    auto mean = cast<attn::SequenceMeanOp>(op);
    if (failed(program.makePullable(mean.getSource(), op)) || failed(program.store(mean.getCuSeqlens(), op)))
      return failure();
    return lowerSequenceMean(mean, program.stored);
  }
};

/// Of a long convolution; the others are row-local.
struct ConvolveKernel : KernelOpInterface::ExternalModel<ConvolveKernel, attn::ConvolveOp> {
  LogicalResult lower(Operation *op, ProgramKernels &program) const {
    auto convolve = cast<attn::ConvolveOp>(op);
    if (failed(program.makePullable(convolve.getSource(), op)) || failed(program.store(convolve.getTaps(), op)))
      return failure();
    return lowerLongConvolve(convolve, program.stored);
  }
};

struct TapsGradKernel : KernelOpInterface::ExternalModel<TapsGradKernel, attn::ConvolveTapsGradOp> {
  LogicalResult lower(Operation *op, ProgramKernels &program) const {
    auto taps = cast<attn::ConvolveTapsGradOp>(op);
    for (Value operand : {taps.getSource(), taps.getGradient()})
      if (failed(program.makePullable(operand, op)))
        return failure();
    if (taps.getCuSeqlens() && failed(program.store(taps.getCuSeqlens(), op)))
      return failure();
    bool isLong = isLongConvolution(taps, wholeType(taps.getResult()));
    return isLong ? lowerLongTapsGrad(taps, program.stored) : lowerTapsGrad(taps, program.stored);
  }
};

struct MergeUnitsKernel : KernelOpInterface::ExternalModel<MergeUnitsKernel, attn::MergeUnitsOp> {
  LogicalResult lower(Operation *op, ProgramKernels &program) const;
};
} // namespace

LogicalResult MergeUnitsKernel::lower(Operation *op, ProgramKernels &program) const {
  auto merge = cast<attn::MergeUnitsOp>(op);
  // Sums to numbers of what the merge says of tokens; what else they take is stored together with the joins, which are
  // often of the same rows.
  SmallVector<attn::SumOp> sums;
  SmallVector<Value> rows{merge.getJoins()};
  for (auto sum : op->getBlock()->getOps<attn::SumOp>()) {
    if (!sumsRows(sum) || rowSpaceOf(sum.getSource()) != rowSpaceOf(merge.getUnit()))
      continue;
    if (std::optional<SmallVector<Value>> taken = program.takenBeside(sum.getSource(), tokenTablesOf(merge))) {
      sums.push_back(sum);
      rows.append(*taken);
    }
  }
  if (!program.stored.contains(merge.getJoins()))
    rows.append(program.squaresFor(merge.getSources(), rows));
  if (failed(program.storeRows(rows, op)))
    return failure();
  for (Value operand : op->getOperands()) {
    bool isSource = llvm::is_contained(merge.getSources(), operand);
    if (failed(isSource ? program.makePullable(operand, op) : program.store(operand, op)))
      return failure();
  }
  SmallVector<Value> along = attendedAlong(merge, program.stored);
  for (Value value : along)
    if (failed(program.makePullable(value, op)))
      return failure();
  return lowerMergeUnits(merge, along, sums, program.stored);
}

void attachSequenceKernels(MLIRContext &context) {
  attn::SumOp::attachInterface<SumKernel>(context);
  attn::PrefixMeanOp::attachInterface<PrefixMeanKernel>(context);
  attn::SequenceMeanOp::attachInterface<SequenceMeanKernel>(context);
  attn::ConvolveOp::attachInterface<ConvolveKernel>(context);
  attn::ConvolveTapsGradOp::attachInterface<TapsGradKernel>(context);
  attn::MergeUnitsOp::attachInterface<MergeUnitsKernel>(context);
}

} // namespace weft
