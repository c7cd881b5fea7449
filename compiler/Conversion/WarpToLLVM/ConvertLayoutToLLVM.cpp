// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp.convert_layout: renames registers where every lane keeps its elements; otherwise through shared memory.

#include "compiler/Conversion/WarpToLLVM/SharedAccess.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Scratch.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {

static LogicalResult lowerConvertLayout(ConvertLayoutOp op, Emitter &e) {
  const LinearLayout &source = layoutOf(op.getSource().getType()), &result = layoutOf(op.getResult().getType());
  ArrayRef<Value> registers = e.registers(op.getSource());
  if (std::optional<SmallVector<uint32_t>> permutation = result.registerPermutation(source)) {
    e.bind(op.getResult(), llvm::map_to_vector(*permutation, [&](uint32_t from) { return registers[from]; }));
    return success();
  }
  auto scratch = op->getAttrOfType<IntegerAttr>(scratchAttrName);
  if (!scratch)
    return op.emitOpError("has no scratch memory; run 'warp-allocate-shared' before");
  unsigned bytes = elementBytes(cast<RankedTensorType>(op.getSource().getType()).getElementType());
  LinearLayout shared = scratchLayout(source, result, bytes);
  Value base = e.sharedPointer(scratch.getInt());
  emitSharedStore(e, base, accessOf(source, shared, bytes), registers);
  e.barrier();
  e.bind(op.getResult(), emitSharedLoad(e, base, accessOf(result, shared, bytes), registerType(op.getResult().getType())));
  return success();
}

void addConvertLayoutLowerings(LoweringTable &table) { table.add<ConvertLayoutOp>(lowerConvertLayout); }

} // namespace weft
