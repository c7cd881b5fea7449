// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Reshapes of tensors in pieces. A piece of the result is found in the source where its elements, in row-major order, are those of a
// box of one of the source's pieces; where they are not, it is made of two halves.
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Tile/Transforms/Pieces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace weft::tile {
namespace {

/// Which elements of a flat order a box has, in its own row-major order: the first, and the sizes and distances of nested
/// walks, the outermost first, where no two can be one.
struct Walk {
  struct Step {
    int64_t size, stride;
    bool operator==(const Step &other) const { return size == other.size && stride == other.stride; }
  };
  int64_t first = 0;
  llvm::SmallVector<Step> steps;
  bool operator==(const Walk &other) const { return first == other.first && steps == other.steps; }
};

Sizes stridesOf(ArrayRef<int64_t> shape) {
  Sizes strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Walk walkOf(ArrayRef<int64_t> shape, const Box &box) {
  Walk walk;
  Sizes strides = stridesOf(shape);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    walk.first += box.start[axis] * strides[axis];
    if (box.shape[axis] == 1)
      continue;
    if (!walk.steps.empty() && walk.steps.back().stride == box.shape[axis] * strides[axis]) {
      walk.steps.back() = {walk.steps.back().size * box.shape[axis], strides[axis]};
      continue;
    }
    walk.steps.push_back({box.shape[axis], strides[axis]});
  }
  return walk;
}

/// A box of one of a tensor's pieces: which piece, and the box in the tensor's coordinates.
struct Found {
  size_t piece;
  Box box;
};

/// The piece of a tensor of `shape` that has an element.
size_t pieceWith(ArrayRef<Box> pieces, ArrayRef<int64_t> element) {
  for (auto [number, box] : llvm::enumerate(pieces))
    if (llvm::all_of(llvm::seq<size_t>(0, element.size()), [&, &box = box](size_t axis) {
          return element[axis] >= box.start[axis] && element[axis] < box.start[axis] + box.shape[axis];
        }))
      return number;
  llvm_unreachable("the pieces cover the tensor");
}

/// The aligned box of one piece of a tensor of `shape` whose elements are those of `walk` in the same order.
std::optional<Found> findWalk(ArrayRef<int64_t> shape, ArrayRef<Box> pieces, const Walk &walk) {
  Sizes strides = stridesOf(shape), first;
  for (auto [size, stride] : llvm::zip_equal(shape, strides))
    first.push_back(walk.first / stride % size);
  size_t number = pieceWith(pieces, first);
  const Box &piece = pieces[number];
  Box box{first, Sizes(shape.size(), 1)};
  size_t axis = shape.size();
  for (Walk::Step step : llvm::reverse(walk.steps)) {
    int64_t left = step.size, stride = step.stride;
    while (left > 1) {
      while (axis > 0 && (strides[axis - 1] < stride || shape[axis - 1] == 1))
        --axis;
      if (axis == 0 || strides[axis - 1] != stride)
        return std::nullopt;
      --axis;
      int64_t offset = first[axis] - piece.start[axis], taken = std::min(left, piece.shape[axis]);
      if (offset % taken != 0 || (taken < left && taken != shape[axis]))
        return std::nullopt;
      box.shape[axis] = taken;
      left /= taken;
      stride *= taken;
    }
  }
  if (!(walkOf(shape, box) == walk))
    return std::nullopt;
  return Found{number, box};
}

/// Calls `take` for the boxes that `box` of the result is made of, and `join` for the axis along which the last two
/// were halves of a box; false where `most` boxes are not enough.
template <typename Take, typename Join>
bool walkBoxes(ArrayRef<int64_t> from, ArrayRef<Box> pieces, ArrayRef<int64_t> to, const Box &box, int64_t &most,
               Take take, Join join) {
  if (std::optional<Found> found = findWalk(from, pieces, walkOf(to, box))) {
    take(*found, box);
    return --most >= 0;
  }
  for (unsigned axis = 0; axis < box.shape.size(); ++axis) {
    if (box.shape[axis] == 1)
      continue;
    Box half = box;
    half.shape[axis] /= 2;
    if (!walkBoxes(from, pieces, to, half, most, take, join))
      return false;
    half.start[axis] += half.shape[axis];
    if (!walkBoxes(from, pieces, to, half, most, take, join))
      return false;
    join(axis);
    return true;
  }
  llvm_unreachable("a box of one element is found");
}

/// `value` under another shape of as many elements.
Value reshaped(OpBuilder &b, Location loc, Value value, ArrayRef<int64_t> shape) {
  if (shapeOf(value.getType()) == shape)
    return value;
  return ReshapeOp::create(b, loc, typeOfPiece(value.getType(), shape), value);
}

/// `value` with its axis `from` moved to be the axis `to`.
Value moveAxis(OpBuilder &b, Location loc, Value value, unsigned from, unsigned to) {
  Sizes shape(shapeOf(value.getType()));
  auto order = llvm::to_vector(llvm::seq<int32_t>(0, shape.size()));
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  if (llvm::is_sorted(order))
    return value;
  Sizes moved;
  for (int32_t axis : order)
    moved.push_back(shape[axis]);
  return PermuteOp::create(b, loc, typeOfPiece(value.getType(), moved), value, b.getDenseI32ArrayAttr(order));
}

} // namespace

Value halfOf(OpBuilder &b, Location loc, Value value, unsigned axis, bool second) {
  Sizes half(shapeOf(value.getType()));
  half[axis] /= 2;
  Sizes pairs = half;
  pairs.insert(pairs.begin() + axis, 2);
  Value last = moveAxis(b, loc, reshaped(b, loc, value, pairs), axis, half.size());
  Type type = typeOfPiece(value.getType(), half);
  auto split = SplitOp::create(b, loc, type, type, last);
  return second ? split.getRhs() : split.getLhs();
}

Value concatenate(OpBuilder &b, Location loc, Value first, Value second, unsigned axis) {
  Sizes whole(shapeOf(first.getType())), pairs = whole;
  pairs.push_back(2);
  whole[axis] *= 2;
  Value joined = JoinOp::create(b, loc, typeOfPiece(first.getType(), pairs), first, second);
  return reshaped(b, loc, moveAxis(b, loc, joined, pairs.size() - 1, axis), whole);
}

Value zerosOf(OpBuilder &b, Location loc, RankedTensorType type) {
  return arith::ConstantOp::create(b, loc, cast<TypedAttr>(b.getZeroAttr(type)));
}

int64_t boxesOfReshape(ArrayRef<int64_t> from, ArrayRef<int64_t> to, int64_t most) {
  llvm::SmallVector<Box> pieces = boxesOf(from);
  int64_t left = most;
  for (const Box &box : boxesOf(to))
    if (!walkBoxes(from, pieces, to, box, left, [](const Found &, const Box &) {}, [](unsigned) {}))
      return most;
  return most - left;
}

llvm::SmallVector<Value> reshapePieces(OpBuilder &b, Location loc, ValueRange values, ArrayRef<int64_t> from,
                                       ArrayRef<int64_t> to) {
  llvm::SmallVector<Box> pieces = boxesOf(from);
  llvm::SmallVector<Value> stack;
  auto take = [&](const Found &found, const Box &box) {
    Value value = values[found.piece];
    const Box &piece = pieces[found.piece];
    for (unsigned axis = 0; axis < from.size(); ++axis) {
      int64_t offset = found.box.start[axis] - piece.start[axis];
      for (int64_t size = piece.shape[axis]; size > found.box.shape[axis]; size /= 2) {
        value = halfOf(b, loc, value, axis, offset >= size / 2);
        offset %= size / 2;
      }
    }
    stack.push_back(reshaped(b, loc, value, box.shape));
  };
  auto join = [&](unsigned axis) {
    Value second = stack.pop_back_val(), first = stack.pop_back_val();
    stack.push_back(concatenate(b, loc, first, second, axis));
  };
  for (const Box &box : boxesOf(to)) {
    int64_t most = maxElements;
    walkBoxes(from, pieces, to, box, most, take, join);
  }
  return stack;
}

} // namespace weft::tile
