// Part of Weft. SPDX-License-Identifier: Apache-2.0
// weft-lsp-server: MLIR's language server with Weft's dialects; text on which its parser would die is reported.
#include "compiler/Tools/LspGuard.h"
#include "compiler/Tools/Tools.h"
#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/LogicalResult.h"

int weft::lspServerMain(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  registerTextGuard(registry);
  guardStandardInput();
  return succeeded(mlir::MlirLspServerMain(argc, argv, registry)) ? EXIT_SUCCESS : EXIT_FAILURE;
}
