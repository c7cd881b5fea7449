// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-begin-tensor-memory | FileCheck %s
#acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#a = #warp.layout<[128, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>
!a = !warp.shared<128x16xf16, #a>
!b = !warp.shared<16x16xf16, #b>
!sums = tensor<128x16xf32, #acc>

module attributes {warp.target = "sm_100a"} {
  // Behind the parameters that launches add, which a producer's program names too.
  // CHECK-LABEL: func.func @products
  // CHECK: warp.tensor_map
  // CHECK-NEXT: %[[SLOTS:.*]] = warp.alloc : <16xi64,
  // CHECK-NEXT: %[[AREA:.*]], %{{.*}} = warp.tensor_begin %[[SLOTS]] {barriers = 8 : i32, columns = 512 : i32}
  // CHECK-NEXT: arith.constant
  // CHECK: warp.wgmma
  // CHECK: warp.tensor_end %[[AREA]] {columns = 512 : i32}
  // CHECK-NEXT: return
  func.func @products(%base: !tile.ptr<f16>, %n: i64, %a: !a, %b: !b) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %map = warp.tensor_map %base sizes(%n, %n) strides(%n) {box = array<i32: 16, 16>} : <f16>
    %zero = arith.constant dense<0.0> : !sums
    %d = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 16, 16>} : !a * !b -> !sums
    %e = warp.wgmma_wait %d {pending = 0 : i32} : !sums
    return
  }

  // Two warpgroups have sixteen barriers, and a word for the address.
  // CHECK-LABEL: func.func @warpgroups
  // CHECK: warp.alloc : <32xi64,
  func.func @warpgroups(%a: !warp.shared<256x16xf16, #warp.layout<[256, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0]]>>, %b: !b)
      attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %zero = arith.constant dense<0.0> : tensor<256x16xf32, #warp.layout<[256, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0], [128, 0]]>>
    %d = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 16, 16>}
      : !warp.shared<256x16xf16, #warp.layout<[256, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0]]>> * !b
        -> tensor<256x16xf32, #warp.layout<[256, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0], [128, 0]]>>
    return
  }
}

// -----

#acc = #warp.layout<[64, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 8], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4]]>
module attributes {warp.target = "sm_90a"} {
  // Sums in registers need none of it.
  // CHECK-LABEL: func.func @registers
  // CHECK-NOT: tensor_begin
  func.func @registers(%a: tensor<64x16xf16, #a>, %b: !warp.shared<16x8xf16, #b>, %c: tensor<64x8xf32, #acc>) {
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 8, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
    return
  }
}
