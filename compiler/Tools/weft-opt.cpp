// Part of Weft. SPDX-License-Identifier: Apache-2.0
// weft-opt: reads MLIR, runs the passes named on the command line, prints MLIR.
#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Support/TextGuard.h"
#include "dialects/Attn/IR/AttnDialect.h"
#include "dialects/Tile/IR/TileDialect.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

/// As MLIR's own driver, but text on which its parser would die is reported instead.
static llvm::LogicalResult run(int argc, char **argv, mlir::DialectRegistry &registry) {
  llvm::InitLLVM init(argc, argv);
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "Weft's pass driver\n", registry);
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = mlir::openInputFile(input, &error);
  std::unique_ptr<llvm::ToolOutputFile> file = buffer ? mlir::openOutputFile(output, &error) : nullptr;
  if (!file) {
    llvm::errs() << error << "\n";
    return llvm::failure();
  }
  if (std::optional<weft::TextHazard> hazard = weft::findTextHazard(buffer->getBuffer())) {
    llvm::errs() << input << ":" << hazard->line << ":" << hazard->column << ": error: " << hazard->message << "\n";
    return llvm::failure();
  }
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (failed(mlir::MlirOptMain(file->os(), std::move(buffer), registry, config)))
    return llvm::failure();
  file->keep();
  return llvm::success();
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<weft::attn::AttnDialect, weft::tile::TileDialect, weft::warp::WarpDialect, mlir::arith::ArithDialect,
                  mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::func::FuncDialect, mlir::cf::ControlFlowDialect,
                  mlir::LLVM::LLVMDialect, mlir::NVVM::NVVMDialect, mlir::gpu::GPUDialect, mlir::ub::UBDialect>();
  mlir::registerTransformsPasses();
  weft::registerPasses();
  return mlir::asMainReturnCode(run(argc, argv, registry));
}
