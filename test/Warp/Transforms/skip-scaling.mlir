// RUN: weft-opt %s -split-input-file -warp-skip-scaling | FileCheck %s

// Sums are multiplied only where the maximum of one of a warp's rows has grown: where the difference is not 0. What the
// factors are made of, and the branch, come before what does not need them.

#row = #warp.layout<[16], register = [[8]], lane = [[0], [0], [1], [2], [4]]>
#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#acc = #warp.layout<[16, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// CHECK-LABEL: func.func @grown
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<16xf32
// CHECK: scf.for {{.*}} iter_args(%[[M:[a-z0-9]+]] = %{{.*}}, %[[SUMS:[a-z0-9]+]] = %{{.*}})
// CHECK-NEXT: %[[NOW:.*]] = arith.maximumf %[[M]], %[[X]]
// CHECK-NEXT: %[[GROWN:.*]] = arith.subf %[[M]], %[[NOW]]
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.0{{.*}}> : tensor<16xf32
// CHECK-NEXT: %[[OTHER:.*]] = arith.cmpf une, %[[GROWN]], %[[ZERO]]
// CHECK-NEXT: %[[SOME:.*]] = warp.any %[[OTHER]]
// CHECK: %[[S:.*]] = scf.if %[[SOME]]
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[SUMS]]
// CHECK-NEXT: scf.yield %[[SCALED]]
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[SUMS]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[P:.*]] = math.exp2
// CHECK-NEXT: %[[MORE:.*]] = arith.maximumf %[[S]], %[[P]]
// CHECK-NEXT: scf.yield %[[NOW]], %[[MORE]]
func.func @grown(%x: tensor<16xf32, #row>, %m0: tensor<16xf32, #row>, %y: tensor<16x128xf32, #acc>, %n: i32) -> tensor<16x128xf32, #acc> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %scale = arith.constant dense<0.125> : tensor<16xf32, #row>
  %zero = arith.constant dense<0.0> : tensor<16x128xf32, #acc>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0, %sums = %zero) -> (tensor<16xf32, #row>, tensor<16x128xf32, #acc>) : i32 {
    %now = arith.maximumf %m, %x : tensor<16xf32, #row>
    %p = math.exp2 %y : tensor<16x128xf32, #acc>
    %grown = arith.subf %m, %now : tensor<16xf32, #row>
    %exponent = arith.mulf %grown, %scale : tensor<16xf32, #row>
    %f = math.exp2 %exponent : tensor<16xf32, #row>
    %g = tile.expand_dims %f {axis = 1 : i32} : tensor<16xf32, #row> -> tensor<16x1xf32, #rows>
    %h = tile.broadcast %g : tensor<16x1xf32, #rows> -> tensor<16x128xf32, #acc>
    %s = arith.mulf %sums, %h : tensor<16x128xf32, #acc>
    %more = arith.maximumf %s, %p : tensor<16x128xf32, #acc>
    scf.yield %now, %more : tensor<16xf32, #row>, tensor<16x128xf32, #acc>
  }
  return %r#1 : tensor<16x128xf32, #acc>
}

// -----

// Of factors that the iteration before has computed the vote is carried too, whatever masks the scores. A row that has
// seen nothing has 0 in its maximum's place.

#row = #warp.layout<[16], register = [[8]], lane = [[0], [0], [1], [2], [4]]>
#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#acc = #warp.layout<[16, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// CHECK-LABEL: func.func @before
// CHECK-SAME: %[[F0:[a-z0-9]+]]: tensor<16x128xf32
// CHECK: %[[ONE:.*]] = arith.constant dense<1.0{{.*}}> : tensor<16x128xf32
// CHECK: %[[OTHER0:.*]] = arith.cmpf une, %[[F0]], %[[ONE]]
// CHECK: %[[FIRST:.*]] = warp.any %[[OTHER0]]
// CHECK: scf.for {{.*}} iter_args(%[[M:[a-z0-9]+]] = %{{.*}}, %[[SUMS:[a-z0-9]+]] = %{{[a-z0-9_]+}}, %[[F:[a-z0-9]+]] = %[[F0]], %[[SOME:[a-z0-9]+]] = %[[FIRST]])
// CHECK-NEXT: scf.if %[[SOME]]
// CHECK-NEXT: arith.mulf %[[SUMS]], %[[F]]
// CHECK: %[[GROWN:.*]] = arith.subf %[[M]], %{{.*}}
// CHECK: %[[OTHER:.*]] = arith.cmpf une, %[[GROWN]], %{{.*}}
// CHECK-NEXT: %[[NEXT:.*]] = warp.any %[[OTHER]]
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %[[NEXT]]
func.func @before(%x: tensor<16xf32, #row>, %m0: tensor<16xf32, #row>, %f0: tensor<16x128xf32, #acc>, %mask: tensor<16x128xi1, #acc>, %n: i32) -> tensor<16x128xf32, #acc> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant dense<0xFF800000> : tensor<16xf32, #row>
  %nothing = arith.constant dense<0.0> : tensor<16xf32, #row>
  %zero = arith.constant dense<0.0> : tensor<16x128xf32, #acc>
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0, %sums = %zero, %before = %f0) -> (tensor<16xf32, #row>, tensor<16x128xf32, #acc>, tensor<16x128xf32, #acc>) : i32 {
    %s = arith.mulf %sums, %before : tensor<16x128xf32, #acc>
    %now = arith.maximumf %m, %x : tensor<16xf32, #row>
    %unseen = arith.cmpf oeq, %now, %none : tensor<16xf32, #row>
    %shift = arith.select %unseen, %nothing, %now : tensor<16xi1, #row>, tensor<16xf32, #row>
    %grown = arith.subf %m, %shift : tensor<16xf32, #row>
    %f = math.exp2 %grown : tensor<16xf32, #row>
    %g = tile.expand_dims %f {axis = 1 : i32} : tensor<16xf32, #row> -> tensor<16x1xf32, #rows>
    %h = tile.broadcast %g : tensor<16x1xf32, #rows> -> tensor<16x128xf32, #acc>
    %masked = arith.select %mask, %s, %zero : tensor<16x128xi1, #acc>, tensor<16x128xf32, #acc>
    scf.yield %now, %masked, %h : tensor<16xf32, #row>, tensor<16x128xf32, #acc>, tensor<16x128xf32, #acc>
  }
  return %r#1 : tensor<16x128xf32, #acc>
}

// -----

// What decays in each iteration is no maximum's growth.

#row = #warp.layout<[16], register = [[8]], lane = [[0], [0], [1], [2], [4]]>
#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#acc = #warp.layout<[16, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// CHECK-LABEL: func.func @decays
// CHECK-NOT: warp.any
func.func @decays(%x: tensor<16xf32, #row>, %m0: tensor<16xf32, #row>, %s0: tensor<16x128xf32, #acc>, %n: i32) -> tensor<16x128xf32, #acc> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0, %sums = %s0) -> (tensor<16xf32, #row>, tensor<16x128xf32, #acc>) : i32 {
    %now = arith.maximumf %m, %x : tensor<16xf32, #row>
    %difference = arith.subf %x, %now : tensor<16xf32, #row>
    %f = math.exp2 %difference : tensor<16xf32, #row>
    %g = tile.expand_dims %f {axis = 1 : i32} : tensor<16xf32, #row> -> tensor<16x1xf32, #rows>
    %h = tile.broadcast %g : tensor<16x1xf32, #rows> -> tensor<16x128xf32, #acc>
    %s = arith.mulf %sums, %h : tensor<16x128xf32, #acc>
    scf.yield %now, %s : tensor<16xf32, #row>, tensor<16x128xf32, #acc>
  }
  return %r#1 : tensor<16x128xf32, #acc>
}

// -----

// Of 32 registers a branch saves little.

#row = #warp.layout<[16], register = [[8]], lane = [[0], [0], [1], [2], [4]]>
#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#acc = #warp.layout<[16, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// CHECK-LABEL: func.func @few
// CHECK-NOT: warp.any
func.func @few(%x: tensor<16xf32, #row>, %m0: tensor<16xf32, #row>, %s0: tensor<16x64xf32, #acc>, %n: i32) -> tensor<16x64xf32, #acc> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0, %sums = %s0) -> (tensor<16xf32, #row>, tensor<16x64xf32, #acc>) : i32 {
    %now = arith.maximumf %m, %x : tensor<16xf32, #row>
    %grown = arith.subf %m, %now : tensor<16xf32, #row>
    %f = math.exp2 %grown : tensor<16xf32, #row>
    %g = tile.expand_dims %f {axis = 1 : i32} : tensor<16xf32, #row> -> tensor<16x1xf32, #rows>
    %h = tile.broadcast %g : tensor<16x1xf32, #rows> -> tensor<16x64xf32, #acc>
    %s = arith.mulf %sums, %h : tensor<16x64xf32, #acc>
    scf.yield %now, %s : tensor<16xf32, #row>, tensor<16x64xf32, #acc>
  }
  return %r#1 : tensor<16x64xf32, #acc>
}

// -----

// Among a mask's arithmetic a branch costs more than it saves, and a loop that is said to have few iterations is over
// before maxima stay.

#row = #warp.layout<[16], register = [[8]], lane = [[0], [0], [1], [2], [4]]>
#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#acc = #warp.layout<[16, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// CHECK-LABEL: func.func @masked
// CHECK-NOT: warp.any
func.func @masked(%x: tensor<16xf32, #row>, %m0: tensor<16xf32, #row>, %s0: tensor<16x128xf32, #acc>, %mask: tensor<16x128xi1, #acc>, %n: i32) -> (tensor<16x128xf32, #acc>, tensor<16x128xf32, #acc>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %q:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0, %sums = %s0) -> (tensor<16xf32, #row>, tensor<16x128xf32, #acc>) : i32 {
    %now = arith.maximumf %m, %x : tensor<16xf32, #row>
    %grown = arith.subf %m, %now : tensor<16xf32, #row>
    %f = math.exp2 %grown : tensor<16xf32, #row>
    %g = tile.expand_dims %f {axis = 1 : i32} : tensor<16xf32, #row> -> tensor<16x1xf32, #rows>
    %h = tile.broadcast %g : tensor<16x1xf32, #rows> -> tensor<16x128xf32, #acc>
    %s = arith.mulf %sums, %h : tensor<16x128xf32, #acc>
    %t = arith.select %mask, %s, %sums : tensor<16x128xi1, #acc>, tensor<16x128xf32, #acc>
    scf.yield %now, %t : tensor<16xf32, #row>, tensor<16x128xf32, #acc>
  }
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0, %sums = %s0) -> (tensor<16xf32, #row>, tensor<16x128xf32, #acc>) : i32 {
    %now = arith.maximumf %m, %x : tensor<16xf32, #row>
    %grown = arith.subf %m, %now : tensor<16xf32, #row>
    %f = math.exp2 %grown : tensor<16xf32, #row>
    %g = tile.expand_dims %f {axis = 1 : i32} : tensor<16xf32, #row> -> tensor<16x1xf32, #rows>
    %h = tile.broadcast %g : tensor<16x1xf32, #rows> -> tensor<16x128xf32, #acc>
    %s = arith.mulf %sums, %h : tensor<16x128xf32, #acc>
    scf.yield %now, %s : tensor<16xf32, #row>, tensor<16x128xf32, #acc>
  } {tile.few_iterations}
  return %q#1, %r#1 : tensor<16x128xf32, #acc>, tensor<16x128xf32, #acc>
}

// -----

// Maxima that lanes of other warps have: each warp asks its own sums' factors, where they have come to it.

#row = #warp.layout<[32], register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16]]>
#rows = #warp.layout<[32, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#acc = #warp.layout<[32, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#read = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]], warp = [[0]]>

// CHECK-LABEL: func.func @converted
// CHECK: %[[FACTORS:.*]] = warp.convert_layout
// CHECK: %[[OTHER:.*]] = arith.cmpf une, %[[FACTORS]], %{{.*}}
// CHECK-NEXT: warp.any %[[OTHER]]
func.func @converted(%x: tensor<32xf32, #read>, %m0: tensor<32xf32, #read>, %s0: tensor<32x128xf32, #acc>, %n: i32) -> tensor<32x128xf32, #acc> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0, %sums = %s0) -> (tensor<32xf32, #read>, tensor<32x128xf32, #acc>) : i32 {
    %now = arith.maximumf %m, %x : tensor<32xf32, #read>
    %grown = arith.subf %m, %now : tensor<32xf32, #read>
    %f = math.exp2 %grown : tensor<32xf32, #read>
    %own = warp.convert_layout %f : tensor<32xf32, #read> -> tensor<32xf32, #row>
    %g = tile.expand_dims %own {axis = 1 : i32} : tensor<32xf32, #row> -> tensor<32x1xf32, #rows>
    %h = tile.broadcast %g : tensor<32x1xf32, #rows> -> tensor<32x128xf32, #acc>
    %s = arith.mulf %sums, %h : tensor<32x128xf32, #acc>
    scf.yield %now, %s : tensor<32xf32, #read>, tensor<32x128xf32, #acc>
  }
  return %r#1 : tensor<32x128xf32, #acc>
}

// -----

// What is multiplied and added is one instruction.

#row = #warp.layout<[32], register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16]]>
#rows = #warp.layout<[32, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#acc = #warp.layout<[32, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>

// CHECK-LABEL: func.func @fused
// CHECK-NOT: warp.any
func.func @fused(%x: tensor<32xf32, #row>, %m0: tensor<32xf32, #row>, %y: tensor<32x128xf32, #acc>, %n: i32) -> tensor<32x128xf32, #acc> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0, %sums = %y) -> (tensor<32xf32, #row>, tensor<32x128xf32, #acc>) : i32 {
    %now = arith.maximumf %m, %x : tensor<32xf32, #row>
    %grown = arith.subf %m, %now : tensor<32xf32, #row>
    %f = math.exp2 %grown : tensor<32xf32, #row>
    %g = tile.expand_dims %f {axis = 1 : i32} : tensor<32xf32, #row> -> tensor<32x1xf32, #rows>
    %h = tile.broadcast %g : tensor<32x1xf32, #rows> -> tensor<32x128xf32, #acc>
    %s = arith.mulf %sums, %h : tensor<32x128xf32, #acc>
    %more = arith.addf %s, %y : tensor<32x128xf32, #acc>
    scf.yield %now, %more : tensor<32xf32, #row>, tensor<32x128xf32, #acc>
  }
  return %r#1 : tensor<32x128xf32, #acc>
}
