// Part of Weft. SPDX-License-Identifier: Apache-2.0
// weft-reduce: MLIR's reducer with Weft's dialects and passes.
#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Tools/Tools.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/InitLLVM.h"

int weft::reduceMain(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  registerPasses();
  mlir::registerTransformsPasses();
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry);
  return succeeded(mlir::mlirReduceMain(argc, argv, context)) ? EXIT_SUCCESS : EXIT_FAILURE;
}
