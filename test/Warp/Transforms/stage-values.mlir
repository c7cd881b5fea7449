// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-stage-values | FileCheck %s

#x = #warp.layout<[2, 8, 8], register = [[0, 0, 1], [1, 0, 0]], lane = [[0, 0, 2], [0, 0, 4], [0, 1, 0], [0, 2, 0], [0, 4, 0]]>
#rows = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#a = #warp.layout<[16, 8], register = [[8, 0], [0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// All shifts of a value read one tile, each in the layout that its user converts it to. Beside its runs lie zeros, as far as
// the shifts go.
// CHECK-LABEL: func.func @shifts
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x8xf16,
// CHECK: %[[T:.*]] = warp.alloc : <2x8x8xf16, #{{.*}}, margin = 1>
// CHECK-NEXT: warp.store_shared %[[X]], %[[T]]
// CHECK-NOT: warp.store_shared
// CHECK: %[[L:.*]] = warp.load_shifted %[[T]] {axis = 1 : i32, offset = 1 : i32} : {{.*}} -> tensor<2x8x8xf16, #[[A:.*]]>
// CHECK: tile.reshape %[[L]] : {{.*}} -> tensor<16x8xf16,
// CHECK: %[[R:.*]] = warp.load_shifted %[[T]] {axis = 1 : i32, offset = -1 : i32}
// CHECK: warp.dealloc %[[T]]
// CHECK: arith.negf %[[R]]
// CHECK-NOT: tile.shift
module attributes {warp.target = "sm_80"} {
func.func @shifts(%x: tensor<2x8x8xf16, #x>) -> (tensor<16x8xf16, #a>, tensor<2x8x8xf16, #x>) {
  %left = tile.shift %x {axis = 1 : i32, offset = 1 : i32} : tensor<2x8x8xf16, #x>
  %flat = tile.reshape %left : tensor<2x8x8xf16, #x> -> tensor<16x8xf16, #rows>
  %operand = warp.convert_layout %flat : tensor<16x8xf16, #rows> -> tensor<16x8xf16, #a>
  %right = tile.shift %x {axis = 1 : i32, offset = -1 : i32} : tensor<2x8x8xf16, #x>
  %negated = arith.negf %right : tensor<2x8x8xf16, #x>
  return %operand, %negated : tensor<16x8xf16, #a>, tensor<2x8x8xf16, #x>
}
}

// -----

#sums = #warp.layout<[8, 2, 16], register = [[0, 0, 1], [0, 1, 0], [0, 0, 8]], lane = [[0, 0, 2], [0, 0, 4], [1, 0, 0], [2, 0, 0], [4, 0, 0]]>
#turned = #warp.layout<[16, 16], register = [[0, 1], [1, 0], [0, 8]], lane = [[0, 2], [0, 4], [2, 0], [4, 0], [8, 0]]>
#acc = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#flipped = #warp.layout<[16, 16], register = [[1, 0], [0, 1], [8, 0]], lane = [[2, 0], [4, 0], [0, 2], [0, 4], [0, 8]]>
#b = #warp.layout<[16, 16], register = [[1, 0], [8, 0], [0, 8]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>

// An operand whose neighbours in registers are along the other axis is turned by the read. One that is there the right way round is left alone.
// CHECK-LABEL: func.func @turned
// CHECK: %[[F:.*]] = tile.reshape
// CHECK-NEXT: %[[T:.*]] = warp.alloc
// CHECK-NEXT: warp.store_shared %[[F]], %[[T]]
// CHECK: warp.convert_layout
// CHECK: warp.load_shared %[[T]]
// CHECK-NEXT: warp.dealloc %[[T]]
module attributes {warp.target = "sm_80"} {
func.func @turned(%x: tensor<8x2x16xf16, #sums>, %y: tensor<16x16xf16, #turned>, %c: tensor<16x16xf32, #acc>) -> tensor<16x16xf32, #acc> {
  %flat = tile.reshape %x : tensor<8x2x16xf16, #sums> -> tensor<16x16xf16, #turned>
  %a = warp.convert_layout %y : tensor<16x16xf16, #turned> -> tensor<16x16xf16, #acc>
  %b = warp.convert_layout %flat : tensor<16x16xf16, #turned> -> tensor<16x16xf16, #b>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<16x16xf16, #acc> * tensor<16x16xf16, #b> -> tensor<16x16xf32, #acc>
  return %d : tensor<16x16xf32, #acc>
}
}

// -----

#x = #warp.layout<[2, 8, 8], register = [[0, 0, 1], [1, 0, 0]], lane = [[0, 0, 2], [0, 0, 4], [0, 1, 0], [0, 2, 0], [0, 4, 0]]>

// A shift of a shift: what the first one reads goes through a tile of its own. Who else takes it reads it for himself.
// CHECK-LABEL: func.func @shift_of_shift
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x8xf16,
// CHECK: warp.store_shared %[[X]], %[[T:[0-9]+]]
// CHECK: %[[ONCE:.*]] = warp.load_shifted %[[T]] {axis = 1 : i32, offset = 1 : i32}
// CHECK: warp.store_shared %[[ONCE]], %[[U:[0-9]+]]
// CHECK: %[[AGAIN:.*]] = warp.load_shifted %[[T]] {axis = 1 : i32, offset = 1 : i32}
// CHECK: %[[TWICE:.*]] = warp.load_shifted %[[U]] {axis = 0 : i32, offset = 1 : i32}
// CHECK-NOT: tile.shift
// CHECK: return %[[AGAIN]], %[[TWICE]]
module attributes {warp.target = "sm_80"} {
func.func @shift_of_shift(%x: tensor<2x8x8xf16, #x>) -> (tensor<2x8x8xf16, #x>, tensor<2x8x8xf16, #x>) {
  %once = tile.shift %x {axis = 1 : i32, offset = 1 : i32} : tensor<2x8x8xf16, #x>
  %twice = tile.shift %once {axis = 0 : i32, offset = 1 : i32} : tensor<2x8x8xf16, #x>
  return %once, %twice : tensor<2x8x8xf16, #x>, tensor<2x8x8xf16, #x>
}
}

// -----

#own = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [8, 0]], lane = [[1, 0], [2, 0], [4, 0], [0, 4], [0, 8]]>
#a = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8], [8, 0]], lane = [[1, 0], [2, 0], [4, 0], [0, 0], [0, 0]]>
#b = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0], [8, 0]], lane = [[0, 0], [0, 0], [0, 0], [0, 4], [0, 8]]>
!own = tensor<16x16xf32, #own>
!a = tensor<16x16xf32, #a>
!b = tensor<16x16xf32, #b>

// Operands of fused multiply-adds are read anew at each product, from one tile of each value; what is widened travels
// as narrow as it was.
// CHECK-LABEL: func.func @fma
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<16x16xf32, #[[OWN:[a-z0-9]*]]>, %[[Y:[a-z0-9]*]]: tensor<16x16xf16,
// CHECK: %[[SY:.*]] = warp.alloc : <16x16xf16,
// CHECK-NEXT: warp.store_shared %[[Y]], %[[SY]]
// CHECK: %[[SX:.*]] = warp.alloc : <16x16xf32,
// CHECK-NEXT: warp.store_shared %[[X]], %[[SX]]
// CHECK-NOT: warp.convert_layout
// CHECK: %[[A:.*]] = warp.load_shared %[[SX]]
// CHECK: %[[N:.*]] = warp.load_shared %[[SY]] : <16x16xf16,
// CHECK: %[[B:.*]] = arith.extf %[[N]]
// CHECK: %[[D:.*]] = tile.dot %[[A]], %[[B]],
// CHECK: %[[A2:.*]] = warp.load_shared %[[SX]]
// CHECK: %[[B2:.*]] = warp.load_shared %[[SX]]
// CHECK: tile.dot %[[A2]], %[[B2]], %[[D]]
// CHECK-NEXT: warp.dealloc %[[SX]]
module attributes {warp.target = "sm_80"} {
func.func @fma(%x: !own, %y: tensor<16x16xf16, #own>, %c: !own) -> !own {
  %a = warp.convert_layout %x : !own -> !a
  %n = warp.convert_layout %y : tensor<16x16xf16, #own> -> tensor<16x16xf16, #b>
  %b = arith.extf %n : tensor<16x16xf16, #b> to !b
  %d = tile.dot %a, %b, %c {precision = #tile<precision ieee>} : !a * !b -> !own
  %again = warp.convert_layout %x : !own -> !b
  %e = tile.dot %a, %again, %d {precision = #tile<precision ieee>} : !a * !b -> !own
  return %e : !own
}

// A product in a loop takes from registers what was converted before it.
// CHECK-LABEL: func.func @fma_in_loop
// CHECK-NOT: warp.alloc
func.func @fma_in_loop(%x: !own, %b: !b, %c: !own, %n: i32) -> !own {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = warp.convert_layout %x : !own -> !a
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c) -> !own : i32 {
    %d = tile.dot %a, %b, %sum {precision = #tile<precision ieee>} : !a * !b -> !own
    scf.yield %d : !own
  }
  return %r : !own
}
}

// -----

#b = #warp.layout<[256, 16], register = [[0, 1], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0]], lane = [[0, 0], [0, 0], [0, 0], [0, 2], [0, 4]], warp = [[0, 8]]>
#acc = #warp.layout<[16, 16], register = [[0, 1], [8, 0]], lane = [[1, 0], [2, 0], [4, 0], [0, 2], [0, 4]], warp = [[0, 8]]>
#row = #warp.layout<[16, 256], register = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0], [8, 0]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], warp = [[0, 128]]>
#a = #warp.layout<[16, 256], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [8, 0]], lane = [[1, 0], [2, 0], [4, 0], [0, 0], [0, 0]], warp = [[0, 0]]>
!acc = tensor<16x16xf32, #acc>
!row = tensor<16x256xf32, #row>
!a = tensor<16x256xf32, #a>
!b = tensor<256x16xf32, #b>

// One that takes many registers goes there through a tile, which is read where it was converted: whether in the loop
// instead, warp-reload-operands decides.
// CHECK-LABEL: func.func @much_before_loop
// CHECK: %[[S:.*]] = warp.alloc : <16x256xf32,
// CHECK: warp.store_shared %{{.*}}, %[[S]]
// CHECK: %[[A:.*]] = warp.load_shared %[[S]]
// CHECK: scf.for
// CHECK: tile.dot %[[A]],
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: warp.dealloc %[[S]]
module attributes {warp.target = "sm_80"} {
func.func @much_before_loop(%x: !row, %b: !b, %c: !acc, %n: i32) -> !acc {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = warp.convert_layout %x : !row -> !a
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c) -> !acc : i32 {
    %d = tile.dot %a, %b, %sum {precision = #tile<precision ieee>} : !a * !b -> !acc
    scf.yield %d : !acc
  }
  return %r : !acc
}
}

// -----

#acc = #warp.layout<[32, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [0, 32]]>
#turned = #warp.layout<[64, 32], register = [[1, 0], [0, 8], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 16], [32, 0]]>
#a = #warp.layout<[32, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [0, 0]]>
#b = #warp.layout<[64, 32], register = [[1, 0], [8, 0], [16, 0], [32, 0], [0, 8]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 16]]>
#sums = #warp.layout<[32, 32], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [0, 16]]>

// What a product takes as one operand, and turned as the other, is stored once and read by `ldmatrix` for each.
// CHECK-LABEL: func.func @taken_often
// CHECK-SAME: (%[[X:.*]]: tensor<32x64xf16,
// CHECK: %[[S:.*]] = warp.alloc : <32x64xf16,
// CHECK-NEXT: warp.store_shared %[[X]], %[[S]]
// CHECK-NEXT: %[[T:.*]] = warp.permute_shared %[[S]]
// CHECK-NEXT: %[[B:.*]] = warp.load_shared %[[T]]
// CHECK-NEXT: %[[A:.*]] = warp.load_shared %[[S]]
// CHECK-NEXT: warp.dealloc %[[S]]
// CHECK-NEXT: warp.mma %[[A]], %[[B]],
module attributes {warp.target = "sm_80"} {
func.func @taken_often(%x: tensor<32x64xf16, #acc>, %c: tensor<32x32xf32, #sums>) -> tensor<32x32xf32, #sums> {
  %t = tile.permute %x {order = array<i32: 1, 0>} : tensor<32x64xf16, #acc> -> tensor<64x32xf16, #turned>
  %b = warp.convert_layout %t : tensor<64x32xf16, #turned> -> tensor<64x32xf16, #b>
  %a = warp.convert_layout %x : tensor<32x64xf16, #acc> -> tensor<32x64xf16, #a>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<32x64xf16, #a> * tensor<64x32xf16, #b> -> tensor<32x32xf32, #sums>
  return %d : tensor<32x32xf32, #sums>
}

// What one takes is exchanged, in wider pieces.
// CHECK-LABEL: func.func @taken_once
// CHECK-NOT: warp.alloc
// CHECK: return
func.func @taken_once(%x: tensor<32x64xf16, #acc>, %b: tensor<64x32xf16, #b>, %c: tensor<32x32xf32, #sums>) -> tensor<32x32xf32, #sums> {
  %a = warp.convert_layout %x : tensor<32x64xf16, #acc> -> tensor<32x64xf16, #a>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<32x64xf16, #a> * tensor<64x32xf16, #b> -> tensor<32x32xf32, #sums>
  %e = warp.mma %a, %b, %d {shape = array<i32: 16, 8, 16>} : tensor<32x64xf16, #a> * tensor<64x32xf16, #b> -> tensor<32x32xf32, #sums>
  return %e : tensor<32x32xf32, #sums>
}

// Pointers are no operands.
// CHECK-LABEL: func.func @pointers
// CHECK-NOT: warp.alloc
// CHECK: warp.convert_layout
func.func @pointers(%p: tensor<32x64x!tile.ptr<f16>, #acc>) -> tensor<32x64x!tile.ptr<f16>, #a> {
  %a = warp.convert_layout %p : tensor<32x64x!tile.ptr<f16>, #acc> -> tensor<32x64x!tile.ptr<f16>, #a>
  return %a : tensor<32x64x!tile.ptr<f16>, #a>
}
}
