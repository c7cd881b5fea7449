// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --pass-pipeline='builtin.module(func.func(warp-order-accesses))' %s | FileCheck %s

#own = #warp.layout<[128], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>
#rows = #warp.layout<[4, 32], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[1, 0], [2, 0]]>
#tall = #warp.layout<[4, 1], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[1, 0], [2, 0]]>
#flat = #warp.layout<[1, 32], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[0, 0], [0, 0]]>
#row = #warp.layout<[4], lane = [[0], [0], [0], [0], [0]], warp = [[1], [2]]>
#column = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]], warp = [[0], [0]]>
#few = #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], warp = [[32], [0]]>
!f32 = !tile.ptr<f32>
!i32 = !tile.ptr<i32>

module attributes {warp.target = "sm_80"} {

// Each thread reads and writes its own elements.
// CHECK-LABEL: func.func @own
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @own(%x: !f32) {
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #own>
  %b = tile.splat %x : !f32 -> tensor<128x!f32, #own>
  %p = tile.addptr %b, %r : tensor<128x!f32, #own>, tensor<128xi32, #own>
  %v = tile.load %p : tensor<128x!f32, #own>
  tile.store %p, %v : tensor<128x!f32, #own>
  return
}

// Two warps have each element, and one of them writes what becomes of it: it reads it alone.
// CHECK-LABEL: func.func @owners
// CHECK: tile.load %{{.*}} {warp.of_owners}
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @owners(%x: !f32) {
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #few>
  %b = tile.splat %x : !f32 -> tensor<64x!f32, #few>
  %p = tile.addptr %b, %r : tensor<64x!f32, #few>, tensor<64xi32, #few>
  %v = tile.load %p : tensor<64x!f32, #few>
  %w = arith.addf %v, %v : tensor<64xf32, #few>
  tile.store %p, %w : tensor<64x!f32, #few>
  return
}

// Scalars are written by one thread, in any order of addresses in the program's own; what is counted up in memory, it reads
// alone.
// CHECK-LABEL: func.func @counters
// CHECK: tile.load %{{.*}} {warp.of_owners} : !tile.ptr<i32>
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @counters(%x: !tile.ptr<i16>, %counts: !i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %from = tile.addptr %x, %i : !tile.ptr<i16>, i32
    %at = tile.load %from : !tile.ptr<i16>
    %p = tile.addptr %counts, %at : !i32, i16
    %count = tile.load %p : !i32
    %next = arith.addi %count, %c1 : i32
    tile.store %p, %next : !i32
  }
  tile.store %counts, %n : !i32
  return
}

// Where a scalar says where a thread goes or what it accesses, all threads read it, and wait. What nobody writes all read,
// too.
// CHECK-LABEL: func.func @steps
// CHECK-NOT: warp.of_owners
// CHECK: tile.load
// CHECK: warp.barrier
// CHECK: tile.store
// CHECK: return
func.func @steps(%x: !i32, %y: !i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %at = tile.load %x : !i32
    %p = tile.addptr %x, %at : !i32, i32
    tile.store %p, %c1 : !i32
  }
  %v = tile.load %y : !i32
  tile.store %x, %v : !i32
  return
}

// Division of integers may branch, and would by what nobody read.
// CHECK-LABEL: func.func @divided
// CHECK-NOT: warp.of_owners
// CHECK: warp.barrier
// CHECK: return
func.func @divided(%x: !i32) {
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #few>
  %b = tile.splat %x : !i32 -> tensor<64x!i32, #few>
  %p = tile.addptr %b, %r : tensor<64x!i32, #few>, tensor<64xi32, #few>
  %v = tile.load %p : tensor<64x!i32, #few>
  %w = arith.divsi %r, %v : tensor<64xi32, #few>
  tile.store %p, %w : tensor<64x!i32, #few>
  return
}

// Two warps read each element, since both ask what it is, and one of them writes it. So it is under another name for the
// memory.
// CHECK-LABEL: func.func @repeated
// CHECK: tile.load
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: tile.store
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @repeated(%x: !f32) {
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #few>
  %b = tile.splat %x : !f32 -> tensor<64x!f32, #few>
  %p = tile.addptr %b, %r : tensor<64x!f32, #few>, tensor<64xi32, #few>
  %v = tile.load %p : tensor<64x!f32, #few>
  tile.store %p, %v : tensor<64x!f32, #few>
  %e = tile.reduce %v {axis = 0 : i32} : (tensor<64xf32, #few>) -> f32 {
  ^bb0(%one: f32, %other: f32):
    %sum = arith.addf %one, %other : f32
    tile.yield %sum : f32
  }
  return
}

// CHECK-LABEL: func.func @two_names
// CHECK: tile.load
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: tile.store
func.func @two_names(%x: !f32, %y: !f32) {
  %v = tile.load %x : !f32
  tile.store %y, %v : !f32
  return
}

// What is read is of another type than what is written.
// CHECK-LABEL: func.func @two_types
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @two_types(%x: !i32, %y: !f32, %v: f32) {
  %n = tile.load %x : !i32
  tile.store %y, %v : !f32
  return
}

// The compiler's own kernels know better.
// CHECK-LABEL: func.func @trusted
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @trusted(%x: !f32) attributes {tile.orders_accesses} {
  %v = tile.load %x : !f32
  tile.store %x, %v : !f32
  return
}

// Elements that other threads wrote before are read.
// CHECK-LABEL: func.func @scattered
// CHECK: tile.store
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: tile.load
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: tile.store
func.func @scattered(%x: !f32, %v: tensor<128xf32, #own>, %at: tensor<128xi32, #own>) {
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #own>
  %b = tile.splat %x : !f32 -> tensor<128x!f32, #own>
  %p = tile.addptr %b, %r : tensor<128x!f32, #own>, tensor<128xi32, #own>
  %q = tile.addptr %b, %at : tensor<128x!f32, #own>, tensor<128xi32, #own>
  tile.store %p, %v : tensor<128x!f32, #own>
  %w = tile.load %q : tensor<128x!f32, #own>
  tile.store %q, %w : tensor<128x!f32, #own>
  return
}

// In a loop, an iteration reads what the one before wrote elsewhere.
// CHECK-LABEL: func.func @iterations
// CHECK: scf.for
// CHECK: warp.barrier
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.store
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @iterations(%x: !f32, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #own>
  %b = tile.splat %x : !f32 -> tensor<128x!f32, #own>
  scf.for %i = %zero to %n step %one : i32 {
    %s = tile.splat %i : i32 -> tensor<128xi32, #own>
    %o = arith.addi %r, %s : tensor<128xi32, #own>
    %p = tile.addptr %b, %o : tensor<128x!f32, #own>, tensor<128xi32, #own>
    %v = tile.load %p : tensor<128x!f32, #own>
    tile.store %p, %v : tensor<128x!f32, #own>
  }
  return
}

// What a loop moves by no less than its tile is another place in each iteration, by a pointer or by an index.
// CHECK-LABEL: func.func @tiles
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @tiles(%x: !f32, %y: !f32, %n: i32, %v: tensor<128xf32, #own>) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 128 : i32
  %wide = arith.constant dense<256> : tensor<128xi32, #own>
  %half = arith.constant dense<128> : tensor<128xi32, #own>
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #own>
  %b = tile.splat %x : !f32 -> tensor<128x!f32, #own>
  %c = tile.splat %y : !f32 -> tensor<128x!f32, #own>
  %first = tile.addptr %c, %r : tensor<128x!f32, #own>, tensor<128xi32, #own>
  %last = scf.for %i = %zero to %n step %step iter_args(%q = %first) -> (tensor<128x!f32, #own>) : i32 {
    %s = tile.splat %i : i32 -> tensor<128xi32, #own>
    %o = arith.addi %r, %s : tensor<128xi32, #own>
    %p = tile.addptr %b, %o : tensor<128x!f32, #own>, tensor<128xi32, #own>
    tile.store %p, %v : tensor<128x!f32, #own>
    tile.store %q, %v : tensor<128x!f32, #own>
    %other = tile.addptr %q, %half : tensor<128x!f32, #own>, tensor<128xi32, #own>
    tile.store %other, %v : tensor<128x!f32, #own>
    %next = tile.addptr %q, %wide : tensor<128x!f32, #own>, tensor<128xi32, #own>
    scf.yield %next : tensor<128x!f32, #own>
  }
  return
}

// Tiles that overlap, or whose distance is an argument, wait.
// CHECK-LABEL: func.func @overlapping
// CHECK-COUNT-3: warp.barrier
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @overlapping(%x: !f32, %y: !f32, %z: !f32, %n: i32, %s: i32, %v: tensor<128xf32, #own>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %short = arith.constant 127 : i32
  %half = arith.constant dense<64> : tensor<128xi32, #own>
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #own>
  %b = tile.splat %x : !f32 -> tensor<128x!f32, #own>
  %c = tile.splat %y : !f32 -> tensor<128x!f32, #own>
  %p = tile.addptr %b, %r : tensor<128x!f32, #own>, tensor<128xi32, #own>
  %q = tile.addptr %p, %half : tensor<128x!f32, #own>, tensor<128xi32, #own>
  tile.store %p, %v : tensor<128x!f32, #own>
  tile.store %q, %v : tensor<128x!f32, #own>
  scf.for %i = %zero to %n step %short : i32 {
    %at = tile.splat %i : i32 -> tensor<128xi32, #own>
    %o = arith.addi %r, %at : tensor<128xi32, #own>
    %m = tile.addptr %c, %o : tensor<128x!f32, #own>, tensor<128xi32, #own>
    tile.store %m, %v : tensor<128x!f32, #own>
  }
  scf.for %i = %zero to %n step %one : i32 {
    %far = arith.muli %i, %s : i32
    %row = tile.addptr %z, %far : !f32, i32
    %rows = tile.splat %row : !f32 -> tensor<128x!f32, #own>
    %m = tile.addptr %rows, %r : tensor<128x!f32, #own>, tensor<128xi32, #own>
    tile.store %m, %v : tensor<128x!f32, #own>
  }
  return
}

// Columns beside each other in rows that are longer; and rows that are as long as what is between them.
// CHECK-LABEL: func.func @columns
// CHECK: tile.store
// CHECK-NEXT: tile.store
// CHECK: warp.barrier
// CHECK-NEXT: tile.store
func.func @columns(%x: !f32, %v: tensor<4x32xf32, #rows>) {
  %long = arith.constant dense<64> : tensor<4x1xi32, #tall>
  %beside = arith.constant dense<32> : tensor<4x32xi32, #rows>
  %below = arith.constant dense<64> : tensor<4x32xi32, #rows>
  %r = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #row>
  %k = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #column>
  %r1 = tile.expand_dims %r {axis = 1 : i32} : tensor<4xi32, #row> -> tensor<4x1xi32, #tall>
  %r2 = arith.muli %r1, %long : tensor<4x1xi32, #tall>
  %k1 = tile.expand_dims %k {axis = 0 : i32} : tensor<32xi32, #column> -> tensor<1x32xi32, #flat>
  %r3 = tile.broadcast %r2 : tensor<4x1xi32, #tall> -> tensor<4x32xi32, #rows>
  %k2 = tile.broadcast %k1 : tensor<1x32xi32, #flat> -> tensor<4x32xi32, #rows>
  %o = arith.addi %r3, %k2 : tensor<4x32xi32, #rows>
  %b = tile.splat %x : !f32 -> tensor<4x32x!f32, #rows>
  %p = tile.addptr %b, %o : tensor<4x32x!f32, #rows>, tensor<4x32xi32, #rows>
  %q = tile.addptr %p, %beside : tensor<4x32x!f32, #rows>, tensor<4x32xi32, #rows>
  %m = tile.addptr %p, %below : tensor<4x32x!f32, #rows>, tensor<4x32xi32, #rows>
  tile.store %p, %v : tensor<4x32x!f32, #rows>
  tile.store %q, %v : tensor<4x32x!f32, #rows>
  tile.store %m, %v : tensor<4x32x!f32, #rows>
  return
}

// One thread releases for all: after what they have done. A barrier that is there serves; without accesses none is
// needed.
// CHECK-LABEL: func.func @release
// CHECK: tile.atomic_rmw exchange
// CHECK: tile.store
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: tile.atomic_rmw exchange
// CHECK: tile.store
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: tile.atomic_rmw exchange
func.func @release(%x: !f32, %l: !i32, %v: f32, %i: i32) attributes {tile.orders_accesses} {
  %0 = tile.atomic_rmw exchange %l, %i {order = #tile<order release>} : (!i32, i32) -> i32
  tile.store %x, %v : !f32
  %1 = tile.atomic_rmw exchange %l, %i {order = #tile<order release>} : (!i32, i32) -> i32
  tile.store %x, %v : !f32
  warp.barrier
  %2 = tile.atomic_rmw exchange %l, %i {order = #tile<order release>} : (!i32, i32) -> i32
  return
}

// What one thread acquires is for all. An old value that goes round brings the barriers along.
// CHECK-LABEL: func.func @acquire
// CHECK: tile.atomic_rmw exchange
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.atomic_cas
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.store
func.func @acquire(%x: !f32, %l: !i32, %v: f32, %i: i32) attributes {tile.orders_accesses} {
  %0 = tile.atomic_rmw exchange %l, %i {order = #tile<order acquire>} : (!i32, i32) -> i32
  %a = tile.load %x : !f32
  %1 = tile.atomic_cas %l, %i, %i {order = #tile<order acq_rel>} : (!i32, i32, i32) -> i32
  %b = tile.load %x : !f32
  tile.store %l, %1 : !i32
  return
}

// A loop that looks at a flag, and the fence and barrier once behind it.
// CHECK-LABEL: func.func @flag
// CHECK: scf.while
// CHECK-NEXT: tile.load {{.*}}isVolatile
// CHECK-NEXT: arith.cmpi
// CHECK-NEXT: scf.condition
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: warp.fence
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: tile.load
func.func @flag(%x: !f32, %l: !i32, %i: i32) {
  scf.while : () -> () {
    %seen = tile.load %l {isVolatile} : !i32
    %waits = arith.cmpi ne, %seen, %i : i32
    scf.condition(%waits)
  } do {
    scf.yield
  }
  %a = tile.load %x : !f32
  return
}

// Additions that nobody reads may change places; an exchange of what was added may not.
// CHECK-LABEL: func.func @atomics
// CHECK: tile.atomic_rmw add
// CHECK-NEXT: tile.atomic_rmw add
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: tile.atomic_rmw exchange
func.func @atomics(%l: !i32, %v: tensor<128xi32, #own>, %at: tensor<128xi32, #own>, %to: tensor<128xi32, #own>) {
  %b = tile.splat %l : !i32 -> tensor<128x!i32, #own>
  %p = tile.addptr %b, %at : tensor<128x!i32, #own>, tensor<128xi32, #own>
  %q = tile.addptr %b, %to : tensor<128x!i32, #own>, tensor<128xi32, #own>
  %0 = tile.atomic_rmw add %p, %v {order = #tile<order relaxed>} : (tensor<128x!i32, #own>, tensor<128xi32, #own>) -> tensor<128xi32, #own>
  %1 = tile.atomic_rmw add %q, %v {order = #tile<order relaxed>} : (tensor<128x!i32, #own>, tensor<128xi32, #own>) -> tensor<128xi32, #own>
  %2 = tile.atomic_rmw exchange %q, %v {order = #tile<order relaxed>} : (tensor<128x!i32, #own>, tensor<128xi32, #own>) -> tensor<128xi32, #own>
  return
}

// Columns that a mask keeps below the width: no row of one iteration has an address of another's.
// CHECK-LABEL: func.func @masked_columns
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @masked_columns(%x: !f32, %w: i32, %n: i32, %v: tensor<4x32xf32, #rows>) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %four = arith.constant 4 : i32
  %id = tile.program_id x : i32
  %first = arith.muli %id, %four : i32
  %offset = arith.muli %id, %n : i32
  %y = tile.addptr %x, %offset : !f32, i32
  %firsts = tile.splat %first : i32 -> tensor<4xi32, #row>
  %r = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #row>
  %c = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #column>
  %row = arith.addi %firsts, %r : tensor<4xi32, #row>
  %tall = tile.expand_dims %row {axis = 1 : i32} : tensor<4xi32, #row> -> tensor<4x1xi32, #tall>
  %ws = tile.splat %w : i32 -> tensor<4x1xi32, #tall>
  %ends = tile.splat %w : i32 -> tensor<32xi32, #column>
  %lines = arith.muli %tall, %ws : tensor<4x1xi32, #tall>
  %starts = tile.broadcast %lines : tensor<4x1xi32, #tall> -> tensor<4x32xi32, #rows>
  %b = tile.splat %y : !f32 -> tensor<4x32x!f32, #rows>
  %line = tile.addptr %b, %starts : tensor<4x32x!f32, #rows>, tensor<4x32xi32, #rows>
  scf.for %i = %zero to %w step %step : i32 {
    %s = tile.splat %i : i32 -> tensor<32xi32, #column>
    %at = arith.addi %s, %c : tensor<32xi32, #column>
    %inside = arith.cmpi slt, %at, %ends : tensor<32xi32, #column>
    %flat = tile.expand_dims %at {axis = 0 : i32} : tensor<32xi32, #column> -> tensor<1x32xi32, #flat>
    %cols = tile.broadcast %flat : tensor<1x32xi32, #flat> -> tensor<4x32xi32, #rows>
    %masks = tile.expand_dims %inside {axis = 0 : i32} : tensor<32xi1, #column> -> tensor<1x32xi1, #flat>
    %mask = tile.broadcast %masks : tensor<1x32xi1, #flat> -> tensor<4x32xi1, #rows>
    %p = tile.addptr %line, %cols : tensor<4x32x!f32, #rows>, tensor<4x32xi32, #rows>
    tile.store %p, %v, %mask : tensor<4x32x!f32, #rows>
  }
  return
}

// A row that a loop moves by its width, of columns below that.
// CHECK-LABEL: func.func @moved_rows
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @moved_rows(%x: !f32, %w: i32, %n: i32, %v: tensor<128xf32, #own>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %size = arith.constant 128 : i32
  %id = tile.program_id x : i32
  %first = arith.muli %id, %size : i32
  %firsts = tile.splat %first : i32 -> tensor<128xi32, #own>
  %c = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #own>
  %at = arith.addi %firsts, %c : tensor<128xi32, #own>
  %ends = tile.splat %w : i32 -> tensor<128xi32, #own>
  %inside = arith.cmpi slt, %at, %ends : tensor<128xi32, #own>
  %ws = tile.splat %w : i32 -> tensor<128xi32, #own>
  %b = tile.splat %x : !f32 -> tensor<128x!f32, #own>
  %start = tile.addptr %b, %at : tensor<128x!f32, #own>, tensor<128xi32, #own>
  %last = scf.for %i = %zero to %n step %one iter_args(%p = %start) -> tensor<128x!f32, #own> : i32 {
    tile.store %p, %v, %inside : tensor<128x!f32, #own>
    %next = tile.addptr %p, %ws : tensor<128x!f32, #own>, tensor<128xi32, #own>
    scf.yield %next : tensor<128x!f32, #own>
  }
  return
}

// Moved by something else than what columns are below, it may meet the next if that is near.
// CHECK-LABEL: func.func @moved_otherwise
// CHECK: warp.barrier where
// CHECK-NEXT: tile.store
// CHECK: return
func.func @moved_otherwise(%x: !f32, %w: i32, %n: i32, %v: tensor<128xf32, #own>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %size = arith.constant 128 : i32
  %id = tile.program_id x : i32
  %first = arith.muli %id, %size : i32
  %firsts = tile.splat %first : i32 -> tensor<128xi32, #own>
  %c = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #own>
  %at = arith.addi %firsts, %c : tensor<128xi32, #own>
  %ends = tile.splat %n : i32 -> tensor<128xi32, #own>
  %inside = arith.cmpi slt, %at, %ends : tensor<128xi32, #own>
  %ws = tile.splat %w : i32 -> tensor<128xi32, #own>
  %b = tile.splat %x : !f32 -> tensor<128x!f32, #own>
  %start = tile.addptr %b, %at : tensor<128x!f32, #own>, tensor<128xi32, #own>
  %last = scf.for %i = %zero to %n step %one iter_args(%p = %start) -> tensor<128x!f32, #own> : i32 {
    tile.store %p, %v, %inside : tensor<128x!f32, #own>
    %next = tile.addptr %p, %ws : tensor<128x!f32, #own>, tensor<128xi32, #own>
    scf.yield %next : tensor<128x!f32, #own>
  }
  return
}

// Kept below something else they may be.
// CHECK-LABEL: func.func @other_bound
// CHECK: scf.for
// CHECK: warp.barrier
// CHECK-NEXT: tile.store
// CHECK: return
func.func @other_bound(%x: !f32, %w: i32, %n: i32, %v: tensor<4x32xf32, #rows>) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %four = arith.constant 4 : i32
  %id = tile.program_id x : i32
  %first = arith.muli %id, %four : i32
  %offset = arith.muli %id, %n : i32
  %y = tile.addptr %x, %offset : !f32, i32
  %firsts = tile.splat %first : i32 -> tensor<4xi32, #row>
  %r = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #row>
  %c = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #column>
  %row = arith.addi %firsts, %r : tensor<4xi32, #row>
  %tall = tile.expand_dims %row {axis = 1 : i32} : tensor<4xi32, #row> -> tensor<4x1xi32, #tall>
  %ws = tile.splat %w : i32 -> tensor<4x1xi32, #tall>
  %ends = tile.splat %n : i32 -> tensor<32xi32, #column>
  %lines = arith.muli %tall, %ws : tensor<4x1xi32, #tall>
  %starts = tile.broadcast %lines : tensor<4x1xi32, #tall> -> tensor<4x32xi32, #rows>
  %b = tile.splat %y : !f32 -> tensor<4x32x!f32, #rows>
  %line = tile.addptr %b, %starts : tensor<4x32x!f32, #rows>, tensor<4x32xi32, #rows>
  scf.for %i = %zero to %w step %step : i32 {
    %s = tile.splat %i : i32 -> tensor<32xi32, #column>
    %at = arith.addi %s, %c : tensor<32xi32, #column>
    %inside = arith.cmpi slt, %at, %ends : tensor<32xi32, #column>
    %flat = tile.expand_dims %at {axis = 0 : i32} : tensor<32xi32, #column> -> tensor<1x32xi32, #flat>
    %cols = tile.broadcast %flat : tensor<1x32xi32, #flat> -> tensor<4x32xi32, #rows>
    %masks = tile.expand_dims %inside {axis = 0 : i32} : tensor<32xi1, #column> -> tensor<1x32xi1, #flat>
    %mask = tile.broadcast %masks : tensor<1x32xi1, #flat> -> tensor<4x32xi1, #rows>
    %p = tile.addptr %line, %cols : tensor<4x32x!f32, #rows>, tensor<4x32xi32, #rows>
    tile.store %p, %v, %mask : tensor<4x32x!f32, #rows>
  }
  return
}

// And so may others than those that are kept.
// CHECK-LABEL: func.func @other_columns
// CHECK: scf.for
// CHECK: warp.barrier
// CHECK-NEXT: tile.store
// CHECK: return
func.func @other_columns(%x: !f32, %w: i32, %n: i32, %v: tensor<4x32xf32, #rows>) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %four = arith.constant 4 : i32
  %id = tile.program_id x : i32
  %first = arith.muli %id, %four : i32
  %offset = arith.muli %id, %n : i32
  %y = tile.addptr %x, %offset : !f32, i32
  %firsts = tile.splat %first : i32 -> tensor<4xi32, #row>
  %r = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #row>
  %c = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #column>
  %row = arith.addi %firsts, %r : tensor<4xi32, #row>
  %tall = tile.expand_dims %row {axis = 1 : i32} : tensor<4xi32, #row> -> tensor<4x1xi32, #tall>
  %ws = tile.splat %w : i32 -> tensor<4x1xi32, #tall>
  %ends = tile.splat %w : i32 -> tensor<32xi32, #column>
  %lines = arith.muli %tall, %ws : tensor<4x1xi32, #tall>
  %starts = tile.broadcast %lines : tensor<4x1xi32, #tall> -> tensor<4x32xi32, #rows>
  %b = tile.splat %y : !f32 -> tensor<4x32x!f32, #rows>
  %line = tile.addptr %b, %starts : tensor<4x32x!f32, #rows>, tensor<4x32xi32, #rows>
  scf.for %i = %zero to %w step %step : i32 {
    %s = tile.splat %i : i32 -> tensor<32xi32, #column>
    %at = arith.addi %s, %c : tensor<32xi32, #column>
    %inside = arith.cmpi slt, %at, %ends : tensor<32xi32, #column>
    %flat = tile.expand_dims %at {axis = 0 : i32} : tensor<32xi32, #column> -> tensor<1x32xi32, #flat>
    %cols = tile.broadcast %flat : tensor<1x32xi32, #flat> -> tensor<4x32xi32, #rows>
    %masks = tile.expand_dims %inside {axis = 0 : i32} : tensor<32xi1, #column> -> tensor<1x32xi1, #flat>
    %mask = tile.broadcast %masks : tensor<1x32xi1, #flat> -> tensor<4x32xi1, #rows>
    %ns = tile.splat %n : i32 -> tensor<4x32xi32, #rows>
    %more = arith.muli %cols, %ns : tensor<4x32xi32, #rows>
    %p = tile.addptr %line, %more : tensor<4x32x!f32, #rows>, tensor<4x32xi32, #rows>
    tile.store %p, %v, %mask : tensor<4x32x!f32, #rows>
  }
  return
}

// Columns that may be negative reach into the row before.
// CHECK-LABEL: func.func @negative_columns
// CHECK: scf.for
// CHECK: warp.barrier
// CHECK-NEXT: tile.store
// CHECK: return
func.func @negative_columns(%x: !f32, %w: i32, %n: i32, %v: tensor<4x32xf32, #rows>) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %four = arith.constant 4 : i32
  %id = tile.program_id x : i32
  %first = arith.muli %id, %four : i32
  %offset = arith.muli %id, %n : i32
  %y = tile.addptr %x, %offset : !f32, i32
  %firsts = tile.splat %first : i32 -> tensor<4xi32, #row>
  %r = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #row>
  %c = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #column>
  %row = arith.addi %firsts, %r : tensor<4xi32, #row>
  %tall = tile.expand_dims %row {axis = 1 : i32} : tensor<4xi32, #row> -> tensor<4x1xi32, #tall>
  %ws = tile.splat %w : i32 -> tensor<4x1xi32, #tall>
  %ends = tile.splat %w : i32 -> tensor<32xi32, #column>
  %lines = arith.muli %tall, %ws : tensor<4x1xi32, #tall>
  %starts = tile.broadcast %lines : tensor<4x1xi32, #tall> -> tensor<4x32xi32, #rows>
  %b = tile.splat %y : !f32 -> tensor<4x32x!f32, #rows>
  %line = tile.addptr %b, %starts : tensor<4x32x!f32, #rows>, tensor<4x32xi32, #rows>
  scf.for %i = %n to %w step %step : i32 {
    %s = tile.splat %i : i32 -> tensor<32xi32, #column>
    %at = arith.addi %s, %c : tensor<32xi32, #column>
    %inside = arith.cmpi slt, %at, %ends : tensor<32xi32, #column>
    %flat = tile.expand_dims %at {axis = 0 : i32} : tensor<32xi32, #column> -> tensor<1x32xi32, #flat>
    %cols = tile.broadcast %flat : tensor<1x32xi32, #flat> -> tensor<4x32xi32, #rows>
    %masks = tile.expand_dims %inside {axis = 0 : i32} : tensor<32xi1, #column> -> tensor<1x32xi1, #flat>
    %mask = tile.broadcast %masks : tensor<1x32xi1, #flat> -> tensor<4x32xi1, #rows>
    %p = tile.addptr %line, %cols : tensor<4x32x!f32, #rows>, tensor<4x32xi32, #rows>
    tile.store %p, %v, %mask : tensor<4x32x!f32, #rows>
  }
  return
}

// One row an iteration, of as many columns as a mask leaves.
// CHECK-LABEL: func.func @masked_row
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @masked_row(%x: !f32, %w: i32, %n: i32, %v: tensor<128xf32, #own>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ends = tile.splat %w : i32 -> tensor<128xi32, #own>
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #own>
  %mask = arith.cmpi sgt, %ends, %r : tensor<128xi32, #own>
  scf.for %i = %zero to %n step %one : i32 {
    %start = arith.muli %i, %w : i32
    %y = tile.addptr %x, %start : !f32, i32
    %b = tile.splat %y : !f32 -> tensor<128x!f32, #own>
    %p = tile.addptr %b, %r : tensor<128x!f32, #own>, tensor<128xi32, #own>
    tile.store %p, %v, %mask : tensor<128x!f32, #own>
  }
  return
}

// Rows are 64 elements times something apart, of which one tile has the first 32, and another the others.
// CHECK-LABEL: func.func @halves_of_rows
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @halves_of_rows(%x: !f32, %heads: i32, %v: tensor<4x32xf32, #rows>) {
  %size = arith.constant 64 : i32
  %half = arith.constant dense<32> : tensor<4x32xi32, #rows>
  %w = arith.muli %heads, %size : i32
  %r = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #row>
  %c = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #column>
  %tall = tile.expand_dims %r {axis = 1 : i32} : tensor<4xi32, #row> -> tensor<4x1xi32, #tall>
  %flat = tile.expand_dims %c {axis = 0 : i32} : tensor<32xi32, #column> -> tensor<1x32xi32, #flat>
  %ws = tile.splat %w : i32 -> tensor<4x1xi32, #tall>
  %lines = arith.muli %tall, %ws : tensor<4x1xi32, #tall>
  %starts = tile.broadcast %lines : tensor<4x1xi32, #tall> -> tensor<4x32xi32, #rows>
  %cols = tile.broadcast %flat : tensor<1x32xi32, #flat> -> tensor<4x32xi32, #rows>
  %at = arith.addi %starts, %cols : tensor<4x32xi32, #rows>
  %b = tile.splat %x : !f32 -> tensor<4x32x!f32, #rows>
  %p = tile.addptr %b, %at : tensor<4x32x!f32, #rows>, tensor<4x32xi32, #rows>
  %q = tile.addptr %p, %half : tensor<4x32x!f32, #rows>, tensor<4x32xi32, #rows>
  tile.store %p, %v : tensor<4x32x!f32, #rows>
  tile.store %q, %v : tensor<4x32x!f32, #rows>
  return
}

// A loop that runs four times fills rows of four.
// CHECK-LABEL: func.func @few_iterations
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @few_iterations(%x: !f32, %v: tensor<128xf32, #own>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %fours = arith.constant dense<4> : tensor<128xi32, #own>
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #own>
  %rows = arith.muli %r, %fours : tensor<128xi32, #own>
  %b = tile.splat %x : !f32 -> tensor<128x!f32, #own>
  %line = tile.addptr %b, %rows : tensor<128x!f32, #own>, tensor<128xi32, #own>
  scf.for %i = %zero to %four step %one : i32 {
    %s = tile.splat %i : i32 -> tensor<128xi32, #own>
    %p = tile.addptr %line, %s : tensor<128x!f32, #own>, tensor<128xi32, #own>
    tile.store %p, %v : tensor<128x!f32, #own>
  }
  return
}

// What all read before a loop is read before its first iteration writes: one barrier.
// CHECK-LABEL: func.func @before_a_loop
// CHECK: tile.load
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: scf.for
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @before_a_loop(%x: !f32, %n: i32, %v: tensor<128xf32, #own>) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 128 : i32
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #own>
  %b = tile.splat %x : !f32 -> tensor<128x!f32, #own>
  %first = tile.load %x : !f32
  scf.for %i = %zero to %n step %step : i32 {
    %s = tile.splat %i : i32 -> tensor<128xi32, #own>
    %o = arith.addi %r, %s : tensor<128xi32, #own>
    %p = tile.addptr %b, %o : tensor<128x!f32, #own>, tensor<128xi32, #own>
    %f = tile.splat %first : f32 -> tensor<128xf32, #own>
    tile.store %p, %f : tensor<128x!f32, #own>
  }
  return
}

}
