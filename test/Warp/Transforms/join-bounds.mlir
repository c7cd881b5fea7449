// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --warp-join-bounds --canonicalize --cse %s | FileCheck %s

#l = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]]>
#m = #warp.layout<[64, 4], register = [[32, 0], [0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#c = #warp.layout<[64, 1], register = [[32, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>

// Both comparisons of a tree, in any order and spelling. The bound is made once, outside of the loop.
// CHECK-LABEL: func.func @picture(
// CHECK-SAME: %[[Y:[a-z0-9]+]]: tensor<64xi32, #{{.*}}>, %[[X:[a-z0-9]+]]: tensor<64xi32, #{{.*}}>, %[[H:[a-z0-9]+]]: i32, %[[W:[a-z0-9]+]]: i32, %[[P:[a-z0-9]+]]:
// CHECK-DAG: %[[H0:.*]] = arith.maxsi %[[H]], %{{.*}} : i32
// CHECK-DAG: %[[W0:.*]] = arith.maxsi %[[W]], %{{.*}} : i32
// CHECK-DAG: %[[HS:.*]] = tile.splat %[[H0]]
// CHECK-DAG: %[[WS:.*]] = tile.splat %[[W0]]
// CHECK: scf.for
// CHECK: %[[IN_X:.*]] = arith.cmpi ult, %[[X]], %[[WS]]
// CHECK-NEXT: %[[ONE:.*]] = arith.andi %{{.*}}, %[[IN_X]]
// CHECK-NEXT: %[[IN_Y:.*]] = arith.cmpi ult, %[[Y]], %[[HS]]
// CHECK-NEXT: %[[BOTH:.*]] = arith.andi %[[ONE]], %[[IN_Y]]
// CHECK-NEXT: scf.yield %[[BOTH]]
func.func @picture(%y: tensor<64xi32, #l>, %x: tensor<64xi32, #l>, %h: i32, %w: i32, %p: tensor<64xi1, #l>) -> tensor<64xi1, #l> {
  %zeros = arith.constant dense<0> : tensor<64xi32, #l>
  %ones = arith.constant dense<-1> : tensor<64xi32, #l>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %h step %c1 iter_args(%q = %p) -> (tensor<64xi1, #l>) : i32 {
    %hs = tile.splat %h : i32 -> tensor<64xi32, #l>
    %ws = tile.splat %w : i32 -> tensor<64xi32, #l>
    %a = arith.cmpi sge, %y, %zeros : tensor<64xi32, #l>
    %b = arith.cmpi sgt, %hs, %y : tensor<64xi32, #l>
    %c = arith.cmpi slt, %ones, %x : tensor<64xi32, #l>
    %d = arith.cmpi slt, %x, %ws : tensor<64xi32, #l>
    %1 = arith.andi %q, %a : tensor<64xi1, #l>
    %2 = arith.andi %1, %d : tensor<64xi1, #l>
    %3 = arith.andi %2, %b : tensor<64xi1, #l>
    %4 = arith.andi %3, %c : tensor<64xi1, #l>
    scf.yield %4 : tensor<64xi1, #l>
  }
  return %r : tensor<64xi1, #l>
}

// A mask that is nothing else becomes the comparison; one that is spread out is spread out again.
// CHECK-LABEL: func.func @rows(
// CHECK: %[[LINE:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : tensor<64xi32
// CHECK: %[[COLUMN:.*]] = tile.expand_dims %[[LINE]]
// CHECK: %[[ALL:.*]] = tile.broadcast %[[COLUMN]]
// CHECK: return %[[ALL]]
func.func @rows(%y: tensor<64xi32, #l>, %h: i32) -> tensor<64x4xi1, #m> {
  %zeros = arith.constant dense<0> : tensor<64xi32, #l>
  %hs = tile.splat %h : i32 -> tensor<64xi32, #l>
  %a = arith.cmpi sge, %y, %zeros {warp.constancy = array<i32: 4>} : tensor<64xi32, #l>
  %b = arith.cmpi slt, %y, %hs {warp.constancy = array<i32: 4>} : tensor<64xi32, #l>
  %a1 = tile.expand_dims %a {axis = 1 : i32} : tensor<64xi1, #l> -> tensor<64x1xi1, #c>
  %b1 = tile.expand_dims %b {axis = 1 : i32} : tensor<64xi1, #l> -> tensor<64x1xi1, #c>
  %a2 = tile.broadcast %a1 : tensor<64x1xi1, #c> -> tensor<64x4xi1, #m>
  %b2 = tile.broadcast %b1 : tensor<64x1xi1, #c> -> tensor<64x4xi1, #m>
  %r = arith.andi %a2, %b2 : tensor<64x4xi1, #m>
  return %r : tensor<64x4xi1, #m>
}

// Left alone: bounds of elements, constants, numbers of which others are less, comparisons that repeat elsewhere, and sums
// that begin below 0.
// CHECK-LABEL: func.func @alone(
// CHECK-NOT: arith.maxsi
// CHECK-NOT: ult
func.func @alone(%y: tensor<64xi32, #l>, %x: tensor<64xi32, #l>, %h: i32) -> (tensor<64xi1, #l>, tensor<64xi1, #l>, tensor<64xi1, #l>, tensor<64xi1, #l>, tensor<64xi1, #l>) {
  %zeros = arith.constant dense<0> : tensor<64xi32, #l>
  %ones = arith.constant dense<1> : tensor<64xi32, #l>
  %hs = tile.splat %h : i32 -> tensor<64xi32, #l>
  %a = arith.cmpi sge, %y, %zeros : tensor<64xi32, #l>
  %b = arith.cmpi slt, %y, %x : tensor<64xi32, #l>
  %r = arith.andi %a, %b : tensor<64xi1, #l>
  %c = arith.cmpi slt, %y, %ones : tensor<64xi32, #l>
  %s = arith.andi %a, %c : tensor<64xi1, #l>
  %d = arith.cmpi slt, %x, %hs : tensor<64xi32, #l>
  %t = arith.andi %a, %d : tensor<64xi1, #l>
  %e = arith.cmpi slt, %y, %hs {warp.constancy = array<i32: 4>} : tensor<64xi32, #l>
  %u = arith.andi %a, %e : tensor<64xi1, #l>
  %f = arith.cmpi sgt, %y, %zeros : tensor<64xi32, #l>
  %g = arith.cmpi slt, %y, %hs : tensor<64xi32, #l>
  %v = arith.andi %f, %g : tensor<64xi1, #l>
  return %r, %s, %t, %u, %v : tensor<64xi1, #l>, tensor<64xi1, #l>, tensor<64xi1, #l>, tensor<64xi1, #l>, tensor<64xi1, #l>
}
