// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Accesses/UndefinedElements.h"

#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft::warp {

bool isOfSmallAngle(Operation *op) {
  auto flags = cast<arith::ArithFastMathInterface>(op).getFastMathFlagsAttr();
  return flags && arith::bitEnumContainsAll(flags.getValue(), arith::FastMathFlags::afn);
}

/// Whether an operation on such a value has branches of the compiler's own: LLVM's divisions of 64 bits, long
/// divisions.
static bool hasBranches(Operation *op, Type operand) {
  if (isa<math::SinOp, math::CosOp>(op))
    return !isOfSmallAngle(op);
  if (isa<arith::RemFOp>(op))
    return true;
  return isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op) &&
         tile::elementTypeOf(operand).isInteger(64);
}

/// The values that an operand's becomes: of the loops and branches that carry it, else results and what regions are
/// given.
static SmallVector<Value> madeOf(OpOperand &use) {
  Operation *user = use.getOwner(), *parent = user->getParentOp();
  unsigned number = use.getOperandNumber();
  if (auto loop = dyn_cast<scf::ForOp>(user)) {
    if (BlockArgument carried = loop.getTiedLoopRegionIterArg(&use))
      return {carried, loop.getTiedLoopResult(&use)};
    return {};
  }
  if (auto loop = dyn_cast<scf::WhileOp>(user))
    return {loop.getBeforeArguments()[number]};
  if (auto condition = dyn_cast<scf::ConditionOp>(user)) {
    auto loop = cast<scf::WhileOp>(parent);
    return number ? SmallVector<Value>{loop.getAfterArguments()[number - 1], loop.getResult(number - 1)}
                  : SmallVector<Value>{};
  }
  if (isa<scf::YieldOp>(user)) {
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      return {loop.getRegionIterArg(number), loop.getResult(number)};
    if (auto loop = dyn_cast<scf::WhileOp>(parent))
      return {loop.getBeforeArguments()[number]};
    return {parent->getResult(number)};
  }
  SmallVector<Value> made(user->getResults());
  for (Region &region : user->getRegions())
    llvm::append_range(made, region.getArguments());
  return made;
}

bool decidesAWay(Value loaded) {
  SmallVector<Value> open{loaded};
  llvm::SmallPtrSet<void *, 32> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      auto load = dyn_cast<tile::LoadOp>(use.getOwner());
      if ((load && load.getMask() == value) || hasBranches(use.getOwner(), value.getType()))
        return true;
      if (load && load.getOther() != value) // what is read at an address is another number
        continue;
      for (Value made : madeOf(use))
        if (seen.insert(made.getAsOpaquePointer()).second)
          open.push_back(made);
    }
  }
  return false;
}

} // namespace weft::warp
