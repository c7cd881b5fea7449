// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-add-behind --split-input-file | FileCheck %s
#acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#row = #warp.layout<[128, 1], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#column = #warp.layout<[1, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#flat = #warp.layout<[128], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>
#a = #warp.layout<[128, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>
#d = #warp.layout<[128], offset = [[1], [2], [4], [8], [16], [32], [64]]>
!a = !warp.shared<128x16xf16, #a>
!b = !warp.shared<16x16xf16, #b>
!delta = !warp.shared<128xf32, #d>
!sums = tensor<128x16xf32, #acc>

module attributes {warp.target = "sm_100a"} {
  // The numbers are loaded and added where the sums are computed with, not where they are waited for.
  // CHECK-LABEL: func.func @rows
  // CHECK-NOT: warp.load_shared
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<128x16xf32,
  // CHECK-NEXT: %[[D:.*]] = warp.wgmma %arg0, %arg1, %[[ZERO]]
  // CHECK-NEXT: %[[E:.*]] = warp.wgmma_wait %[[D]]
  // CHECK-NEXT: %[[P:.*]] = math.exp2 %arg3
  // CHECK-NEXT: %[[LOADED:.*]] = warp.load_shared %arg2
  // CHECK-NEXT: %[[ACROSS:.*]] = tile.expand_dims %[[LOADED]]
  // CHECK-NEXT: %[[C:.*]] = tile.broadcast %[[ACROSS]]
  // CHECK-NEXT: %[[F:.*]] = arith.addf %[[E]], %[[C]]
  // CHECK-NEXT: arith.mulf %[[P]], %[[F]]
  func.func @rows(%a: !a, %b: !b, %delta: !delta, %s: !sums) -> !sums attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %loaded = warp.load_shared %delta : !delta -> tensor<128xf32, #flat>
    %across = tile.expand_dims %loaded {axis = 1 : i32} : tensor<128xf32, #flat> -> tensor<128x1xf32, #row>
    %c = tile.broadcast %across : tensor<128x1xf32, #row> -> !sums
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 128, 16, 16>} : !a * !b -> !sums
    %e = warp.wgmma_wait %d {pending = 0 : i32} : !sums
    %p = math.exp2 %s : !sums
    %x = arith.mulf %p, %e : !sums
    return %x : !sums
  }

  // A read does not pass a barrier, behind which its tile may be another one's.
  // CHECK-LABEL: func.func @barrier
  // CHECK: warp.load_shared
  // CHECK: warp.wgmma %{{.*}}, %{{.*}}, %cst
  // CHECK: warp.barrier
  // CHECK: tile.broadcast
  // CHECK-NEXT: arith.addf
  func.func @barrier(%a: !a, %b: !b, %delta: !delta) -> !sums attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %loaded = warp.load_shared %delta : !delta -> tensor<128xf32, #flat>
    %across = tile.expand_dims %loaded {axis = 1 : i32} : tensor<128xf32, #flat> -> tensor<128x1xf32, #row>
    %c = tile.broadcast %across : tensor<128x1xf32, #row> -> !sums
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 128, 16, 16>} : !a * !b -> !sums
    %e = warp.wgmma_wait %d {pending = 0 : i32} : !sums
    warp.barrier
    %x = arith.negf %e : !sums
    %y = arith.negf %x : !sums
    return %y : !sums
  }

  // Sums that the next product goes on from, that leave their block, numbers of columns, and values of any other kind.
  // CHECK-LABEL: func.func @left_alone
  // CHECK: %[[C:.*]] = tile.broadcast %arg2
  // CHECK: warp.wgmma %{{.*}}, %{{.*}}, %[[C]]
  // CHECK: %[[X:.*]] = arith.negf
  // CHECK: warp.wgmma %{{.*}}, %{{.*}}, %[[X]]
  // CHECK: warp.wgmma %{{.*}}, %{{.*}}, %[[C]]
  // CHECK: %[[COLUMNS:.*]] = tile.broadcast %arg3
  // CHECK: warp.wgmma %{{.*}}, %{{.*}}, %[[COLUMNS]]
  // CHECK-NOT: arith.addf
  func.func @left_alone(%a: !a, %b: !b, %across: tensor<128x1xf32, #row>, %down: tensor<1x16xf32, #column>) -> (!sums, !sums, !sums) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c = tile.broadcast %across : tensor<128x1xf32, #row> -> !sums
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 128, 16, 16>} : !a * !b -> !sums
    %e = warp.wgmma_wait %d {pending = 0 : i32} : !sums
    %f = warp.wgmma %a, %b, %e {shape = array<i32: 128, 16, 16>} : !a * !b -> !sums
    %g = warp.wgmma_wait %f {pending = 0 : i32} : !sums
    %x = arith.negf %g : !sums
    %h = warp.wgmma %a, %b, %x {shape = array<i32: 128, 16, 16>} : !a * !b -> !sums
    %i = warp.wgmma_wait %h {pending = 0 : i32} : !sums
    %y = arith.negf %i : !sums
    %j = warp.wgmma %a, %b, %c {shape = array<i32: 128, 16, 16>} : !a * !b -> !sums
    %k = warp.wgmma_wait %j {pending = 0 : i32} : !sums
    %columns = tile.broadcast %down : tensor<1x16xf32, #column> -> !sums
    %l = warp.wgmma %a, %b, %columns {shape = array<i32: 128, 16, 16>} : !a * !b -> !sums
    %m = warp.wgmma_wait %l {pending = 0 : i32} : !sums
    %z = arith.negf %m : !sums
    return %y, %k, %z : !sums, !sums, !sums
  }
}

// -----

#acc = #warp.layout<[256, 256], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0], [128, 0]]>
#row = #warp.layout<[256, 1], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0], [128, 0]]>
#a = #warp.layout<[256, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0]]>
#b = #warp.layout<[16, 256], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128]]>
!a = !warp.shared<256x16xf16, #a>
!b = !warp.shared<16x256xf16, #b>
!sums = tensor<256x256xf32, #acc>

// Of two warpgroups' sums of 256 columns tensor memory holds one: the second product starts when the first one's are loaded.
// CHECK-LABEL: func.func @in_turn
// CHECK: %[[C:.*]] = tile.broadcast %arg2
// CHECK: warp.wgmma %{{.*}}, %{{.*}}, %[[C]]
// CHECK-NOT: arith.addf
module attributes {warp.target = "sm_100a"} {
  func.func @in_turn(%a: !a, %b: !b, %row: tensor<256x1xf32, #row>) -> (!sums, !sums) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %zero = arith.constant dense<0.0> : !sums
    %d = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 256, 16>} : !a * !b -> !sums
    %e = warp.wgmma_wait %d {pending = 0 : i32} : !sums
    %x = math.exp2 %e : !sums
    %c = tile.broadcast %row : tensor<256x1xf32, #row> -> !sums
    %f = warp.wgmma %a, %b, %c {shape = array<i32: 128, 256, 16>} : !a * !b -> !sums
    %g = warp.wgmma_wait %f {pending = 0 : i32} : !sums
    %y = arith.negf %g : !sums
    return %x, %y : !sums, !sums
  }
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#row = #warp.layout<[64, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#a = #warp.layout<[64, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0]]>
#b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>

// Sums in registers start from any value.
// CHECK-LABEL: func.func @registers
// CHECK: %[[C:.*]] = tile.broadcast
// CHECK: warp.wgmma %{{.*}}, %{{.*}}, %[[C]]
module attributes {warp.target = "sm_90a"} {
  func.func @registers(%a: !warp.shared<64x16xf16, #a>, %b: !warp.shared<16x16xf16, #b>, %delta: tensor<64x1xf32, #row>) -> tensor<64x16xf32, #acc> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c = tile.broadcast %delta : tensor<64x1xf32, #row> -> tensor<64x16xf32, #acc>
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 16>} : !warp.shared<64x16xf16, #a> * !warp.shared<16x16xf16, #b> -> tensor<64x16xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #acc>
    %x = arith.negf %e : tensor<64x16xf32, #acc>
    return %x : tensor<64x16xf32, #acc>
  }
}
