// RUN: weft-opt %s -split-input-file -tile-mark-wraps | FileCheck %s

// A loop's products of rows and columns that wrap, stored where neither has: both are marked. The first product's sums
// go on through the loop, its pointers are carried.

// CHECK-LABEL: func.func @matmul
// CHECK: arith.remsi %{{.*}} {tile.wraps_unread} : tensor<64xi32>
// CHECK: arith.remsi %{{.*}} {tile.wraps_unread} : tensor<32xi32>
module attributes {warp.target = "sm_90a"} {
  func.func @matmul(%a: !tile.ptr<f16>, %b: !tile.ptr<f16>, %c: !tile.ptr<f32>, %m: i32, %n: i32, %s: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x32xf32>
    %steps = arith.constant dense<16> : tensor<64x16xi32>
    %ranges = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %pid = tile.program_id x : i32
    %first = arith.muli %pid, %c64 : i32
    %firsts = tile.splat %first : i32 -> tensor<64xi32>
    %rows = arith.addi %firsts, %ranges : tensor<64xi32>
    %ms = tile.splat %m : i32 -> tensor<64xi32>
    %wrapped = arith.remsi %rows, %ms : tensor<64xi32>
    %columns = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %ns = tile.splat %n : i32 -> tensor<32xi32>
    %across = arith.remsi %columns, %ns : tensor<32xi32>
    %inner = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %inner_row = tile.expand_dims %inner {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %inner_rows = tile.broadcast %inner_row : tensor<1x16xi32> -> tensor<64x16xi32>
    %inner_column = tile.expand_dims %inner {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %inner_columns = tile.broadcast %inner_column : tensor<16x1xi32> -> tensor<16x32xi32>
    %strides = tile.splat %s : i32 -> tensor<64xi32>
    %places = arith.muli %wrapped, %strides : tensor<64xi32>
    %down = tile.expand_dims %places {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %downs = tile.broadcast %down : tensor<64x1xi32> -> tensor<64x16xi32>
    %at = arith.addi %downs, %inner_rows : tensor<64x16xi32>
    %as = tile.splat %a : !tile.ptr<f16> -> tensor<64x16x!tile.ptr<f16>>
    %a0 = tile.addptr %as, %at : tensor<64x16x!tile.ptr<f16>>, tensor<64x16xi32>
    %along = tile.expand_dims %across {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %alongs = tile.broadcast %along : tensor<1x32xi32> -> tensor<16x32xi32>
    %there = arith.addi %inner_columns, %alongs : tensor<16x32xi32>
    %bs = tile.splat %b : !tile.ptr<f16> -> tensor<16x32x!tile.ptr<f16>>
    %b0 = tile.addptr %bs, %there : tensor<16x32x!tile.ptr<f16>>, tensor<16x32xi32>
    %y = tile.load %b0 : tensor<16x32x!tile.ptr<f16>>
    %r:2 = scf.for %i = %c0 to %s step %c1 iter_args(%p = %a0, %sum = %zero) -> (tensor<64x16x!tile.ptr<f16>>, tensor<64x32xf32>) : i32 {
      %x = tile.load %p : tensor<64x16x!tile.ptr<f16>>
      %d = tile.dot %x, %y, %sum : tensor<64x16xf16> * tensor<16x32xf16> -> tensor<64x32xf32>
      %next = tile.addptr %p, %steps : tensor<64x16x!tile.ptr<f16>>, tensor<64x16xi32>
      scf.yield %next, %d : tensor<64x16x!tile.ptr<f16>>, tensor<64x32xf32>
    }
    %row = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %mm = tile.splat %m : i32 -> tensor<64x1xi32>
    %in_rows = arith.cmpi slt, %row, %mm : tensor<64x1xi32>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %nn = tile.splat %n : i32 -> tensor<1x32xi32>
    %in_columns = arith.cmpi sgt, %nn, %column : tensor<1x32xi32>
    %in_all_rows = tile.broadcast %in_rows : tensor<64x1xi1> -> tensor<64x32xi1>
    %in_all_columns = tile.broadcast %in_columns : tensor<1x32xi1> -> tensor<64x32xi1>
    %mask = arith.andi %in_all_rows, %in_all_columns : tensor<64x32xi1>
    %cs = tile.splat %c : !tile.ptr<f32> -> tensor<64x32x!tile.ptr<f32>>
    %row_places = tile.broadcast %row : tensor<64x1xi32> -> tensor<64x32xi32>
    %out = tile.addptr %cs, %row_places : tensor<64x32x!tile.ptr<f32>>, tensor<64x32xi32>
    tile.store %out, %r#1, %mask : tensor<64x32x!tile.ptr<f32>>
    return
  }
}

// -----

// What wraps is read: where no mask, or one of another size, keeps it from memory, where it reaches other elements, and
// where it decides what is stored.

// CHECK-LABEL: func.func @read
// CHECK-NOT: tile.wraps_unread
module attributes {warp.target = "sm_90a"} {
  func.func @read(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32, %k: i32) attributes {tile.kernel} {
    %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %out = tile.addptr %qs, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %s = tile.splat %n : i32 -> tensor<64xi32>
    %ks = tile.splat %k : i32 -> tensor<64xi32>
    %m = arith.cmpi slt, %r, %s : tensor<64xi32>

    %shift0 = arith.constant dense<1> : tensor<64xi32>
    %r0 = arith.addi %r, %shift0 : tensor<64xi32>
    %w0 = arith.remsi %r0, %s : tensor<64xi32>
    %a0 = tile.addptr %ps, %w0 : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x0 = tile.load %a0 : tensor<64x!tile.ptr<f32>>
    tile.store %out, %x0, %m : tensor<64x!tile.ptr<f32>>

    %w1 = arith.remsi %r, %ks : tensor<64xi32>
    %a1 = tile.addptr %ps, %w1 : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x1 = tile.load %a1 : tensor<64x!tile.ptr<f32>>
    tile.store %out, %x1, %m : tensor<64x!tile.ptr<f32>>

    %shift2 = arith.constant dense<2> : tensor<64xi32>
    %r2 = arith.addi %r, %shift2 : tensor<64xi32>
    %m2 = arith.cmpi slt, %r2, %s : tensor<64xi32>
    %w2 = arith.remsi %r2, %s : tensor<64xi32>
    %a2 = tile.addptr %ps, %w2 : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x2 = tile.load %a2 : tensor<64x!tile.ptr<f32>>
    %sum = tile.reduce %x2 {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
    ^bb0(%u: f32, %v: f32):
      %t = arith.addf %u, %v : f32
      tile.yield %t : f32
    }
    tile.store %out, %x2, %m2 : tensor<64x!tile.ptr<f32>>
    tile.store %q, %sum : !tile.ptr<f32>

    %shift3 = arith.constant dense<3> : tensor<64xi32>
    %r3 = arith.addi %r, %shift3 : tensor<64xi32>
    %w3 = arith.remsi %r3, %s : tensor<64xi32>
    %m3 = arith.cmpi slt, %w3, %s : tensor<64xi32>
    %a3 = tile.addptr %ps, %w3 : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x3 = tile.load %a3 : tensor<64x!tile.ptr<f32>>
    tile.store %out, %x3, %m3 : tensor<64x!tile.ptr<f32>>
    return
  }
}

// -----

// Indices that may be negative are not those that a mask keeps where they are less than the size.

// CHECK-LABEL: func.func @negative
// CHECK-NOT: tile.wraps_unread
module attributes {warp.target = "sm_90a"} {
  func.func @negative(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32, %first: i32) attributes {tile.kernel} {
    %range = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %firsts = tile.splat %first : i32 -> tensor<64xi32>
    %r = arith.addi %range, %firsts : tensor<64xi32>
    %s = tile.splat %n : i32 -> tensor<64xi32>
    %w = arith.remsi %r, %s : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %a = tile.addptr %ps, %w : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %a : tensor<64x!tile.ptr<f32>>
    %m = arith.cmpi slt, %r, %s : tensor<64xi32>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %out = tile.addptr %qs, %range : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    tile.store %out, %x, %m : tensor<64x!tile.ptr<f32>>
    return
  }
}

// -----

// No target without copies of boxes asks.

// CHECK-LABEL: func.func @threads
// CHECK-NOT: tile.wraps_unread
module attributes {warp.target = "sm_80"} {
  func.func @threads(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
    %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %s = tile.splat %n : i32 -> tensor<64xi32>
    %w = arith.remsi %r, %s : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %a = tile.addptr %ps, %w : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %a : tensor<64x!tile.ptr<f32>>
    %m = arith.cmpi slt, %r, %s : tensor<64xi32>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %out = tile.addptr %qs, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    tile.store %out, %x, %m : tensor<64x!tile.ptr<f32>>
    return
  }
}

// -----

// Indices that are the first, or the last one, from the end on. Of those the index may be below 0, where it stays itself.
// Not so where the other choice, or the last place, is of another size.

// CHECK-LABEL: func.func @clamped
// CHECK: arith.select %{{.*}} {tile.wraps_unread} : tensor<64xi1>, tensor<64xi32>
// CHECK: arith.minsi %{{.*}} {tile.wraps_unread} : tensor<64xi32>
// CHECK-NOT: tile.wraps_unread
module attributes {warp.target = "sm_90a"} {
  func.func @clamped(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32, %first: i32) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %zero = arith.constant dense<0> : tensor<64xi32>
    %range = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %firsts = tile.splat %first : i32 -> tensor<64xi32>
    %r = arith.addi %range, %firsts : tensor<64xi32>
    %s = tile.splat %n : i32 -> tensor<64xi32>
    %m = arith.cmpi slt, %r, %s : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %out = tile.addptr %qs, %range : tensor<64x!tile.ptr<f32>>, tensor<64xi32>

    %w0 = arith.select %m, %r, %zero : tensor<64xi1>, tensor<64xi32>
    %a0 = tile.addptr %ps, %w0 : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x0 = tile.load %a0 : tensor<64x!tile.ptr<f32>>
    tile.store %out, %x0, %m : tensor<64x!tile.ptr<f32>>

    %n1 = arith.subi %n, %c1 : i32
    %s1 = tile.splat %n1 : i32 -> tensor<64xi32>
    %w1 = arith.minsi %r, %s1 : tensor<64xi32>
    %a1 = tile.addptr %ps, %w1 : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x1 = tile.load %a1 : tensor<64x!tile.ptr<f32>>
    tile.store %out, %x1, %m : tensor<64x!tile.ptr<f32>>

    %n2 = arith.subi %n, %c2 : i32
    %s2 = tile.splat %n2 : i32 -> tensor<64xi32>
    %w2 = arith.minsi %r, %s2 : tensor<64xi32>
    %a2 = tile.addptr %ps, %w2 : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x2 = tile.load %a2 : tensor<64x!tile.ptr<f32>>
    tile.store %out, %x2, %m : tensor<64x!tile.ptr<f32>>

    %w3 = arith.select %m, %zero, %r : tensor<64xi1>, tensor<64xi32>
    %a3 = tile.addptr %ps, %w3 : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x3 = tile.load %a3 : tensor<64x!tile.ptr<f32>>
    tile.store %out, %x3, %m : tensor<64x!tile.ptr<f32>>
    return
  }
}

// -----

// Sizes that are numbers, as torch.compile's kernels have them.

// CHECK-LABEL: func.func @numbers
// CHECK: arith.remsi %{{.*}} {tile.wraps_unread} : tensor<64xi64>
// CHECK-NOT: tile.wraps_unread
module attributes {warp.target = "sm_90a"} {
  func.func @numbers(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) attributes {tile.kernel} {
    %size = arith.constant dense<40> : tensor<64xi64>
    %other = arith.constant dense<41> : tensor<64xi64>
    %range = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %r = arith.extsi %range : tensor<64xi32> to tensor<64xi64>
    %m = arith.cmpi slt, %r, %size : tensor<64xi64>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %out = tile.addptr %qs, %range : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %w0 = arith.remsi %r, %size : tensor<64xi64>
    %a0 = tile.addptr %ps, %w0 : tensor<64x!tile.ptr<f32>>, tensor<64xi64>
    %x0 = tile.load %a0 : tensor<64x!tile.ptr<f32>>
    tile.store %out, %x0, %m : tensor<64x!tile.ptr<f32>>
    %w1 = arith.remsi %r, %other : tensor<64xi64>
    %a1 = tile.addptr %ps, %w1 : tensor<64x!tile.ptr<f32>>, tensor<64xi64>
    %x1 = tile.load %a1 : tensor<64x!tile.ptr<f32>>
    tile.store %out, %x1, %m : tensor<64x!tile.ptr<f32>>
    return
  }
}

// -----

// What an iteration leaves to the next one is stored under the mask of that one's rows; rows of all iterations are the same.

// CHECK-LABEL: func.func @delayed
// CHECK: arith.minsi %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor
// CHECK: arith.minsi {{.*}} {tile.wraps_unread} : tensor
module attributes {warp.target = "sm_90a"} {
  func.func @delayed(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32, %first: i32) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i32
    %x0 = arith.constant dense<0.0> : tensor<64xf32>
    %range = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %s = tile.splat %n : i32 -> tensor<64xi32>
    %n1 = arith.subi %n, %c1 : i32
    %s1 = tile.splat %n1 : i32 -> tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %out = tile.addptr %qs, %range : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    scf.for %i = %c1 to %n step %c1 iter_args(%x = %x0) -> (tensor<64xf32>) : i32 {
      %begin = tile.splat %i : i32 -> tensor<64xi32>
      %r = arith.addi %range, %begin : tensor<64xi32>
      %m = arith.cmpi slt, %r, %s : tensor<64xi32>
      tile.store %out, %x, %m : tensor<64x!tile.ptr<f32>>
      %w = arith.minsi %r, %s1 : tensor<64xi32>
      %a = tile.addptr %ps, %w : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
      %next = tile.load %a : tensor<64x!tile.ptr<f32>>
      scf.yield %next : tensor<64xf32>
    }
    scf.for %i = %c1 to %n step %c1 iter_args(%x = %x0) -> (tensor<64xf32>) : i32 {
      %begin = tile.splat %first : i32 -> tensor<64xi32>
      %r = arith.addi %range, %begin : tensor<64xi32>
      %m = arith.cmpi slt, %r, %s : tensor<64xi32>
      tile.store %out, %x, %m : tensor<64x!tile.ptr<f32>>
      %w = arith.minsi %r, %s1 : tensor<64xi32>
      %a = tile.addptr %ps, %w : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
      %next = tile.load %a : tensor<64x!tile.ptr<f32>>
      scf.yield %next : tensor<64xf32>
    }
    return
  }
}

// -----

// What is loaded from rows that wrap is no address: another number than the program's would lead anywhere.

// CHECK-LABEL: func.func @looked_up
// CHECK: arith.minsi %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor
module attributes {warp.target = "sm_90a"} {
  func.func @looked_up(%p: !tile.ptr<i32>, %t: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i32
    %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %s = tile.splat %n : i32 -> tensor<64xi32>
    %n1 = arith.subi %n, %c1 : i32
    %s1 = tile.splat %n1 : i32 -> tensor<64xi32>
    %w = arith.minsi %r, %s1 : tensor<64xi32>
    %ps = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
    %a = tile.addptr %ps, %w : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
    %code = tile.load %a : tensor<64x!tile.ptr<i32>>
    %ts = tile.splat %t : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %at = tile.addptr %ts, %code : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %x = tile.load %at : tensor<64x!tile.ptr<f32>>
    %m = arith.cmpi slt, %r, %s : tensor<64xi32>
    %qs = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %out = tile.addptr %qs, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    tile.store %out, %x, %m : tensor<64x!tile.ptr<f32>>
    return
  }
}
