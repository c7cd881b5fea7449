// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm %s | weft-translate --mlir-to-ptx | FileCheck %s
// The target comes from the module alone.
// CHECK: .target sm_90a
// CHECK: .visible .entry empty()
// CHECK: ret;
module attributes {warp.target = "sm_90a"} {
  func.func @empty() attributes {tile.kernel} {
    return
  }
}
