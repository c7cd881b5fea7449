// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Products.h.
#include "compiler/Conversion/AttnToTile/Elements/Products.h"
#include "compiler/Conversion/AttnToTile/Elements/ProductKernels.h"
#include "compiler/Conversion/AttnToTile/Sequence/LowerSum.h"

using namespace mlir;

namespace weft {

Type factorType(Value one, Value other) {
  Type a = wholeType(one).getElementType(), b = wholeType(other).getElementType();
  return a.getIntOrFloatBitWidth() < b.getIntOrFloatBitWidth() ? a : b;
}

Sums zeroSums(TileBuilder &b, ArrayRef<Chunk> rows, ArrayRef<Chunk> columns) {
  Sums sums;
  for (const Chunk &row : rows)
    for (const Chunk &column : columns)
      sums.push_back(b.zeros({row.width, column.width}));
  return sums;
}

Sums addProducts(TileBuilder &b, ValueRange sums, ArrayRef<Value> lefts, ArrayRef<Value> rights) {
  Sums next;
  for (Value left : lefts)
    for (Value right : rights)
      next.push_back(b.dot(left, right, sums[next.size()], factorPrecision));
  return next;
}

Value below(TileBuilder &b, Value index, Value size, bool whole) { return whole ? Value() : b.less(index, size); }

std::string partsOf(StringRef tiles, int64_t elements) {
  int64_t most = 64;
  while (most > 4 && most * elements > (int64_t(1) << 19))
    most /= 2;
  return "max(1, min(" + std::to_string(most) + ", " + tiles.str() + "))";
}

attn::WholeTensorType partsType(Value result, StringRef parts) {
  attn::WholeTensorType type = wholeType(result);
  SmallVector<StringAttr> dims{StringAttr::get(type.getContext(), parts)};
  dims.append(type.getDims().begin(), type.getDims().end());
  return attn::WholeTensorType::get(dims, Float32Type::get(type.getContext()));
}

Value ones(TileBuilder &b, int64_t rows, Type factor) { return b.full({rows, 16}, 1, factor); }

LogicalResult finishParts(KernelFrame &frame, ElementPuller &puller, Operation *op, const GradientSums &gradient,
                          const KernelShape &shape, StoredValues &stored) {
  SmallVector<TensorParameter> outputs;
  for (Value result : op->getResults())
    outputs.push_back(frame.output(partsType(result, shape.grid[0])));
  AxisIndex part{frame.b.programId(tile::Axis::X), {}};
  auto sum = gradient.sums.begin();
  auto store = [&](const TensorParameter &output, Place at) {
    at.axes.insert(at.axes.begin(), part);
    puller.store(output, at, *sum++);
  };
  for (int64_t row = 0; row < gradient.rows; ++row) {
    for (int64_t column = 0; column < gradient.columns; ++column)
      store(outputs[0], gradient.place(row, column));
    if (outputs.size() > 1)
      store(outputs[1], gradient.placeOfBias(row));
  }
  auto launched = frame.finish(shape);
  for (auto [result, partial] : llvm::zip(op->getResults(), launched))
    if (failed(addParts(op, result, partial, stored)))
      return failure();
  return success();
}

// Each file of Elements/Products defines the function that attaches its ops' models.
#include "compiler/Conversion/AttnToTile/Elements/ProductKernels.inc"

void registerProductKernels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, attn::AttnDialect *) { attachAllKernels(*context); });
}

} // namespace weft
