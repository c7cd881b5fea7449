// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Writing tile IR in few words: constants, broadcasting arithmetic, shapes, memory, products and reductions.
#pragma once

#include "dialects/Tile/IR/TileOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace weft {

/// A builder of tile IR. Arithmetic takes scalars and tensors of one element type and broadcasts as NumPy does (axes
/// aligned at the last; size 1 repeats). Integers are signed.
class TileBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;
  using Value = mlir::Value;
  using Shape = llvm::ArrayRef<int64_t>;

  // Constants.
  Value i32(int64_t value);
  Value i64(int64_t value);
  Value f32(double value);
  Value i1(bool value);
  /// The value of a constant integer, scalar or splat.
  static std::optional<int64_t> constantOf(Value value);
  /// A tensor of that shape of one number, in an element type.
  Value full(Shape shape, double value, mlir::Type element);
  Value zeros(Shape shape) { return full(shape, 0, getF32Type()); }

  // Shapes.
  static Shape shapeOf(Value value);
  static mlir::Type elementOf(Value value);
  /// A value repeated to a shape; a scalar is splat.
  Value broadcast(Value value, Shape shape);
  /// A scalar repeated to another value's shape; as it is where that is a scalar.
  Value broadcastLike(Value scalar, Value like) {
    return mlir::isa<mlir::RankedTensorType>(like.getType()) ? broadcast(scalar, shapeOf(like)) : scalar;
  }
  /// [0, 1, ... size-1], i32.
  Value range(int64_t size);
  /// [R] as [R, 1].
  Value column(Value value) { return expand(value, 1); }
  /// [C] as [1, C].
  Value row(Value value) { return expand(value, 0); }
  Value expand(Value value, int64_t axis);
  Value transpose(Value value);
  Value reshape(Value value, Shape shape);

  // Arithmetic.
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  /// Floats: the quotient. Integers: rounded towards minus infinity.
  Value div(Value a, Value b);
  /// Integers: of `div`'s sign conventions, 0 <= result < b for b > 0.
  Value rem(Value a, Value b);
  Value min(Value a, Value b);
  Value max(Value a, Value b);
  /// Indices that are `last` at the most, a smaller one by construction wherever what is computed from them is stored.
  Value upTo(Value last, Value indices);
  Value compareInt(mlir::arith::CmpIPredicate predicate, Value a, Value b);
  Value compareFloat(mlir::arith::CmpFPredicate predicate, Value a, Value b);
  Value less(Value a, Value b) { return compareInt(mlir::arith::CmpIPredicate::slt, a, b); }
  Value both(Value a, Value b);
  Value either(Value a, Value b);
  Value negate(Value a);
  Value select(Value condition, Value yes, Value no);
  /// `yes` where a condition holds, which null does everywhere.
  Value selectWhere(Value condition, Value yes, Value no) { return condition ? select(condition, yes, no) : yes; }
  /// `select` in a loop over the columns of rows: a row of which no column `exists` leaves all that the loop carries of
  /// it as it was.
  Value selectColumns(Value exists, Value yes, Value no);
  /// Conversion between element types; floats round to nearest even, integers extend by sign.
  Value cast(Value value, mlir::Type element);
  Value exp2(Value value);
  Value log2(Value value);
  Value rsqrt(Value value);
  Value ceilDiv(Value a, int64_t b);

  // Memory.
  Value addPtr(Value pointer, Value offset);
  /// Loads; where `mask` (may be null) is false the result is 0.
  Value load(Value pointer, Value mask);
  void store(Value pointer, Value value, Value mask);

  // Products and reductions.
  Value dot(Value a, Value b, Value acc, tile::Precision precision);
  /// The product of two operands that are converted from 8-bit floats, of these themselves; null where they are not.
  Value dotOfFloat8(Value a, Value b, Value acc);
  Value reduceSum(Value value, int64_t axis);
  Value reduceMax(Value value, int64_t axis);
  /// Along axis 0, up to and including each row.
  Value prefixSum(Value value);
  Value prefixMax(Value value);

  Value programId(tile::Axis axis);
  Value numPrograms(tile::Axis axis);

private:
  /// An integer as a constant of `value`'s type.
  Value integerLike(Value value, int64_t number);
  /// Both operands in their common shape.
  std::pair<Value, Value> together(Value a, Value b);
  template <typename IntOp, typename FloatOp> Value binary(Value a, Value b);
  Value reduce(Value value, int64_t axis, llvm::function_ref<Value(TileBuilder &, Value, Value)> combine);
  Value scan(Value value, llvm::function_ref<Value(TileBuilder &, Value, Value)> combine);
};

} // namespace weft
