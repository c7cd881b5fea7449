// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-read-late | FileCheck %s

#a = #warp.layout<[16, 8], register = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 0]]>
#b = #warp.layout<[8, 8], register = [[1, 0], [2, 0], [4, 0], [0, 1], [0, 2]], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 4]]>
#c = #warp.layout<[16, 8], register = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4]]>
#sa = #warp.layout<[16, 8], offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
#sb = #warp.layout<[8, 8], offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
!a = tensor<16x8xf32, #a>
!b = tensor<8x8xf32, #b>
!c = tensor<16x8xf32, #c>
!ring = !warp.shared<stages = 2, 8x8xf32, #sb>
!tile = !warp.shared<8x8xf32, #sb>

// What was copied before the loop's barrier is read behind what the block has written, past other arithmetic.
// CHECK-LABEL: func.func @behind
// CHECK: warp.store_shared %{{.*}}, %[[U:.*]] :
// CHECK: arith.negf
// CHECK-NEXT: %[[Q:.*]] = warp.load_shared %[[U]]
// CHECK-NEXT: %[[V:.*]] = warp.load_shared
// CHECK-NEXT: tile.dot %[[Q]], %[[V]],
// CHECK-NEXT: warp.dealloc %[[U]]
func.func @behind(%p: !c, %ring: !ring, %i: i32, %c: !c) -> (!c, !c) {
  %t = warp.stage %ring[%i] : !ring -> !tile
  %v = warp.load_shared %t : !tile -> !b
  %u = warp.alloc : !warp.shared<16x8xf32, #sa>
  warp.store_shared %p, %u : !c -> !warp.shared<16x8xf32, #sa>
  %q = warp.load_shared %u : !warp.shared<16x8xf32, #sa> -> !a
  %n = arith.negf %p : !c
  %d = tile.dot %q, %v, %c {precision = #tile<precision ieee>} : !a * !b -> !c
  warp.dealloc %u : !warp.shared<16x8xf32, #sa>
  return %d, %n : !c, !c
}

// Of two tiles that the block has written the one that was written last comes first, whichever operand it is.
// CHECK-LABEL: func.func @written
// CHECK: warp.store_shared
// CHECK: warp.store_shared %{{.*}}, %[[U:.*]] :
// CHECK-NEXT: %[[Q:.*]] = warp.load_shared %[[U]]
// CHECK-NEXT: %[[V:.*]] = warp.load_shared
// CHECK-NEXT: tile.dot %[[Q]], %[[V]],
func.func @written(%p: !c, %w: !b, %c: !c) -> !c {
  %t = warp.alloc : !tile
  warp.store_shared %w, %t : !b -> !tile
  %v = warp.load_shared %t : !tile -> !b
  %u = warp.alloc : !warp.shared<16x8xf32, #sa>
  warp.store_shared %p, %u : !c -> !warp.shared<16x8xf32, #sa>
  %q = warp.load_shared %u : !warp.shared<16x8xf32, #sa> -> !a
  %d = tile.dot %q, %v, %c {precision = #tile<precision ieee>} : !a * !b -> !c
  warp.dealloc %u : !warp.shared<16x8xf32, #sa>
  warp.dealloc %t : !tile
  return %d : !c
}

// -----

#a = #warp.layout<[16, 8], register = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 0]]>
#b = #warp.layout<[8, 8], register = [[1, 0], [2, 0], [4, 0], [0, 1], [0, 2]], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 4]]>
#c = #warp.layout<[16, 8], register = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4]]>
#sb = #warp.layout<[8, 8], offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
!a = tensor<16x8xf32, #a>
!b = tensor<8x8xf32, #b>
!c = tensor<16x8xf32, #c>
!tile = !warp.shared<8x8xf32, #sb>

// Left where it is: what two take, what is read before its memory is written again, and what would go past a barrier,
// behind which others may write.
// CHECK-LABEL: func.func @left
// CHECK-SAME: %[[T:[a-z0-9]*]]: !warp.shared
// CHECK: %[[BOTH:.*]] = warp.load_shared %[[T]]
// CHECK-NEXT: arith.negf
// CHECK-NEXT: tile.dot %{{.*}}, %[[BOTH]],
// CHECK: %[[OLD:.*]] = warp.load_shared %[[T]]
// CHECK-NEXT: warp.store_shared %{{.*}}, %[[T]]
// CHECK-NEXT: tile.dot %{{.*}}, %[[OLD]],
// CHECK: %[[FIRST:.*]] = warp.load_shared %[[T]]
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: tile.dot %{{.*}}, %[[FIRST]],
func.func @left(%a: !a, %t: !tile, %w: !b, %c: !c) -> (!c, !b) {
  %both = warp.load_shared %t : !tile -> !b
  %n = arith.negf %both : !b
  %d = tile.dot %a, %both, %c {precision = #tile<precision ieee>} : !a * !b -> !c
  %old = warp.load_shared %t : !tile -> !b
  warp.store_shared %w, %t : !b -> !tile
  %e = tile.dot %a, %old, %d {precision = #tile<precision ieee>} : !a * !b -> !c
  %first = warp.load_shared %t : !tile -> !b
  warp.barrier
  %f = tile.dot %a, %first, %e {precision = #tile<precision ieee>} : !a * !b -> !c
  return %f, %n : !c, !b
}
