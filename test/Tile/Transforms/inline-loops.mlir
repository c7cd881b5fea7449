// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --split-input-file --tile-inline-loops %s | FileCheck %s

// The lower bound stays below what 16 more would wrap: the body stands in the loop's place.
// CHECK-LABEL: func.func @once(
// CHECK-SAME:    %[[X:.*]]: f32, %[[Y:.*]]: f32
func.func @once(%x: f32, %y: f32) -> (f32, f32) {
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  // CHECK: %[[ROW:.*]] = tile.program_id y
  %row = tile.program_id y : i32
  // CHECK: %[[START:.*]] = arith.muli %[[ROW]], %{{.*}}
  %start = arith.muli %row, %c16 : i32
  %end = arith.addi %start, %c16 : i32
  // CHECK-NOT: scf
  // CHECK: %[[F:.*]] = arith.sitofp %[[START]]
  // CHECK: %[[NEXT:.*]] = arith.addf %[[X]], %[[F]]
  %r:2 = scf.for %i = %start to %end step %c32 iter_args(%sum = %x, %other = %y) -> (f32, f32) : i32 {
    %f = arith.sitofp %i : i32 to f32
    %next = arith.addf %sum, %f : f32
    scf.yield %other, %next : f32, f32
  }
  // CHECK: return %[[Y]], %[[NEXT]]
  return %r#0, %r#1 : f32, f32
}

// -----

// (n + 1) k - n k = k; of any n the upper bound may wrap, and then the loop does not run.
// CHECK-LABEL: func.func @maybe(
// CHECK-SAME:    %[[N:.*]]: i32, %[[X:.*]]: f32
func.func @maybe(%n: i32, %x: f32) -> f32 {
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  // CHECK: %[[START:.*]] = arith.muli %[[N]]
  %start = arith.muli %n, %c64 : i32
  %n1 = arith.addi %n, %c1 : i32
  // CHECK: %[[END:.*]] = arith.muli
  %end = arith.muli %n1, %c64 : i32
  // CHECK: %[[RUNS:.*]] = arith.cmpi slt, %[[START]], %[[END]]
  // CHECK: %[[R:.*]] = scf.if %[[RUNS]] -> (f32) {
  // CHECK:   %[[F:.*]] = arith.sitofp %[[START]]
  // CHECK:   %[[NEXT:.*]] = arith.addf %[[X]], %[[F]]
  // CHECK:   scf.yield %[[NEXT]]
  // CHECK: } else {
  // CHECK:   scf.yield %[[X]]
  %r = scf.for %i = %start to %end step %c64 iter_args(%sum = %x) -> (f32) : i32 {
    %f = arith.sitofp %i : i32 to f32
    %next = arith.addf %sum, %f : f32
    scf.yield %next : f32
  }
  // CHECK: return %[[R]]
  return %r : f32
}

// -----

// Bounds without signs wrap elsewhere; nothing is carried, and a loop inside of another is inlined with it.
// CHECK-LABEL: func.func @without_signs(
func.func @without_signs(%n: i32, %p: !tile.ptr<i32>) {
  %c4 = arith.constant 4 : i32
  %end = arith.addi %n, %c4 : i32
  // CHECK: %[[OUTER:.*]] = arith.cmpi ult
  // CHECK: scf.if %[[OUTER]] {
  // CHECK:   %[[INNER:.*]] = arith.cmpi ult
  // CHECK:   scf.if %[[INNER]] {
  // CHECK:     tile.store
  // CHECK-NOT: else
  scf.for unsigned %i = %n to %end step %c4 : i32 {
    %inner = arith.subi %n, %c4 : i32
    scf.for unsigned %j = %inner to %n step %c4 : i32 {
      tile.store %p, %j : !tile.ptr<i32>
    }
  }
  // CHECK: return
  return
}

// -----

// Further apart than a step, by what nobody knows, by steps that nobody knows, or the other way round: loops stay.
// CHECK-LABEL: func.func @stay(
// CHECK-COUNT-4: scf.for
func.func @stay(%n: i32, %m: i32, %p: !tile.ptr<i32>) {
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %end = arith.addi %n, %c16 : i32
  scf.for %i = %n to %end step %c8 : i32 {
    tile.store %p, %i : !tile.ptr<i32>
  }
  scf.for %i = %n to %m step %c8 : i32 {
    tile.store %p, %i : !tile.ptr<i32>
  }
  scf.for %i = %n to %end step %m : i32 {
    tile.store %p, %i : !tile.ptr<i32>
  }
  scf.for %i = %end to %n step %c8 : i32 {
    tile.store %p, %i : !tile.ptr<i32>
  }
  return
}
