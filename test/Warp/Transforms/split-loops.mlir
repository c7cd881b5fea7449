// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-split-loops --canonicalize | FileCheck %s

// The first iterations need no mask: two loops, the second one begins with what the first carried.
// CHECK-LABEL: func.func @from_the_first
// CHECK-SAME: (%[[N:.*]]: i32, %[[P:.*]]: i32, %[[MASK:.*]]: tensor<64xi1>, %[[X:.*]]: tensor<64xf32>, %[[NONE:.*]]: tensor<64xf32>)
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: %[[LEAST:.*]] = arith.minsi %[[P]], %[[N]]
// CHECK: %[[PLACE:.*]] = arith.maxsi %[[LEAST]], %[[ZERO]]
// CHECK: %[[FIRST:.*]] = scf.for %{{.*}} = %[[ZERO]] to %[[PLACE]] step %{{.*}} iter_args(%[[ACC:.*]] = %[[NONE]])
// CHECK-NEXT: arith.addf %[[ACC]], %[[X]]
// CHECK-NEXT: scf.yield
// CHECK: %[[SECOND:.*]] = scf.for %{{.*}} = %[[PLACE]] to %[[N]] step %{{.*}} iter_args(%[[ACC:.*]] = %[[FIRST]])
// CHECK-NEXT: %[[Y:.*]] = arith.select %[[MASK]], %[[X]], %[[NONE]]
// CHECK-NEXT: arith.addf %[[ACC]], %[[Y]]
// CHECK: return %[[SECOND]]
func.func @from_the_first(%n: i32, %p: i32, %mask: tensor<64xi1>, %x: tensor<64xf32>, %none: tensor<64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %none) -> (tensor<64xf32>) : i32 {
    %all = arith.cmpi slt, %i, %p : i32
    %everywhere = tile.splat %all : i1 -> tensor<64xi1>
    %m = arith.ori %mask, %everywhere : tensor<64xi1>
    %y = arith.select %m, %x, %none : tensor<64xi1>, tensor<64xf32>
    %sum = arith.addf %acc, %y : tensor<64xf32>
    scf.yield %sum : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// Iterations between two places, counted backwards: three loops. What asks the same another way round is known too.
// CHECK-LABEL: func.func @between
// CHECK-SAME: (%[[N:.*]]: i32, %[[P:.*]]: i32, %[[Q:.*]]: i32, %[[MASK:[a-z0-9]+]]: tensor<64xi1>, %{{.*}}, %[[NONE:[a-z0-9]+]]: tensor<64xf32>, %[[W:[a-z0-9]+]]: tensor<64xf32>)
// CHECK: %[[LATE:.*]] = arith.subi %[[N]], %[[P]]
// CHECK: %[[END:.*]] = arith.maxsi
// CHECK: %[[EARLY:.*]] = arith.subi %[[N]], %[[Q]]
// CHECK: %[[BEGIN:.*]] = arith.maxsi
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[BEGIN]]
// CHECK-NEXT: arith.select %[[MASK]], %[[W]], %[[NONE]]
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: scf.yield
// CHECK: scf.for %{{.*}} = %[[END]] to %[[N]]
// CHECK-NEXT: arith.select %[[MASK]], %[[W]], %[[NONE]]
// CHECK-NOT: scf.for
func.func @between(%n: i32, %p: i32, %q: i32, %mask: tensor<64xi1>, %x: tensor<64xf32>, %none: tensor<64xf32>, %w: tensor<64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %true = arith.constant true
  %last = arith.subi %n, %one : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %none) -> (tensor<64xf32>) : i32 {
    %j = arith.subi %last, %i : i32
    %behind = arith.cmpi sge, %j, %p : i32
    %before = arith.cmpi sgt, %q, %j : i32
    %all = arith.andi %behind, %before : i1
    %some = arith.xori %all, %true : i1
    %everywhere = tile.splat %all : i1 -> tensor<64xi1>
    %m = arith.ori %mask, %everywhere : tensor<64xi1>
    %y = arith.select %m, %x, %none : tensor<64xi1>, tensor<64xf32>
    %few = tile.splat %some : i1 -> tensor<64xi1>
    %o = arith.andi %mask, %few : tensor<64xi1>
    %z = arith.select %o, %w, %y : tensor<64xi1>, tensor<64xf32>
    %sum = arith.addf %acc, %z : tensor<64xf32>
    scf.yield %sum : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// A tile is taken by the condition itself.
// CHECK-LABEL: func.func @one_or_another
// CHECK: scf.for
// CHECK-NOT: arith.select
// CHECK: scf.for
// CHECK-NOT: arith.select
// CHECK: return
func.func @one_or_another(%n: i32, %p: i32, %x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %x) -> (tensor<64xf32>) : i32 {
    %early = arith.cmpi sle, %i, %p : i32
    %start = arith.select %early, %x, %y : tensor<64xf32>
    %sum = arith.addf %acc, %start : tensor<64xf32>
    scf.yield %sum : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// What is loaded, a bound that the loop changes, steps of two, and unsigned bounds are left alone.
// CHECK-LABEL: func.func @left
// CHECK-COUNT-4: scf.for
// CHECK-NOT: scf.for
func.func @left(%n: i32, %p: i32, %mask: tensor<64xi1>, %at: tensor<64x!tile.ptr<f32>>, %x: tensor<64xf32>, %none: tensor<64xf32>)
    -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %loads = scf.for %i = %zero to %n step %one iter_args(%acc = %none) -> (tensor<64xf32>) : i32 {
    %next = arith.cmpi slt, %i, %p : i32
    %everywhere = tile.splat %next : i1 -> tensor<64xi1>
    %m = arith.andi %mask, %everywhere : tensor<64xi1>
    %y = tile.load %at, %m, %none : tensor<64x!tile.ptr<f32>>
    %sum = arith.addf %acc, %y : tensor<64xf32>
    scf.yield %sum : tensor<64xf32>
  }
  %moves:2 = scf.for %i = %zero to %n step %one iter_args(%acc = %none, %bound = %p) -> (tensor<64xf32>, i32) : i32 {
    %all = arith.cmpi slt, %i, %bound : i32
    %everywhere = tile.splat %all : i1 -> tensor<64xi1>
    %m = arith.ori %mask, %everywhere : tensor<64xi1>
    %y = arith.select %m, %x, %none : tensor<64xi1>, tensor<64xf32>
    %sum = arith.addf %acc, %y : tensor<64xf32>
    %rest = arith.divsi %bound, %two : i32
    scf.yield %sum, %rest : tensor<64xf32>, i32
  }
  %strides = scf.for %i = %zero to %n step %two iter_args(%acc = %none) -> (tensor<64xf32>) : i32 {
    %all = arith.cmpi slt, %i, %p : i32
    %everywhere = tile.splat %all : i1 -> tensor<64xi1>
    %m = arith.ori %mask, %everywhere : tensor<64xi1>
    %y = arith.select %m, %x, %none : tensor<64xi1>, tensor<64xf32>
    %sum = arith.addf %acc, %y : tensor<64xf32>
    scf.yield %sum : tensor<64xf32>
  }
  %naturals = scf.for unsigned %i = %zero to %n step %one iter_args(%acc = %none) -> (tensor<64xf32>) : i32 {
    %all = arith.cmpi slt, %i, %p : i32
    %everywhere = tile.splat %all : i1 -> tensor<64xi1>
    %m = arith.ori %mask, %everywhere : tensor<64xi1>
    %y = arith.select %m, %x, %none : tensor<64xi1>, tensor<64xf32>
    %sum = arith.addf %acc, %y : tensor<64xf32>
    scf.yield %sum : tensor<64xf32>
  }
  return %loads, %moves#0, %strides, %naturals : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// Outside of loops a branch: of a mask as it is, and of one that is repeated.
// CHECK-LABEL: func.func @branches
// CHECK-SAME: (%[[ALL:.*]]: i1, %[[MASK:.*]]: tensor<8x64xi1>, %[[ROW:.*]]: tensor<1x64xi1>, %[[X:.*]]: tensor<8x64xf32>, %[[NONE:.*]]: tensor<8x64xf32>)
// CHECK: %[[Z:.*]] = scf.if %[[ALL]]
// CHECK-NEXT: scf.yield %[[X]]
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[S:.*]] = arith.select %[[MASK]], %[[X]], %[[NONE]]
// CHECK-NEXT: %[[B:.*]] = tile.broadcast %[[ROW]]
// CHECK-NEXT: %[[T:.*]] = arith.select %[[B]], %[[S]], %[[NONE]]
// CHECK-NEXT: scf.yield %[[T]]
// CHECK: return %[[Z]]
func.func @branches(%all: i1, %mask: tensor<8x64xi1>, %row: tensor<1x64xi1>, %x: tensor<8x64xf32>, %none: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %everywhere = tile.splat %all : i1 -> tensor<8x64xi1>
  %m = arith.ori %mask, %everywhere : tensor<8x64xi1>
  %y = arith.select %m, %x, %none : tensor<8x64xi1>, tensor<8x64xf32>
  %along = tile.splat %all : i1 -> tensor<1x64xi1>
  %n = arith.ori %along, %row : tensor<1x64xi1>
  %o = tile.broadcast %n : tensor<1x64xi1> -> tensor<8x64xi1>
  %z = arith.select %o, %y, %none : tensor<8x64xi1>, tensor<8x64xf32>
  return %z : tensor<8x64xf32>
}

// One condition decides both operands of another, and what reads them; one stands before what is not known.
// CHECK-LABEL: func.func @decided_twice
// CHECK-SAME: (%[[N:.*]]: i32, %{{.*}}: i32, %[[MASK:[a-z0-9]+]]: tensor<64xi1>
// CHECK: scf.for
// CHECK-NEXT: arith.addf
// CHECK-NEXT: scf.yield
// CHECK: scf.for
// CHECK-NEXT: arith.select %[[MASK]]
// CHECK-NOT: scf.for
func.func @decided_twice(%n: i32, %p: i32, %mask: tensor<64xi1>, %x: tensor<64xf32>, %none: tensor<64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %none) -> (tensor<64xf32>) : i32 {
    %all = arith.cmpi slt, %i, %p : i32
    %same = arith.andi %all, %all : i1
    %either = arith.ori %same, %all : i1
    %both = arith.andi %either, %same : i1
    %everywhere = tile.splat %both : i1 -> tensor<64xi1>
    %m = arith.ori %everywhere, %mask : tensor<64xi1>
    %y = arith.select %m, %x, %none : tensor<64xi1>, tensor<64xf32>
    %sum = arith.addf %acc, %y : tensor<64xf32>
    scf.yield %sum : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}
