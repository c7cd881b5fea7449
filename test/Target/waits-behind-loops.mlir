// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm %s | weft-translate --mlir-to-ptx | FileCheck %s

#acc = #warp.layout<[64, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 8], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4]]>

// Sums of an earlier product, where there was one, go on in a loop that may have no iteration: the way out of the loop
// has a wait of its own, and nothing is left to wait for behind.
// CHECK-LABEL: .entry behind_another(
// CHECK: wgmma.mma_async
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: wgmma.mma_async
// CHECK: wgmma.wait_group.sync.aligned 1;
// CHECK: bra
// CHECK-NOT: {{^}}$L__BB
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: {{^}}$L__BB
// CHECK-NOT: wgmma.wait_group
// CHECK: ret;

// Where no product was before the loop, the wait behind it is enough.
// CHECK-LABEL: .entry alone(
// CHECK: wgmma.wait_group.sync.aligned 1;
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK-NOT: wgmma.wait_group
// CHECK: ret;
module attributes {warp.target = "sm_90a"} {
  func.func @behind_another(%x: f32, %q: f16, %n: i32, %other: i1, %out: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = tile.splat %q : f16 -> tensor<64x16xf16, #a>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<16x8xf16, #b>
    %c = tile.splat %x : f32 -> tensor<64x8xf32, #acc>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x8x!tile.ptr<f32>, #acc>
    %start = scf.if %other -> (tensor<64x8xf32, #acc>) {
      %first = warp.wgmma %a, %b, %c {shape = array<i32: 64, 8, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
      %done = warp.wgmma_wait %first {pending = 0 : i32} : tensor<64x8xf32, #acc>
      scf.yield %done : tensor<64x8xf32, #acc>
    } else {
      scf.yield %c : tensor<64x8xf32, #acc>
    }
    %sums = scf.for %i = %zero to %n step %one iter_args(%before = %start) -> (tensor<64x8xf32, #acc>) : i32 {
      %product = warp.wgmma %a, %b, %before {shape = array<i32: 64, 8, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
      warp.wgmma_wait {pending = 1 : i32}
      scf.yield %product : tensor<64x8xf32, #acc>
    }
    %end = warp.wgmma_wait %sums {pending = 0 : i32} : tensor<64x8xf32, #acc>
    tile.store %p, %end : tensor<64x8x!tile.ptr<f32>, #acc>
    return
  }
  func.func @alone(%x: f32, %q: f16, %n: i32, %out: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = tile.splat %q : f16 -> tensor<64x16xf16, #a>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<16x8xf16, #b>
    %c = tile.splat %x : f32 -> tensor<64x8xf32, #acc>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x8x!tile.ptr<f32>, #acc>
    %sums = scf.for %i = %zero to %n step %one iter_args(%before = %c) -> (tensor<64x8xf32, #acc>) : i32 {
      %product = warp.wgmma %a, %b, %before {shape = array<i32: 64, 8, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
      warp.wgmma_wait {pending = 1 : i32}
      scf.yield %product : tensor<64x8xf32, #acc>
    }
    %end = warp.wgmma_wait %sums {pending = 0 : i32} : tensor<64x8xf32, #acc>
    tile.store %p, %end : tensor<64x8x!tile.ptr<f32>, #acc>
    return
  }
}
