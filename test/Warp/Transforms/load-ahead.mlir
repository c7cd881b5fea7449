// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-load-ahead | FileCheck %s

#a = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[16, 8], register = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#c = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
!a = tensor<16x16xf16, #a>
!t = tensor<16x16xf16, #warp.layout<[16, 16], register = [[1, 0], [0, 8], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>>
!p = tensor<16x16x!tile.ptr<f16>, #a>
!i = tensor<16x16xi32, #a>
!b = tensor<16x8xf16, #b>
!c = tensor<16x8xf32, #c>

// What is loaded and then scaled: the first iteration's before the loop, the next one's in it, masked off past the loop's end. The pointers of the next
// iteration are those that the loop carries into it. It stands behind the last reader of this iteration's value.

// CHECK-LABEL: func.func @scaled
// CHECK-SAME: (%[[P:[a-z0-9]+]]: tensor<16x16x!tile.ptr<f16>, {{#[a-z0-9]+}}>, %[[STEP:[a-z0-9]+]]: tensor<16x16xi32
// CHECK: %[[LAST:.*]] = arith.subi %[[N:.*]], %c1
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %c0{{.*}}, %[[N]]
// CHECK: %[[ALL:.*]] = tile.splat %[[ANY]]
// CHECK: %[[X0:.*]] = tile.load %[[P]], %[[ALL]] {warp.contiguity = 2 : i32, warp.unread_elsewhere}
// CHECK: scf.for %[[I:[a-z0-9]+]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[Q:.*]] = %[[P]], %[[X:.*]] = %[[X0]])
// CHECK: %[[Q1:.*]] = tile.addptr %[[Q]], %[[STEP]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[I]], %[[LAST]]
// CHECK: arith.mulf %[[X]], %[[X]]
// CHECK: %[[MASK:.*]] = tile.splat %[[INSIDE]]
// CHECK: %[[X1:.*]] = tile.load %[[Q1]], %[[MASK]]
// CHECK-NEXT: warp.mma
// CHECK-NOT: tile.load
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[X1]]
func.func @scaled(%p: !p, %step: !i, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %q = %p) -> (!c, !p) : i32 {
    %x = tile.load %q {warp.contiguity = 2 : i32} : !p
    %g = arith.mulf %x, %x : !a
    %d = warp.mma %g, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    %next = tile.addptr %q, %step : !p, !i
    scf.yield %d, %next : !c, !p
  }
  func.return %r#0 : !c
}

// Under another shape the registers are the same: their last reader is behind it.

// CHECK-LABEL: func.func @turned
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[X:.*]] = %{{.*}})
// CHECK: %[[Y:.*]] = tile.permute %[[X]]
// CHECK: arith.mulf %[[Y]], %[[Y]]
// CHECK: tile.load
// CHECK: warp.mma
func.func @turned(%p: !p, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %offset = tile.splat %i : i32 -> !i
    %q = tile.addptr %p, %offset : !p, !i
    %x = tile.load %q {warp.contiguity = 2 : i32} : !p
    %y = tile.permute %x {order = array<i32: 1, 0>} : !a -> !t
    %g = arith.mulf %y, %y : !t
    %h = tile.permute %g {order = array<i32: 1, 0>} : !t -> !a
    %d = warp.mma %h, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  func.return %r : !c
}

// A mask and what stands where it is false are kept.

// CHECK-LABEL: func.func @masked
// CHECK: scf.for
// CHECK: %[[BOTH:.*]] = arith.andi %{{.*}}, %{{.*}}
// CHECK: tile.load %{{.*}}, %[[BOTH]], %{{.*}}
// CHECK: warp.mma
func.func @masked(%p: !p, %m: tensor<16x16xi1, #a>, %other: !a, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %offset = tile.splat %i : i32 -> !i
    %q = tile.addptr %p, %offset : !p, !i
    %x = tile.load %q, %m, %other {warp.contiguity = 8 : i32} : !p
    %d = warp.mma %x, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  func.return %r : !c
}

// A mask of many predicates is as it was: a branch says whether there is a first and a next iteration. Past the last one
// there is what was loaded before.

// CHECK-LABEL: func.func @many_predicates
// CHECK-SAME: (%{{[a-z0-9]+}}: tensor{{.*}}, %[[M:[a-z0-9]+]]: tensor<16x16xi1
// CHECK: %[[X0:.*]] = scf.if
// CHECK: tile.load %{{.*}}, %[[M]], %{{.*}}
// CHECK: else
// CHECK: %[[NONE:.*]] = ub.poison
// CHECK: scf.yield %[[NONE]]
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[X:.*]] = %[[X0]])
// CHECK: %[[X1:.*]] = scf.if
// CHECK: tile.load %{{.*}}, %[[M]], %{{.*}}
// CHECK: else
// CHECK: scf.yield %[[X]]
// CHECK: warp.mma %[[X]]
// CHECK: scf.yield %{{.*}}, %[[X1]]
func.func @many_predicates(%p: !p, %m: tensor<16x16xi1, #a>, %other: !a, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %offset = tile.splat %i : i32 -> !i
    %q = tile.addptr %p, %offset : !p, !i
    %x = tile.load %q, %m, %other : !p
    %d = warp.mma %x, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  func.return %r : !c
}

// A loop that writes through the pointer's argument is left alone; one that writes elsewhere is not.

// CHECK-LABEL: func.func @written
// CHECK: scf.for
// CHECK: warp.mma
// CHECK: scf.for
// CHECK: tile.load
// CHECK-NEXT: tile.store
// CHECK: warp.mma
func.func @written(%p: !tile.ptr<f16>, %o: !tile.ptr<f16>, %b: !b, %zero: !c, %n: i32, %y: !a) -> (!c, !c) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %ps = tile.splat %p : !tile.ptr<f16> -> !p
  %os = tile.splat %o : !tile.ptr<f16> -> !p
  %first = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %offset = tile.splat %i : i32 -> !i
    %q = tile.addptr %ps, %offset : !p, !i
    %at = tile.addptr %os, %offset : !p, !i
    %x = tile.load %q : !p
    tile.store %at, %y : !p
    %d = warp.mma %x, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  %second = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %offset = tile.splat %i : i32 -> !i
    %q = tile.addptr %ps, %offset : !p, !i
    %x = tile.load %q : !p
    tile.store %q, %y : !p
    %d = warp.mma %x, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  func.return %first, %second : !c, !c
}

// One stage asks for nothing ahead; a volatile load stays where it is.

// CHECK-LABEL: func.func @one_stage
// CHECK: scf.for
// CHECK: tile.load
// CHECK: warp.mma
// CHECK-LABEL: func.func @volatile
// CHECK-NOT: tile.load
// CHECK: scf.for
func.func @one_stage(%p: !p, %b: !b, %zero: !c, %n: i32) -> !c attributes {tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %x = tile.load %p : !p
    %d = warp.mma %x, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  func.return %r : !c
}
func.func @volatile(%p: !p, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %x = tile.load %p {isVolatile} : !p
    %d = warp.mma %x, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  func.return %r : !c
}

// A table's entry comes two iterations ahead: what it points to is loaded with the one that is there.

// CHECK-LABEL: func.func @table
// CHECK: %[[E0:.*]] = tile.load {{.*}} : !tile.ptr<i32>
// CHECK: %[[E1:.*]] = tile.load {{.*}} : !tile.ptr<i32>
// CHECK: tile.splat %[[E0]]
// CHECK: %[[X0:.*]] = tile.load
// CHECK: scf.for %[[I:[a-z0-9]+]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[ENTRY:.*]] = %[[E1]], %[[X:.*]] = %[[X0]])
// CHECK: tile.splat %[[ENTRY]]
// CHECK: %[[E2:.*]] = tile.load {{.*}} : !tile.ptr<i32>
// CHECK: warp.mma %[[X]]
// CHECK: scf.yield %{{.*}}, %[[E2]], %{{.*}}
func.func @table(%p: !p, %t: !tile.ptr<i32>, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %at = tile.addptr %t, %i : !tile.ptr<i32>, i32
    %entry = tile.load %at : !tile.ptr<i32>
    %offset = tile.splat %entry : i32 -> !i
    %q = tile.addptr %p, %offset : !p, !i
    %x = tile.load %q : !p
    %d = warp.mma %x, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  func.return %r : !c
}

// Of a table of tables the inner entry comes ahead with the outer one; what that points to does not.

// CHECK-LABEL: func.func @table_of_tables
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[ENTRY:.*]] = %{{.*}})
// CHECK: tile.splat %[[ENTRY]]
// CHECK: %[[X:.*]] = tile.load %{{.*}} : tensor
// CHECK: warp.mma %[[X]]
func.func @table_of_tables(%p: !p, %t: !tile.ptr<i32>, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %at = tile.addptr %t, %i : !tile.ptr<i32>, i32
    %outer = tile.load %at : !tile.ptr<i32>
    %there = tile.addptr %t, %outer : !tile.ptr<i32>, i32
    %entry = tile.load %there : !tile.ptr<i32>
    %offset = tile.splat %entry : i32 -> !i
    %q = tile.addptr %p, %offset : !p, !i
    %x = tile.load %q : !p
    %d = warp.mma %x, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  func.return %r : !c
}

// What the loop carries leaves no registers.

#wide = #warp.layout<[16, 1024], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [0, 256]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 512]]>

// CHECK-LABEL: func.func @full
// CHECK-NOT: tile.load
// CHECK: scf.for
func.func @full(%p: !p, %b: !b, %zero: !c, %carried: tensor<16x1024xf32, #wide>, %n: i32) -> (!c, tensor<16x1024xf32, #wide>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %sum = %carried) -> (!c, tensor<16x1024xf32, #wide>) : i32 {
    %x = tile.load %p : !p
    %d = warp.mma %x, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    %twice = arith.addf %sum, %sum : tensor<16x1024xf32, #wide>
    scf.yield %d, %twice : !c, tensor<16x1024xf32, #wide>
  }
  func.return %r#0, %r#1 : !c, tensor<16x1024xf32, #wide>
}

// Nor do they leave any for a number; but that may be loaded before the product that it scales.

// CHECK-LABEL: func.func @number
// CHECK-NOT: tile.load
// CHECK: scf.for
// CHECK: tile.addptr
// CHECK-NEXT: %[[X:.*]] = tile.load
// CHECK-NEXT: warp.mma
// CHECK: tile.splat %[[X]]
func.func @number(%p: !tile.ptr<f32>, %a: !a, %b: !b, %zero: !c, %carried: tensor<16x1024xf32, #wide>, %n: i32) -> (!c, tensor<16x1024xf32, #wide>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %sum = %carried) -> (!c, tensor<16x1024xf32, #wide>) : i32 {
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    %q = tile.addptr %p, %i : !tile.ptr<f32>, i32
    %x = tile.load %q : !tile.ptr<f32>
    %factor = tile.splat %x : f32 -> !c
    %scaled = arith.mulf %d, %factor : !c
    %twice = arith.addf %sum, %sum : tensor<16x1024xf32, #wide>
    scf.yield %scaled, %twice : !c, tensor<16x1024xf32, #wide>
  }
  func.return %r#0, %r#1 : !c, tensor<16x1024xf32, #wide>
}

// Without products, beside values that leave few warps room and from which much is computed: what is loaded is there for
// the next iteration before this one computes.

#state = #warp.layout<[16, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
!s = tensor<16x128xf32, #state>

// CHECK-LABEL: func.func @no_product
// CHECK: %[[X0:.*]] = tile.load
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[STATE:.*]] = %{{.*}}, %[[X:.*]] = %[[X0]])
// CHECK: %[[X1:.*]] = tile.load
// CHECK: %[[NEXT:.*]] = arith.addf %[[SUM]], %[[X]]
// CHECK: scf.yield %[[NEXT]], %{{.*}}, %[[X1]]
func.func @no_product(%p: !tile.ptr<f16>, %zero: !a, %carried: !s, %n: i32) -> (!a, !s) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %ps = tile.splat %p : !tile.ptr<f16> -> !p
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %state = %carried) -> (!a, !s) : i32 {
    %offset = tile.splat %i : i32 -> !i
    %q = tile.addptr %ps, %offset : !p, !i
    %x = tile.load %q {warp.contiguity = 8 : i32} : !p
    %d = arith.addf %acc, %x : !a
    %square = arith.mulf %state, %state : !s
    %more = arith.addf %square, %state : !s
    scf.yield %d, %more : !a, !s
  }
  func.return %r#0, %r#1 : !a, !s
}

// Without products, a store of such a tile to another argument may be one in place, that the next iteration reads. One
// of another shape is none: here a number is read.

// CHECK-LABEL: func.func @in_place
// CHECK-NOT: tile.load
// CHECK: scf.for
// CHECK: tile.load
// CHECK: tile.store
// CHECK: tile.load {{.*}} : !tile.ptr<f16>
// CHECK: scf.for
// CHECK: tile.load {{.*}} : !tile.ptr<f16>
// CHECK: tile.store
func.func @in_place(%p: !tile.ptr<f16>, %o: !tile.ptr<f16>, %carried: !s, %n: i32) -> (!s, !s) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %ps = tile.splat %p : !tile.ptr<f16> -> !p
  %os = tile.splat %o : !tile.ptr<f16> -> !p
  %first = scf.for %i = %c0 to %n step %c1 iter_args(%state = %carried) -> !s : i32 {
    %offset = tile.splat %i : i32 -> !i
    %q = tile.addptr %ps, %offset : !p, !i
    %at = tile.addptr %os, %offset : !p, !i
    %x = tile.load %q {warp.contiguity = 8 : i32} : !p
    %y = arith.addf %x, %x : !a
    tile.store %at, %y : !p
    %square = arith.mulf %state, %state : !s
    %more = arith.addf %square, %state : !s
    scf.yield %more : !s
  }
  %second = scf.for %i = %c0 to %n step %c1 iter_args(%state = %carried) -> !s : i32 {
    %offset = tile.splat %i : i32 -> !i
    %q = tile.addptr %p, %i : !tile.ptr<f16>, i32
    %at = tile.addptr %os, %offset : !p, !i
    %x = tile.load %q : !tile.ptr<f16>
    %y = tile.splat %x : f16 -> !a
    tile.store %at, %y : !p
    %square = arith.mulf %state, %state : !s
    %more = arith.addf %square, %state : !s
    scf.yield %more : !s
  }
  func.return %first, %second : !s, !s
}

// Without products, nothing where an iteration computes little, where no more than two run, or where so little lives
// that many warps have room.

// CHECK-LABEL: func.func @little
// CHECK-NOT: tile.load
// CHECK: scf.for
// CHECK-LABEL: func.func @twice
// CHECK-NOT: tile.load
// CHECK: scf.for
// CHECK-LABEL: func.func @many_warps
// CHECK-NOT: tile.load
// CHECK: scf.for
func.func @little(%p: !tile.ptr<f16>, %zero: !a, %carried: !s, %n: i32) -> (!a, !s) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %ps = tile.splat %p : !tile.ptr<f16> -> !p
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %state = %carried) -> (!a, !s) : i32 {
    %offset = tile.splat %i : i32 -> !i
    %q = tile.addptr %ps, %offset : !p, !i
    %x = tile.load %q {warp.contiguity = 8 : i32} : !p
    %d = arith.addf %acc, %x : !a
    scf.yield %d, %state : !a, !s
  }
  func.return %r#0, %r#1 : !a, !s
}
func.func @twice(%p: !tile.ptr<f16>, %zero: !a, %carried: !s) -> (!a, !s) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %ps = tile.splat %p : !tile.ptr<f16> -> !p
  %r:2 = scf.for %i = %c0 to %c2 step %c1 iter_args(%acc = %zero, %state = %carried) -> (!a, !s) : i32 {
    %offset = tile.splat %i : i32 -> !i
    %q = tile.addptr %ps, %offset : !p, !i
    %x = tile.load %q {warp.contiguity = 8 : i32} : !p
    %d = arith.addf %acc, %x : !a
    %square = arith.mulf %state, %state : !s
    %more = arith.addf %square, %state : !s
    scf.yield %d, %more : !a, !s
  }
  func.return %r#0, %r#1 : !a, !s
}
func.func @many_warps(%p: !tile.ptr<f16>, %zero: !a, %n: i32) -> !a {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %ps = tile.splat %p : !tile.ptr<f16> -> !p
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !a : i32 {
    %offset = tile.splat %i : i32 -> !i
    %q = tile.addptr %ps, %offset : !p, !i
    %x = tile.load %q {warp.contiguity = 8 : i32} : !p
    %d = arith.addf %acc, %x : !a
    scf.yield %d : !a
  }
  func.return %r : !a
}

// -----

// Little is computed of a row, and many warps hide its latency, as far as is known: it is loaded ahead where the loop's
// author asks for that, and not where the loop alone has one stage.

#r = #warp.layout<[128], register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>
!row = tensor<128x!tile.ptr<f32>, #r>

// CHECK-LABEL: func.func @asked
// CHECK: scf.for
// CHECK-NEXT: tile.load
// CHECK: scf.for {{.*}} iter_args({{.*}} = %{{.*}}, %[[X:.*]] = %{{.*}})
// CHECK: arith.addf %[[X]], %[[X]]
// CHECK: scf.for
// CHECK-NEXT: tile.load
func.func @asked(%x: !row, %y: tensor<128x!tile.ptr<f16>, #r>, %step: tensor<128xi32, #r>, %n: i32)
    attributes {tile.schedule = #tile.schedule<warps = 1, stages = 3>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x) -> !row : i32 {
    %v = tile.load %p : !row
    %s = arith.addf %v, %v : tensor<128xf32, #r>
    %t = arith.truncf %s : tensor<128xf32, #r> to tensor<128xf16, #r>
    tile.store %y, %t : tensor<128x!tile.ptr<f16>, #r>
    %q = tile.addptr %p, %step : !row, tensor<128xi32, #r>
    scf.yield %q : !row
  }
  %b = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x) -> !row : i32 {
    %v = tile.load %p : !row
    %s = arith.addf %v, %v : tensor<128xf32, #r>
    %t = arith.truncf %s : tensor<128xf32, #r> to tensor<128xf16, #r>
    tile.store %y, %t : tensor<128x!tile.ptr<f16>, #r>
    %q = tile.addptr %p, %step : !row, tensor<128xi32, #r>
    scf.yield %q : !row
  } {tile.num_stages = 4 : i32}
  %c = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x) -> !row : i32 {
    %v = tile.load %p : !row
    %s = arith.addf %v, %v : tensor<128xf32, #r>
    %t = arith.truncf %s : tensor<128xf32, #r> to tensor<128xf16, #r>
    tile.store %y, %t : tensor<128x!tile.ptr<f16>, #r>
    %q = tile.addptr %p, %step : !row, tensor<128xi32, #r>
    scf.yield %q : !row
  } {tile.num_stages = 1 : i32}
  return
}
