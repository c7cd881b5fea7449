// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See LoopSlice.h.
#include "dialects/Warp/Transforms/LoopSlice.h"

#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Accesses/DeviceMemory.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace weft::warp {

bool addWithin(Value value, scf::ForOp loop, bool mayLoad, Slice &slice) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() == loop.getBody() && argument != loop.getInductionVar())
      slice.carried.insert(argument.getArgNumber() - 1);
    return true;
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
  return llvm::all_of(op->getOperands(), [&](Value operand) { return addWithin(operand, loop, mayLoad, slice); });
}

bool addToSlice(Value value, scf::ForOp loop, bool mayLoad, Slice &slice) {
  size_t known = slice.carried.size(); // whose values were followed before
  bool computable = addWithin(value, loop, mayLoad, slice);
  for (; computable && known < slice.carried.size(); ++known)
    computable = addWithin(loop.getYieldedValues()[slice.carried[known]], loop, mayLoad, slice);
  return computable;
}

llvm::SmallVector<Operation *> inOrder(const Slice &slice, scf::ForOp loop) {
  llvm::SmallVector<Operation *> ops;
  for (Operation &op : *loop.getBody())
    if (slice.ops.contains(&op))
      ops.push_back(&op);
  return ops;
}

bool hasLoopInside(scf::ForOp loop) {
  return loop.getBody()->walk([](LoopLikeOpInterface) { return WalkResult::interrupt(); }).wasInterrupted();
}

void cloneComputed(Value value, OpBuilder &b, IRMapping &mapping, Block *block) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != block || mapping.contains(value) || !isPure(op) || op->getNumRegions() != 0)
    return;
  for (Value operand : op->getOperands())
    cloneComputed(operand, b, mapping, block);
  b.clone(*op, mapping);
}

bool addressesLoads(tile::LoadOp load) {
  llvm::SetVector<Operation *> readers;
  auto addReaders = [&](Operation *op) {
    for (Operation *user : op->getUsers())
      if (user->getBlock() == load->getBlock())
        readers.insert(user);
  };
  addReaders(load);
  for (size_t at = 0; at < readers.size(); ++at) {
    if (isa<tile::LoadOp, AsyncCopyOp>(readers[at]))
      return true;
    if (isMemoryEffectFree(readers[at]) && readers[at]->getNumRegions() == 0)
      addReaders(readers[at]);
  }
  return false;
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
