// Part of Weft. SPDX-License-Identifier: Apache-2.0
// convert-warp-to-llvm: a kernel on tensors with layouts becomes the LLVM function that each thread runs.
//
//   func.func @f(%p: !tile.ptr<f32>)                    llvm.func @f(%p: !llvm.ptr<1>)
//       attributes {tile.kernel} {                          attributes {nvvm.kernel, nvvm.reqntid} {
//     %x = tile.load ...                       -->        %x0 = llvm.load ...    one value for each register
//       : tensor<128x!tile.ptr<f32>, #layout>             %x1 = llvm.load ...    of #layout
//
// Each family of ops is lowered in its own file; this one makes the function and walks over the kernel. See Emitter.h
// for why this is a walk and not a dialect conversion.

#include "compiler/Conversion/WarpToLLVM/Passes.h"
#include "compiler/Conversion/WarpToLLVM/Program.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_CONVERTWARPTOLLVM
#include "compiler/Conversion/WarpToLLVM/Passes.h.inc"

namespace {

LoweringTable makeTable() {
  LoweringTable table;
  addElementwiseLowerings(table);
  addMathLowerings(table);
  addSpanLowerings(table);
  addShapeLowerings(table);
  addMemoryLowerings(table);
  addAtomicLowerings(table);
  addProgramLowerings(table);
  addPrintLowerings(table);
  addInlineAsmLowerings(table);
  addControlFlowLowerings(table);
  addFmaDotLowerings(table);
  addRowDotLowerings(table);
  addMatrixLowerings(table);
  addWgmmaLowerings(table);
  addTensorLowerings(table);
  addSharedLowerings(table);
  addBoxLowerings(table);
  addRoleLowerings(table);
  addConvertLayoutLowerings(table);
  addReduceLowerings(table);
  addScanLowerings(table);
  addGatherLowerings(table);
  addHistogramLowerings(table);
  addShiftLowerings(table);
  return table;
}

/// The LLVM function of a kernel: its name, a parameter for each argument, an empty entry block. The tile dialect has
/// verified that arguments are scalars and pointers, and that there are no results.
LLVM::LLVMFuncOp makeFunction(func::FuncOp source, Emitter::Warps warps) {
  OpBuilder b(source);
  SmallVector<Type> parameters = llvm::map_to_vector(source.getArgumentTypes(), registerType);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), parameters);
  auto function = LLVM::LLVMFuncOp::create(b, source.getLoc(), source.getName(), type);
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    b.getDenseI32ArrayAttr({static_cast<int32_t>(32 * (warps.ofSchedule + warps.added))}));
  if (warps.cluster > 1)
    function->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                      b.getDenseI32ArrayAttr({static_cast<int32_t>(warps.cluster), 1, 1}));
  if (Attribute bytes = source->getAttr(warp::sharedBytesAttrName))
    function->setAttr(warp::sharedBytesAttrName, bytes);
  for (unsigned i = 0; i < parameters.size(); ++i)
    if (auto divisibility = source.getArgAttrOfType<IntegerAttr>(i, tile::divisibilityAttrName);
        divisibility && isa<LLVM::LLVMPointerType>(parameters[i]))
      function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(divisibility.getInt()));
  function.addEntryBlock(b);
  return function;
}

LogicalResult lowerKernel(func::FuncOp source, const TargetInfo &target, const LoweringTable &table) {
  tile::Schedule schedule = tile::scheduleOf(source);
  Emitter::Warps warps{unsigned(schedule.warps), /*added=*/0, unsigned(schedule.cluster)};
  for (auto producer : source.getOps<warp::ProducerOp>())
    warps.added += producer.getWarps();
  if (!source.getBody().hasOneBlock())
    return source.emitOpError("expected one block, but got ") << source.getBody().getBlocks().size();
  LLVM::LLVMFuncOp function = makeFunction(source, warps);
  Emitter emitter(function, target, warps, table);
  for (auto [from, to] : llvm::zip_equal(source.getArguments(), function.getArguments()))
    emitter.bind(from, to);
  if (failed(emitter.lowerBody(source.getBody().front())))
    return failure();
  LLVM::ReturnOp::create(emitter.b, emitter.loc, ValueRange());
  emitter.finish();
  source.erase();
  return success();
}

struct ConvertWarpToLLVM : impl::ConvertWarpToLLVMBase<ConvertWarpToLLVM> {
  void runOnOperation() override {
    static const LoweringTable table = makeTable();
    const TargetInfo *target = TargetInfo::of(getOperation());
    if (!target)
      return signalPassFailure();
    SmallVector<func::FuncOp> kernels(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp kernel : kernels)
      if (kernel->hasAttr(tile::kernelAttrName) && failed(lowerKernel(kernel, *target, table)))
        return signalPassFailure();
  }
};

} // namespace

} // namespace weft
