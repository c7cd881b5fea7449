// Part of Weft. SPDX-License-Identifier: Apache-2.0
// weft-opt: reads MLIR, runs the passes named on the command line, prints MLIR.
#include "compiler/Pipelines/Pipelines.h"
#include "dialects/Tile/IR/TileDialect.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<weft::tile::TileDialect, weft::warp::WarpDialect, mlir::arith::ArithDialect, mlir::math::MathDialect,
                  mlir::scf::SCFDialect, mlir::func::FuncDialect, mlir::cf::ControlFlowDialect, mlir::LLVM::LLVMDialect,
                  mlir::NVVM::NVVMDialect, mlir::gpu::GPUDialect, mlir::ub::UBDialect>();
  mlir::registerTransformsPasses();
  weft::registerPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Weft's pass driver\n", registry));
}
