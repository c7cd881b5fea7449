// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Roles/ProducerSlice.h"

#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Accesses/DeviceMemory.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace weft::warp {

static constexpr StringLiteral notScalar = "they need a value that all threads compute together";
static constexpr StringLiteral notRepeatable = "they need what only one of two programs may do";
static constexpr StringLiteral notStructured = "they stand in a loop that is left before its end";
static constexpr StringLiteral mayBeWritten = "they need a number that the kernel itself may write";

static bool isScalar(Type type) { return !isa<RankedTensorType>(type); }

/// Whether both ops are in one loop, where either may come first.
static bool shareLoop(Operation *a, Operation *b) {
  for (Operation *each = a->getParentOp(); each; each = each->getParentOp())
    if (isa<LoopLikeOpInterface>(each) && each->isProperAncestor(b))
      return true;
  return false;
}

/// Whether `a` comes before `b` where they have no loop in common.
static bool comesBefore(Operation *a, Operation *b) {
  for (Operation *each = b; each; each = each->getParentOp())
    if (Operation *here = each->getBlock() ? each->getBlock()->findAncestorOpInBlock(*a) : nullptr)
      return here != each && here->isBeforeInBlock(each);
  return true;
}

/// The producer is not behind the others in the program: nothing before a load may write what it reads.
bool ProducerSlice::mayLoad(Operation *load) {
  std::optional<DeviceAccess> read = deviceAccessOf(load, /*warps=*/1);
  if (!read || cast<tile::LoadOp>(load).getIsVolatile())
    return false;
  return !kernel
              .walk([&](Operation *op) {
                std::optional<DeviceAccess> other = deviceAccessOf(op, /*warps=*/1);
                bool writes = other && other->writes && mayShareBase(*other, *read);
                return writes && (shareLoop(op, load) || comesBefore(op, load)) ? WalkResult::interrupt()
                                                                                : WalkResult::advance();
              })
              .wasInterrupted();
}

bool ProducerSlice::needAround(Operation *op) {
  Operation *parent = op->getParentOp();
  return parent == kernel || (needControl(parent) && needAround(parent));
}

bool ProducerSlice::needControl(Operation *op) {
  if (!isa<scf::ForOp, scf::IfOp>(op))
    return fail(notStructured);
  if (!ops.insert(op).second)
    return true;
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return needValue(branch.getCondition());
  auto loop = cast<scf::ForOp>(op);
  return needValue(loop.getLowerBound()) && needValue(loop.getUpperBound()) && needValue(loop.getStep());
}

bool ProducerSlice::needCarried(Operation *op, unsigned index) {
  if (!isScalar(op->getResult(index).getType()))
    return fail(notScalar);
  if (!carried.insert({op, index}).second)
    return true;
  if (!needControl(op) || !needAround(op))
    return false;
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return needValue(loop.getInitArgs()[index]) && needValue(loop.getYieldedValues()[index]);
  auto branch = cast<scf::IfOp>(op);
  return needValue(branch.thenYield().getOperand(index)) && needValue(branch.elseYield().getOperand(index));
}

bool ProducerSlice::needValue(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (owner == kernel)
      return true;
    auto loop = dyn_cast<scf::ForOp>(owner);
    if (!loop)
      return fail(notStructured);
    if (argument == loop.getInductionVar())
      return needControl(loop) && needAround(loop);
    return needCarried(loop, argument.getArgNumber() - 1);
  }
  Operation *op = value.getDefiningOp();
  if (isa<TensorMapOp, ProgramsOp>(op))
    return true; // parameters of the kernel, which both programs have
  if (isa<scf::ForOp, scf::IfOp>(op))
    return needCarried(op, cast<OpResult>(value).getResultNumber());
  if (!ops.insert(op).second)
    return true;
  bool isScalarOp = llvm::all_of(op->getOperandTypes(), isScalar) && llvm::all_of(op->getResultTypes(), isScalar);
  if (!isScalarOp)
    return fail(notScalar);
  if (isa<tile::LoadOp>(op) ? !mayLoad(op) : false)
    return fail(mayBeWritten);
  if (op->getNumRegions() != 0 || !(isMemoryEffectFree(op) || isa<AllocOp, tile::LoadOp>(op)))
    return fail(isa<scf::WhileOp>(op) ? notStructured : notRepeatable);
  return needAround(op) && llvm::all_of(op->getOperands(), [&](Value operand) { return needValue(operand); });
}

bool ProducerSlice::add(Operation *root) {
  roots.insert(root);
  if (!needAround(root))
    return false;
  bool known = true;
  root->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!root->isAncestor(operand.getParentBlock()->getParentOp()))
        known = known && needValue(operand);
  });
  return known;
}

SmallVector<unsigned> ProducerSlice::carriedOf(Operation *op) const {
  SmallVector<unsigned> indices;
  for (unsigned index = 0; index < op->getNumResults(); ++index)
    if (carried.contains({op, index}))
      indices.push_back(index);
  return indices;
}

void ProducerSlice::emitFor(Operation *op, OpBuilder &b, IRMapping &mapping) const {
  auto loop = cast<scf::ForOp>(op);
  SmallVector<unsigned> indices = carriedOf(op);
  auto mapped = [&](Value value) { return mapping.lookupOrDefault(value); };
  auto inits = llvm::map_to_vector(indices, [&](unsigned index) { return mapped(loop.getInitArgs()[index]); });
  auto emitted = scf::ForOp::create(b, loop.getLoc(), mapped(loop.getLowerBound()), mapped(loop.getUpperBound()),
                                    mapped(loop.getStep()), inits);
  emitted->setAttrs(loop->getAttrs());
  mapping.map(loop.getInductionVar(), emitted.getInductionVar());
  for (auto [index, argument] : llvm::zip_equal(indices, emitted.getRegionIterArgs()))
    mapping.map(loop.getRegionIterArg(index), argument);
  for (auto [index, result] : llvm::zip_equal(indices, emitted.getResults()))
    mapping.map(loop.getResult(index), result);
  OpBuilder::InsertionGuard guard(b);
  if (indices.empty())
    b.setInsertionPoint(emitted.getBody()->getTerminator());
  else
    b.setInsertionPointToStart(emitted.getBody());
  emitBlock(*loop.getBody(), b, mapping);
  if (!indices.empty())
    scf::YieldOp::create(b, loop.getLoc(), llvm::map_to_vector(indices, [&](unsigned index) {
                           return mapped(loop.getYieldedValues()[index]);
                         }));
}

void ProducerSlice::emitIf(Operation *op, OpBuilder &b, IRMapping &mapping) const {
  auto branch = cast<scf::IfOp>(op);
  SmallVector<unsigned> indices = carriedOf(op);
  auto types = llvm::map_to_vector(indices, [&](unsigned index) { return branch.getResult(index).getType(); });
  auto emitted = scf::IfOp::create(b, branch.getLoc(), types, mapping.lookupOrDefault(branch.getCondition()),
                                   /*addThenBlock=*/true, /*addElseBlock=*/!branch.getElseRegion().empty());
  for (auto [index, result] : llvm::zip_equal(indices, emitted.getResults()))
    mapping.map(branch.getResult(index), result);
  OpBuilder::InsertionGuard guard(b);
  for (auto [from, to] : llvm::zip_equal(branch->getRegions(), emitted->getRegions())) {
    if (from.empty())
      continue;
    b.setInsertionPointToStart(&to.front());
    emitBlock(from.front(), b, mapping);
    ValueRange yielded = from.front().getTerminator()->getOperands();
    scf::YieldOp::create(b, branch.getLoc(), llvm::map_to_vector(indices, [&](unsigned index) {
                           return mapping.lookupOrDefault(yielded[index]);
                         }));
  }
}

void ProducerSlice::emitBlock(Block &block, OpBuilder &b, IRMapping &mapping) const {
  for (Operation &op : block.without_terminator()) {
    const bool isRoot = roots.contains(&op);
    if (auto produce = dyn_cast<ProduceOp>(op); produce && isRoot) {
      for (Operation &inner : produce.getBody().front())
        b.clone(inner, mapping);
    } else if (!isRoot && !ops.contains(&op)) {
      continue;
    } else if (!isRoot && isa<scf::ForOp>(op)) {
      emitFor(&op, b, mapping);
    } else if (!isRoot && isa<scf::IfOp>(op)) {
      emitIf(&op, b, mapping);
    } else {
      b.clone(op, mapping);
    }
  }
}

void ProducerSlice::emit(OpBuilder &b) const {
  IRMapping mapping;
  emitBlock(func::FuncOp(kernel).getBody().front(), b, mapping);
}

void setBehindAdded(func::FuncOp kernel, OpBuilder &b) {
  b.setInsertionPointToStart(&kernel.getBody().front());
  for (Operation &op : kernel.getBody().front())
    if (isa<TensorMapOp, ProgramsOp>(op))
      b.setInsertionPointAfter(&op);
}

} // namespace weft::warp
