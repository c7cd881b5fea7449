// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --no-implicit-module --pass-pipeline='func.func(warp-allocate-shared)' --verify-diagnostics
// A kernel by itself has no target.

// expected-error@+1 {{expected a module around the kernel, with the attribute 'warp.target'}}
func.func @alone() attributes {tile.kernel} {
  return
}
