// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm %s | weft-translate --mlir-to-ptx --remarks 2>&1 | FileCheck %s

#acc = #warp.layout<[64, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 8], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4]]>

// CHECK: remark: [Missed] products-under-way | Category:loops | Function=change_places | Reason="sums change places while products add to them; waits before that: 1"
// CHECK-NOT: remark
module attributes {warp.target = "sm_90a"} {
  func.func @change_places(%x: f32, %y: f32, %q: f16, %n: i32, %out: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = tile.splat %q : f16 -> tensor<64x16xf16, #a>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<16x8xf16, #b>
    %c = tile.splat %x : f32 -> tensor<64x8xf32, #acc>
    %d = tile.splat %y : f32 -> tensor<64x8xf32, #acc>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x8x!tile.ptr<f32>, #acc>
    %sums:2 = scf.for %i = %zero to %n step %one iter_args(%first = %c, %second = %d) -> (tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>) : i32 {
      %product = warp.wgmma %a, %b, %first {shape = array<i32: 64, 8, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
      %done = warp.wgmma_wait %product {pending = 0 : i32} : tensor<64x8xf32, #acc>
      scf.yield %second, %done : tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>
    }
    tile.store %p, %sums#0 : tensor<64x8x!tile.ptr<f32>, #acc>
    tile.store %p, %sums#1 : tensor<64x8x!tile.ptr<f32>, #acc>
    return
  }
  func.func @stay(%x: f32, %y: f32, %q: f16, %n: i32, %out: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = tile.splat %q : f16 -> tensor<64x16xf16, #a>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<16x8xf16, #b>
    %c = tile.splat %x : f32 -> tensor<64x8xf32, #acc>
    %d = tile.splat %y : f32 -> tensor<64x8xf32, #acc>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x8x!tile.ptr<f32>, #acc>
    %e, %f, %g = warp.wgmma_fence %a, %c, %d : tensor<64x16xf16, #a>, tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>
    %one_more = warp.wgmma %e, %b, %f {shape = array<i32: 64, 8, 16>, fenced} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
    %another = warp.wgmma %e, %b, %g {shape = array<i32: 64, 8, 16>, fenced} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
    %done:2 = warp.wgmma_wait %one_more, %another {pending = 0 : i32} : tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>
    tile.store %p, %done#0 : tensor<64x8x!tile.ptr<f32>, #acc>
    tile.store %p, %done#1 : tensor<64x8x!tile.ptr<f32>, #acc>
    return
  }
}
