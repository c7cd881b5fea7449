// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile.dot of precision ieee: fused multiply-adds over blocked layouts.
//
// A thread that accumulates element (m, n) must hold (m, k) of a and (k, n) of b for every k. So along m the lanes and
// warps of a's layout are those of the accumulator's, along k everything is in registers; likewise b. What is read from
// shared memory for the product alone is read where it is multiplied: all of it would not be held beside the sums.

#include "compiler/Conversion/WarpToLLVM/SharedAccess.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Transforms/Scratch.h"

using namespace mlir;
using namespace weft::warp;

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

/// An operand's elements in a thread, of the first lane's numbers, from registers or from shared memory.
class Operand {
public:
  Operand(Value value, Emitter &e) : layout(layoutOf(value.getType())) {
    auto load = value.getDefiningOp<LoadSharedOp>();
    if (load && isReadByProduct(load)) {
      Type element = registerType(value.getType());
      SharedAccess access = accessOf(layout, load.getShared().getType().linear(), warp::elementBytes(element));
      reader.emplace(e, e.scalar(load.getShared()), access, element);
    } else {
      held = e.registers(value);
    }
    for (unsigned reg = 0; reg < layout.size(InDim::Register); ++reg)
      registerOf.try_emplace(layout.apply(InDim::Register, reg), reg);
  }
  Value at(ArrayRef<int64_t> place) {
    auto found = registerOf.find(layout.linearize(place));
    assert(found != registerOf.end() && "lanes and warps follow the accumulator's, so registers walk along k");
    return reader ? reader->at(found->second) : held[found->second];
  }

private:
  const LinearLayout &layout;
  ArrayRef<Value> held;
  std::optional<PieceReader> reader;
  llvm::DenseMap<uint32_t, unsigned> registerOf;
};

LogicalResult lowerDot(tile::DotOp op, Emitter &e) {
  const LinearLayout &a = layoutOf(op.getA().getType()), &b = layoutOf(op.getB().getType()),
                     &acc = layoutOf(op.getType());
  if (!followsAccumulator(a, 0, acc) || !followsAccumulator(b, 1, acc))
    return op.emitOpError("expected operands whose lanes and warps follow the accumulator's");
  Operand lhs(op.getA(), e), rhs(op.getB(), e);
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
      Value x = widen(lhs.at({at[0], k})), y = widen(rhs.at({k, at[1]}));
      sum = LLVM::FMAOp::create(e.b, e.loc, x, y, sum);
    }
  e.bind(op.getResult(), results);
  return success();
}

} // namespace

bool isReadByProduct(LoadSharedOp load) {
  if (!load->hasOneUse())
    return false;
  auto dot = dyn_cast<tile::DotOp>(*load->user_begin());
  if (!dot || dot->getBlock() != load->getBlock() || dot.getAcc() == load.getResult())
    return false;
  // Nothing between may let another thread write the tile.
  for (Operation *op = load->getNextNode(); op != dot; op = op->getNextNode())
    if (!isa<LoadSharedOp>(op))
      return false;
  return true;
}

void addFmaDotLowerings(LoweringTable &table) { table.add<tile::DotOp>(lowerDot); }

} // namespace weft
