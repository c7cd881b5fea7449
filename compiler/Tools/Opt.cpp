// Part of Weft. SPDX-License-Identifier: Apache-2.0
// weft-opt: reads MLIR, runs the passes named on the command line, prints MLIR.
#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Support/TextGuard.h"
#include "compiler/Tools/Tools.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

/// As MLIR's own driver, but text on which its parser would die is reported instead.
static llvm::LogicalResult run(int argc, char **argv, mlir::DialectRegistry &registry) {
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

static bool asksForHelp(llvm::ArrayRef<char *> arguments) {
  return llvm::any_of(arguments, [](llvm::StringRef each) {
    each = each.trim('-');
    return each == "help" || each == "h" || each == "help-hidden" || each == "help-list";
  });
}

int weft::optMain(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  weft::registerPasses();
  // LLVM's help sorts all passes by name, so Weft's are told before MLIR's are registered.
  if (asksForHelp({argv + 1, argv + argc})) {
    llvm::outs() << "Weft's own passes; MLIR's, pipelines and all other options follow.\n\n";
    mlir::printRegisteredPasses();
    llvm::outs() << "\n";
  }
  mlir::registerTransformsPasses();
  mlir::DialectRegistry registry;
  registerDialects(registry);
  return mlir::asMainReturnCode(run(argc, argv, registry));
}
