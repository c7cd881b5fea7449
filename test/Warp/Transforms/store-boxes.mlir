// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-store-boxes --split-input-file | FileCheck %s

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// A masked tile of rows that lie side by side: the map ends where the mask does. The exchange goes with the addresses.
// CHECK-LABEL: func.func @result
// CHECK-SAME: %[[P:[^ ]*]]: !tile.ptr<f16> {{.*}}, %[[N:[^ ]*]]: i32, %[[X:[^ ]*]]: tensor
// CHECK: %[[MAP:.*]] = warp.tensor_map %[[P]] sizes(%{{.*}}, %{{.*}}) strides(%{{.*}}) {box = array<i32: 64, 64>} : <f16>
// CHECK: %[[T:.*]] = warp.alloc : <64x64xf16, #[[S:.*]]>
// CHECK-NEXT: warp.store_shared %[[X]], %[[T]]
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: %[[FIRST:.*]] = warp.is_first_thread
// CHECK-NEXT: scf.if %[[FIRST]] {
// CHECK: warp.box_store %[[T]] to %[[MAP]][%{{.*}}, %{{.*}}] : <64x64xf16, #[[S]]>
// CHECK-NEXT: warp.box_commit
// CHECK-NEXT: }
// CHECK-NOT: tile.store
// CHECK: scf.if
// CHECK-NEXT: warp.box_wait %[[T]] : !warp.shared
// CHECK-NEXT: }
// CHECK-NEXT: warp.dealloc %[[T]]
// CHECK-NEXT: return
module attributes {warp.target = "sm_90a"} {
  func.func @result(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to, %y, %mask {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    return
  }

// Sums of 32 bits are two lines of 128 bytes wide, each a box of its own; atomics that nobody reads are reductions.
// CHECK-LABEL: func.func @added
// CHECK: warp.tensor_map {{.*}} {box = array<i32: 32, 64>} : <f32>
// CHECK: warp.box_store %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}] {combine = #tile<atomic fadd>}
// CHECK: warp.box_store %{{.*}} to %{{.*}}[%{{.*}}, %{{.*}}] {combine = #tile<atomic fadd>, offset = 8192 : i64}
// CHECK-NEXT: warp.box_commit
// CHECK-NOT: tile.atomic_rmw
  func.func @added(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf32, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f32>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #l>
    %old = tile.atomic_rmw fadd %to, %y, %mask {order = #tile<order relaxed>} : (tensor<64x64x!tile.ptr<f32>, #l>, tensor<64x64xf32, #l>, tensor<64x64xi1, #l>) -> tensor<64x64xf32, #l>
    return
  }

// In a loop the tile lives around it, and is filled again when the box before is written. Reductions may come in any order: their tile has to be read only.
// CHECK-LABEL: func.func @again
// CHECK: %[[T:.*]] = warp.alloc
// CHECK-NEXT: scf.for
// CHECK: warp.box_wait %[[T]] {written}
// CHECK: warp.store_shared %{{.*}}, %[[T]]
// CHECK-NEXT: warp.barrier
// CHECK: warp.box_store %[[T]]
// CHECK: warp.box_commit
// CHECK: }
// CHECK: }
// CHECK: warp.box_wait %[[T]] {written}
// CHECK: warp.dealloc %[[T]]
  func.func @again(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %c0 = arith.constant 0 : i32
    scf.for %i = %c0 to %n step %c64 : i32 {
      %first = tile.splat %i : i32 -> tensor<64xi32, #r1>
      %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
      %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
      %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
      %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
      %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
      %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
      %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
      %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
      %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
      %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
      %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
      %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
      %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
      tile.store %to, %y, %mask {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    }
    return
  }

// CHECK-LABEL: func.func @added_again
// CHECK: scf.for
// CHECK: warp.box_wait %{{[^ ]*}} : !warp.shared
// CHECK: warp.store_shared
  func.func @added_again(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf32, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %c0 = arith.constant 0 : i32
    scf.for %i = %c0 to %n step %c64 : i32 {
      %first = tile.splat %i : i32 -> tensor<64xi32, #r1>
      %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
      %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
      %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
      %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
      %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
      %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
      %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
      %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
      %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
      %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
      %base = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #l>
      %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f32>, #l>, tensor<64x64xi32, #l>
      %y = warp.convert_layout %x : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #l>
      %old = tile.atomic_rmw fadd %to, %y, %mask {order = #tile<order relaxed>} : (tensor<64x64x!tile.ptr<f32>, #l>, tensor<64x64xf32, #l>, tensor<64x64xi1, #l>) -> tensor<64x64xf32, #l>
    }
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

#half = #warp.layout<[512, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0], [256, 0]]>
#quarter = #warp.layout<[256, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0]]>
#eighth = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]]>
module attributes {warp.target = "sm_90a"} {
// Two blocks share a multiprocessor, and would not with the tile: what a loop adds is worth one of them.
// CHECK-LABEL: func.func @worth_a_block
// CHECK: warp.alloc : <64x64xf32
// CHECK-NEXT: scf.for
// CHECK: warp.box_store %{{.*}} {combine = #tile<atomic fadd>}
// CHECK-NOT: tile.atomic_rmw
  func.func @worth_a_block(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf32, #l>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %c0 = arith.constant 0 : i32
    %half = warp.alloc : !warp.shared<512x64xf16, #half>
    %quarter = warp.alloc : !warp.shared<256x64xf16, #quarter>
    %eighth = warp.alloc : !warp.shared<64x64xf16, #eighth>
    scf.for %i = %c0 to %n step %c64 : i32 {
      %first = tile.splat %i : i32 -> tensor<64xi32, #r1>
      %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
      %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
      %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
      %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
      %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
      %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
      %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
      %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
      %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
      %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
      %base = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #l>
      %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f32>, #l>, tensor<64x64xi32, #l>
      %old = tile.atomic_rmw fadd %to, %x, %mask {order = #tile<order relaxed>} : (tensor<64x64x!tile.ptr<f32>, #l>, tensor<64x64xf32, #l>, tensor<64x64xi1, #l>) -> tensor<64x64xf32, #l>
    }
    warp.dealloc %half : !warp.shared<512x64xf16, #half>
    warp.dealloc %quarter : !warp.shared<256x64xf16, #quarter>
    warp.dealloc %eighth : !warp.shared<64x64xf16, #eighth>
    return
  }

// What a block adds once is not.
// CHECK-LABEL: func.func @added_once
// CHECK-NOT: warp.box_store
// CHECK: tile.atomic_rmw
  func.func @added_once(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf32, #l>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %c0 = arith.constant 0 : i32
    %half = warp.alloc : !warp.shared<512x64xf16, #half>
    %quarter = warp.alloc : !warp.shared<256x64xf16, #quarter>
    %eighth = warp.alloc : !warp.shared<64x64xf16, #eighth>
    %i = tile.program_id x : i32
    %first = tile.splat %i : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f32>, #l>, tensor<64x64xi32, #l>
    %old = tile.atomic_rmw fadd %to, %x, %mask {order = #tile<order relaxed>} : (tensor<64x64x!tile.ptr<f32>, #l>, tensor<64x64xf32, #l>, tensor<64x64xi1, #l>) -> tensor<64x64xf32, #l>
    warp.dealloc %half : !warp.shared<512x64xf16, #half>
    warp.dealloc %quarter : !warp.shared<256x64xf16, #quarter>
    warp.dealloc %eighth : !warp.shared<64x64xf16, #eighth>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// Where shared memory has no room for the tile around the loop, it is waited for at the iteration's end, and what lives behind takes its place.
// CHECK-LABEL: func.func @full
// CHECK: scf.for
// CHECK: warp.dealloc
// CHECK: %[[T:.*]] = warp.alloc : <64x64xf16
// CHECK-NEXT: warp.store_shared %{{.*}}, %[[T]]
// CHECK: warp.box_store %[[T]]
// CHECK: warp.box_wait %[[T]] {written}
// CHECK: warp.dealloc %[[T]]
#row = #warp.layout<[1024, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0], [256, 0], [512, 0]]>
#half = #warp.layout<[512, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0], [256, 0]]>
#quarter = #warp.layout<[256, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0]]>
module attributes {warp.target = "sm_90a"} {
  func.func @full(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %c0 = arith.constant 0 : i32
    scf.for %i = %c0 to %n step %c64 : i32 {
      %large = warp.alloc : !warp.shared<1024x64xf16, #row>
      %less = warp.alloc : !warp.shared<512x64xf16, #half>
      %least = warp.alloc : !warp.shared<256x64xf16, #quarter>
      warp.dealloc %large : !warp.shared<1024x64xf16, #row>
      warp.dealloc %less : !warp.shared<512x64xf16, #half>
      warp.dealloc %least : !warp.shared<256x64xf16, #quarter>
      %first = tile.splat %i : i32 -> tensor<64xi32, #r1>
      %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
      %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
      %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
      %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
      %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
      %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
      %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
      %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
      %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
      %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
      %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
      %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
      %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
      tile.store %to, %y, %mask {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    }
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// What threads store by as few instructions stays, and targets without copies of boxes.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: warp.box_store
// CHECK: tile.store
module attributes {warp.target = "sm_90a"} {
  func.func @whole(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to, %y {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// CHECK-LABEL: func.func @elsewhere
// CHECK-NOT: warp.box_store
// CHECK: tile.store
module attributes {warp.target = "sm_80"} {
  func.func @elsewhere(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to, %y, %mask {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// One comparison of unsigned numbers says 0 <= row < n, where n is clamped: maps have no element of sizes below 1 either. It may say that rows before the first are none.
// CHECK-LABEL: func.func @unsigned
// CHECK-SAME: %[[N:[^ ]*]]: i32
// CHECK: %[[SIZE:.*]] = arith.extsi %[[N]]
// CHECK: warp.tensor_map %{{.*}} sizes(%{{.*}}, %[[SIZE]])
// CHECK-LABEL: func.func @may_begin_before
// CHECK: warp.box_store
// CHECK-LABEL: func.func @unknown
// CHECK-NOT: warp.box_store
module attributes {warp.target = "sm_90a"} {
  func.func @unsigned(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %c0 = arith.constant 0 : i32
    %most = arith.maxsi %n, %c0 : i32
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %most : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi ult, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to, %y, %mask {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    return
  }
  func.func @may_begin_before(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %c0 = arith.constant 0 : i32
    %most = arith.maxsi %n, %c0 : i32
    %i = tile.program_id x : i32
    %one = arith.muli %i, %c64 : i32
    %from = arith.subi %one, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %most : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi ult, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to, %y, %mask {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    return
  }
  func.func @unknown(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi ult, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to, %y, %mask {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    return
  }
}
