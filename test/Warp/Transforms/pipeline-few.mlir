// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-pipeline | FileCheck %s

#load = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[64, 64], register = [[1, 0], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// Of few iterations: a branch leaves out the copy of an iteration that is not run, with its address and the entry of the
// table that this needs, neither of which is masked; the group is committed all the same.

// CHECK-LABEL: func.func @table
// CHECK: arith.cmpi slt
// CHECK: scf.if
// CHECK: %[[FIRST:.*]] = tile.load %{{[^,]*}} :
// CHECK: warp.async_copy %{{[^ ]*}} to
// CHECK-NEXT: {{^ *}}}
// CHECK-NEXT: warp.async_commit
// CHECK: scf.for %[[I:[a-z0-9_]+]] =
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: warp.barrier
// CHECK: %[[AHEAD:.*]] = arith.addi %[[I]],
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[I]],
// CHECK: scf.if %[[INSIDE]] {
// CHECK: %[[ENTRY:.*]] = tile.addptr %{{.*}}, %[[AHEAD]]
// CHECK-NEXT: tile.load %[[ENTRY]] :
// CHECK: warp.async_copy %{{[^ ]*}} to
// CHECK-NEXT: {{^ *}}}
// CHECK-NEXT: warp.async_commit
// CHECK-NOT: tile.load
// CHECK: } {tile.few_iterations}
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
  } {tile.few_iterations}
  func.return %l : tensor<64x64xf32, #a>
}

// -----

#load = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[64, 64], register = [[1, 0], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// Pointers that the loop carries go on past its end: they are computed, and the copies masked off.

// CHECK-LABEL: func.func @carried
// CHECK-NOT: scf.if
// CHECK: scf.for
// CHECK: %[[MASK:.*]] = tile.splat
// CHECK: warp.async_copy %{{.*}} masked %[[MASK]]
// CHECK-NOT: scf.if
// CHECK: } {tile.few_iterations}
func.func @carried(%p: tensor<64x64x!tile.ptr<f16>, #load>, %step: tensor<64x64xi32, #load>, %n: i32, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
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
  } {tile.few_iterations}
  func.return %l#0 : tensor<64x64xf32, #a>
}
