// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers of the ops that only move elements. The constraints C1, C2, ... are those of TileShapeOps.td.
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace weft::tile;

static LogicalResult verifySameElement(Operation *op, Type source, Type result) {
  if (elementTypeOf(source) == elementTypeOf(result))
    return success();
  return op->emitOpError() << "expected a result of element type " << elementTypeOf(source) << ", but got "
                           << elementTypeOf(result);
}

static LogicalResult verifyShape(Operation *op, ArrayRef<int64_t> expected, Type result) {
  if (expected == shapeOf(result))
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError() << "expected a result of shape [";
  llvm::interleaveComma(expected, diagnostic);
  diagnostic << "], but got [";
  llvm::interleaveComma(shapeOf(result), diagnostic);
  return diagnostic << "]";
}

LogicalResult MakeRangeOp::verify() {
  int64_t start = getStartAttr().getInt(), end = getEndAttr().getInt();
  if (end <= start)
    return emitOpError() << "expected 'end' to be more than 'start', but got " << start << " to " << end;
  auto type = cast<RankedTensorType>(getResult().getType());
  if (!type.getElementType().isInteger(32))
    return emitOpError() << "expected a result of element type 'i32', but got " << type.getElementType();
  return verifyShape(*this, {end - start}, type);
}

LogicalResult SplatOp::verify() { return verifySameElement(*this, getSource().getType(), getResult().getType()); }

LogicalResult ExpandDimsOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  int64_t axis = getAxisAttr().getInt();
  if (axis < 0 || axis > source.getRank())
    return emitOpError() << "expected 'axis' between 0 and " << source.getRank() << ", but got " << axis;
  SmallVector<int64_t> expected(source.getShape());
  expected.insert(expected.begin() + axis, 1);
  if (failed(verifyShape(*this, expected, getResult().getType())))
    return failure();
  return verifySameElement(*this, source, getResult().getType());
}

LogicalResult BroadcastOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (source.getRank() != result.getRank())
    return emitOpError() << "expected a result of rank " << source.getRank() << ", but got " << result.getRank();
  for (int64_t axis = 0; axis < source.getRank(); ++axis)
    if (source.getDimSize(axis) != 1 && source.getDimSize(axis) != result.getDimSize(axis))
      return emitOpError() << "expected axis " << axis << " of the source to be 1 or " << result.getDimSize(axis)
                           << ", but got " << source.getDimSize(axis);
  return verifySameElement(*this, source, result);
}

LogicalResult ReshapeOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (source.getNumElements() != result.getNumElements())
    return emitOpError() << "expected a result of " << source.getNumElements() << " elements, but got "
                         << result.getNumElements();
  return verifySameElement(*this, source, result);
}

LogicalResult PermuteOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  SmallVector<int32_t> sorted(getOrder());
  llvm::sort(sorted);
  bool permutation = sorted.size() == static_cast<size_t>(source.getRank());
  for (auto [index, axis] : llvm::enumerate(sorted))
    permutation &= axis == static_cast<int32_t>(index);
  if (!permutation)
    return emitOpError() << "expected 'order' to be a permutation of the " << source.getRank() << " axes, but got ["
                         << getOrder() << "]";
  SmallVector<int64_t> expected;
  for (int32_t axis : getOrder())
    expected.push_back(source.getDimSize(axis));
  if (failed(verifyShape(*this, expected, getResult().getType())))
    return failure();
  return verifySameElement(*this, source, getResult().getType());
}

LogicalResult JoinOp::verify() {
  SmallVector<int64_t> expected(shapeOf(getLhs().getType()));
  expected.push_back(2);
  if (failed(verifyShape(*this, expected, getResult().getType())))
    return failure();
  return verifySameElement(*this, getLhs().getType(), getResult().getType());
}

LogicalResult SplitOp::verify() {
  ArrayRef<int64_t> shape = shapeOf(getSource().getType());
  if (shape.empty() || shape.back() != 2)
    return emitOpError() << "expected a source whose last axis is 2, but got " << getSource().getType();
  for (Value half : getResults()) {
    if (failed(verifyShape(*this, shape.drop_back(), half.getType())) ||
        failed(verifySameElement(*this, getSource().getType(), half.getType())))
      return failure();
  }
  return success();
}

LogicalResult GatherOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto indices = cast<RankedTensorType>(getIndices().getType());
  int64_t axis = getAxisAttr().getInt();
  if (axis < 0 || axis >= source.getRank())
    return emitOpError() << "expected 'axis' between 0 and " << source.getRank() - 1 << ", but got " << axis;
  if (!indices.getElementType().isInteger(32))
    return emitOpError() << "expected indices of element type 'i32', but got " << indices.getElementType();
  SmallVector<int64_t> expected(source.getShape());
  if (indices.getRank() == source.getRank())
    expected[axis] = indices.getDimSize(axis);
  if (ArrayRef<int64_t>(expected) != indices.getShape()) {
    InFlightDiagnostic diagnostic = emitOpError() << "expected indices of the source's shape but along axis " << axis;
    return diagnostic << ", but got " << indices << " for " << source;
  }
  if (failed(verifyShape(*this, indices.getShape(), getResult().getType())))
    return failure();
  return verifySameElement(*this, source, getResult().getType());
}

LogicalResult HistogramOp::verify() {
  auto values = cast<RankedTensorType>(getValues().getType()), result = cast<RankedTensorType>(getType());
  if (!values.getElementType().isInteger(32))
    return emitOpError() << "expected values of element type 'i32', but got " << values.getElementType();
  if (getMask() && failed(verifyShape(*this, values.getShape(), getMask().getType())))
    return failure();
  if (result.getRank() != 1 || !result.getElementType().isInteger(32))
    return emitOpError() << "expected a result of rank 1 and element type 'i32', but got " << result;
  return success();
}

LogicalResult ShiftOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  int64_t axis = getAxisAttr().getInt(), offset = getOffsetAttr().getInt();
  if (axis < 0 || axis >= source.getRank())
    return emitOpError() << "expected 'axis' between 0 and " << source.getRank() - 1 << ", but got " << axis;
  if (std::abs(offset) >= source.getDimSize(axis))
    return emitOpError() << "expected an 'offset' of a magnitude below " << source.getDimSize(axis)
                         << ", the size along axis " << axis << ", but got " << offset;
  if (!source.getElementType().isIntOrFloat())
    return emitOpError() << "expected elements that are integers or floats, but got " << source.getElementType();
  return success();
}
