// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Bounds are MLIR's integer ranges, and its ops say what they do to them (InferIntRangeInterface); only where those
// would count with arithmetic that wraps, indices are taken not to: a kernel whose indices wrap would address outside
// its buffers anyway.
#include "compiler/Analysis/IndexRanges.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Interfaces/Utils/InferIntRangeCommon.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using llvm::APInt;
using llvm::SmallVector;

namespace weft {
namespace {

unsigned widthOf(Value value) { return ConstantIntRanges::getStorageBitwidth(getElementTypeOrSelf(value.getType())); }

/// `range` for `value`, any where nothing is known.
ConstantIntRanges orAny(const IndexRange &range, Value value) {
  return range ? *range : ConstantIntRanges::maxRange(widthOf(value));
}

/// A divisor that may be of either sign is taken to be positive.
ConstantIntRanges asDivisor(const ConstantIntRanges &range) {
  unsigned width = range.smin().getBitWidth();
  if (width < 2 || range.smax().slt(1) || range.smin().sgt(0))
    return range;
  return ConstantIntRanges::fromSigned(APInt(width, 1), range.smax());
}

/// Narrowing keeps the numbers.
ConstantIntRanges truncated(const ConstantIntRanges &range, unsigned width) {
  APInt lowest = range.smin().truncSSat(width), highest = range.smax().truncSSat(width);
  return ConstantIntRanges::fromSigned(lowest, highest);
}

/// What the op itself says.
IndexRange asked(Operation *op, ArrayRef<ConstantIntRanges> operands, OpResult result) {
  auto infers = dyn_cast<InferIntRangeInterface>(op);
  if (!infers)
    return std::nullopt;
  IndexRange found;
  infers.inferResultRanges(operands, [&](Value value, const ConstantIntRanges &range) {
    if (value == result)
      found = range;
  });
  return found;
}

} // namespace

IndexRange inferRange(Operation *op, ArrayRef<AxisInfo> operands, OpResult result) {
  unsigned width = widthOf(result);
  if (width == 0)
    return std::nullopt;
  SmallVector<ConstantIntRanges> ranges;
  for (auto [info, operand] : llvm::zip_equal(operands, op->getOperands()))
    ranges.push_back(orAny(info.range, operand));
  constexpr auto staysInside = intrange::OverflowFlags::Nsw;
  return llvm::TypeSwitch<Operation *, IndexRange>(op)
      .Case([&](arith::AddIOp) { return intrange::inferAdd(ranges, staysInside); })
      .Case([&](arith::SubIOp) { return intrange::inferSub(ranges, staysInside); })
      .Case([&](arith::MulIOp) { return intrange::inferMul(ranges, staysInside); })
      .Case([&](arith::ShLIOp) { return intrange::inferShl(ranges, staysInside); })
      .Case([&](arith::TruncIOp) { return truncated(ranges.front(), width); })
      .Case([&](arith::DivSIOp) { return intrange::inferDivS({ranges[0], asDivisor(ranges[1])}); })
      .Case([&](arith::RemSIOp) { return intrange::inferRemS({ranges[0], asDivisor(ranges[1])}); })
      .Default([&](Operation *) { return asked(op, ranges, result); });
}

IndexRange rangeOfLoop(const IndexRange &lower, const IndexRange &upper) {
  if (!lower)
    return std::nullopt;
  unsigned width = lower->smin().getBitWidth();
  APInt highest = upper && upper->smax().sgt(lower->smin()) ? upper->smax() - 1 : APInt::getSignedMaxValue(width);
  return ConstantIntRanges::fromSigned(lower->smin(), highest);
}

IndexRange widened(const IndexRange &before, const IndexRange &range) {
  if (!before || !range || before == range)
    return range;
  unsigned width = range->smin().getBitWidth();
  APInt lowest = range->smin().slt(before->smin()) ? APInt::getSignedMinValue(width) : range->smin();
  APInt highest = range->smax().sgt(before->smax()) ? APInt::getSignedMaxValue(width) : range->smax();
  return ConstantIntRanges::fromSigned(lowest, highest);
}

} // namespace weft
