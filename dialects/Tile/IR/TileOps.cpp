// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The generated definitions of the tile ops, and what all of them check.
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace weft::tile;

#define GET_OP_CLASSES
#include "dialects/Tile/IR/TileOps.cpp.inc"

/// The diagnostic for a tensor type that no op of the dialect takes; success for one they take.
static LogicalResult verifyTensorSize(Operation *op, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape()) // operand constraints reject dynamic shapes
    return success();
  if (tensor.getRank() == 0) {
    InFlightDiagnostic diagnostic = op->emitOpError() << "expected a tensor with at least one axis, but got " << type;
    diagnostic.attachNote() << "use a scalar of type " << tensor.getElementType();
    return diagnostic;
  }
  int64_t elements = 1;
  for (int64_t size : tensor.getShape()) {
    if (size < 1)
      return op->emitOpError() << "expected sizes of at least 1, but got " << type;
    // Clamped, so that the product cannot overflow.
    elements *= std::min(size, 2 * maxElements);
    if (elements > maxElements)
      return op->emitOpError() << "expected at most " << maxElements << " elements, but got " << type;
  }
  return success();
}

LogicalResult weft::tile::verifyTensorSizes(Operation *op) {
  auto accepted = [op](Type type) { return succeeded(verifyTensorSize(op, type)); };
  return success(llvm::all_of(op->getOperandTypes(), accepted) && llvm::all_of(op->getResultTypes(), accepted));
}
