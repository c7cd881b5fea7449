// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Weft's tools on MLIR text as functions, each what a process's `main` does, so that executables and the compiler's
// shared library have the same ones.
#pragma once

#include "mlir/IR/DialectRegistry.h"

namespace weft {

/// Every dialect that IR on the way from attention to PTX is made of.
void registerDialects(mlir::DialectRegistry &registry);

/// Reads MLIR, runs the passes that the command line names, prints MLIR. `--help` lists Weft's own passes first.
int optMain(int argc, char **argv);

/// A server of the language server protocol for MLIR text, on the standard streams: diagnostics, hovers, definitions.
int lspServerMain(int argc, char **argv);

/// Makes a module smaller for as long as a test of the user's finds it interesting, by MLIR's reducer.
int reduceMain(int argc, char **argv);

} // namespace weft
