// Part of Weft. SPDX-License-Identifier: Apache-2.0
// weft-lsp-server: what an editor asks about MLIR text.
#include "compiler/Tools/Tools.h"

int main(int argc, char **argv) { return weft::lspServerMain(argc, argv); }
