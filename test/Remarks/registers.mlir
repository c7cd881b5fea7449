// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm %s | weft-translate --mlir-to-ptx --remarks 2>&1 | FileCheck %s

// 256 elements a thread, of which each product is scaled and summed: only the order in which the emitter writes them
// needs 256 registers for the products beside those of the operands, which the stores at the end read again.
#line = #warp.layout<[8192], register = [[1], [2], [128], [256], [512], [1024], [2048], [4096]], lane = [[4], [8], [16], [32], [64]]>

// CHECK: remark: [Missed] register-order | Category:products | Function=many | Reason="the values that live at once take {{[5-9][0-9][0-9]}} registers, more than a thread has; ordered anew, {{[2-9][0-9][0-9]}}"
// CHECK: .visible .entry many(
module attributes {warp.target = "sm_80"} {
  func.func @many(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32})
      attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 8192 : i32} : tensor<8192xi32, #line>
    %xb = tile.splat %x : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #line>
    %yb = tile.splat %y : !tile.ptr<f32> -> tensor<8192x!tile.ptr<f32>, #line>
    %xp = tile.addptr %xb, %r : tensor<8192x!tile.ptr<f32>, #line>, tensor<8192xi32, #line>
    %yp = tile.addptr %yb, %r : tensor<8192x!tile.ptr<f32>, #line>, tensor<8192xi32, #line>
    %v = tile.load %xp : tensor<8192x!tile.ptr<f32>, #line>
    %w = tile.load %yp : tensor<8192x!tile.ptr<f32>, #line>
    %p = arith.mulf %v, %w : tensor<8192xf32, #line>
    %q = arith.mulf %p, %p : tensor<8192xf32, #line>
    %s = tile.reduce %q {axis = 0 : i32} : (tensor<8192xf32, #line>) -> f32 {
    ^bb0(%a: f32, %b: f32):
      %o = arith.addf %a, %b : f32
      tile.yield %o : f32
    }
    %sb = tile.splat %s : f32 -> tensor<8192xf32, #line>
    %vs = arith.mulf %v, %sb : tensor<8192xf32, #line>
    %ws = arith.mulf %w, %sb : tensor<8192xf32, #line>
    tile.store %yp, %vs : tensor<8192x!tile.ptr<f32>, #line>
    tile.store %xp, %ws : tensor<8192x!tile.ptr<f32>, #line>
    return
  }
}
