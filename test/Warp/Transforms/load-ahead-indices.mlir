// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-load-ahead | FileCheck %s

#a = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[16, 8], register = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#c = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #warp.layout<[32], register = [[1], [2], [4], [8], [16]], lane = [[0], [0], [0], [0], [0]]>
#tile = #warp.layout<[32, 256], register = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], lane = [[0, 8], [0, 16], [0, 32], [0, 64], [0, 128]]>
#column = #warp.layout<[32, 1], register = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]>
#ring = #warp.layout<[32, 256], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!a = tensor<16x16xf16, #a>
!b = tensor<16x8xf16, #b>
!c = tensor<16x8xf32, #c>
!rows = tensor<32xi32, #rows>
!table = tensor<32x!tile.ptr<i32>, #rows>
!column = tensor<32x1xi32, #column>
!offsets = tensor<32x256xi32, #tile>
!tile = tensor<32x256x!tile.ptr<f16>, #tile>
!ring = !warp.shared<32x256xf16, #ring>

// Of what a copy of 16 bytes is addressed by there is one for eight elements: 32 registers, beside which those of a table
// of pages have room. Pages are of 16 rows: as two loads read them, they are in no branch, which would hand on each row's.

// CHECK-LABEL: func.func @pages
// CHECK: %[[P0:.*]] = tile.load {{.*}}warp.constancy
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[PAGES:.*]] = %[[P0]])
// CHECK-NOT: scf.if
// CHECK: tile.expand_dims %[[PAGES]]
// CHECK: %[[P1:.*]] = tile.load {{.*}}warp.constancy
// CHECK: scf.yield %{{.*}}, %[[P1]]
func.func @pages(%table: !table, %p: !tile, %stride: !column, %within: !offsets, %shared: !ring, %x: !a, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %first = tile.splat %i : i32 -> !rows
    %entry = tile.addptr %table, %first : !table, !rows
    %pages = tile.load %entry {warp.constancy = array<i32: 16>, warp.contiguity = 1 : i32} : !table
    %each = tile.expand_dims %pages {axis = 1 : i32} : !rows -> !column
    %start = arith.muli %each, %stride : !column
    %starts = tile.broadcast %start : !column -> !offsets
    %offsets = arith.addi %starts, %within : !offsets
    %at = tile.addptr %p, %offsets : !tile, !offsets
    warp.async_copy %at to %shared {contiguity = 8 : i32} : !tile -> !ring
    %d = warp.mma %x, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  return %r : !c
}

// What else is made of them takes all of their registers, which leaves none.

// CHECK-LABEL: func.func @also_data
// CHECK-NOT: tile.load
// CHECK: scf.for
// CHECK: tile.load
// CHECK: arith.sitofp
func.func @also_data(%table: !table, %p: !tile, %stride: !column, %within: !offsets, %shared: !ring, %other: !ring, %x: !a, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %first = tile.splat %i : i32 -> !rows
    %entry = tile.addptr %table, %first : !table, !rows
    %pages = tile.load %entry {warp.constancy = array<i32: 16>, warp.contiguity = 1 : i32} : !table
    %each = tile.expand_dims %pages {axis = 1 : i32} : !rows -> !column
    %start = arith.muli %each, %stride : !column
    %starts = tile.broadcast %start : !column -> !offsets
    %offsets = arith.addi %starts, %within : !offsets
    %at = tile.addptr %p, %offsets : !tile, !offsets
    warp.async_copy %at to %shared {contiguity = 8 : i32} : !tile -> !ring
    %numbers = arith.sitofp %offsets : !offsets to tensor<32x256xf16, #tile>
    warp.store_shared %numbers, %other : tensor<32x256xf16, #tile> -> !ring
    %d = warp.mma %x, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  return %r : !c
}
