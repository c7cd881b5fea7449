// Part of Weft. SPDX-License-Identifier: Apache-2.0
// weft-translate: from a module of the LLVM dialect to PTX (--mlir-to-ptx). The module names its target in
// `warp.target`.
#include "compiler/Target/NVPTX/EmitPTX.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

static llvm::cl::opt<bool> lineInfo("line-info", llvm::cl::desc("write .loc directives"), llvm::cl::init(true));
static llvm::cl::opt<bool> printTimes("print-times", llvm::cl::desc("print what each step took, in ms, to stderr"),
                                      llvm::cl::init(false));
static llvm::cl::opt<bool> printLLVM("print-llvm", llvm::cl::desc("write the optimised LLVM IR instead of PTX"),
                                     llvm::cl::init(false));

static llvm::cl::opt<int> registers("registers", llvm::cl::desc("order code as if a thread had so many registers"),
                                    llvm::cl::init(0));

static llvm::cl::opt<bool> printRemarks("remarks", llvm::cl::desc("print the fast paths that were not taken"),
                                        llvm::cl::init(false));

/// Prints remarks as diagnostics.
static void askForRemarks(MLIRContext &context) {
  remark::RemarkCategories categories;
  categories.missed = ".*";
  // It fails for patterns that are none alone.
  (void)remark::enableOptimizationRemarks(context, nullptr, std::make_unique<remark::RemarkEmittingPolicyAll>(),
                                          categories, /*printAsEmitRemarks=*/true);
}

static LogicalResult writePTX(Operation *op, raw_ostream &out) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    return op->emitError("expected a module");
  const weft::TargetInfo *target = weft::TargetInfo::of(module);
  if (!target)
    return failure();
  if (printRemarks)
    askForRemarks(*module.getContext());
  auto emitted = weft::emitPTX(module, *target, {.lineInfo = lineInfo, .keepLLVM = printLLVM, .registers = registers});
  if (failed(emitted))
    return failure();
  if (printTimes)
    llvm::errs() << llvm::formatv("translate {0:f1} optimise {1:f1} select {2:f1}\n", emitted->translateMs,
                                  emitted->optimiseMs, emitted->instructionSelectMs);
  out << (printLLVM ? emitted->llvmIR : emitted->text);
  return success();
}

int main(int argc, char **argv) {
  TranslateFromMLIRRegistration registration(
      "mlir-to-ptx", "LLVM dialect to PTX", writePTX, [](DialectRegistry &registry) {
        registry.insert<LLVM::LLVMDialect, NVVM::NVVMDialect, weft::warp::WarpDialect>();
        weft::registerPTXTranslations(registry);
      });
  return failed(mlirTranslateMain(argc, argv, "Weft's translations\n")) ? EXIT_FAILURE : EXIT_SUCCESS;
}
