// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-pipeline | FileCheck %s

#load = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[64, 64], register = [[1, 0], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// Three stages: two groups before the loop, one barrier in it, and the pointers of two iterations ahead carried instead of the loop's own.

// CHECK-LABEL: func.func @three_stages
// CHECK-SAME: (%[[P:.*]]: tensor<64x64x!tile.ptr<f16>, {{.*}}>, %[[STEP:.*]]: tensor<64x64xi32, {{.*}}>, %[[N:.*]]: i32,
// CHECK: %[[RING:.*]] = warp.alloc : <stages = 3, 64x64xf16,
// CHECK: warp.barrier
// CHECK: %[[T0:.*]] = warp.stage %[[RING]][%c0
// CHECK: warp.async_copy %[[P]] masked %{{.*}} to %[[T0]]
// CHECK: warp.async_commit
// CHECK: %[[T1:.*]] = warp.stage %[[RING]][%c8192{{.*}}] {step = 8192 : i64}
// CHECK: warp.async_copy %{{.*}} to %[[T1]]
// CHECK: warp.async_commit
// CHECK: scf.for %[[I:[a-z0-9_]+]] = {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[AHEAD:.*]] = %{{.*}}, %[[STAGE:.*]] = %{{.*}}, %[[FREED:.*]] = %c16384{{.*}}) ->
// CHECK-NEXT: warp.async_wait {pending = 1 : i32}
// CHECK-NEXT: warp.barrier
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[I]],
// CHECK: %[[NEXT:.*]] = tile.addptr %[[AHEAD]], %[[STEP]]
// CHECK: %[[TARGET:.*]] = warp.stage %[[RING]][%[[FREED]]]
// CHECK: %[[MASK:.*]] = tile.splat %[[INSIDE]]
// CHECK: warp.async_copy %[[AHEAD]] masked %[[MASK]] to %[[TARGET]]
// CHECK-NEXT: warp.async_commit
// CHECK: %[[READ:.*]] = warp.stage %[[RING]][%[[STAGE]]]
// CHECK: warp.load_shared %[[READ]]
// CHECK-NOT: warp.barrier
// CHECK: scf.yield %{{.*}}, %[[NEXT]], %{{.*}}, %[[STAGE]]
// CHECK: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.dealloc %[[RING]]
func.func @three_stages(%p: tensor<64x64x!tile.ptr<f16>, #load>, %step: tensor<64x64xi32, #load>, %n: i32, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c, %q = %p) -> (tensor<64x64xf32, #a>, tensor<64x64x!tile.ptr<f16>, #load>) : i32 {
    %t = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %q to %t {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %a = warp.load_shared %t : !warp.shared<64x64xf16, #s> -> tensor<64x64xf16, #a>
    warp.dealloc %t : !warp.shared<64x64xf16, #s>
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
    %r = tile.addptr %q, %step : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
    scf.yield %d, %r : tensor<64x64xf32, #a>, tensor<64x64x!tile.ptr<f16>, #load>
  }
  func.return %l#0 : tensor<64x64xf32, #a>
}

// -----

#load = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[64, 64], register = [[1, 0], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// A table of blocks is read ahead too, masked at the loop's end.

// CHECK-LABEL: func.func @table
// CHECK: scf.for %[[I:[a-z0-9_]+]] =
// CHECK: %[[AHEAD:.*]] = arith.addi %[[I]],
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[I]],
// CHECK: %[[ENTRY:.*]] = tile.addptr %{{.*}}, %[[AHEAD]]
// CHECK: tile.load %[[ENTRY]], %[[INSIDE]]
// CHECK: warp.async_copy
// CHECK-NOT: tile.load
// CHECK: scf.yield
func.func @table(%table: !tile.ptr<i32>, %p: tensor<64x64x!tile.ptr<f16>, #load>, %n: i32, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x64xf32, #a>) : i32 {
    %entry = tile.addptr %table, %i : !tile.ptr<i32>, i32
    %block = tile.load %entry : !tile.ptr<i32>
    %o = tile.splat %block : i32 -> tensor<64x64xi32, #load>
    %q = tile.addptr %p, %o : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
    %t = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %q to %t {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %a = warp.load_shared %t : !warp.shared<64x64xf16, #s> -> tensor<64x64xf16, #a>
    warp.dealloc %t : !warp.shared<64x64xf16, #s>
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
    scf.yield %d : tensor<64x64xf32, #a>
  }
  func.return %l : tensor<64x64xf32, #a>
}

// -----

#load = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[64, 64], register = [[1, 0], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// Left alone: with one stage; and where the address comes from a load that a store in the loop might change.

// CHECK-LABEL: func.func @one_stage
// CHECK-NOT: warp.stage
// CHECK: warp.async_wait {pending = 0 : i32}
// CHECK: return
func.func @one_stage(%p: tensor<64x64x!tile.ptr<f16>, #load>, %n: i32, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x64xf32, #a>) : i32 {
    %t = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %p to %t {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %a = warp.load_shared %t : !warp.shared<64x64xf16, #s> -> tensor<64x64xf16, #a>
    warp.dealloc %t : !warp.shared<64x64xf16, #s>
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
    scf.yield %d : tensor<64x64xf32, #a>
  }
  func.return %l : tensor<64x64xf32, #a>
}

// CHECK-LABEL: func.func @table_that_changes
// CHECK-NOT: warp.stage
// CHECK: tile.load
// CHECK: warp.async_wait {pending = 0 : i32}
// CHECK: return
func.func @table_that_changes(%table: !tile.ptr<i32>, %p: tensor<64x64x!tile.ptr<f16>, #load>, %n: i32, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x64xf32, #a>) : i32 {
    %entry = tile.addptr %table, %i : !tile.ptr<i32>, i32
    %block = tile.load %entry : !tile.ptr<i32>
    tile.store %entry, %i : !tile.ptr<i32>
    %o = tile.splat %block : i32 -> tensor<64x64xi32, #load>
    %q = tile.addptr %p, %o : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
    %t = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %q to %t {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %a = warp.load_shared %t : !warp.shared<64x64xf16, #s> -> tensor<64x64xf16, #a>
    warp.dealloc %t : !warp.shared<64x64xf16, #s>
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
    scf.yield %d : tensor<64x64xf32, #a>
  }
  func.return %l : tensor<64x64xf32, #a>
}

// -----

#load = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[64, 64], register = [[1, 0], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// Two tiles that are read in one place share a wait, which goes once.

// CHECK-LABEL: func.func @shared_wait
// CHECK: scf.for
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: warp.barrier
// CHECK-COUNT-2: warp.async_copy
// CHECK-NOT: warp.async_wait
// CHECK: scf.if
// CHECK: scf.yield
// CHECK: return
func.func @shared_wait(%p: tensor<64x64x!tile.ptr<f16>, #load>, %r: tensor<64x64x!tile.ptr<f16>, #load>, %n: i32, %x: i1, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x64xf32, #a>) : i32 {
    %t = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %p to %t {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    %u = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %r to %u {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %y = scf.if %x -> (tensor<64x64xf32, #a>) {
      %a = warp.load_shared %t : !warp.shared<64x64xf16, #s> -> tensor<64x64xf16, #a>
      %b = warp.load_shared %u : !warp.shared<64x64xf16, #s> -> tensor<64x64xf16, #b>
      %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
      scf.yield %d : tensor<64x64xf32, #a>
    } else {
      scf.yield %acc : tensor<64x64xf32, #a>
    }
    warp.dealloc %t : !warp.shared<64x64xf16, #s>
    warp.dealloc %u : !warp.shared<64x64xf16, #s>
    scf.yield %y : tensor<64x64xf32, #a>
  }
  func.return %l : tensor<64x64xf32, #a>
}

// A copy that stays (the loop writes the table its address comes from) keeps the wait that a tile ahead shared with it.

// CHECK-LABEL: func.func @wait_of_another
// CHECK: scf.for
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: warp.barrier
// CHECK: warp.async_copy
// CHECK: tile.load
// CHECK: warp.async_copy
// CHECK: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: scf.if
func.func @wait_of_another(%table: !tile.ptr<i32>, %p: tensor<64x64x!tile.ptr<f16>, #load>, %n: i32, %x: i1, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x64xf32, #a>) : i32 {
    %t = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %p to %t {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    %block = tile.load %table : !tile.ptr<i32>
    tile.store %table, %i : !tile.ptr<i32>
    %o = tile.splat %block : i32 -> tensor<64x64xi32, #load>
    %r = tile.addptr %p, %o : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
    %u = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %r to %u {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %y = scf.if %x -> (tensor<64x64xf32, #a>) {
      %a = warp.load_shared %t : !warp.shared<64x64xf16, #s> -> tensor<64x64xf16, #a>
      %b = warp.load_shared %u : !warp.shared<64x64xf16, #s> -> tensor<64x64xf16, #b>
      %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
      scf.yield %d : tensor<64x64xf32, #a>
    } else {
      scf.yield %acc : tensor<64x64xf32, #a>
    }
    warp.dealloc %t : !warp.shared<64x64xf16, #s>
    warp.dealloc %u : !warp.shared<64x64xf16, #s>
    scf.yield %y : tensor<64x64xf32, #a>
  }
  func.return %l : tensor<64x64xf32, #a>
}

// Left alone: copies that share a commit, which one alone cannot take along; and a tile that two copies fill.

// CHECK-LABEL: func.func @shared_commit
// CHECK-NOT: warp.stage
// CHECK: return
func.func @shared_commit(%p: tensor<64x64x!tile.ptr<f16>, #load>, %n: i32, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x64xf32, #a>) : i32 {
    %t = warp.alloc : !warp.shared<64x64xf16, #s>
    %u = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %p to %t {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_copy %p to %u {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %a = warp.load_shared %u : !warp.shared<64x64xf16, #s> -> tensor<64x64xf16, #a>
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
    %e = warp.load_shared %t : !warp.shared<64x64xf16, #s> -> tensor<64x64xf16, #a>
    %f = warp.mma %e, %b, %d {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
    warp.dealloc %t : !warp.shared<64x64xf16, #s>
    warp.dealloc %u : !warp.shared<64x64xf16, #s>
    scf.yield %f : tensor<64x64xf32, #a>
  }
  func.return %l : tensor<64x64xf32, #a>
}

// CHECK-LABEL: func.func @filled_twice
// CHECK-NOT: warp.stage
// CHECK: return
func.func @filled_twice(%p: tensor<64x64x!tile.ptr<f16>, #load>, %n: i32, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x64xf32, #a>) : i32 {
    %t = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %p to %t {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_copy %p to %t {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %a = warp.load_shared %t : !warp.shared<64x64xf16, #s> -> tensor<64x64xf16, #a>
    warp.dealloc %t : !warp.shared<64x64xf16, #s>
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
    scf.yield %d : tensor<64x64xf32, #a>
  }
  func.return %l : tensor<64x64xf32, #a>
}
