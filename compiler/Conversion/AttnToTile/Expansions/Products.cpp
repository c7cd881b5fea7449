// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Products.h.
#include "compiler/Conversion/AttnToTile/Expansions/Products.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

#include "compiler/Conversion/AttnToTile/Expansions/ProductOpInterface.cpp.inc"

using namespace mlir;

namespace weft {

bool isProduct(Operation *op) {
  auto product = dyn_cast_if_present<ProductOpInterface>(op);
  return product && !product.isWeightGradient();
}

bool isWeightGradient(Operation *op) {
  auto product = dyn_cast_if_present<ProductOpInterface>(op);
  return product && product.isWeightGradient();
}

std::optional<ProductForm> productForm(Operation *op) {
  auto product = dyn_cast_if_present<ProductOpInterface>(op);
  return product ? std::optional(product.form()) : std::nullopt;
}

SmallVector<GradientTile> gradientTiles(Operation *op) {
  auto product = dyn_cast<ProductOpInterface>(op);
  return product ? product.gradientTiles() : SmallVector<GradientTile>();
}

bool hasProductShape(Value value) {
  auto type = dyn_cast<attn::WholeTensorType>(value.getType());
  return type && type.getRank() == 4 && type.staticDim(1) && type.staticDim(3) && *type.staticDim(3) % 8 == 0;
}

bool isProductOperand(Value value) {
  return hasProductShape(value) && isa<Float16Type, BFloat16Type>(wholeType(value).getElementType());
}

SmallVector<HeadPiece> headPieces(int64_t heads) {
  SmallVector<HeadPiece> pieces;
  for (int64_t first = 0; first < heads;) {
    int64_t left = heads - first, width = left > 4 ? 8 : 4;
    if (left >= 8)
      width = std::min<int64_t>(32, llvm::bit_floor(uint64_t(left)));
    pieces.push_back({first, width, std::min(width, left)});
    first += width;
  }
  return pieces;
}

SmallVector<Chunk> channelChunks(int64_t channels) {
  SmallVector<Chunk> chunks;
  for (int64_t first = 0; first < channels; first += chunks.back().width) {
    int64_t width = std::min<int64_t>(64, llvm::bit_floor(uint64_t(channels - first)));
    chunks.push_back({first, width, width});
  }
  return chunks;
}

/// A vector along axis `axis` of a tensor of rank `rank`.
static Value along(TileBuilder &b, Value vector, int64_t axis, int64_t rank) {
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis)
      vector = b.expand(vector, i);
  return vector;
}

Value loadBlock(TileBuilder &b, const TensorParameter &tensor, ArrayRef<Span> spans, Type element) {
  int64_t rank = spans.size();
  Value pointer = tensor.pointer, offset, mask;
  for (auto [axis, span] : llvm::enumerate(spans)) {
    Value stride = axis < tensor.strides.size() ? tensor.strides[axis] : Value();
    if (span.first)
      pointer = b.addPtr(pointer, stride ? b.mul(stride, b.i64(span.first)) : b.i64(span.first));
    Value step = b.range(span.size);
    if (stride)
      step = b.mul(step, b.cast(stride, b.getI32Type()));
    step = along(b, step, axis, rank);
    offset = offset ? b.add(offset, step) : step;
    if (span.valid < span.size) {
      Value exists = along(b, b.less(b.range(span.size), b.i32(span.valid)), axis, rank);
      mask = mask ? b.both(mask, exists) : exists;
    }
  }
  SmallVector<int64_t> shape = llvm::map_to_vector(spans, [](const Span &span) { return span.size; });
  return b.cast(b.load(b.addPtr(b.broadcast(pointer, shape), offset), mask), element);
}

Value loadBias(KernelFrame &frame, const StoredValues &stored, Value bias, Span span) {
  if (!bias)
    return {};
  TileBuilder &b = frame.b;
  return b.row(loadBlock(b, frame.input(stored.at(bias)), span, b.getF32Type()));
}

void storeAxes(TileBuilder &b, const TensorParameter &output, Value part, ArrayRef<SumAxis> axes, Value sum) {
  Value pointer = b.addPtr(output.pointer, b.mul(part, output.strides[0])), offset, mask;
  SmallVector<int64_t> shape;
  for (auto [number, axis] : llvm::enumerate(axes)) {
    shape.push_back(axis.size);
    if (axis.start)
      pointer = b.addPtr(pointer, axis.stride ? b.mul(b.i64(axis.start), axis.stride) : b.i64(axis.start));
    auto along = [&, number = number](Value vector) {
      for (unsigned i = 0; i < axes.size(); ++i)
        if (i != number)
          vector = b.expand(vector, i);
      return vector;
    };
    Value range = b.range(axis.size);
    Value step = along(axis.stride ? b.mul(range, b.cast(axis.stride, b.getI32Type())) : range);
    offset = offset ? b.add(offset, step) : step;
    auto where = [&](Value condition) {
      condition = along(condition);
      mask = mask ? b.both(mask, condition) : condition;
    };
    if (axis.begin)
      where(b.compareInt(arith::CmpIPredicate::sge, range, b.i32(axis.begin)));
    if (axis.end < axis.size)
      where(b.less(range, b.i32(axis.end)));
  }
  b.store(b.addPtr(b.broadcast(pointer, shape), b.broadcast(offset, shape)), b.reshape(sum, shape), mask);
}

// Each file of Expansions/Products defines the function that attaches its ops' models.
#include "compiler/Conversion/AttnToTile/Expansions/Products.inc"

void registerProducts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, attn::AttnDialect *) { attachAllProducts(*context); });
}

} // namespace weft
