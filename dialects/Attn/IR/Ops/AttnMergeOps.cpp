// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers of the ops in AttnMergeOps.td.
#include "dialects/Attn/IR/AttnChecks.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace weft::attn;

/// A tensor of `bits` wide integers in the shape [B, H, N] that `rows` spells.
static LogicalResult checkRows(Operation *op, StringRef what, Value value, ArrayRef<StringRef> rows, unsigned bits) {
  WholeTensorType type = tensorTypeOf(value);
  if (failed(checkSizes(op, what, type, rows)))
    return failure();
  if (type.getElementType().isInteger(bits))
    return success();
  return op->emitOpError() << "expected " << what << " of i" << bits << " elements, but got " << type;
}

/// The first three sizes of a tensor.
static SmallVector<StringRef> threeSizesOf(Value value) {
  WholeTensorType type = tensorTypeOf(value);
  return {type.dim(0), type.dim(1), type.dim(2)};
}

LogicalResult ShiftOp::verify() {
  WholeTensorType from = tensorTypeOf(getSource()), to = tensorTypeOf(getResult());
  if (from.getRank() != 3 && from.getRank() != 4)
    return emitOpError() << "expected a source of rank 3 or 4, but got " << from;
  if (from.getDims() != to.getDims())
    return emitOpError() << "expected a result of the source's shape " << from << ", but got " << to;
  if (failed(checkCuSeqlens(*this, getCuSeqlens())))
    return failure();
  if (auto by = static_cast<int64_t>(getBy()); by == 0 || by > largestDistance || by < -largestDistance)
    return emitOpError() << "expected 'by' to be a distance, of at most " << largestDistance << ", but got " << by;
  return success();
}

LogicalResult MergeUnitsOp::verify() {
  if (failed(checkRank(*this, "joins", tensorTypeOf(getJoins()), 3)))
    return failure();
  SmallVector<StringRef> rows = threeSizesOf(getJoins());
  if (failed(checkRows(*this, "joins", getJoins(), rows, 1)) ||
      failed(checkRows(*this, "kept joins", getKept(), rows, 1)))
    return failure();
  for (auto [name, table] :
       {std::pair("a unit", getUnit()), std::pair("a lower", getLower()), std::pair("an upper", getUpper()),
        std::pair("ends", getEnds()), std::pair("a first", getFirst()), std::pair("a past", getPast())})
    if (failed(checkRows(*this, name, table, rows, 32)))
      return failure();
  if (failed(checkCuSeqlens(*this, getCuSeqlens())))
    return failure();
  if (static_cast<int64_t>(getMaxJoins()) < 0)
    return emitOpError() << "expected 'maxJoins' to be at least 0, but got " << static_cast<int64_t>(getMaxJoins());
  size_t count = getSources().size();
  if (getMerged().size() != count || getModes().size() != count || getOffsets().size() != count)
    return emitOpError() << "expected as many merged tensors, modes and offsets as sources, but got "
                         << getMerged().size() << ", " << getModes().size() << " and " << getOffsets().size() << " for "
                         << count;
  for (auto [source, merged, offset] : llvm::zip(getSources(), getMerged(), getOffsets())) {
    if (failed(checkRank(*this, "a source", tensorTypeOf(source), 4)))
      return failure();
    if (threeSizesOf(source) != rows || !tensorTypeOf(source).staticDim(3))
      return emitOpError() << "expected sources [" << llvm::join(rows, ", ") << ", D] with a static D, but got "
                           << source.getType();
    if (tensorTypeOf(merged).getDims() != tensorTypeOf(source).getDims())
      return emitOpError() << "expected a merged tensor of its source's shape " << source.getType() << ", but got "
                           << merged.getType();
    if (offset != 0 && offset != 1)
      return emitOpError() << "expected offsets of 0 or 1, but got " << offset;
  }
  return success();
}

LogicalResult SpreadOp::verify() {
  WholeTensorType from = tensorTypeOf(getSource());
  if (failed(checkRank(*this, "a source", from, 4)) ||
      failed(checkSizes(*this, "a result", tensorTypeOf(getResult()),
                        {from.dim(0), from.dim(1), from.dim(2), from.dim(3)})))
    return failure();
  SmallVector<StringRef> rows = threeSizesOf(getSource());
  for (auto [name, table] :
       {std::pair("a unit", getUnit()), std::pair("a lower", getLower()), std::pair("ends", getEnds())})
    if (table && failed(checkRows(*this, name, table, rows, 32)))
      return failure();
  if (getOffset() != 0 && getOffset() != 1)
    return emitOpError() << "expected an offset of 0 or 1, but got " << static_cast<int64_t>(getOffset());
  if (getOffset() == 1 && !getLower())
    return emitOpError() << "expected 'lower' with an offset of 1";
  if (getMode() != MergeMode::Sum && !getEnds())
    return emitOpError() << "expected 'ends' where rows are not summed";
  return success();
}

// --- padding ---

Padding ShiftOp::paddingOf(unsigned, int64_t axis, ArrayRef<Padding> operands) {
  return axis == 2 ? Padding::Zero : operands[0];
}

// Rows past the end have no unit: 0, divided by a length of 0.
Padding SpreadOp::paddingOf(unsigned, int64_t axis, ArrayRef<Padding> operands) {
  if (axis != 2)
    return operands[0];
  return getMode() == MergeMode::Mean ? Padding::Unknown : Padding::Zero;
}
