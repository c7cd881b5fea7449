// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile.dot of precision ieee: fused multiply-adds over blocked layouts.
//
// A thread that accumulates element (m, n) must hold (m, k) of a and (k, n) of b for every k. So along m the lanes and
// warps of a's layout are those of the accumulator's, along k everything is in registers; likewise b.

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Tile/IR/TileOps.h"

using namespace mlir;
using weft::warp::InDim;
using weft::warp::LinearLayout;

namespace weft {
namespace {

/// Whether lanes and warps reach, along the kept axis of an operand, where they reach in the accumulator, and stand
/// still along k.
bool followsAccumulator(const LinearLayout &operand, unsigned keptAxis, const LinearLayout &acc) {
  for (InDim dim : {InDim::Lane, InDim::Warp}) {
    ArrayRef<uint32_t> own = operand.bases(dim), wanted = acc.bases(dim);
    for (unsigned bit = 0; bit < std::max(own.size(), wanted.size()); ++bit) {
      auto at = operand.delinearize(bit < own.size() ? own[bit] : 0);
      auto target = acc.delinearize(bit < wanted.size() ? wanted[bit] : 0);
      if (at[1 - keptAxis] != 0 || at[keptAxis] != target[keptAxis])
        return false;
    }
  }
  return true;
}

/// The registers of an operand by the element that the first lane's register holds.
llvm::DenseMap<uint32_t, Value> byElement(const LinearLayout &layout, ArrayRef<Value> registers) {
  llvm::DenseMap<uint32_t, Value> result;
  for (auto [r, value] : llvm::enumerate(registers))
    result.try_emplace(layout.apply(InDim::Register, r), value);
  return result;
}

LogicalResult lowerDot(tile::DotOp op, Emitter &e) {
  const LinearLayout &a = layoutOf(op.getA().getType()), &b = layoutOf(op.getB().getType()),
                     &acc = layoutOf(op.getType());
  if (!followsAccumulator(a, 0, acc) || !followsAccumulator(b, 1, acc))
    return op.emitOpError("expected operands whose lanes and warps follow the accumulator's");
  auto lhs = byElement(a, e.registers(op.getA())), rhs = byElement(b, e.registers(op.getB()));
  Type type = registerType(op.getType());
  auto widen = [&](Value value) -> Value {
    return value.getType() == type ? value : Value(LLVM::FPExtOp::create(e.b, e.loc, type, value));
  };
  if (!isa<FloatType>(type) || !isa<FloatType>(registerType(op.getA().getType())))
    return op.emitOpError("expected floats in a product by fused multiply-adds, but got ") << op.getType();
  // All sums go along k together, so that an element of an operand is needed for a short time.
  Registers results(e.registers(op.getAcc()));
  for (int64_t k = 0, depth = a.shape()[1]; k < depth; ++k)
    for (auto [r, sum] : llvm::enumerate(results)) {
      auto at = acc.delinearize(acc.apply(InDim::Register, r));
      Value x = lhs.lookup(a.linearize({at[0], k})), y = rhs.lookup(b.linearize({k, at[1]}));
      assert(x && y && "lanes and warps follow the accumulator's, so registers walk along k");
      sum = LLVM::FMAOp::create(e.b, e.loc, widen(x), widen(y), sum);
    }
  e.bind(op.getResult(), results);
  return success();
}

} // namespace

void addFmaDotLowerings(LoweringTable &table) { table.add<tile::DotOp>(lowerDot); }

} // namespace weft
