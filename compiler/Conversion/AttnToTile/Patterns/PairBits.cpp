// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See PairBits.h.
#include "compiler/Conversion/AttnToTile/Patterns/PairBits.h"
#include "compiler/Conversion/AttnToTile/Patterns/PatternDependence.h"
#include "dialects/Attn/Pattern/Scattered.h"
#include "dialects/Attn/Pattern/Segments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft {

/// Whether a mask reads an element at each pair's own place, and for each batch and head where asked.
static bool readsOwnPlaces(Region &mask, bool eachBatch, bool eachHead) {
  Block &body = mask.front();
  return llvm::any_of(body.getOps<attn::ElementOp>(), [&](attn::ElementOp element) {
    auto isIndex = [&](unsigned argument) {
      return llvm::is_contained(element.getIndices(), body.getArgument(argument));
    };
    return isIndex(2) && isIndex(3) && (!eachBatch || isIndex(0)) && (!eachHead || isIndex(1));
  });
}

bool keepsPairBits(const Attend &attend, unsigned domain) {
  // A table of one packed sequence may be of each of them, and bits are of all tokens.
  if (attend.form.windows || attend.form.isPacked)
    return false;
  const Attribute pattern = attend.patterns[domain];
  const Dependence depends = dependenceOf(pattern, attend);
  const bool isCounted = !attend.counts.empty();
  auto readsPlaces = [&](Region &mask) {
    return readsOwnPlaces(mask, depends.batch || isCounted, depends.head || isCounted);
  };
  return anyMask(pattern, attend, readsPlaces) && attn::withoutScattered(pattern) == pattern &&
         !attn::hasSegments(pattern);
}

int64_t pairBitsWidth(int64_t columns) { return columns % 32 ? 16 : 32; }

Value packBits(TileBuilder &b, Value truths, Value exist, int64_t axis, int64_t width) {
  SmallVector<int64_t> shape(TileBuilder::shapeOf(truths));
  Value place = b.rem(b.range(shape[axis]), b.i32(width));
  Value bit = arith::ShLIOp::create(b, b.broadcast(b.i32(1), {shape[axis]}), place);
  if (exist)
    bit = b.select(exist, bit, b.i32(0));
  for (int64_t i = 0, rank = shape.size(); i < rank; ++i)
    if (i != axis)
      bit = b.expand(bit, i);
  Value bits = b.select(truths, bit, b.i32(0));
  shape[axis] /= width;
  shape.insert(shape.begin() + axis + 1, width);
  return b.reduceSum(b.reshape(bits, shape), axis + 1);
}

Value unpackBits(TileBuilder &b, Value words, int64_t width) {
  const int64_t rows = TileBuilder::shapeOf(words)[0], count = TileBuilder::shapeOf(words)[1];
  Value each = b.reshape(b.broadcast(b.expand(words, 2), {rows, count, width}), {rows, count * width});
  Value place = b.broadcast(b.row(b.rem(b.range(count * width), b.i32(width))), {rows, count * width});
  return b.compareInt(arith::CmpIPredicate::ne, b.both(arith::ShRUIOp::create(b, each, place), b.i32(1)), b.i32(0));
}

} // namespace weft
