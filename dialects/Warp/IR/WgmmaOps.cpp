// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers of the ops of warpgroups. The constraints C1, C2, ... are those of WgmmaOps.td.
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/WgmmaLayouts.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weft::warp;

/// The shape and the element type of a tensor or a tile.
static std::pair<ArrayRef<int64_t>, Type> tileOf(Type type) {
  if (auto shared = dyn_cast<SharedType>(type))
    return {shared.getShape(), shared.getElementType()};
  auto tensor = cast<RankedTensorType>(type);
  return {tensor.getShape(), tensor.getElementType()};
}

bool WgmmaOp::takesRegisters() {
  auto a = dyn_cast<RankedTensorType>(getA().getType());
  if (!a)
    return false;
  std::optional<WarpgroupGrid> grid = wgmmaGridOf(layoutAttrOf(getAcc().getType()).getLayout());
  return grid && wgmmaALayout(a.getShape(), *grid, a.getElementTypeBitWidth()) == layoutAttrOf(a).getLayout();
}

bool WgmmaOp::startsFromZero() { return matchPattern(getAcc(), m_AnyZeroFloat()) || matchPattern(getAcc(), m_Zero()); }

/// C3: an operand in shared memory is one tile that descriptors describe.
static LogicalResult verifyShared(WgmmaOp op, Type type, unsigned innerAxis) {
  auto shared = dyn_cast<SharedType>(type);
  if (!shared)
    return success();
  unsigned bits = shared.getElementType().getIntOrFloatBitWidth();
  std::optional<WgmmaOperand> operand = wgmmaOperand(shared.linear(), innerAxis, bits / 8);
  if (shared.getStages() != 1 || !operand)
    return op.emitOpError() << "expected one tile in lines of 32, 64 or 128 swizzled bytes, but got " << type;
  if (operand->turned && bits > 16)
    return op.emitOpError() << "expected a tile of " << shared.getElementType()
                            << " with neighbours along the inner axis, but got " << type;
  return success();
}

LogicalResult WgmmaOp::verify() {
  auto [a, aElement] = tileOf(getA().getType());
  auto [b, bElement] = tileOf(getB().getType());
  auto acc = cast<RankedTensorType>(getAcc().getType());
  if (a.size() != 2 || b.size() != 2 || acc.getRank() != 2 || a[1] != b[0] || acc.getDimSize(0) != a[0] ||
      acc.getDimSize(1) != b[1])
    return emitOpError() << "expected matrices [M, K], [K, N] and [M, N], but got " << getA().getType() << ", "
                         << getB().getType() << " and " << acc;
  for (Type type : {getA().getType(), getB().getType(), Type(acc)})
    if (isa<RankedTensorType>(type) && !layoutAttrOf(type))
      return emitOpError() << "expected operands with layouts, but got " << type;
  if (aElement != bElement || !(aElement.isF32() || llvm::is_contained({8u, 16u}, aElement.getIntOrFloatBitWidth())))
    return emitOpError() << "expected operands of one type, f32 or of 16 or 8 bits, but got " << aElement << " and "
                         << bElement;
  std::optional<WarpgroupGrid> grid = wgmmaGridOf(layoutAttrOf(acc).getLayout());
  if (!grid)
    return emitOpError() << "expected an accumulator in a layout of warpgroups, but got " << acc;
  ArrayRef<int32_t> shape = getShape();
  if (shape.size() != 3 || shape[0] != int32_t(grid->m) || shape[1] < 8 || shape[1] > 256 || shape[2] < 1 ||
      acc.getDimSize(1) / grid->columns % shape[1] != 0 || a[1] % shape[2] != 0)
    return emitOpError() << "expected a 'shape' [" << grid->m
                         << ", n, k] whose instructions fill each warpgroup's product, but got [" << shape << "]";
  if (failed(verifyShared(*this, getA().getType(), 1)) || failed(verifyShared(*this, getB().getType(), 0)))
    return failure();
  return success();
}

LogicalResult WgmmaWaitOp::verify() {
  if (getPending() > static_cast<uint32_t>(mostPending))
    return emitOpError() << "expected 'pending' from 0 to " << mostPending << ", but got "
                         << static_cast<int32_t>(getPending());
  return success();
}
