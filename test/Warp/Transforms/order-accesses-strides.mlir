// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --pass-pipeline='builtin.module(func.func(warp-order-accesses))' %s | FileCheck %s

#own = #warp.layout<[128], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>
!f32 = !tile.ptr<f32>
!numbers = tensor<128xi32, #own>
!pointers = tensor<128x!f32, #own>
#grid = #warp.layout<[4, 32], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[1, 0], [2, 0]]>
#rows = #warp.layout<[4], lane = [[0], [0], [0], [0], [0]], warp = [[1], [2]]>
#columns = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]], warp = [[0], [0]]>
#tall = #warp.layout<[4, 1], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[1, 0], [2, 0]]>
#flat = #warp.layout<[1, 32], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 0], [0, 0]]>
!grid = tensor<4x32x!f32, #grid>

module attributes {warp.target = "sm_80"} {

// Rows that follow one another by a stride meet where it is less than a row is long: by four times the stride, a quarter.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[STRIDE:[a-z0-9]+]]: i32
// CHECK: scf.for
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[STRIDE]], %c32_i32
// CHECK: %[[ABOVE:.*]] = arith.cmpi sgt, %[[STRIDE]], %c-32_i32
// CHECK: %[[NEAR:.*]] = arith.andi %[[BELOW]], %[[ABOVE]]
// CHECK-NEXT: warp.barrier where %[[NEAR]]
// CHECK-NEXT: tile.store
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @rows(%x: !f32, %stride: i32, %y: tensor<128xf32, #own>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  scf.for %i = %c0 to %n step %c1 : i32 {
    %fourth = arith.muli %i, %c4 : i32
    %row = arith.muli %fourth, %stride : i32
    %at = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %r : !pointers, !numbers
    tile.store %p, %y : !pointers
  }
  return
}

// A pointer that goes round the loop, 64 bits of stride; what is read of a row is written there by its own thread.
// CHECK-LABEL: func.func @in_place
// CHECK-SAME: %[[STRIDE:[a-z0-9]+]]: i64
// CHECK: scf.for
// CHECK: arith.cmpi slt, %[[STRIDE]], %c128_i64
// CHECK: warp.barrier where
// CHECK-NEXT: tile.load
// CHECK-NOT: warp.barrier{{$}}
// CHECK: warp.barrier where
// CHECK-NEXT: tile.store
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @in_place(%x: !f32, %stride: i64, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %b = tile.splat %x : !f32 -> !pointers
  %first = tile.addptr %b, %r : !pointers, !numbers
  %steps = tile.splat %stride : i64 -> tensor<128xi64, #own>
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%p = %first) -> !pointers : i32 {
    %v = tile.load %p : !pointers
    %w = arith.addf %v, %v : tensor<128xf32, #own>
    tile.store %p, %w : !pointers
    %next = tile.addptr %p, %steps : !pointers, tensor<128xi64, #own>
    scf.yield %next : !pointers
  }
  return
}

// Blocks of four rows, one after another: what is in one row is of one thread, and of one iteration.
// CHECK-LABEL: func.func @blocks_of_rows
// CHECK-SAME: %[[STRIDE:[a-z0-9]+]]: i32
// CHECK: scf.for
// CHECK: arith.cmpi slt, %[[STRIDE]], %c32_i32
// CHECK: warp.barrier where
// CHECK-NEXT: tile.store
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @blocks_of_rows(%x: !f32, %stride: i32, %y: tensor<4x32xf32, #grid>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %r = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #rows>
  %c = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #columns>
  %c1 = tile.expand_dims %c {axis = 0 : i32} : tensor<32xi32, #columns> -> tensor<1x32xi32, #flat>
  %c2 = tile.broadcast %c1 : tensor<1x32xi32, #flat> -> tensor<4x32xi32, #grid>
  %b = tile.splat %x : !f32 -> !grid
  %s = tile.splat %stride : i32 -> tensor<4xi32, #rows>
  scf.for %i = %c0 to %n step %c4 : i32 {
    %i1 = tile.splat %i : i32 -> tensor<4xi32, #rows>
    %row = arith.addi %i1, %r : tensor<4xi32, #rows>
    %at = arith.muli %row, %s : tensor<4xi32, #rows>
    %at1 = tile.expand_dims %at {axis = 1 : i32} : tensor<4xi32, #rows> -> tensor<4x1xi32, #tall>
    %at2 = tile.broadcast %at1 : tensor<4x1xi32, #tall> -> tensor<4x32xi32, #grid>
    %o = arith.addi %at2, %c2 : tensor<4x32xi32, #grid>
    %p = tile.addptr %b, %o : !grid, tensor<4x32xi32, #grid>
    tile.store %p, %y : !grid
  }
  return
}

// Blocks that share a row are of two iterations: another thread may have it.
// CHECK-LABEL: func.func @blocks_that_overlap
// CHECK: scf.for
// CHECK: warp.barrier{{$}}
// CHECK-NEXT: tile.store
// CHECK: return
func.func @blocks_that_overlap(%x: !f32, %stride: i32, %y: tensor<4x32xf32, #grid>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c3 = arith.constant 3 : i32
  %r = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #rows>
  %c = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #columns>
  %c1 = tile.expand_dims %c {axis = 0 : i32} : tensor<32xi32, #columns> -> tensor<1x32xi32, #flat>
  %c2 = tile.broadcast %c1 : tensor<1x32xi32, #flat> -> tensor<4x32xi32, #grid>
  %b = tile.splat %x : !f32 -> !grid
  %s = tile.splat %stride : i32 -> tensor<4xi32, #rows>
  scf.for %i = %c0 to %n step %c3 : i32 {
    %i1 = tile.splat %i : i32 -> tensor<4xi32, #rows>
    %row = arith.addi %i1, %r : tensor<4xi32, #rows>
    %at = arith.muli %row, %s : tensor<4xi32, #rows>
    %at1 = tile.expand_dims %at {axis = 1 : i32} : tensor<4xi32, #rows> -> tensor<4x1xi32, #tall>
    %at2 = tile.broadcast %at1 : tensor<4x1xi32, #tall> -> tensor<4x32xi32, #grid>
    %o = arith.addi %at2, %c2 : tensor<4x32xi32, #grid>
    %p = tile.addptr %b, %o : !grid, tensor<4x32xi32, #grid>
    tile.store %p, %y : !grid
  }
  return
}

// Columns of a stride, too: who knows how far apart those of two rows are.
// CHECK-LABEL: func.func @columns
// CHECK: scf.for
// CHECK: warp.barrier{{$}}
// CHECK-NEXT: tile.store
func.func @columns(%x: !f32, %stride: i32, %between: i32, %y: tensor<128xf32, #own>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %apart = tile.splat %between : i32 -> !numbers
  %columns = arith.muli %r, %apart : !numbers
  scf.for %i = %c0 to %n step %c1 : i32 {
    %row = arith.muli %i, %stride : i32
    %at = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %columns : !pointers, !numbers
    tile.store %p, %y : !pointers
  }
  return
}

// The next row that is read is the one before the one that is written, whose threads are others: in any iteration.
// CHECK-LABEL: func.func @shifted
// CHECK: scf.for
// CHECK: tile.load
// CHECK: warp.barrier{{$}}
// CHECK-NEXT: tile.store
func.func @shifted(%x: !f32, %stride: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %one = arith.constant dense<1> : !numbers
  scf.for %i = %c0 to %n step %c1 : i32 {
    %row = arith.muli %i, %stride : i32
    %at = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %r : !pointers, !numbers
    %q = tile.addptr %p, %one : !pointers, !numbers
    %v = tile.load %q : !pointers
    tile.store %p, %v : !pointers
  }
  return
}

// A mask whose bound is a constant leaves of a tile what is below it: 96 columns.
// CHECK-LABEL: func.func @bounded
// CHECK-SAME: %[[STRIDE:[a-z0-9]+]]: i32
// CHECK: scf.for
// CHECK: arith.cmpi slt, %[[STRIDE]], %c96_i32
// CHECK: warp.barrier where
// CHECK-NEXT: tile.store
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @bounded(%x: !f32, %stride: i32, %y: tensor<128xf32, #own>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c128 = arith.constant 128 : i32
  %end = arith.constant dense<96> : !numbers
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %block = tile.program_id x : i32
  %begin = arith.muli %block, %c128 : i32
  %begins = tile.splat %begin : i32 -> !numbers
  %columns = arith.addi %begins, %r : !numbers
  %mask = arith.cmpi slt, %columns, %end : !numbers
  scf.for %i = %c0 to %n step %c1 : i32 {
    %row = arith.muli %i, %stride : i32
    %at = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %columns : !pointers, !numbers
    tile.store %p, %y, %mask : !pointers
  }
  return
}

// Rows of 96 elements never meet, though tiles are 128 wide.
// CHECK-LABEL: func.func @bounded_rows
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @bounded_rows(%x: !f32, %y: tensor<128xf32, #own>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c96 = arith.constant 96 : i32
  %end = arith.constant dense<96> : !numbers
  %columns = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %mask = arith.cmpi sgt, %end, %columns : !numbers
  scf.for %i = %c0 to %n step %c1 : i32 {
    %row = arith.muli %i, %c96 : i32
    %at = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %columns : !pointers, !numbers
    tile.store %p, %y, %mask : !pointers
  }
  return
}

// Columns that begin who knows where may be all 128 below the bound; a store without the mask has all of them, too.
// CHECK-LABEL: func.func @may_begin_below
// CHECK: scf.for
// CHECK: warp.barrier{{$}}
// CHECK-NEXT: tile.store
func.func @may_begin_below(%x: !f32, %begin: i32, %y: tensor<128xf32, #own>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c96 = arith.constant 96 : i32
  %end = arith.constant dense<96> : !numbers
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %begins = tile.splat %begin : i32 -> !numbers
  %columns = arith.addi %begins, %r : !numbers
  %mask = arith.cmpi slt, %columns, %end : !numbers
  scf.for %i = %c0 to %n step %c1 : i32 {
    %row = arith.muli %i, %c96 : i32
    %at = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %columns : !pointers, !numbers
    tile.store %p, %y, %mask : !pointers
  }
  return
}

// CHECK-LABEL: func.func @one_is_whole
// CHECK: scf.for
// CHECK: warp.barrier{{$}}
// CHECK-NEXT: tile.load
// CHECK: tile.store
func.func @one_is_whole(%x: !f32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c96 = arith.constant 96 : i32
  %end = arith.constant dense<96> : !numbers
  %columns = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %mask = arith.cmpi slt, %columns, %end : !numbers
  scf.for %i = %c0 to %n step %c1 : i32 {
    %row = arith.muli %i, %c96 : i32
    %at = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %columns : !pointers, !numbers
    %v = tile.load %p : !pointers
    tile.store %p, %v, %mask : !pointers
  }
  return
}

// Rows that lie a stride apart in one iteration, as those of a loop that was unrolled: two of a pair meet where the stride is
// near, those of two pairs as soon as these do, and never where it is far.
// CHECK-LABEL: func.func @in_pairs
// CHECK-SAME: %[[STRIDE:[a-z0-9]+]]: i32
// CHECK: scf.for
// CHECK: arith.cmpi slt, %[[STRIDE]], %c128_i32
// CHECK: warp.barrier where
// CHECK-NEXT: tile.store
// CHECK: arith.cmpi slt, %[[STRIDE]], %c128_i32
// CHECK: warp.barrier where
// CHECK-NEXT: tile.store
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @in_pairs(%x: !f32, %stride: i32, %y: tensor<128xf32, #own>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  scf.for %i = %c0 to %n step %c2 : i32 {
    %row = arith.muli %i, %stride : i32
    %at = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %r : !pointers, !numbers
    tile.store %p, %y : !pointers
    %j = arith.addi %i, %c1 : i32
    %next = arith.muli %j, %stride : i32
    %to = tile.addptr %x, %next : !f32, i32
    %c = tile.splat %to : !f32 -> !pointers
    %q = tile.addptr %c, %r : !pointers, !numbers
    tile.store %q, %y : !pointers
  }
  return
}

// Rows of a program, numbered from its first, which is a sum too: they lie a stride apart.
// CHECK-LABEL: func.func @rows_of_a_program
// CHECK-SAME: %[[STRIDE:[a-z0-9]+]]: i32
// CHECK: tile.store
// CHECK: arith.cmpi slt, %[[STRIDE]], %c128_i32
// CHECK: warp.barrier where
// CHECK-NEXT: tile.store
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @rows_of_a_program(%x: !f32, %stride: i32, %y: tensor<128xf32, #own>) {
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %program = tile.program_id x : i32
  %first = arith.muli %program, %c8 : i32
  %row = arith.muli %first, %stride : i32
  %at = tile.addptr %x, %row : !f32, i32
  %b = tile.splat %at : !f32 -> !pointers
  %p = tile.addptr %b, %r : !pointers, !numbers
  tile.store %p, %y : !pointers
  %j = arith.addi %first, %c1 : i32
  %next = arith.muli %j, %stride : i32
  %to = tile.addptr %x, %next : !f32, i32
  %c = tile.splat %to : !f32 -> !pointers
  %q = tile.addptr %c, %r : !pointers, !numbers
  tile.store %q, %y : !pointers
  return
}

// Of one row, tiles that a loop moves on by their size never meet, whatever the stride is.
// CHECK-LABEL: func.func @along_a_row
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @along_a_row(%x: !f32, %stride: i32, %y: tensor<128xf32, #own>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %c128 = arith.constant 128 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %program = tile.program_id x : i32
  %first = arith.muli %program, %c8 : i32
  %row = arith.muli %first, %stride : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %moved = arith.muli %i, %c128 : i32
    %place = arith.addi %row, %moved : i32
    %at = tile.addptr %x, %place : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %r : !pointers, !numbers
    tile.store %p, %y : !pointers
  }
  return
}

// Rows that a loop reads from memory may be any, again and again.
// CHECK-LABEL: func.func @rows_from_memory
// CHECK: scf.for
// CHECK: warp.barrier{{$}}
// CHECK-NEXT: tile.store
// CHECK: return
func.func @rows_from_memory(%x: !f32, %table: !tile.ptr<i32>, %stride: i32, %y: tensor<128xf32, #own>, %n: i32) attributes {warp.arrays_apart} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  scf.for %i = %c0 to %n step %c1 : i32 {
    %entry = tile.addptr %table, %i : !tile.ptr<i32>, i32
    %number = tile.load %entry : !tile.ptr<i32>
    %first = arith.muli %number, %c8 : i32
    %row = arith.muli %first, %stride : i32
    %at = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %r : !pointers, !numbers
    tile.store %p, %y : !pointers
  }
  return
}

// A pointer that steps from row to row in one iteration: no row is counted in the stride, but they lie one or two apart.
// CHECK-LABEL: func.func @steps
// CHECK-SAME: %[[STRIDE:[a-z0-9]+]]: i64
// CHECK: tile.store
// CHECK: arith.cmpi slt, %[[STRIDE]], %c128_i64
// CHECK: warp.barrier where
// CHECK-NEXT: tile.store
// CHECK: warp.barrier where
// CHECK-NEXT: tile.store
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @steps(%x: !f32, %stride: i64, %y: tensor<128xf32, #own>) {
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %b = tile.splat %x : !f32 -> !pointers
  %p = tile.addptr %b, %r : !pointers, !numbers
  %steps = tile.splat %stride : i64 -> tensor<128xi64, #own>
  tile.store %p, %y : !pointers
  %q = tile.addptr %p, %steps : !pointers, tensor<128xi64, #own>
  tile.store %q, %y : !pointers
  %s = tile.addptr %q, %steps : !pointers, tensor<128xi64, #own>
  tile.store %s, %y : !pointers
  return
}

// What is read of the next row is what the next iteration writes, by the same thread where the stride is far.
// CHECK-LABEL: func.func @read_ahead
// CHECK: scf.for
// CHECK: warp.barrier where
// CHECK-NEXT: tile.load
// CHECK: warp.barrier where
// CHECK-NEXT: tile.store
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @read_ahead(%x: !f32, %stride: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  scf.for %i = %c0 to %n step %c1 : i32 {
    %j = arith.addi %i, %c1 : i32
    %next = arith.muli %j, %stride : i32
    %to = tile.addptr %x, %next : !f32, i32
    %c = tile.splat %to : !f32 -> !pointers
    %q = tile.addptr %c, %r : !pointers, !numbers
    %v = tile.load %q : !pointers
    %row = arith.muli %i, %stride : i32
    %at = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %r : !pointers, !numbers
    tile.store %p, %v : !pointers
  }
  return
}

// Of rows whose numbers nothing relates, no stride says whether they are one.
// CHECK-LABEL: func.func @any_rows
// CHECK: scf.for
// CHECK: warp.barrier{{$}}
// CHECK-NEXT: tile.store
// CHECK: return
func.func @any_rows(%x: !f32, %stride: i32, %other: i32, %y: tensor<128xf32, #own>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  scf.for %i = %c0 to %n step %c1 : i32 {
    %row = arith.muli %i, %stride : i32
    %at = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %r : !pointers, !numbers
    tile.store %p, %y : !pointers
    %j = arith.addi %i, %other : i32
    %next = arith.muli %j, %stride : i32
    %to = tile.addptr %x, %next : !f32, i32
    %c = tile.splat %to : !f32 -> !pointers
    %q = tile.addptr %c, %r : !pointers, !numbers
    tile.store %q, %y : !pointers
  }
  return
}

// Rows that a loop takes in steps of as many programs as there are, and a pointer that it moves by as many rows: one row or
// more lie between those of two iterations.
// CHECK-LABEL: func.func @of_programs
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @of_programs(%x: !f32, %z: !f32, %y: tensor<128xf32, #own>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %programs = tile.num_programs x : i32
  %step = arith.muli %programs, %c128 : i32
  %first = tile.addptr %z, %c0 : !f32, i32
  %end = scf.for %i = %c0 to %n step %programs iter_args(%at = %first) -> !f32 : i32 {
    %row = arith.muli %i, %c128 : i32
    %to = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %to : !f32 -> !pointers
    %p = tile.addptr %b, %r : !pointers, !numbers
    tile.store %p, %y : !pointers
    %c = tile.splat %at : !f32 -> !pointers
    %q = tile.addptr %c, %r : !pointers, !numbers
    tile.store %q, %y : !pointers
    %next = tile.addptr %at, %step : !f32, i32
    scf.yield %next : !f32
  }
  return
}

// Rows that are shorter than a tile, and a pointer that a loop of so many iterations moves by who knows how many rows.
// CHECK-LABEL: func.func @of_programs_near
// CHECK: scf.for
// CHECK: warp.barrier{{$}}
// CHECK-NEXT: tile.store
// CHECK: scf.for
// CHECK: warp.barrier{{$}}
// CHECK-NEXT: tile.store
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @of_programs_near(%x: !f32, %y: tensor<128xf32, #own>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %c96 = arith.constant 96 : i32
  %c128 = arith.constant 128 : i32
  %c1280 = arith.constant 1280 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : !numbers
  %programs = tile.num_programs x : i32
  %step = arith.muli %programs, %c128 : i32
  scf.for %i = %c0 to %n step %programs : i32 {
    %row = arith.muli %i, %c96 : i32
    %to = tile.addptr %x, %row : !f32, i32
    %b = tile.splat %to : !f32 -> !pointers
    %p = tile.addptr %b, %r : !pointers, !numbers
    tile.store %p, %y : !pointers
  }
  %first = tile.addptr %x, %c0 : !f32, i32
  %end = scf.for %i = %c0 to %c3 step %c1 iter_args(%at = %first) -> !f32 : i32 {
    %b = tile.splat %at : !f32 -> !pointers
    %p = tile.addptr %b, %r : !pointers, !numbers
    tile.store %p, %y : !pointers
    %behind = tile.addptr %at, %c1280 : !f32, i32
    %c = tile.splat %behind : !f32 -> !pointers
    %q = tile.addptr %c, %r : !pointers, !numbers
    tile.store %q, %y : !pointers
    %next = tile.addptr %at, %step : !f32, i32
    scf.yield %next : !f32
  }
  return
}

// Halves of rows of a tile: those of one row never meet, those of two where the stride is less than a whole row. What lies
// one row behind meets the row before in another thread, whatever the stride.
// CHECK-LABEL: func.func @halves
// CHECK-SAME: %[[STRIDE:[a-z0-9]+]]: i32
// CHECK: tile.store
// CHECK: arith.cmpi slt, %[[STRIDE]], %c64_i32
// CHECK: warp.barrier where
// CHECK-NEXT: tile.store
// CHECK: warp.barrier{{$}}
// CHECK-NEXT: tile.store
func.func @halves(%x: !f32, %stride: i32, %y: tensor<4x32xf32, #grid>) {
  %c32 = arith.constant dense<32> : tensor<4x32xi32, #grid>
  %r = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #rows>
  %strides = tile.splat %stride : i32 -> tensor<4xi32, #rows>
  %rows = arith.muli %r, %strides : tensor<4xi32, #rows>
  %e = tile.expand_dims %rows {axis = 1 : i32} : tensor<4xi32, #rows> -> tensor<4x1xi32, #warp.layout<[4, 1], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[1, 0], [2, 0]]>>
  %down = tile.broadcast %e : tensor<4x1xi32, #warp.layout<[4, 1], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[1, 0], [2, 0]]>> -> tensor<4x32xi32, #grid>
  %c = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #columns>
  %f = tile.expand_dims %c {axis = 0 : i32} : tensor<32xi32, #columns> -> tensor<1x32xi32, #warp.layout<[1, 32], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 0], [0, 0]]>>
  %across = tile.broadcast %f : tensor<1x32xi32, #warp.layout<[1, 32], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 0], [0, 0]]>> -> tensor<4x32xi32, #grid>
  %at = arith.addi %down, %across : tensor<4x32xi32, #grid>
  %b = tile.splat %x : !f32 -> !grid
  %p = tile.addptr %b, %at : !grid, tensor<4x32xi32, #grid>
  tile.store %p, %y : !grid
  %q = tile.addptr %p, %c32 : !grid, tensor<4x32xi32, #grid>
  tile.store %q, %y : !grid
  %all = tile.splat %stride : i32 -> tensor<4x32xi32, #grid>
  %next = tile.addptr %p, %all : !grid, tensor<4x32xi32, #grid>
  tile.store %next, %y : !grid
  return
}

// Columns of all iterations are less than a scalar, by the mask: rows of a stride that is no less than that do not meet.
// CHECK-LABEL: func.func @columns_of_a_loop
// CHECK-SAME: %[[STRIDE:[a-z0-9]+]]: i32, %[[N:[a-z0-9]+]]: i32
// CHECK: %[[BELOW:.*]] = arith.subi %c0_i32{{.*}}, %[[N]]
// CHECK: %[[LESS:.*]] = arith.cmpi slt, %[[STRIDE]], %[[N]]
// CHECK: %[[MORE:.*]] = arith.cmpi sgt, %[[STRIDE]], %[[BELOW]]
// CHECK: %[[NEAR:.*]] = arith.andi %[[LESS]], %[[MORE]]
// CHECK: warp.barrier where %[[NEAR]]
// CHECK-NEXT: tile.store
func.func @columns_of_a_loop(%x: !f32, %stride: i32, %n: i32, %y: tensor<4x32xf32, #grid>) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %r = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #rows>
  %strides = tile.splat %stride : i32 -> tensor<4xi32, #rows>
  %rows = arith.muli %r, %strides : tensor<4xi32, #rows>
  %e = tile.expand_dims %rows {axis = 1 : i32} : tensor<4xi32, #rows> -> tensor<4x1xi32, #warp.layout<[4, 1], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[1, 0], [2, 0]]>>
  %down = tile.broadcast %e : tensor<4x1xi32, #warp.layout<[4, 1], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[1, 0], [2, 0]]>> -> tensor<4x32xi32, #grid>
  %c = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #columns>
  %f = tile.expand_dims %c {axis = 0 : i32} : tensor<32xi32, #columns> -> tensor<1x32xi32, #warp.layout<[1, 32], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 0], [0, 0]]>>
  %across = tile.broadcast %f : tensor<1x32xi32, #warp.layout<[1, 32], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 0], [0, 0]]>> -> tensor<4x32xi32, #grid>
  %b = tile.splat %x : !f32 -> !grid
  %ends = tile.splat %n : i32 -> tensor<4x32xi32, #grid>
  scf.for %k = %c0 to %n step %c32 : i32 {
    %begins = tile.splat %k : i32 -> tensor<4x32xi32, #grid>
    %column = arith.addi %begins, %across : tensor<4x32xi32, #grid>
    %mask = arith.cmpi slt, %column, %ends : tensor<4x32xi32, #grid>
    %at = arith.addi %down, %column : tensor<4x32xi32, #grid>
    %p = tile.addptr %b, %at : !grid, tensor<4x32xi32, #grid>
    tile.store %p, %y, %mask : !grid
  }
  return
}

// Columns that begin who knows where may be far below 0.
// CHECK-LABEL: func.func @columns_from_anywhere
// CHECK: scf.for
// CHECK: warp.barrier{{$}}
// CHECK-NEXT: tile.store
func.func @columns_from_anywhere(%x: !f32, %stride: i32, %n: i32, %first: i32, %y: tensor<4x32xf32, #grid>) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %r = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #rows>
  %strides = tile.splat %stride : i32 -> tensor<4xi32, #rows>
  %rows = arith.muli %r, %strides : tensor<4xi32, #rows>
  %e = tile.expand_dims %rows {axis = 1 : i32} : tensor<4xi32, #rows> -> tensor<4x1xi32, #warp.layout<[4, 1], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[1, 0], [2, 0]]>>
  %down = tile.broadcast %e : tensor<4x1xi32, #warp.layout<[4, 1], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[1, 0], [2, 0]]>> -> tensor<4x32xi32, #grid>
  %c = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #columns>
  %f = tile.expand_dims %c {axis = 0 : i32} : tensor<32xi32, #columns> -> tensor<1x32xi32, #warp.layout<[1, 32], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 0], [0, 0]]>>
  %across = tile.broadcast %f : tensor<1x32xi32, #warp.layout<[1, 32], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 0], [0, 0]]>> -> tensor<4x32xi32, #grid>
  %b = tile.splat %x : !f32 -> !grid
  %ends = tile.splat %n : i32 -> tensor<4x32xi32, #grid>
  scf.for %k = %c0 to %n step %c32 : i32 {
    %begin = arith.addi %k, %first : i32
    %begins = tile.splat %begin : i32 -> tensor<4x32xi32, #grid>
    %column = arith.addi %begins, %across : tensor<4x32xi32, #grid>
    %mask = arith.cmpi slt, %column, %ends : tensor<4x32xi32, #grid>
    %at = arith.addi %down, %column : tensor<4x32xi32, #grid>
    %p = tile.addptr %b, %at : !grid, tensor<4x32xi32, #grid>
    tile.store %p, %y, %mask : !grid
  }
  return
}

}
