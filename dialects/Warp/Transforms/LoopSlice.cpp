// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See LoopSlice.h.
#include "dialects/Warp/Transforms/LoopSlice.h"

#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Transforms/Accesses/DeviceMemory.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace weft::warp {

bool addToSlice(Value value, scf::ForOp loop, bool mayLoad, Slice &slice) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != loop.getBody() || argument == loop.getInductionVar())
      return true;
    unsigned index = argument.getArgNumber() - 1;
    return !slice.carried.insert(index) || addToSlice(loop.getYieldedValues()[index], loop, mayLoad, slice);
  }
  Operation *op = value.getDefiningOp();
  if (op->getBlock() != loop.getBody())
    return !loop->isProperAncestor(op);
  if (slice.ops.contains(op))
    return true;
  bool isTable = mayLoad && isa<tile::LoadOp>(op) && !cast<tile::LoadOp>(op).getIsVolatile();
  if (!isTable && (!isMemoryEffectFree(op) || isa<scf::IfOp, scf::ForOp, scf::WhileOp>(op)))
    return false;
  slice.ops.insert(op);
  return llvm::all_of(op->getOperands(), [&](Value operand) { return addToSlice(operand, loop, mayLoad, slice); });
}

llvm::SmallVector<Operation *> inOrder(const Slice &slice, scf::ForOp loop) {
  llvm::SmallVector<Operation *> ops;
  for (Operation &op : *loop.getBody())
    if (slice.ops.contains(&op))
      ops.push_back(&op);
  return ops;
}

bool writesMemory(scf::ForOp loop) {
  return loop
      .walk([](Operation *op) {
        bool writes = isa<tile::StoreOp, tile::AtomicRMWOp, tile::AtomicCASOp, tile::BarrierOp>(op);
        return writes ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool mayReadAhead(Operation *access, scf::ForOp loop) {
  auto kernel = loop->getParentOfType<func::FuncOp>();
  if (kernel->hasAttr(tile::ordersAccessesAttrName))
    return true;
  DeviceAccess read = *deviceAccessOf(access, /*warps=*/1);
  bool hindered = loop.walk([&](Operation *op) {
                        std::optional<DeviceAccess> other = deviceAccessOf(op, /*warps=*/1);
                        bool writes = other && other->writes && mayShareBase(*other, read);
                        bool acquires = other && orderingOf(op, /*warps=*/1).acquires && !op->use_empty();
                        return writes || acquires ? WalkResult::interrupt() : WalkResult::advance();
                      })
                      .wasInterrupted();
  return !hindered;
}

} // namespace weft::warp
