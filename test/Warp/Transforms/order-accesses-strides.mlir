// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --pass-pipeline='builtin.module(func.func(warp-order-accesses))' %s | FileCheck %s

#own = #warp.layout<[128], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>
!f32 = !tile.ptr<f32>
!numbers = tensor<128xi32, #own>
!pointers = tensor<128x!f32, #own>

module attributes {warp.target = "sm_80"} {

// Rows that follow one another by a stride meet where it is less than a row is long: by four times the stride, a quarter.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[STRIDE:[a-z0-9]+]]: i32
// CHECK: scf.for
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[STRIDE]], %c32_i32
// CHECK: %[[ABOVE:.*]] = arith.cmpi sgt, %[[STRIDE]], %c-32_i32
// CHECK: %[[NEAR:.*]] = arith.andi %[[BELOW]], %[[ABOVE]]
// CHECK-NEXT: warp.barrier where %[[NEAR]]
// CHECK-NEXT: tile.store
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @rows(%x: !f32, %stride: i32, %y: tensor<128xf32, #own>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  scf.for %i = %c0 to %n step %c1 : i32 {
    %fourth = arith.muli %i, %c4 : i32
    %row = arith.muli %fourth, %stride : i32
    %at = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %r : !pointers, !numbers
    tile.store %p, %y : !pointers
  }
  return
}

// A pointer that goes round the loop, 64 bits of stride; what is read of a row is written there by its own thread.
// CHECK-LABEL: func.func @in_place
// CHECK-SAME: %[[STRIDE:[a-z0-9]+]]: i64
// CHECK: scf.for
// CHECK: arith.cmpi slt, %[[STRIDE]], %c128_i64
// CHECK: warp.barrier where
// CHECK-NEXT: tile.load
// CHECK-NOT: warp.barrier{{$}}
// CHECK: warp.barrier where
// CHECK-NEXT: tile.store
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @in_place(%x: !f32, %stride: i64, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %b = tile.splat %x : !f32 -> !pointers
  %first = tile.addptr %b, %r : !pointers, !numbers
  %steps = tile.splat %stride : i64 -> tensor<128xi64, #own>
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%p = %first) -> !pointers : i32 {
    %v = tile.load %p : !pointers
    %w = arith.addf %v, %v : tensor<128xf32, #own>
    tile.store %p, %w : !pointers
    %next = tile.addptr %p, %steps : !pointers, tensor<128xi64, #own>
    scf.yield %next : !pointers
  }
  return
}

// Columns of a stride, too: who knows how far apart those of two rows are.
// CHECK-LABEL: func.func @columns
// CHECK: scf.for
// CHECK: warp.barrier{{$}}
// CHECK-NEXT: tile.store
func.func @columns(%x: !f32, %stride: i32, %between: i32, %y: tensor<128xf32, #own>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %apart = tile.splat %between : i32 -> !numbers
  %columns = arith.muli %r, %apart : !numbers
  scf.for %i = %c0 to %n step %c1 : i32 {
    %row = arith.muli %i, %stride : i32
    %at = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %columns : !pointers, !numbers
    tile.store %p, %y : !pointers
  }
  return
}

// The next row that is read is the one before the one that is written, whose threads are others: in any iteration.
// CHECK-LABEL: func.func @shifted
// CHECK: scf.for
// CHECK: tile.load
// CHECK: warp.barrier{{$}}
// CHECK-NEXT: tile.store
func.func @shifted(%x: !f32, %stride: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %one = arith.constant dense<1> : !numbers
  scf.for %i = %c0 to %n step %c1 : i32 {
    %row = arith.muli %i, %stride : i32
    %at = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %r : !pointers, !numbers
    %q = tile.addptr %p, %one : !pointers, !numbers
    %v = tile.load %q : !pointers
    tile.store %p, %v : !pointers
  }
  return
}

}
