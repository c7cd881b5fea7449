// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn-to-tile: every op of a program that walks the sequence (attend, its gradient, sums over tokens, causal means)
// becomes a launch of a tile kernel of its own. What is computed row by row joins them: producers of operands are
// recomputed on the tile inside the kernel, and what is computed from its results alone ends the kernel. What is left
// (maps of other shapes) gets kernels of its own.
//
//   %q2 = attn.rope %q                                        func.func @attend(...) attributes {tile.kernel} {
//   %o, %lse = attn.attend %q2 ...                  ─▶           load q, rotate, walk blocks, add t, store y
//   %y = attn.map ins(%o, %t) { add }                         }
//   return %y                                                 %y = attn.launch @attend(%q, ..., %t) grid [...]
#include "compiler/Conversion/AttnToTile/Elements/ProductKernels.h"
#include "compiler/Conversion/AttnToTile/Kernel/Numbers.h"
#include "compiler/Conversion/AttnToTile/Passes.h"
#include "compiler/Conversion/AttnToTile/ProgramLowering.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "compiler/Conversion/AttnToTile/Sequence/RowSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ATTNTOTILE
#include "compiler/Conversion/AttnToTile/Passes.h.inc"

LogicalResult ProgramLowering::lower(const Expansion &expansion) {
  Operation *anchor = expansion.ops.back();
  for (Value source : expansion.sources())
    if (failed(store(source, anchor)))
      return failure();
  for (Operation *op : expansion.ops)
    for (Value weight : op->getOperands().drop_front(sourcesOf(op).size()))
      if (failed(store(weight, anchor)))
        return failure();
  return lowerExpansion(expansion, stored);
}

LogicalResult ProgramLowering::lower(Operation *op) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return kernel ? kernel.lower(*this) : success(); // Maps are computed where they are read.
}

/// Moves what is no attention as far up as its operands allow: sums over tokens that an attention's kernel ends with
/// come before it.
static void hoistAllButAttention(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    if (isa<attn::AttendOp, attn::AttendBackwardOp, attn::AttendTangentOp, attn::AttendBackwardTangentOp>(op))
      continue;
    llvm::SetVector<Value> used;
    used.insert(op.operand_begin(), op.operand_end());
    for (Region &region : op.getRegions())
      getUsedValuesDefinedAbove(region, used);
    Operation *last = nullptr;
    for (Value value : used)
      if (Operation *definition = value.getDefiningOp(); definition && (!last || last->isBeforeInBlock(definition)))
        last = definition;
    if (last)
      op.moveAfter(last);
    else
      op.moveBefore(&block, block.begin());
  }
}

LogicalResult ProgramLowering::run() {
  if (!llvm::hasSingleElement(program.getBody()))
    return program.emitOpError() << "expected a program of one block";
  addBeforeSumming(program.front());
  hoistAllButAttention(program.front());
  SmallVector<Expansion> found = findGradientExpansions(program.front());
  for (const Expansion &expansion : found)
    inExpansions.insert(expansion.ops.begin(), expansion.ops.end());
  found.append(findExpansions(program.front(), inExpansions));
  SmallVector<Operation *> ops;
  for (Operation &op : program.front().without_terminator())
    ops.push_back(&op);
  llvm::DenseMap<Operation *, const Expansion *> expansions; // by each of their ops
  for (const Expansion &expansion : found)
    for (Operation *op : expansion.ops) {
      expansions[op] = &expansion;
      inExpansions.insert(op);
    }
  for (Operation *op : ops) {
    const Expansion *expansion = expansions.lookup(op);
    if (expansion && op != expansion->ops.back())
      continue;
    if (expansion ? failed(lower(*expansion)) : !isRowLocal(op) && failed(lower(op)))
      return failure();
  }
  Operation *end = program.front().getTerminator();
  for (Value value : end->getOperands())
    if (!isNumber(value) && failed(store(value, end)))
      return failure();
  if (failed(storeNumbers(end)))
    return failure();
  llvm::DenseSet<Value> returned;
  for (OpOperand &operand : end->getOpOperands()) {
    Value tensor = stored.at(operand.get());
    bool inParts = tensor.getType() != operand.get().getType();
    if (isa<BlockArgument>(tensor) || inParts || !returned.insert(tensor).second) {
      // Every output is a tensor of its own, and whole: sums over tokens are stored in parts, which readers add.
      auto same = [](ImplicitLocOpBuilder &, ValueRange x) -> SmallVector<Value> { return {x[0]}; };
      OpBuilder builder(end);
      auto copy = attn::MapOp::create(builder, end->getLoc(), operand.get().getType(), operand.get(), same);
      if (failed(store(copy.getResult(0), end)))
        return failure();
      tensor = stored.at(copy.getResult(0));
    }
    operand.set(tensor);
  }
  // The ops that lowering added go as well.
  SmallVector<Operation *> done;
  for (Operation &op : program.front().without_terminator())
    if (!isa<attn::LaunchOp>(op))
      done.push_back(&op);
  for (Operation *op : llvm::reverse(done))
    op->erase();
  return success();
}

namespace {
struct AttnToTile : impl::AttnToTileBase<AttnToTile> {
  void getDependentDialects(DialectRegistry &registry) const final {
    Base::getDependentDialects(registry);
    registerRowLocalOps(registry);
    registerProductKernels(registry);
    registerProducts(registry);
    registry.addExtension(+[](MLIRContext *context, attn::AttnDialect *) {
      for (auto attach : {attachAttentionKernels, attachSequenceKernels, attachRecurrenceKernels})
        attach(*context);
    });
  }
  void runOnOperation() final {
    SmallVector<func::FuncOp> programs;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(attn::programAttrName))
        programs.push_back(function);
    for (func::FuncOp program : programs)
      if (failed(ProgramLowering(program).run()))
        return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(refusedAttrName)) // KernelFrame has reported why.
        return signalPassFailure();
    if (failed(takeTilingChoices(getOperation())))
      signalPassFailure();
  }
};
} // namespace

} // namespace weft
