// RUN: weft-opt %s -split-input-file -warp-skip-rows | FileCheck %s

// A warp of which no row reaches the block's first column leaves its sums as they are. What the barrier orders, copies
// and what others need stay outside.

#row = #warp.layout<[32, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#acc = #warp.layout<[32, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#across = #warp.layout<[1, 8], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = [[0, 0]]>
#column = #warp.layout<[8], register = [[1]], lane = [[2], [4], [0], [0], [0]], warp = [[0]]>

// CHECK-LABEL: func.func @diagonal
// CHECK-SAME: %[[ROW:[a-z0-9]+]]: tensor<32x1xi32
// CHECK: %[[LAST:.*]] = warp.extreme %[[ROW]] {greatest} : tensor<32x1xi32
// CHECK: scf.for %[[I:[a-z0-9]+]] = {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[COUNT:.*]] = %{{.*}})
// CHECK: warp.barrier
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[COUNT]]
// CHECK-NEXT: %[[SOME:.*]] = arith.cmpi sle, %[[I]], %[[LAST]] : i32
// CHECK-NEXT: %[[R:.*]] = scf.if %[[SOME]]
// CHECK: arith.select
// CHECK: %[[MORE:.*]] = arith.addf %[[SUM]]
// CHECK-NEXT: scf.yield %[[MORE]]
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[SUM]]
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield %[[R]], %[[NEXT]]
func.func @diagonal(%x: tensor<32x8xf32, #acc>, %row: tensor<32x1xi32, #row>, %n: i32) -> tensor<32x8xf32, #acc> {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %zero = arith.constant dense<0.0> : tensor<32x8xf32, #acc>
  %ends = tile.broadcast %row : tensor<32x1xi32, #row> -> tensor<32x8xi32, #acc>
  %places = tile.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #column>
  %r:2 = scf.for %i = %c0 to %n step %c8 iter_args(%sum = %zero, %count = %c0) -> (tensor<32x8xf32, #acc>, i32) : i32 {
    warp.barrier
    %begin = tile.splat %i : i32 -> tensor<8xi32, #column>
    %column = arith.addi %begin, %places : tensor<8xi32, #column>
    %across = tile.expand_dims %column {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, #across>
    %columns = tile.broadcast %across : tensor<1x8xi32, #across> -> tensor<32x8xi32, #acc>
    %mask = arith.cmpi sle, %columns, %ends : tensor<32x8xi32, #acc>
    %p = arith.select %mask, %x, %zero {tile.leaves_rows} : tensor<32x8xi1, #acc>, tensor<32x8xf32, #acc>
    %more = arith.addf %sum, %p : tensor<32x8xf32, #acc>
    %next = arith.addi %count, %c8 : i32
    scf.yield %more, %next : tensor<32x8xf32, #acc>, i32
  }
  return %r#0 : tensor<32x8xf32, #acc>
}

// -----

// Both ends of a window: the block's first column against the greatest end, its last against the least begin.

#row = #warp.layout<[32, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#acc = #warp.layout<[32, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#across = #warp.layout<[1, 8], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = [[0, 0]]>
#column = #warp.layout<[8], register = [[1]], lane = [[2], [4], [0], [0], [0]], warp = [[0]]>

// CHECK-LABEL: func.func @window
// CHECK-SAME: %[[BEGIN:[a-z0-9]+]]: tensor<32x1xi32, #{{[a-z0-9]+}}>, %[[END:[a-z0-9]+]]: tensor<32x1xi32
// CHECK-DAG: %[[GREATEST:.*]] = warp.extreme %[[END]] {greatest}
// CHECK-DAG: %[[LEAST:.*]] = warp.extreme %[[BEGIN]] : tensor
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: %[[A:.*]] = arith.cmpi slt, %[[I]], %[[GREATEST]] : i32
// CHECK: %[[LASTCOLUMN:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
// CHECK: %[[B:.*]] = arith.cmpi sge, %[[LASTCOLUMN]], %[[LEAST]]
// CHECK: %[[SOME:.*]] = arith.andi %[[A]], %[[B]]
// CHECK: scf.if %[[SOME]]
func.func @window(%x: tensor<32x8xf32, #acc>, %first: tensor<32x1xi32, #row>, %end: tensor<32x1xi32, #row>, %n: i32) -> tensor<32x8xf32, #acc> {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %zero = arith.constant dense<0.0> : tensor<32x8xf32, #acc>
  %begins = tile.broadcast %first : tensor<32x1xi32, #row> -> tensor<32x8xi32, #acc>
  %ends = tile.broadcast %end : tensor<32x1xi32, #row> -> tensor<32x8xi32, #acc>
  %places = tile.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #column>
  %r = scf.for %i = %c0 to %n step %c8 iter_args(%sum = %zero) -> (tensor<32x8xf32, #acc>) : i32 {
    %begin = tile.splat %i : i32 -> tensor<8xi32, #column>
    %column = arith.addi %begin, %places : tensor<8xi32, #column>
    %across = tile.expand_dims %column {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, #across>
    %columns = tile.broadcast %across : tensor<1x8xi32, #across> -> tensor<32x8xi32, #acc>
    %below = arith.cmpi slt, %columns, %ends : tensor<32x8xi32, #acc>
    %above = arith.cmpi sge, %columns, %begins : tensor<32x8xi32, #acc>
    %mask = arith.andi %below, %above : tensor<32x8xi1, #acc>
    %p = arith.select %mask, %x, %zero {tile.leaves_rows} : tensor<32x8xi1, #acc>, tensor<32x8xf32, #acc>
    %more = arith.addf %sum, %p : tensor<32x8xf32, #acc>
    scf.yield %more : tensor<32x8xf32, #acc>
  }
  return %r : tensor<32x8xf32, #acc>
}

// -----

// Left alone: a select of which nobody said so; what is carried but not summed up; sums that wait for other warps.

#row = #warp.layout<[32, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#acc = #warp.layout<[32, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#across = #warp.layout<[1, 8], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = [[0, 0]]>
#column = #warp.layout<[8], register = [[1]], lane = [[2], [4], [0], [0], [0]], warp = [[0]]>

// CHECK-LABEL: func.func @alone
// CHECK-NOT: scf.if
// CHECK: return
func.func @alone(%x: tensor<32x8xf32, #acc>, %row: tensor<32x1xi32, #row>, %n: i32) -> tensor<32x8xf32, #acc> {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %zero = arith.constant dense<0.0> : tensor<32x8xf32, #acc>
  %ends = tile.broadcast %row : tensor<32x1xi32, #row> -> tensor<32x8xi32, #acc>
  %places = tile.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #column>
  %r = scf.for %i = %c0 to %n step %c8 iter_args(%sum = %zero) -> (tensor<32x8xf32, #acc>) : i32 {
    %begin = tile.splat %i : i32 -> tensor<8xi32, #column>
    %column = arith.addi %begin, %places : tensor<8xi32, #column>
    %across = tile.expand_dims %column {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, #across>
    %columns = tile.broadcast %across : tensor<1x8xi32, #across> -> tensor<32x8xi32, #acc>
    %mask = arith.cmpi sle, %columns, %ends : tensor<32x8xi32, #acc>
    %p = arith.select %mask, %x, %zero : tensor<32x8xi1, #acc>, tensor<32x8xf32, #acc>
    %more = arith.addf %sum, %p : tensor<32x8xf32, #acc>
    scf.yield %more : tensor<32x8xf32, #acc>
  }
  %s:2 = scf.for %i = %c0 to %n step %c8 iter_args(%sum = %r, %last = %zero) -> (tensor<32x8xf32, #acc>, tensor<32x8xf32, #acc>) : i32 {
    %begin = tile.splat %i : i32 -> tensor<8xi32, #column>
    %column = arith.addi %begin, %places : tensor<8xi32, #column>
    %across = tile.expand_dims %column {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, #across>
    %columns = tile.broadcast %across : tensor<1x8xi32, #across> -> tensor<32x8xi32, #acc>
    %mask = arith.cmpi sle, %columns, %ends : tensor<32x8xi32, #acc>
    %p = arith.select %mask, %x, %zero {tile.leaves_rows} : tensor<32x8xi1, #acc>, tensor<32x8xf32, #acc>
    %more = arith.addf %sum, %last : tensor<32x8xf32, #acc>
    scf.yield %more, %p : tensor<32x8xf32, #acc>, tensor<32x8xf32, #acc>
  }
  %t = scf.for %i = %c0 to %n step %c8 iter_args(%sum = %s#0) -> (tensor<32x8xf32, #acc>) : i32 {
    %begin = tile.splat %i : i32 -> tensor<8xi32, #column>
    %column = arith.addi %begin, %places : tensor<8xi32, #column>
    %across = tile.expand_dims %column {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, #across>
    %columns = tile.broadcast %across : tensor<1x8xi32, #across> -> tensor<32x8xi32, #acc>
    %mask = arith.cmpi sle, %columns, %ends : tensor<32x8xi32, #acc>
    %p = arith.select %mask, %x, %zero {tile.leaves_rows} : tensor<32x8xi1, #acc>, tensor<32x8xf32, #acc>
    warp.barrier
    %more = arith.addf %sum, %p : tensor<32x8xf32, #acc>
    scf.yield %more : tensor<32x8xf32, #acc>
  }
  return %t : tensor<32x8xf32, #acc>
}

// -----

// Left alone: blocks as wide as high, of which each warp has a column on the diagonal, and rows that warps share.

#row = #warp.layout<[32, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#wide = #warp.layout<[32, 32], register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#acrosswide = #warp.layout<[1, 32], register = [[0, 1], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = [[0, 0]]>
#columnwide = #warp.layout<[32], register = [[1], [8], [16]], lane = [[2], [4], [0], [0], [0]], warp = [[0]]>
#rowshared = #warp.layout<[32, 1], register = [[8, 0], [16, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[0, 0]]>
#shared = #warp.layout<[32, 16], register = [[0, 1], [8, 0], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 8]]>
#acrossshared = #warp.layout<[1, 16], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = [[0, 8]]>
#columnshared = #warp.layout<[16], register = [[1]], lane = [[2], [4], [0], [0], [0]], warp = [[8]]>

// CHECK-LABEL: func.func @shapes
// CHECK-NOT: scf.if
// CHECK: return
func.func @shapes(%x: tensor<32x32xf32, #wide>, %row: tensor<32x1xi32, #row>, %y: tensor<32x16xf32, #shared>, %rowshared: tensor<32x1xi32, #rowshared>, %n: i32) -> (tensor<32x32xf32, #wide>, tensor<32x16xf32, #shared>) {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %zerowide = arith.constant dense<0.0> : tensor<32x32xf32, #wide>
  %endswide = tile.broadcast %row : tensor<32x1xi32, #row> -> tensor<32x32xi32, #wide>
  %placeswide = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #columnwide>
  %r = scf.for %i = %c0 to %n step %c32 iter_args(%sum = %zerowide) -> (tensor<32x32xf32, #wide>) : i32 {
    %begin = tile.splat %i : i32 -> tensor<32xi32, #columnwide>
    %column = arith.addi %begin, %placeswide : tensor<32xi32, #columnwide>
    %across = tile.expand_dims %column {axis = 0 : i32} : tensor<32xi32, #columnwide> -> tensor<1x32xi32, #acrosswide>
    %columns = tile.broadcast %across : tensor<1x32xi32, #acrosswide> -> tensor<32x32xi32, #wide>
    %mask = arith.cmpi sle, %columns, %endswide : tensor<32x32xi32, #wide>
    %p = arith.select %mask, %x, %zerowide {tile.leaves_rows} : tensor<32x32xi1, #wide>, tensor<32x32xf32, #wide>
    %more = arith.addf %sum, %p : tensor<32x32xf32, #wide>
    scf.yield %more : tensor<32x32xf32, #wide>
  }
  %zero = arith.constant dense<0.0> : tensor<32x16xf32, #shared>
  %ends = tile.broadcast %rowshared : tensor<32x1xi32, #rowshared> -> tensor<32x16xi32, #shared>
  %places = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #columnshared>
  %s = scf.for %i = %c0 to %n step %c16 iter_args(%sum = %zero) -> (tensor<32x16xf32, #shared>) : i32 {
    %begin = tile.splat %i : i32 -> tensor<16xi32, #columnshared>
    %column = arith.addi %begin, %places : tensor<16xi32, #columnshared>
    %across = tile.expand_dims %column {axis = 0 : i32} : tensor<16xi32, #columnshared> -> tensor<1x16xi32, #acrossshared>
    %columns = tile.broadcast %across : tensor<1x16xi32, #acrossshared> -> tensor<32x16xi32, #shared>
    %mask = arith.cmpi sle, %columns, %ends : tensor<32x16xi32, #shared>
    %p = arith.select %mask, %y, %zero {tile.leaves_rows} : tensor<32x16xi1, #shared>, tensor<32x16xf32, #shared>
    %more = arith.addf %sum, %p : tensor<32x16xf32, #shared>
    scf.yield %more : tensor<32x16xf32, #shared>
  }
  return %r, %s : tensor<32x32xf32, #wide>, tensor<32x16xf32, #shared>
}

// -----

// What says which columns come, as a list of blocks, is read before: the condition needs it.

#row = #warp.layout<[32, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#acc = #warp.layout<[32, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#across = #warp.layout<[1, 8], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = [[0, 0]]>
#column = #warp.layout<[8], register = [[1]], lane = [[2], [4], [0], [0], [0]], warp = [[0]]>

// CHECK-LABEL: func.func @listed
// CHECK: %[[LAST:.*]] = warp.extreme %{{.*}} {greatest}
// CHECK: scf.for
// CHECK: %[[BLOCK:.*]] = tile.load
// CHECK: %[[BEGIN:.*]] = arith.muli %[[BLOCK]], %{{.*}} : i32
// CHECK: %[[SOME:.*]] = arith.cmpi sle, %[[BEGIN]], %[[LAST]] : i32
// CHECK-NEXT: scf.if %[[SOME]]
func.func @listed(%list: !tile.ptr<i32>, %x: tensor<32x8xf32, #acc>, %row: tensor<32x1xi32, #row>, %n: i32) -> tensor<32x8xf32, #acc> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %zero = arith.constant dense<0.0> : tensor<32x8xf32, #acc>
  %ends = tile.broadcast %row : tensor<32x1xi32, #row> -> tensor<32x8xi32, #acc>
  %places = tile.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #column>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<32x8xf32, #acc>) : i32 {
    %at = tile.addptr %list, %i : !tile.ptr<i32>, i32
    %block = tile.load %at : !tile.ptr<i32>
    %begin = arith.muli %block, %c8 : i32
    %first = tile.splat %begin : i32 -> tensor<8xi32, #column>
    %column = arith.addi %first, %places : tensor<8xi32, #column>
    %across = tile.expand_dims %column {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, #across>
    %columns = tile.broadcast %across : tensor<1x8xi32, #across> -> tensor<32x8xi32, #acc>
    %mask = arith.cmpi sle, %columns, %ends : tensor<32x8xi32, #acc>
    %p = arith.select %mask, %x, %zero {tile.leaves_rows} : tensor<32x8xi1, #acc>, tensor<32x8xf32, #acc>
    %more = arith.addf %sum, %p : tensor<32x8xf32, #acc>
    scf.yield %more : tensor<32x8xf32, #acc>
  }
  return %r : tensor<32x8xf32, #acc>
}
