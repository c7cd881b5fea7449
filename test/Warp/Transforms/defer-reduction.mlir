// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --warp-defer-reduction %s | FileCheck %s

// Columns 1 and 8 are in registers, 2 and 4 in lanes, 16 in warps: eight threads hold parts of a row.
#x = #warp.layout<[16, 32], register = [[0, 1], [0, 8], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 16]]>
#r = #warp.layout<[16], register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[0]]>
#y = #warp.layout<[16, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 0]], warp = [[0, 0]]>
#s = #warp.layout<[16], lane = [[1], [2], [4], [8], [0]], warp = [[0]]>

// The second loop goes on with the parts of the first.
// CHECK-LABEL: func.func @scaled
// CHECK: %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<16x8xf32, #[[P:.*]]>
// CHECK: %[[FIRST:.*]] = scf.for {{.*}} iter_args(%[[S:.*]] = %[[Z]])
// CHECK: %[[Q:.*]] = tile.reshape {{.*}} -> tensor<16x2x2x4x2xf32
// CHECK: %[[Q4:.*]] = tile.reduce %[[Q]] {axis = 4 : i32}
// CHECK: %[[Q2:.*]] = tile.reduce %[[Q4]] {axis = 2 : i32}
// CHECK: %[[PART:.*]] = tile.reshape %[[Q2]] {{.*}} -> tensor<16x8xf32, #[[P]]>
// CHECK: %[[C:.*]] = tile.expand_dims %{{.*}} {axis = 1 : i32} {{.*}} -> tensor<16x1xf32
// CHECK: %[[A:.*]] = tile.broadcast %[[C]] {{.*}} -> tensor<16x8xf32, #[[P]]>
// CHECK: %[[M:.*]] = arith.mulf %[[S]], %[[A]]
// CHECK: arith.addf %[[M]], %[[PART]]
// CHECK-NOT: tile.reduce %[[FIRST]]
// CHECK: %[[SECOND:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[FIRST]])
// CHECK: %[[T:.*]] = tile.reduce %[[SECOND]] {axis = 1 : i32} : (tensor<16x8xf32, #[[P]]>) -> tensor<16xf32
// CHECK: return %[[T]]
func.func @scaled(%x: tensor<16x32xf32, #x>, %a: tensor<16xf32, #r>, %n: i32) -> tensor<16xf32, #r> {
  %zero = arith.constant dense<0.0> : tensor<16xf32, #r>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> tensor<16xf32, #r> : i32 {
    %r = tile.reduce %x {axis = 1 : i32} : (tensor<16x32xf32, #x>) -> tensor<16xf32, #r> {
    ^bb0(%p: f32, %q: f32):
      %o = arith.addf %p, %q : f32
      tile.yield %o : f32
    }
    %m = arith.mulf %s, %a : tensor<16xf32, #r>
    %u = arith.addf %m, %r : tensor<16xf32, #r>
    scf.yield %u : tensor<16xf32, #r>
  }
  %t2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %t) -> tensor<16xf32, #r> : i32 {
    %r = tile.reduce %x {axis = 1 : i32} : (tensor<16x32xf32, #x>) -> tensor<16xf32, #r> {
    ^bb0(%p: f32, %q: f32):
      %o = arith.addf %p, %q : f32
      tile.yield %o : f32
    }
    %u = arith.addf %s, %r : tensor<16xf32, #r>
    scf.yield %u : tensor<16xf32, #r>
  }
  return %t2 : tensor<16xf32, #r>
}

// What the loop starts from goes to the first part of each row.
// CHECK-LABEL: func.func @start
// CHECK-SAME: (%[[X:.*]]: tensor<16x32xf32, #{{.*}}>, %[[START:.*]]: tensor<16xf32
// CHECK: %[[N:.*]] = tile.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32
// CHECK: %[[IS:.*]] = arith.cmpi eq, %{{.*}} : tensor<16x8xi32
// CHECK: %[[E:.*]] = tile.expand_dims %[[START]]
// CHECK: %[[B:.*]] = tile.broadcast %[[E]]
// CHECK: %[[I:.*]] = arith.select %[[IS]], %[[B]], %{{.*}}
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[I]])
func.func @start(%x: tensor<16x32xf32, #x>, %start: tensor<16xf32, #r>, %n: i32) -> tensor<16xf32, #r> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = scf.for %i = %c0 to %n step %c1 iter_args(%s = %start) -> tensor<16xf32, #r> : i32 {
    %r = tile.reduce %x {axis = 1 : i32} : (tensor<16x32xf32, #x>) -> tensor<16xf32, #r> {
    ^bb0(%p: f32, %q: f32):
      %o = arith.addf %p, %q : f32
      tile.yield %o : f32
    }
    %u = arith.addf %r, %s : tensor<16xf32, #r>
    scf.yield %u : tensor<16xf32, #r>
  }
  return %t : tensor<16xf32, #r>
}

// A row within a thread has nothing to bring together; a maximum does not scale; a total that the loop reads has to be whole.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: tile.reshape
// CHECK: return
func.func @left_alone(%y: tensor<16x32xf32, #y>, %x: tensor<16x32xf32, #x>, %n: i32) -> (tensor<16xf32, #s>, tensor<16xf32, #r>, tensor<16xf32, #r>) {
  %zero = arith.constant dense<0.0> : tensor<16xf32, #s>
  %none = arith.constant dense<0.0> : tensor<16xf32, #r>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t:3 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %m = %none, %w = %none) -> (tensor<16xf32, #s>, tensor<16xf32, #r>, tensor<16xf32, #r>) : i32 {
    %r = tile.reduce %y {axis = 1 : i32} : (tensor<16x32xf32, #y>) -> tensor<16xf32, #s> {
    ^bb0(%p: f32, %q: f32):
      %o = arith.addf %p, %q : f32
      tile.yield %o : f32
    }
    %u = arith.addf %s, %r : tensor<16xf32, #s>
    %k = tile.reduce %x {axis = 1 : i32} : (tensor<16x32xf32, #x>) -> tensor<16xf32, #r> {
    ^bb0(%p: f32, %q: f32):
      %o = arith.maxnumf %p, %q : f32
      tile.yield %o : f32
    }
    %l = arith.maxnumf %m, %k : tensor<16xf32, #r>
    %f = tile.reduce %x {axis = 1 : i32} : (tensor<16x32xf32, #x>) -> tensor<16xf32, #r> {
    ^bb0(%p: f32, %q: f32):
      %o = arith.addf %p, %q : f32
      tile.yield %o : f32
    }
    %g = arith.addf %w, %f : tensor<16xf32, #r>
    %h = arith.maxnumf %g, %l : tensor<16xf32, #r>
    scf.yield %u, %h, %g : tensor<16xf32, #s>, tensor<16xf32, #r>, tensor<16xf32, #r>
  }
  return %t#0, %t#1, %t#2 : tensor<16xf32, #s>, tensor<16xf32, #r>, tensor<16xf32, #r>
}

// A tile that is reduced after the loop is reduced within each thread in it: of 4 columns that a thread has in
// registers, two pieces of 2, the loop carries one register; what the loop starts from is reduced alike.
// CHECK-LABEL: func.func @reduced_after
// CHECK-SAME: (%{{.*}}: tensor<16x32xf32, #{{.*}}>, %[[START:.*]]: tensor<16x32xf32
// CHECK: tile.reshape %[[START]]
// CHECK: %[[INIT:.*]] = tile.reshape {{.*}} -> tensor<16x8xf32, #[[P:.*]]>
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[S:.*]] = %[[INIT]])
// CHECK: tile.reduce {{.*}} {axis = 4 : i32}
// CHECK: tile.reduce {{.*}} {axis = 2 : i32}
// CHECK: %[[PART:.*]] = tile.reshape {{.*}} -> tensor<16x8xf32, #[[P]]>
// CHECK: arith.addf %[[S]], %[[PART]] : tensor<16x8xf32, #[[P]]>
// CHECK: tile.reduce %[[SUM]] {axis = 1 : i32} : (tensor<16x8xf32, #[[P]]>) -> tensor<16xf32
func.func @reduced_after(%x: tensor<16x32xf32, #x>, %start: tensor<16x32xf32, #x>, %n: i32) -> tensor<16xf32, #r> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = scf.for %i = %c0 to %n step %c1 iter_args(%s = %start) -> tensor<16x32xf32, #x> : i32 {
    %u = arith.addf %s, %x : tensor<16x32xf32, #x>
    scf.yield %u : tensor<16x32xf32, #x>
  }
  %r = tile.reduce %t {axis = 1 : i32} : (tensor<16x32xf32, #x>) -> tensor<16xf32, #r> {
  ^bb0(%p: f32, %q: f32):
    %o = arith.addf %p, %q : f32
    tile.yield %o : f32
  }
  return %r : tensor<16xf32, #r>
}

// The tile itself is asked for as well.
// CHECK-LABEL: func.func @read_besides
// CHECK-NOT: tile.reshape
// CHECK: return
func.func @read_besides(%x: tensor<16x32xf32, #x>, %start: tensor<16x32xf32, #x>, %n: i32) -> (tensor<16xf32, #r>, tensor<16x32xf32, #x>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %t = scf.for %i = %c0 to %n step %c1 iter_args(%s = %start) -> tensor<16x32xf32, #x> : i32 {
    %u = arith.addf %s, %x : tensor<16x32xf32, #x>
    scf.yield %u : tensor<16x32xf32, #x>
  }
  %r = tile.reduce %t {axis = 1 : i32} : (tensor<16x32xf32, #x>) -> tensor<16xf32, #r> {
  ^bb0(%p: f32, %q: f32):
    %o = arith.addf %p, %q : f32
    tile.yield %o : f32
  }
  return %r, %t : tensor<16xf32, #r>, tensor<16x32xf32, #x>
}
