// RUN: weft-opt %s -split-input-file -tile-join-counters | FileCheck %s

// What a loop moves by its step is its variable, a step behind and here.

// CHECK-LABEL: func.func @behind
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (i32) : i32 {
// CHECK-NEXT: %[[BEFORE:.*]] = arith.addi %[[I]], %c-132_i32 : i32
// CHECK-NEXT: %[[A:.*]] = arith.muli %[[SUM]], %[[I]] : i32
// CHECK-NEXT: %[[B:.*]] = arith.addi %[[A]], %[[BEFORE]] : i32
// CHECK-NEXT: scf.yield %[[B]] : i32
func.func @behind(%n: i32, %x: i32) -> i32 {
  %c132 = arith.constant 132 : i32
  %first = tile.program_id x : i32
  %before = arith.subi %first, %c132 : i32
  %r:2 = scf.for %i = %first to %n step %c132 iter_args(%sum = %x, %count = %before) -> (i32, i32) : i32 {
    %next = arith.addi %count, %c132 : i32
    %a = arith.muli %sum, %next : i32
    %b = arith.addi %a, %count : i32
    scf.yield %b, %next : i32, i32
  }
  return %r#0 : i32
}

// -----

// Steps that the launch knows cancel. What the loop's result is of stays.

// CHECK-LABEL: func.func @launched
// CHECK: %[[R:.*]]:2 = scf.for %[[I:.*]] = %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[COUNT:.*]] = %{{.*}})
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[COUNT]], %{{.*}} : i32
// CHECK-NEXT: %[[A:.*]] = arith.muli %[[SUM]], %[[I]] : i32
// CHECK-NEXT: scf.yield %[[A]], %[[NEXT]]
func.func @launched(%n: i32, %x: i32) -> (i32, i32) {
  %step = tile.num_programs x : i32
  %first = tile.program_id x : i32
  %before = arith.subi %first, %step : i32
  %r:2 = scf.for %i = %first to %n step %step iter_args(%sum = %x, %count = %before) -> (i32, i32) : i32 {
    %next = arith.addi %count, %step : i32
    %a = arith.muli %sum, %next : i32
    scf.yield %a, %next : i32, i32
  }
  return %r#0, %r#1 : i32, i32
}

// -----

// Not so of what moves by another number, or begins anywhere.

// CHECK-LABEL: func.func @others
// CHECK: scf.for %{{.*}} iter_args(%[[SUM:[a-z0-9]+]] = %{{[a-z0-9_]+}}, %[[COUNT:[a-z0-9]+]] = %{{[a-z0-9_]+}}, %[[OTHER:[a-z0-9]+]] = %{{[a-z0-9_]+}})
// CHECK-NEXT: %[[A:.*]] = arith.muli %[[SUM]], %[[COUNT]]
// CHECK-NEXT: %[[B:.*]] = arith.addi %[[A]], %[[OTHER]]
func.func @others(%n: i32, %x: i32, %any: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %x, %count = %c0, %other = %any) -> (i32, i32, i32) : i32 {
    %a = arith.muli %sum, %count : i32
    %b = arith.addi %a, %other : i32
    %next = arith.addi %count, %c2 : i32
    %more = arith.addi %other, %c1 : i32
    scf.yield %b, %next, %more : i32, i32, i32
  }
  return %r#0 : i32
}
