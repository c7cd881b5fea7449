// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm %s | weft-translate --mlir-to-ptx | FileCheck %s
// A false assertion prints its message and which program failed, then traps.
// CHECK: .extern .func {{.*}} vprintf
// CHECK: weft_text_0
// CHECK: @%p{{[0-9]+}} bra
// CHECK: vprintf
// CHECK: trap;
module attributes {warp.target = "sm_80"} {
  func.func @check(%n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c = arith.cmpi sgt, %n, %c0 : i32
    tile.assert %c, "expected some rows" : i1
    return
  }
}
