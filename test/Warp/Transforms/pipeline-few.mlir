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

// -----

#load = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[64, 64], register = [[1, 0], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// Pages of 256 rows, in blocks of 64: where a block lies is computed from the table for the first, and where a page
// begins; in between it is 64 rows behind the block before. The place in the page, the page's number and the pointer are
// held through the branches of iterations that are not run.

// CHECK-LABEL: func.func @pages
// CHECK-SAME: %{{.*}}, %{{.*}}, %[[OF_PAGE:.*]]: i64, %[[OF_ROW:.*]]: i64,
// CHECK: %[[GROWTH:.*]] = arith.muli %{{.*}}, %[[OF_ROW]] : i64
// The first.
// CHECK: %[[FIRST:.*]]:3 = scf.if %{{.*}} -> (i32, i32, !tile.ptr<f16>) {
// CHECK: %[[REST:.*]] = arith.andi
// CHECK: %[[NUMBER:.*]] = arith.shrsi
// CHECK: tile.load %{{[^,]*}} : !tile.ptr<i32>
// CHECK: warp.async_copy
// CHECK-NEXT: scf.yield %[[REST]], %[[NUMBER]], %{{.*}}
// The second.
// CHECK: %[[SECOND:.*]]:3 = scf.if %{{.*}} -> (i32, i32, !tile.ptr<f16>) {
// CHECK: %[[GOES_ON:.*]] = arith.cmpi ne, %[[FIRST]]#0, %c192
// CHECK: %[[HELD:.*]]:3 = scf.if %[[GOES_ON]] -> (i32, i32, !tile.ptr<f16>) {
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[FIRST]]#0, %
// CHECK-NEXT: %[[BEHIND:.*]] = tile.addptr %[[FIRST]]#2, %[[GROWTH]]
// CHECK-NEXT: scf.yield %[[NEXT]], %[[FIRST]]#1, %[[BEHIND]]
// CHECK-NEXT: } else {
// CHECK: %[[ONE:.*]] = arith.constant 1
// CHECK-NEXT: %[[PAGE:.*]] = arith.addi %[[FIRST]]#1, %[[ONE]]
// CHECK: tile.addptr %{{.*}}, %[[PAGE]]
// CHECK-NEXT: tile.load
// CHECK: scf.yield %{{.*}}, %[[PAGE]], %{{.*}}
// CHECK-NEXT: } {warp.mostly_holds}
// CHECK: tile.splat %[[HELD]]#2
// CHECK: warp.async_copy
// CHECK-NEXT: scf.yield %[[HELD]]#0, %[[HELD]]#1, %[[HELD]]#2
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[FIRST]]#0, %[[FIRST]]#1, %[[FIRST]]#2
// CHECK-NEXT: }
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[A:.*]] = %[[SECOND]]#0, %[[B:.*]] = %[[SECOND]]#1, %[[C:.*]] = %[[SECOND]]#2, %{{.*}} = %
// CHECK: %[[COPIED:.*]]:3 = scf.if %{{.*}} -> (i32, i32, !tile.ptr<f16>) {
// CHECK: arith.cmpi ne, %[[A]], %
// CHECK: scf.yield %[[A]], %[[B]], %[[C]]
// CHECK: scf.yield %{{.*}}, %[[COPIED]]#0, %[[COPIED]]#1, %[[COPIED]]#2, %
func.func @pages(%table: !tile.ptr<i32>, %rows: !tile.ptr<f16>, %of_page: i64, %of_row: i64, %places: tensor<64x64xi32, #load>, %n: i32, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %c255 = arith.constant 255 : i32
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x64xf32, #a>) : i32 {
    %start = arith.muli %i, %c64 : i32
    %rest = arith.andi %start, %c255 : i32
    %number = arith.shrsi %start, %c8 : i32
    %at = tile.addptr %table, %number : !tile.ptr<i32>, i32
    %page = tile.load %at : !tile.ptr<i32>
    %wide_page = arith.extsi %page : i32 to i64
    %to_page = arith.muli %wide_page, %of_page : i64
    %wide_rest = arith.extsi %rest : i32 to i64
    %to_row = arith.muli %wide_rest, %of_row : i64
    %both = arith.addi %to_page, %to_row : i64
    %block = tile.addptr %rows, %both : !tile.ptr<f16>, i64
    %blocks = tile.splat %block : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #load>
    %q = tile.addptr %blocks, %places : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
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

// An entry that follows from the block's number too is another one for each: nothing is held.

// CHECK-LABEL: func.func @by_block
// CHECK-NOT: warp.mostly_holds
// CHECK: {tile.few_iterations}
func.func @by_block(%table: !tile.ptr<i32>, %rows: !tile.ptr<f16>, %of_page: i64, %of_row: i64, %places: tensor<64x64xi32, #load>, %n: i32, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %c255 = arith.constant 255 : i32
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x64xf32, #a>) : i32 {
    %start = arith.muli %i, %c64 : i32
    %rest = arith.andi %start, %c255 : i32
    %number = arith.shrsi %start, %c8 : i32
    %place = arith.addi %number, %i : i32
    %at = tile.addptr %table, %place : !tile.ptr<i32>, i32
    %page = tile.load %at : !tile.ptr<i32>
    %wide_page = arith.extsi %page : i32 to i64
    %to_page = arith.muli %wide_page, %of_page : i64
    %wide_rest = arith.extsi %rest : i32 to i64
    %to_row = arith.muli %wide_rest, %of_row : i64
    %both = arith.addi %to_page, %to_row : i64
    %block = tile.addptr %rows, %both : !tile.ptr<f16>, i64
    %blocks = tile.splat %block : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #load>
    %q = tile.addptr %blocks, %places : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
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

// Rows whose distance is a product of 32 bits might overflow where a pointer that grows would not: nothing is held.

// CHECK-LABEL: func.func @narrow
// CHECK-NOT: warp.mostly_holds
// CHECK: {tile.few_iterations}
func.func @narrow(%table: !tile.ptr<i32>, %rows: !tile.ptr<f16>, %of_page: i64, %of_row: i64, %places: tensor<64x64xi32, #load>, %n: i32, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %c255 = arith.constant 255 : i32
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x64xf32, #a>) : i32 {
    %start = arith.muli %i, %c64 : i32
    %rest = arith.andi %start, %c255 : i32
    %number = arith.shrsi %start, %c8 : i32
    %at = tile.addptr %table, %number : !tile.ptr<i32>, i32
    %page = tile.load %at : !tile.ptr<i32>
    %to_row = arith.muli %rest, %c64 : i32
    %both = arith.addi %page, %to_row : i32
    %block = tile.addptr %rows, %both : !tile.ptr<f16>, i32
    %blocks = tile.splat %block : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #load>
    %q = tile.addptr %blocks, %places : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
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
