// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_80 | FileCheck %s

// The blocks of a product in groups: what is divided by is taken to be positive, so that no column is negative, and
// columns count up through the remainder.

// CHECK-LABEL: func.func @grouped
// CHECK: tile.load {{.*}} {warp.contiguity = 4 : i32{{.*}}}
func.func @grouped(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %m: i32, %n: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %c8 = arith.constant 8 : i32
  %c1024 = arith.constant 1024 : i32
  %pid = tile.program_id x : i32
  %size = arith.minsi %m, %c8 : i32
  %pn = arith.divsi %pid, %size : i32
  %first = arith.muli %pn, %c1024 : i32
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %f = tile.splat %first : i32 -> tensor<1024xi32>
  %i = arith.addi %f, %r : tensor<1024xi32>
  %s = tile.splat %n : i32 -> tensor<1024xi32>
  %j = arith.remsi %i, %s : tensor<1024xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %a = tile.addptr %b, %j : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %x = tile.load %a : tensor<1024x!tile.ptr<f32>>
  tile.store %a, %x : tensor<1024x!tile.ptr<f32>>
  func.return
}

// -----

// An offset of either sign: -16 % 16 is 0 and -15 % 16 is -15, which are no neighbours.

// CHECK-LABEL: func.func @either_sign
// CHECK: tile.load {{.*}} {warp.contiguity = 1 : i32{{.*}}}
func.func @either_sign(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %m: i32 {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %f = tile.splat %m : i32 -> tensor<1024xi32>
  %i = arith.addi %f, %r : tensor<1024xi32>
  %s = tile.splat %n : i32 -> tensor<1024xi32>
  %j = arith.remsi %i, %s : tensor<1024xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %a = tile.addptr %b, %j : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %x = tile.load %a : tensor<1024x!tile.ptr<f32>>
  tile.store %a, %x : tensor<1024x!tile.ptr<f32>>
  func.return
}

// -----

// The same where the kernel promises the sign, and the divisor that the argument itself does not; of the promise
// nothing is left.

// CHECK-LABEL: func.func @promised
// CHECK-NOT: tile.assume
// CHECK: tile.load {{.*}} {warp.contiguity = 4 : i32{{.*}}}
func.func @promised(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %m: i32, %n: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %sign = arith.cmpi sge, %m, %c0 : i32
  %rest = arith.remsi %m, %c8 : i32
  %even = arith.cmpi eq, %rest, %c0 : i32
  %both = arith.andi %sign, %even : i1
  tile.assume %both : i1
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %f = tile.splat %m : i32 -> tensor<1024xi32>
  %i = arith.addi %f, %r : tensor<1024xi32>
  %s = tile.splat %n : i32 -> tensor<1024xi32>
  %j = arith.remsi %i, %s : tensor<1024xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %a = tile.addptr %b, %j : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %x = tile.load %a : tensor<1024x!tile.ptr<f32>>
  tile.store %a, %x : tensor<1024x!tile.ptr<f32>>
  func.return
}

// -----

// Half of a multiple of 16 is a multiple of 8, of either sign, by a division or a shift: eight neighbours have one mask. Of
// a number of which nothing is known they have not.

// CHECK-LABEL: func.func @half
// CHECK: tile.store {{.*}} {warp.contiguity = 4 : i32} : tensor<512x!tile.ptr<f32>
// CHECK: tile.store {{.*}} {warp.contiguity = 4 : i32} : tensor<512x!tile.ptr<f32>
// CHECK: tile.store {{.*}} {warp.contiguity = 1 : i32{{.*}}} : tensor<512x!tile.ptr<f32>
func.func @half(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 16 : i32}, %m: i32) attributes {tile.kernel} {
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %x = arith.constant dense<1.0> : tensor<512xf32>
  %r = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
  %a = tile.addptr %b, %r : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %divided = arith.divsi %n, %two : i32
  %shifted = arith.shrsi %n, %one : i32
  %other = arith.divsi %m, %two : i32
  %d = tile.splat %divided : i32 -> tensor<512xi32>
  %s = tile.splat %shifted : i32 -> tensor<512xi32>
  %o = tile.splat %other : i32 -> tensor<512xi32>
  %in_d = arith.cmpi slt, %r, %d : tensor<512xi32>
  %in_s = arith.cmpi slt, %r, %s : tensor<512xi32>
  %in_o = arith.cmpi slt, %r, %o : tensor<512xi32>
  tile.store %a, %x, %in_d : tensor<512x!tile.ptr<f32>>
  tile.store %a, %x, %in_s : tensor<512x!tile.ptr<f32>>
  tile.store %a, %x, %in_o : tensor<512x!tile.ptr<f32>>
  func.return
}
