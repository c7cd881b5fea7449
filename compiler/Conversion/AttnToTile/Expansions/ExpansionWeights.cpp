// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The weights of an expansion's products, as operands of matrix instructions.
#include "compiler/Conversion/AttnToTile/Expansions/Expansion.h"

using namespace mlir;

namespace weft {
namespace {

/// A vector along axis `axis` of a tensor of rank `rank`.
Value along(TileBuilder &b, Value vector, int64_t axis, int64_t rank) {
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis)
      vector = b.expand(vector, i);
  return vector;
}

/// Positions [first, first + size) along one axis, of which `valid` exist.
struct Span {
  int64_t first, size, valid;
};

/// Elements of a stored tensor at the product of spans, zeros where none exist, as `element`.
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

/// The slices of the last axis, whose size is a power of two, in order.
SmallVector<Value> slices(TileBuilder &b, Value tensor) {
  SmallVector<int64_t> shape(TileBuilder::shapeOf(tensor));
  int64_t count = shape.back();
  shape.pop_back();
  if (count == 1)
    return {b.reshape(tensor, shape)};
  shape.append({count / 2, 2});
  auto halves = tile::SplitOp::create(
      b, RankedTensorType::get(ArrayRef(shape).drop_back(), TileBuilder::elementOf(tensor)),
      RankedTensorType::get(ArrayRef(shape).drop_back(), TileBuilder::elementOf(tensor)), b.reshape(tensor, shape));
  SmallVector<Value> even = slices(b, halves.getLhs()), odd = slices(b, halves.getRhs()), all;
  for (auto [first, second] : llvm::zip(even, odd))
    all.append({first, second});
  return all;
}

/// [1, size], f32.
Value loadBias(KernelFrame &frame, const StoredValues &stored, Value bias, Span span) {
  if (!bias)
    return {};
  TileBuilder &b = frame.b;
  return b.row(loadBlock(b, frame.input(stored.lookup(bias)), span, b.getF32Type()));
}

} // namespace

// Taps are neighbours in memory: all of a block's are read at once, and taken apart once. A weight is read as it is
// stored, from [to, from] heads or channels; transposed, [from, to].
ProductWeights loadWeights(KernelFrame &frame, const StoredValues &stored, attn::HeadConvOp op, Type element) {
  TileBuilder &b = frame.b;
  const TensorParameter weight = frame.input(stored.lookup(op.getWeight()));
  bool turned = op.getTransposed();
  int64_t taps = *weight.type.staticDim(2), allTaps = llvm::PowerOf2Ceil(taps);
  SmallVector<HeadPiece> from = headPieces(*weight.type.staticDim(turned ? 0 : 1)),
                         to = headPieces(*weight.type.staticDim(turned ? 1 : 0));
  SmallVector<ConvTerm> terms = convTerms(from, taps);
  ProductWeights weights;
  weights.parts.resize(terms.size());
  for (const HeadPiece &out : to) {
    Span columns{out.first, out.columns(), out.valid};
    weights.bias.push_back(loadBias(frame, stored, op.getBias(), columns));
    auto block = [&](Span heads, Span taps) {
      SmallVector<Span> spans{columns, heads, taps};
      if (turned)
        std::swap(spans[0], spans[1]);
      return loadBlock(b, weight, spans, element);
    };
    SmallVector<Value> apart; // of the piece that single taps are taken from
    for (auto [term, parts] : llvm::zip(terms, weights.parts)) {
      const HeadPiece &in = from[term.piece];
      Span heads{in.first, in.width, in.valid};
      if (term.taps == 1) {
        if (term.firstTap == 0)
          apart = slices(b, block(heads, {0, allTaps, taps}));
        Value part = apart[term.firstTap];
        parts.push_back(turned ? part : b.transpose(part));
        continue;
      }
      Value part = block(heads, {term.firstTap, term.taps, std::min(term.taps, taps - term.firstTap)});
      if (turned) {
        auto order = tile::PermuteOp::create(b, RankedTensorType::get({heads.size, term.taps, columns.size}, element),
                                             part, ArrayRef<int32_t>{0, 2, 1});
        parts.push_back(b.reshape(order, {heads.size * term.taps, columns.size}));
      } else {
        parts.push_back(b.transpose(b.reshape(part, {columns.size, heads.size * term.taps})));
      }
    }
  }
  return weights;
}

ProductWeights loadWeights(KernelFrame &frame, const StoredValues &stored, attn::LinearOp op, ArrayRef<Chunk> inner,
                           Type element) {
  TileBuilder &b = frame.b;
  const TensorParameter weight = frame.input(stored.lookup(op.getWeight()));
  bool turned = op.getTransposed();
  ProductWeights weights;
  SmallVector<Chunk> to = channelChunks(*weight.type.staticDim(turned ? 1 : 0));
  for (const Chunk &out : to)
    weights.bias.push_back(loadBias(frame, stored, op.getBias(), {out.first, out.width, out.valid}));
  for (const Chunk &in : inner) {
    SmallVector<Value> &parts = weights.parts.emplace_back();
    for (const Chunk &out : to) {
      Span columns{out.first, out.width, out.valid}, rows{in.first, in.width, in.valid};
      parts.push_back(turned ? loadBlock(b, weight, {rows, columns}, element)
                             : b.transpose(loadBlock(b, weight, {columns, rows}, element)));
    }
  }
  return weights;
}

} // namespace weft
