// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers of the ops of tensor memory. The constraints C1, C2, ... are those of TensorOps.td.
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/WgmmaLayouts.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft::warp;

LogicalResult TensorBeginOp::verify() {
  constexpr uint32_t most = 512;
  if (!llvm::isPowerOf2_32(getColumns()) || !llvm::isPowerOf2_32(getBarriers()) || getColumns() > most)
    return emitOpError() << "expected powers of two as 'columns' and 'barriers', at most " << most
                         << " columns, but got " << getColumns() << " and " << getBarriers();
  auto slots = cast<SharedType>(getSlots().getType());
  int64_t words = slots.getBytes() / 8;
  if (!slots.getElementType().isInteger(64) || words <= getBarriers())
    return emitOpError() << "expected room for " << getBarriers() << " barriers and a word more, but got " << slots;
  return success();
}

/// How warpgroups split sums; none of a tensor that lies otherwise.
static std::optional<WarpgroupGrid> gridOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  LayoutAttr layout = tensor ? layoutAttrOf(tensor) : LayoutAttr();
  return layout ? wgmmaGridOf(layout.getLayout()) : std::nullopt;
}

/// Whether a tensor lies a row a thread.
static bool liesByRows(Type type) {
  std::optional<WarpgroupGrid> grid = gridOf(type);
  return grid && grid->m == tensorRows;
}

/// Whether a tensor lies as products take operand a, by whatever warpgroups.
static bool liesAsOperand(RankedTensorType type) {
  LayoutAttr layout = layoutAttrOf(type);
  if (!layout || layout.getLayout().rank() != 2)
    return false;
  const unsigned groups = layout.getLayout().size(InDim::Warp) / 4, bits = type.getElementTypeBitWidth();
  for (unsigned m : {wgmmaRows, tensorRows})
    for (unsigned rows = 1; rows <= groups && type.getDimSize(0) >= int64_t(m) * rows; rows *= 2)
      if (wgmmaALayout(type.getShape(), {rows, groups / rows, m}, bits) == layout.getLayout())
        return true;
  return false;
}

LogicalResult TensorStoreOp::verify() {
  auto type = cast<RankedTensorType>(getValue().getType());
  if (!gridOf(type) && !liesAsOperand(type))
    return emitOpError() << "expected a layout of warpgroups' sums or operands, but got " << type;
  return success();
}

LogicalResult TensorScaleOp::verify() {
  if (!gridOf(getBy().getType()) || !getElementTypeOrSelf(getBy().getType()).isF32())
    return emitOpError() << "expected factors of f32 in a layout of warpgroups' sums, but got " << getBy().getType();
  return success();
}

LogicalResult TensorWaitOp::verify() {
  uint32_t barriers = ~0u;
  for (Operation *user : getSlots().getUsers())
    if (auto begin = dyn_cast<TensorBeginOp>(user))
      barriers = begin.getBarriers();
  if (getCount() < 1 || uint64_t(getPending()) + getCount() > barriers)
    return emitOpError() << "expected a 'count' from 1 on, and with 'pending' at most " << barriers
                         << " barriers, but got " << getCount() << " and " << getPending();
  return success();
}

LogicalResult TensorLoadOp::verify() {
  if (!gridOf(getType()) || getElementTypeOrSelf(getType()).getIntOrFloatBitWidth() != 32)
    return emitOpError() << "expected 32-bit elements in a layout of warpgroups' sums, but got " << getType();
  return success();
}

LogicalResult JoinColumnsOp::verify() {
  auto registers = [](Type type) {
    return layoutAttrOf(cast<RankedTensorType>(type)).getLayout().size(InDim::Register);
  };
  TypeRange pieces = getPieces().getTypes();
  if (pieces.empty() || !llvm::all_equal(pieces) || !liesByRows(pieces.front()) || !liesByRows(getType()) ||
      registers(pieces.front()) * pieces.size() != registers(getType()))
    return emitOpError() << "expected pieces of one type, a row a thread, that fill " << getType();
  return success();
}

LogicalResult TensorProductOp::verify() {
  if (bool(getA()) == bool(getFrom()) || bool(getFrom()) != bool(getStored()))
    return emitOpError() << "expected operand a either in shared memory or 'from' a column as 'stored'";
  std::optional<WarpgroupGrid> grid = gridOf(getSums());
  if (!grid)
    return emitOpError() << "expected sums in a layout of warpgroups, but got " << getSums();
  ArrayRef<int32_t> shape = getShape();
  if (shape.size() != 3 || shape[0] != int32_t(grid->m) || shape[1] % 16 != 0 || shape[1] > 256)
    return emitOpError() << "expected a 'shape' [" << grid->m << ", n, k], but got [" << shape << "]";
  return success();
}
