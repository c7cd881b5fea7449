// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-stage-values | FileCheck %s

#x = #warp.layout<[2, 8, 8], register = [[0, 0, 1], [1, 0, 0]], lane = [[0, 0, 2], [0, 0, 4], [0, 1, 0], [0, 2, 0], [0, 4, 0]]>
#rows = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#a = #warp.layout<[16, 8], register = [[8, 0], [0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// All shifts of a value read one tile, each in the layout that its user converts it to.
// CHECK-LABEL: func.func @shifts
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x8xf16,
// CHECK: %[[T:.*]] = warp.alloc
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

// A shift of a shift: what the first one reads goes through a tile of its own.
// CHECK-LABEL: func.func @shift_of_shift
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x8xf16,
// CHECK: warp.store_shared %[[X]], %[[T:[0-9]+]]
// CHECK: %[[ONCE:.*]] = warp.load_shifted %[[T]] {axis = 1 : i32, offset = 1 : i32}
// CHECK: warp.store_shared %[[ONCE]], %[[U:[0-9]+]]
// CHECK: %[[TWICE:.*]] = warp.load_shifted %[[U]] {axis = 0 : i32, offset = 1 : i32}
// CHECK-NOT: tile.shift
// CHECK: return %[[ONCE]], %[[TWICE]]
module attributes {warp.target = "sm_80"} {
func.func @shift_of_shift(%x: tensor<2x8x8xf16, #x>) -> (tensor<2x8x8xf16, #x>, tensor<2x8x8xf16, #x>) {
  %once = tile.shift %x {axis = 1 : i32, offset = 1 : i32} : tensor<2x8x8xf16, #x>
  %twice = tile.shift %once {axis = 0 : i32, offset = 1 : i32} : tensor<2x8x8xf16, #x>
  return %once, %twice : tensor<2x8x8xf16, #x>, tensor<2x8x8xf16, #x>
}
}
