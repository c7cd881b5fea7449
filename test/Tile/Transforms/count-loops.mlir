// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s -split-input-file -tile-count-loops | FileCheck %s

// What counts up to a bound is the variable of a loop, and no more carried than anything else that nobody takes.
// CHECK-LABEL: func.func @counts
// CHECK-SAME: (%[[X:.*]]: tensor<64xf32>, %[[N:.*]]: i32)
// CHECK: %[[R:.*]] = scf.for %[[I:.*]] = %c0_i32 to %[[N]] step %c64_i32 iter_args(%[[Y:.*]] = %[[X]]) -> (tensor<64xf32>) : i32 {
// CHECK-NOT: arith.addi
// CHECK: %[[S:.*]] = tile.splat %[[I]]
// CHECK: scf.yield %{{.*}} : tensor<64xf32>
// CHECK: return %[[R]]
func.func @counts(%x: tensor<64xf32>, %n: i32) -> tensor<64xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %r:2 = scf.while (%y = %x, %i = %c0) : (tensor<64xf32>, i32) -> (tensor<64xf32>, i32) {
    %less = arith.cmpi slt, %i, %n : i32
    scf.condition(%less) %y, %i : tensor<64xf32>, i32
  } do {
  ^bb0(%y: tensor<64xf32>, %i: i32):
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %f = arith.sitofp %s : tensor<64xi32> to tensor<64xf32>
    %z = arith.addf %y, %f : tensor<64xf32>
    %next = arith.addi %i, %c64 : i32
    scf.yield %z, %next : tensor<64xf32>, i32
  }
  return %r#0 : tensor<64xf32>
}

// The number that it ends with is carried; the bound may be on the left, and what the condition passes on in any order.
// CHECK-LABEL: func.func @taken_behind
// CHECK-SAME: (%[[FIRST:.*]]: i64, %[[N:.*]]: i64, %[[O:.*]]: i64)
// CHECK: %[[R:.*]]:2 = scf.for %[[I:.*]] = %[[FIRST]] to %[[N]] step %{{.*}} iter_args(%{{.*}} = %[[FIRST]], %[[P:.*]] = %[[O]]) -> (i64, i64) : i64 {
// CHECK: %[[Q:.*]] = arith.muli %[[P]], %[[I]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[I]], %
// CHECK: scf.yield %[[NEXT]], %[[Q]]
// CHECK: return %[[R]]#1, %[[R]]#0, %[[N]]
func.func @taken_behind(%first: i64, %n: i64, %o: i64) -> (i64, i64, i64) {
  %c3 = arith.constant 3 : i64
  %r:3 = scf.while (%i = %first, %p = %o) : (i64, i64) -> (i64, i64, i64) {
    %less = arith.cmpi sgt, %n, %i : i64
    scf.condition(%less) %p, %i, %n : i64, i64, i64
  } do {
  ^bb0(%p: i64, %i: i64, %same: i64):
    %q = arith.muli %p, %i : i64
    %next = arith.addi %i, %c3 : i64
    scf.yield %next, %q : i64, i64
  }
  return %r#0, %r#1, %r#2 : i64, i64, i64
}

// One in another counts, too.
// CHECK-LABEL: func.func @nested
// CHECK-NOT: scf.while
// CHECK: scf.for
// CHECK: scf.for
func.func @nested(%n: i32, %m: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.while (%i = %c0, %s = %c0) : (i32, i32) -> (i32, i32) {
    %less = arith.cmpi slt, %i, %n : i32
    scf.condition(%less) %i, %s : i32, i32
  } do {
  ^bb0(%i: i32, %s: i32):
    %t:2 = scf.while (%j = %c0, %u = %s) : (i32, i32) -> (i32, i32) {
      %less = arith.cmpi slt, %j, %m : i32
      scf.condition(%less) %j, %u : i32, i32
    } do {
    ^bb0(%j: i32, %u: i32):
      %v = arith.xori %u, %j : i32
      %further = arith.addi %j, %c1 : i32
      scf.yield %further, %v : i32, i32
    }
    %next = arith.addi %i, %c1 : i32
    scf.yield %next, %t#1 : i32, i32
  }
  return %r#1 : i32
}

// Left alone: what goes on while something else holds, too, ...
// CHECK-LABEL: func.func @other_condition
// CHECK: scf.while
func.func @other_condition(%n: i32, %alive: i1) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.while (%i = %c0) : (i32) -> i32 {
    %less = arith.cmpi slt, %i, %n : i32
    %both = arith.andi %less, %alive : i1
    scf.condition(%both) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %c1 : i32
    scf.yield %next : i32
  }
  return %r : i32
}

// ... what goes by a step that may be nothing or less, ...
// CHECK-LABEL: func.func @any_step
// CHECK: scf.while
func.func @any_step(%n: i32, %step: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %r = scf.while (%i = %c0) : (i32) -> i32 {
    %less = arith.cmpi slt, %i, %n : i32
    scf.condition(%less) %i : i32
  } do {
  ^bb0(%i: i32):
    %next = arith.addi %i, %step : i32
    scf.yield %next : i32
  }
  return %r : i32
}

// ... what has its bound moved, ...
// CHECK-LABEL: func.func @moving_bound
// CHECK: scf.while
func.func @moving_bound(%n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.while (%i = %c0, %m = %n) : (i32, i32) -> (i32, i32) {
    %less = arith.cmpi slt, %i, %m : i32
    scf.condition(%less) %i, %m : i32, i32
  } do {
  ^bb0(%i: i32, %m: i32):
    %next = arith.addi %i, %c1 : i32
    %half = arith.shrsi %m, %c1 : i32
    scf.yield %next, %half : i32, i32
  }
  return %r#0 : i32
}

// ... and what counts another number on.
// CHECK-LABEL: func.func @another
// CHECK: scf.while
func.func @another(%n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.while (%i = %c0, %k = %c1) : (i32, i32) -> (i32, i32) {
    %less = arith.cmpi slt, %i, %n : i32
    scf.condition(%less) %i, %k : i32, i32
  } do {
  ^bb0(%i: i32, %k: i32):
    %next = arith.addi %k, %c1 : i32
    %other = arith.shli %k, %c1 : i32
    scf.yield %next, %other : i32, i32
  }
  return %r#0 : i32
}
