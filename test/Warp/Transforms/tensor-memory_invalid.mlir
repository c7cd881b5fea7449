// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-tensor-memory --verify-diagnostics
// RUN: weft-opt %s --warp-tensor-memory=mark | FileCheck %s
#acc = #warp.layout<[128, 256], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#a = #warp.layout<[128, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #warp.layout<[16, 256], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128]]>
#s = #warp.layout<[8], offset = [[1], [2], [4]]>
!a = !warp.shared<128x16xf16, #a>
!b = !warp.shared<16x256xf16, #b>
!sums = tensor<128x256xf32, #acc>

// CHECK: warp.lacks_columns
module attributes {warp.target = "sm_100a"} {
  // expected-error@+2 {{expected sums and operands of at most 512 columns of tensor memory, the limit of a block on 'sm_100a', but got 768 for each of 1 warpgroups}}
  // expected-note@+1 {{use smaller tiles}}
  func.func @three(%a: !a, %b: !b, %s: !warp.shared<8xi64, #s>) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %area, %lanes = warp.tensor_begin %s {barriers = 4 : i32, columns = 512 : i32} : !warp.shared<8xi64, #s>
    %zero = arith.constant dense<0.0> : !sums
    // expected-note@+1 {{256 columns for this}}
    %d = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 256, 16>} : !a * !b -> !sums
    // expected-note@+1 {{256 columns for this}}
    %e = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 256, 16>} : !a * !b -> !sums
    // expected-note@+1 {{256 columns for this}}
    %f = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 256, 16>} : !a * !b -> !sums
    %all:3 = warp.wgmma_wait %d, %e, %f {pending = 0 : i32} : !sums, !sums, !sums
    %x = arith.addf %all#0, %all#1 : !sums
    %y = arith.addf %x, %all#2 : !sums
    warp.tensor_end %area {columns = 512 : i32}
    return
  }
}
