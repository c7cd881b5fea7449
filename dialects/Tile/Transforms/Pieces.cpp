// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Tile/Transforms/Pieces.h"

#include "dialects/Tile/IR/TileOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace weft::tile {

llvm::SmallVector<Span> spansOf(int64_t size) {
  llvm::SmallVector<Span> spans;
  for (int64_t start = 0; start < size;) {
    auto piece = static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(size - start)));
    spans.push_back({start, piece});
    start += piece;
  }
  return spans;
}

llvm::SmallVector<Sizes> placesOf(ArrayRef<int64_t> shape) {
  llvm::SmallVector<Sizes> places = {{}};
  for (int64_t size : shape) {
    llvm::SmallVector<Sizes> longer;
    for (const Sizes &place : places)
      for (int64_t i = 0, count = spansOf(size).size(); i < count; ++i) {
        longer.push_back(place);
        longer.back().push_back(i);
      }
    places = std::move(longer);
  }
  return places;
}

llvm::SmallVector<Box> boxesOf(ArrayRef<int64_t> shape) {
  llvm::SmallVector<Box> boxes;
  for (const Sizes &place : placesOf(shape)) {
    Box &box = boxes.emplace_back();
    for (auto [size, number] : llvm::zip_equal(shape, place)) {
      Span span = spansOf(size)[number];
      box.start.push_back(span.start);
      box.shape.push_back(span.size);
    }
  }
  return boxes;
}

bool isSplit(Type type) {
  return llvm::any_of(shapeOf(type), [](int64_t size) { return size > 0 && !llvm::isPowerOf2_64(size); });
}

RankedTensorType typeOfPiece(Type type, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, elementTypeOf(type));
}

PieceGrid::PieceGrid(ArrayRef<int64_t> shape, ValueRange values) : values(values) {
  for (int64_t size : shape)
    counts.push_back(spansOf(size).size());
}

Value PieceGrid::at(ArrayRef<int64_t> place) const {
  int64_t index = 0;
  for (auto [count, number] : llvm::zip_equal(counts, place))
    index = index * count + number;
  return values[index];
}

} // namespace weft::tile
