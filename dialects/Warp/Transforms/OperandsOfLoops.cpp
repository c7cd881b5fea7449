// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/OperandsOfLoops.h"

#include "dialects/Warp/IR/WarpOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft::warp {

int64_t registersOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  auto layout = type ? dyn_cast_or_null<LayoutAttr>(type.getEncoding()) : LayoutAttr();
  if (!layout)
    return 0;
  unsigned bits = type.getElementType().isIntOrFloat() ? type.getElementType().getIntOrFloatBitWidth() : 64;
  return (int64_t(layout.getLayout().size(InDim::Register)) * bits + 31) / 32;
}

SmallVector<Value> operandsFromBefore(scf::ForOp loop) {
  llvm::SetVector<Value> before;
  loop.walk([&](MmaOp mma) {
    for (Value operand : {mma.getA(), mma.getB()})
      if (!loop->isAncestor(operand.getParentBlock()->getParentOp()))
        before.insert(operand);
  });
  return before.takeVector();
}

int64_t registersAsOperand(Value value) {
  // Of the sum of two of fewer bits that a product takes in the place of an f32, both are held.
  bool two = llvm::any_of(value.getUsers(), [](Operation *user) {
    auto mma = dyn_cast<MmaOp>(user);
    return mma && mma.getPrecision() == tile::Precision::TF32x3 && isa<Float32Type>(getElementTypeOrSelf(mma.getA()));
  });
  return registersOf(value) * (two ? 2 : 1);
}

int64_t registersHeldBy(scf::ForOp loop) {
  int64_t total = 0;
  for (Value value : operandsFromBefore(loop))
    total += registersAsOperand(value);
  return total;
}

bool takesManyOperands(scf::ForOp loop, const TargetInfo &target) {
  constexpr int64_t manyProducts = 12;
  int64_t products = 0;
  loop.walk([&](MmaOp) { ++products; });
  return products >= manyProducts && registersHeldBy(loop) > target.registersPerThread / 3;
}

} // namespace weft::warp
