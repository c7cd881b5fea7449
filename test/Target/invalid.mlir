// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: not weft-translate %s --mlir-to-ptx --no-implicit-module 2>&1 | FileCheck %s

// CHECK: error: expected a module
llvm.func @alone() {
  llvm.return
}
