// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-pipeline | FileCheck %s

#l = #warp.layout<[128, 64], register = [[0, 1], [0, 2], [0, 4], [32, 0], [64, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [16, 0]]>
#acc = #warp.layout<[128, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#s = #warp.layout<[128, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#t = #warp.layout<[64, 128], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32], [0, 64]]>
!p = tensor<128x64x!tile.ptr<f16>, #l>
!c = tensor<128x128xf32, #acc>

// Rows by columns that lie in rows: the second operand is turned between the wait for both tiles and their product. Both
// are copied ahead.
// CHECK-LABEL: func.func @turned
// CHECK: warp.alloc : <stages = 3, 128x64xf16,
// CHECK-NEXT: warp.alloc : <stages = 3, 128x64xf16,
// CHECK: scf.for
// CHECK: warp.permute_shared
// CHECK: warp.wgmma
// CHECK-COUNT-2: warp.async_copy
// CHECK-NOT: warp.async_copy
// CHECK: scf.yield
module attributes {warp.target = "sm_90a"} {
  func.func @turned(%x: !p, %y: !p, %n: i32) -> !c attributes {tile.schedule = #tile.schedule<warps = 8, stages = 3>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %step = arith.constant dense<64> : tensor<128x64xi32, #l>
    %zero = arith.constant dense<0.0> : !c
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero, %px = %x, %py = %y) -> (!c, !p, !p) : i32 {
      %a = warp.alloc : <128x64xf16, #s>
      warp.async_copy %px to %a {contiguity = 8 : i32} : !p -> <128x64xf16, #s>
      warp.async_commit
      %b = warp.alloc : <128x64xf16, #s>
      warp.async_copy %py to %b {contiguity = 8 : i32} : !p -> <128x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %bt = warp.permute_shared %b {order = array<i32: 1, 0>} : <128x64xf16, #s> -> <64x128xf16, #t>
      %d = warp.wgmma %a, %bt, %sum {shape = array<i32: 64, 128, 16>} : !warp.shared<128x64xf16, #s> * !warp.shared<64x128xf16, #t> -> !c
      %e = warp.wgmma_wait %d {pending = 0 : i32} : !c
      warp.dealloc %b : <128x64xf16, #s>
      warp.dealloc %a : <128x64xf16, #s>
      %qx = tile.addptr %px, %step : !p, tensor<128x64xi32, #l>
      %qy = tile.addptr %py, %step : !p, tensor<128x64xi32, #l>
      scf.yield %e, %qx, %qy : !c, !p, !p
    }
    return %r#0 : !c
  }
}
