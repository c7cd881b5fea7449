// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The tools, for launchers that load the library.
#include "compiler/Tools/Tools.h"
#include "compiler/CAPI/weft-compiler.h"
#include "llvm/ADT/StringSwitch.h"

int weftc_tool_main(const char *name, int argc, char **argv) {
  auto *tool = llvm::StringSwitch<int (*)(int, char **)>(name)
                   .Case("weft-opt", weft::optMain)
                   .Case("weft-lsp-server", weft::lspServerMain)
                   .Case("weft-reduce", weft::reduceMain)
                   .Default(nullptr);
  return tool ? tool(argc, argv) : 2;
}
