// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers of the ops in AttnTensorOps.td.
#include "dialects/Attn/IR/AttnChecks.h"

using namespace mlir;
using namespace weft::attn;

void MapOp::build(OpBuilder &b, OperationState &state, TypeRange results, ValueRange inputs,
                  function_ref<SmallVector<Value>(ImplicitLocOpBuilder &, ValueRange)> body) {
  state.addOperands(inputs);
  state.addTypes(results);
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(state.addRegion());
  for (Value input : inputs)
    block->addArgument(scalarTypeOf(cast<WholeTensorType>(input.getType())), input.getLoc());
  ImplicitLocOpBuilder scalars(state.location, b);
  scalars.setInsertionPointToStart(block);
  SmallVector<Value> yielded = body(scalars, block->getArguments());
  YieldOp::create(scalars, yielded);
}

LogicalResult MapOp::verify() {
  if (getResults().empty())
    return emitOpError() << "expected at least one result";
  auto shape = cast<WholeTensorType>(getResult(0).getType());
  for (Type type : getResultTypes())
    if (isFloat8(cast<WholeTensorType>(type).getElementType()))
      return emitOpError() << "expected results of 16 or 32 bits, or integers, but got " << type;
  for (Type type : getResultTypes())
    if (cast<WholeTensorType>(type).getDims() != shape.getDims())
      return emitOpError() << "expected results of one shape, but got " << shape << " and " << type;
  for (Value input : getInputs())
    if (!broadcastsTo(tensorTypeOf(input), shape))
      return emitOpError() << "expected inputs that broadcast to " << shape << ", but got " << input.getType();
  return success();
}

LogicalResult MapOp::verifyRegions() {
  auto scalars = [](TypeRange tensors) {
    return llvm::map_to_vector(tensors, [](Type type) { return scalarTypeOf(cast<WholeTensorType>(type)); });
  };
  SmallVector<Type> arguments = scalars(getInputs().getTypes()), results = scalars(getResultTypes());
  if (failed(checkScalarRegion(*this, "the body", getBody(), arguments, results)))
    return failure();
  auto shape = cast<WholeTensorType>(getResult(0).getType());
  WalkResult walked = getBody().walk([&](IndexOp op) -> WalkResult {
    if (static_cast<int64_t>(op.getAxis()) < shape.getRank())
      return WalkResult::advance();
    return op.emitOpError() << "expected an axis of " << shape << ", but got " << op.getAxis();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult ElementOp::verify() {
  WholeTensorType type = tensorTypeOf(getTensor());
  if (static_cast<int64_t>(getIndices().size()) != type.getRank())
    return emitOpError() << "expected " << type.getRank() << " indices into " << type << ", but got "
                         << getIndices().size();
  if (getType() != scalarTypeOf(type))
    return emitOpError() << "expected " << scalarTypeOf(type) << " of " << type << ", but got " << getType();
  return success();
}

WholeTensorType SumOp::resultAtSourceRank() {
  auto from = cast<WholeTensorType>(getSource().getType()), to = cast<WholeTensorType>(getType());
  int64_t missing = from.getRank() - to.getRank();
  SmallVector<StringAttr> dims(to.getDims());
  StringAttr one = StringAttr::get(getContext(), "1");
  DenseI64ArrayAttr away = getAwayAttr();
  if (!away)
    dims.insert(dims.begin(), std::max<int64_t>(missing, 0), one);
  else
    for (int64_t axis : away.asArrayRef())
      if (axis >= 0 && axis <= static_cast<int64_t>(dims.size()))
        dims.insert(dims.begin() + axis, one);
  return WholeTensorType::get(dims, to.getElementType());
}

LogicalResult SumOp::verify() {
  auto from = tensorTypeOf(getSource()), to = cast<WholeTensorType>(getType());
  if (DenseI64ArrayAttr away = getAwayAttr()) {
    int64_t next = 0;
    for (int64_t axis : away.asArrayRef()) {
      if (axis < next || axis >= from.getRank())
        return emitOpError() << "expected 'away' to ascend through axes of " << from << ", but got "
                             << away.asArrayRef();
      next = axis + 1;
    }
    if (to.getRank() + away.size() != from.getRank())
      return emitOpError() << "expected a result of rank " << from.getRank() - away.size() << ", but got " << to;
  }
  if (to.getRank() > from.getRank() || !broadcastsTo(resultAtSourceRank(), from))
    return emitOpError() << "expected a result that broadcasts to the source " << from << ", but got " << to;
  return success();
}

/// `result` has rank 4 and the shape of `source`.
static LogicalResult verifySequence(Operation *op, Value source, Value result) {
  WholeTensorType type = tensorTypeOf(source);
  if (failed(checkRank(op, "a source", type, 4)) || failed(checkFloats(op, "a source", type)))
    return failure();
  return checkSizes(op, "a result", tensorTypeOf(result), {type.dim(0), type.dim(1), type.dim(2), type.dim(3)});
}

LogicalResult PrefixMeanOp::verify() { return verifySequence(*this, getSource(), getResult()); }

LogicalResult SequenceMeanOp::verify() {
  if (failed(verifySequence(*this, getSource(), getResult())))
    return failure();
  if (!tensorTypeOf(getSource()).staticDim(3))
    return emitOpError() << "expected a source [B, H, N, D] with a static D, but got " << tensorTypeOf(getSource());
  return checkCuSeqlens(*this, getCuSeqlens());
}

LogicalResult ConvolveOp::verify() {
  if (failed(verifySequence(*this, getSource(), getResult())))
    return failure();
  return checkTaps(*this, tensorTypeOf(getTaps()), tensorTypeOf(getSource()));
}

LogicalResult ConvolveTapsGradOp::verify() {
  if (failed(verifySequence(*this, getSource(), getGradient())))
    return failure();
  return checkTaps(*this, tensorTypeOf(getResult()), tensorTypeOf(getSource()));
}

LogicalResult RopeOp::verify() {
  if (failed(verifySequence(*this, getSource(), getResult())) || failed(checkCuSeqlens(*this, getCuSeqlens())))
    return failure();
  if (getCuSeqlens() && getGrid())
    return emitOpError() << "expected no grid with cu_seqlens";
  bool axial = getForm() == RopeForm::Axial;
  std::optional<int64_t> channels = tensorTypeOf(getSource()).staticDim(3);
  if (!channels || *channels % (axial ? 4 : 2))
    return emitOpError() << "expected channels that " << (axial ? 4 : 2) << " divides, but got "
                         << tensorTypeOf(getSource());
  size_t window = getWindow() ? getWindow()->size() : 0, grid = getGrid() ? getGrid()->size() : 0;
  if (window > 2 || grid != (window == 2 ? 2u : 0u) || (axial && window != 2))
    return emitOpError() << "expected "
                         << (axial ? "a window and a grid of two sizes"
                                   : "no window, a window of one size, or a window and a grid of two")
                         << ", but got " << window << " and " << grid;
  for (std::optional<ArrayRef<int64_t>> sizes : {getWindow(), getGrid()})
    for (int64_t size : sizes.value_or(ArrayRef<int64_t>()))
      if (size < 1)
        return emitOpError() << "expected sizes of at least 1, but got " << size;
  return success();
}

LogicalResult RmsNormOp::verify() {
  if (failed(verifySequence(*this, getSource(), getResult())))
    return failure();
  WholeTensorType type = tensorTypeOf(getSource());
  if (!getGain())
    return success();
  return checkSizes(*this, "a gain", tensorTypeOf(getGain()), {type.dim(1), type.dim(3)});
}

LogicalResult PagedOp::verify() {
  WholeTensorType pages = tensorTypeOf(getPages()), table = tensorTypeOf(getTable()), to = tensorTypeOf(getResult());
  WholeTensorType lengths = tensorTypeOf(getLengths());
  bool byHead = lengths.getRank() == 2;
  if (failed(checkRank(*this, "pages", pages, 4)) || failed(checkIndices(*this, "a table", table, 2)) ||
      failed(checkIndices(*this, "lengths", lengths, byHead ? 2 : 1)) || failed(checkRank(*this, "rows", to, 4)))
    return failure();
  if (!pages.staticDim(1))
    return emitOpError() << "expected pages of a known number of rows, but got " << pages;
  if (pages.getElementType() != to.getElementType())
    return emitOpError() << "expected rows of the pages' elements " << pages.getElementType() << ", but got " << to;
  SmallVector<StringRef> ofLengths{table.dim(0), pages.dim(2)};
  ofLengths.resize(byHead ? 2 : 1);
  return success(succeeded(checkSizes(*this, "lengths", lengths, ofLengths)) &&
                 succeeded(checkSizes(*this, "rows", to, {table.dim(0), pages.dim(2), to.dim(2), pages.dim(3)})));
}

// --- padding ---

Padding MapOp::paddingOf(unsigned result, int64_t axis, ArrayRef<Padding> operands) {
  return paddingOfRegion(getBody(), operands, result, axis);
}

Padding SumOp::paddingOf(unsigned, int64_t, ArrayRef<Padding> operands) { return weighted(operands[0]); }

// A row of zeros is divided by sqrt(eps). Along a row, channels past the last are multiplied by one number of the row.
Padding RmsNormOp::paddingOf(unsigned, int64_t axis, ArrayRef<Padding> operands) {
  if (axis == 3 && getGain() && operands[0] != Padding::Unknown) // the gain is 0 there
    return Padding::Zero;
  bool divides = axis == 3 || static_cast<float>(getEps().convertToDouble()) > 0;
  return divides && operands[0] == Padding::Zero ? Padding::Zero : Padding::Unknown;
}

// Rows past the end take none of the rows that exist, but themselves; taps past the last channel are 0.
Padding ConvolveOp::paddingOf(unsigned, int64_t axis, ArrayRef<Padding> operands) {
  return axis == 3 && operands[0] != Padding::Unknown ? Padding::Zero : weighted(operands[0]);
}

// Rows past the end of the sequence, and channels past the last, are not loaded.
Padding PagedOp::paddingOf(unsigned, int64_t axis, ArrayRef<Padding>) {
  return axis < 2 ? Padding::Unknown : Padding::Zero;
}
