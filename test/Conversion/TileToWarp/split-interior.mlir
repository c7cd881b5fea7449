// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --tile-split-interior | FileCheck %s
// RUN: weft-opt %s --split-input-file --tile-split-interior --remarks-filter-analyse=memory -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAID

// Elements that start where a program does: where the last of them is below the bound, and nothing wraps, no mask is
// left of loads, stores and what else takes it. What comes before the first access is there once, a scalar's load and a promise too.

// SAID: programs inside of bounds have a body of their own, without their masks; 1 comparisons decide
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[COUNT:[a-z0-9]+]]: !tile.ptr<i32>
// CHECK-DAG: %[[N:.*]] = tile.load %[[COUNT]]
// CHECK-DAG: %[[FIRST:.*]] = arith.muli
// CHECK-DAG: %[[LAST:.*]] = arith.addi %[[FIRST]], %c1023
// CHECK-DAG: %[[BELOW:.*]] = arith.cmpi slt, %[[LAST]], %[[N]]
// CHECK-DAG: %[[RISES:.*]] = arith.cmpi sle, %[[FIRST]], %[[LAST]]
// CHECK: %[[INSIDE:.*]] = arith.andi
// CHECK: scf.if %[[INSIDE]] {
// CHECK: %[[X:.*]] = tile.load %{{[a-z0-9]+}} : tensor
// CHECK-NEXT: %[[Y:.*]] = math.exp %[[X]]
// CHECK-NEXT: tile.store %{{[a-z0-9]+}}, %[[Y]] : tensor
// CHECK: } else {
// CHECK: tile.load %{{.*}}, %[[MASK:[a-z0-9]+]] : tensor
// CHECK: arith.select %[[MASK]]
// CHECK: tile.store %{{.*}}, %{{.*}}, %[[MASK]]
func.func @rows(%count: !tile.ptr<i32>, %p: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %n = tile.load %count : !tile.ptr<i32>
  %c0 = arith.constant 0 : i32
  %some = arith.cmpi sgt, %n, %c0 : i32
  tile.assume %some : i1
  %id = tile.program_id x : i32
  %size = arith.constant 1024 : i32
  %first = arith.muli %id, %size : i32
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %firsts = tile.splat %first : i32 -> tensor<1024xi32>
  %i = arith.addi %firsts, %r : tensor<1024xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %a = tile.addptr %b, %i : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %ns = tile.splat %n : i32 -> tensor<1024xi32>
  %m = arith.cmpi slt, %i, %ns : tensor<1024xi32>
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %one = arith.constant dense<1.0> : tensor<1024xf32>
  %x = tile.load %a, %m, %one : tensor<1024x!tile.ptr<f32>>
  %e = math.exp %x : tensor<1024xf32>
  %y = arith.select %m, %e, %zero : tensor<1024xi1>, tensor<1024xf32>
  tile.store %a, %y, %m : tensor<1024x!tile.ptr<f32>>
  return
}

// -----

// Two axes, one of them bounded from below, too: all that is compared decides.

// SAID: 3 comparisons decide
// CHECK-LABEL: func.func @two_axes
// CHECK: scf.if
// CHECK-NEXT: tile.load %{{[a-z0-9]+}} : tensor<64x32x
// CHECK: else
// CHECK: tile.load %{{[a-z0-9]+}}, %{{.*}} : tensor<64x32x
func.func @two_axes(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %rows: i32, %n: i32, %from: i32) attributes {tile.kernel} {
  %i = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %j = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %stride = arith.constant dense<32> : tensor<64xi32>
  %ri = arith.muli %i, %stride : tensor<64xi32>
  %re = tile.expand_dims %ri {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %rb = tile.broadcast %re : tensor<64x1xi32> -> tensor<64x32xi32>
  %ce = tile.expand_dims %j {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %cb = tile.broadcast %ce : tensor<1x32xi32> -> tensor<64x32xi32>
  %at = arith.addi %rb, %cb : tensor<64x32xi32>
  %b = tile.splat %p : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>>
  %a = tile.addptr %b, %at : tensor<64x32x!tile.ptr<f16>>, tensor<64x32xi32>
  %ms = tile.splat %rows : i32 -> tensor<64xi32>
  %m0 = arith.cmpi sgt, %ms, %i : tensor<64xi32>
  %ns = tile.splat %n : i32 -> tensor<32xi32>
  %m1 = arith.cmpi sle, %j, %ns : tensor<32xi32>
  %fs = tile.splat %from : i32 -> tensor<32xi32>
  %m2 = arith.cmpi sge, %j, %fs : tensor<32xi32>
  %m12 = arith.andi %m1, %m2 : tensor<32xi1>
  %m0e = tile.expand_dims %m0 {axis = 1 : i32} : tensor<64xi1> -> tensor<64x1xi1>
  %m0b = tile.broadcast %m0e : tensor<64x1xi1> -> tensor<64x32xi1>
  %m1e = tile.expand_dims %m12 {axis = 0 : i32} : tensor<32xi1> -> tensor<1x32xi1>
  %m1b = tile.broadcast %m1e : tensor<1x32xi1> -> tensor<64x32xi1>
  %m = arith.andi %m0b, %m1b : tensor<64x32xi1>
  %x = tile.load %a, %m : tensor<64x32x!tile.ptr<f16>>
  tile.store %b, %x : tensor<64x32x!tile.ptr<f16>>
  return
}

// -----

// A bound that is a multiple of every vector keeps nothing narrow; nor does a mask where rows are not aligned. What a
// tensor holds is not known to hold everywhere. Loops are left alone, and accesses at indices from memory.

// SAID-NOT: programs inside
// CHECK-LABEL: func.func @aligned
// CHECK-NOT: scf.if
// CHECK-LABEL: func.func @odd_rows
// CHECK-NOT: scf.if
// CHECK-LABEL: func.func @loaded
// CHECK-NOT: scf.if
// CHECK-LABEL: func.func @loop
// CHECK-NOT: scf.if
// CHECK-LABEL: func.func @scattered
// CHECK-NOT: scf.if
func.func @aligned(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %r = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
  %a = tile.addptr %b, %r : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %s = tile.splat %n : i32 -> tensor<512xi32>
  %m = arith.cmpi slt, %r, %s : tensor<512xi32>
  %x = tile.load %a, %m : tensor<512x!tile.ptr<f32>>
  tile.store %a, %x, %m : tensor<512x!tile.ptr<f32>>
  return
}
func.func @odd_rows(%p: !tile.ptr<f32>, %n: i32) attributes {tile.kernel} {
  %r = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
  %a = tile.addptr %b, %r : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %s = tile.splat %n : i32 -> tensor<512xi32>
  %m = arith.cmpi slt, %r, %s : tensor<512xi32>
  %x = tile.load %a, %m : tensor<512x!tile.ptr<f32>>
  tile.store %a, %x, %m : tensor<512x!tile.ptr<f32>>
  return
}
func.func @loaded(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %q: !tile.ptr<i32> {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %r = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %qb = tile.splat %q : !tile.ptr<i32> -> tensor<512x!tile.ptr<i32>>
  %qa = tile.addptr %qb, %r : tensor<512x!tile.ptr<i32>>, tensor<512xi32>
  %s = tile.load %qa : tensor<512x!tile.ptr<i32>>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
  %a = tile.addptr %b, %r : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %m = arith.cmpi slt, %r, %s : tensor<512xi32>
  %x = tile.load %a, %m : tensor<512x!tile.ptr<f32>>
  tile.store %a, %x, %m : tensor<512x!tile.ptr<f32>>
  return
}
func.func @loop(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
  %a = tile.addptr %b, %r : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %s = tile.splat %n : i32 -> tensor<512xi32>
  %m = arith.cmpi slt, %r, %s : tensor<512xi32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tile.load %a, %m : tensor<512x!tile.ptr<f32>>
    tile.store %a, %x, %m : tensor<512x!tile.ptr<f32>>
  }
  return
}
func.func @scattered(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %q: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %n: i32) attributes {tile.kernel} {
  %r = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %s = tile.splat %n : i32 -> tensor<512xi32>
  %m = arith.cmpi slt, %r, %s : tensor<512xi32>
  %qb = tile.splat %q : !tile.ptr<i32> -> tensor<512x!tile.ptr<i32>>
  %qa = tile.addptr %qb, %r : tensor<512x!tile.ptr<i32>>, tensor<512xi32>
  %at = tile.load %qa, %m : tensor<512x!tile.ptr<i32>>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
  %a = tile.addptr %b, %at : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %one = arith.constant dense<1.0> : tensor<512xf32>
  tile.store %a, %one, %m : tensor<512x!tile.ptr<f32>>
  return
}
