// Part of Weft. SPDX-License-Identifier: Apache-2.0
// weft-reduce: MLIR's reducer with Weft's dialects and passes.
#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Support/TextGuard.h"
#include "compiler/Tools/Tools.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

/// Whether a file's text is one on which MLIR's parser would die, which is reported. Files that are not there, and text
/// from a pipe, are MLIR's to read.
static bool reportsHazard(llvm::StringRef path) {
  if (path.starts_with("-"))
    return false;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  std::optional<weft::TextHazard> hazard = buffer ? weft::findTextHazard((*buffer)->getBuffer()) : std::nullopt;
  if (hazard)
    llvm::errs() << path << ":" << hazard->line << ":" << hazard->column << ": error: " << hazard->message << "\n";
  return hazard.has_value();
}

int weft::reduceMain(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  if (llvm::any_of(llvm::ArrayRef<char *>(argv + 1, argv + argc), reportsHazard))
    return EXIT_FAILURE;
  registerPasses();
  mlir::registerTransformsPasses();
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry);
  return succeeded(mlir::mlirReduceMain(argc, argv, context)) ? EXIT_SUCCESS : EXIT_FAILURE;
}
