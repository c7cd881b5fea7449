// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --warp-fold-max-scale %s | FileCheck %s

// CHECK-LABEL: func.func @softmax
// CHECK-SAME: (%[[X:.*]]: tensor<16x32xf32>)
// CHECK: %[[Y:.*]] = arith.mulf %[[X]], %{{.*}} : tensor<16x32xf32>
// CHECK: %[[M:.*]] = tile.reduce %[[X]]
// CHECK: %[[S:.*]] = arith.mulf %[[M]], %{{.*}} : tensor<16xf32>
// CHECK: tile.expand_dims %[[S]]
// CHECK: arith.subf %[[Y]]
func.func @softmax(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %c = arith.constant dense<0.125> : tensor<16x32xf32>
  %y = arith.mulf %x, %c : tensor<16x32xf32>
  %m = tile.reduce %y {axis = 1 : i32} : (tensor<16x32xf32>) -> tensor<16xf32> {
  ^bb0(%a: f32, %b: f32):
    %r = arith.maxnumf %a, %b : f32
    tile.yield %r : f32
  }
  %e = tile.expand_dims %m {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %f = tile.broadcast %e : tensor<16x1xf32> -> tensor<16x32xf32>
  %d = arith.subf %y, %f : tensor<16x32xf32>
  return %d : tensor<16x32xf32>
}

// CHECK-LABEL: func.func @masked
// CHECK-SAME: (%[[X:.*]]: tensor<32xf32>, %[[K:.*]]: tensor<32xi1>
// CHECK-NOT: arith.mulf %[[X]]
// CHECK: %[[S:.*]] = arith.select %[[K]], %[[X]], %{{.*}} : tensor<32xi1>, tensor<32xf32>
// CHECK: %[[Y:.*]] = arith.mulf %[[S]], %{{.*}} : tensor<32xf32>
// CHECK: %[[M:.*]] = tile.reduce %[[S]]
// CHECK: arith.mulf %[[M]], %{{.*}} : f32
// CHECK: arith.subf %[[Y]]
func.func @masked(%x: tensor<32xf32>, %k: tensor<32xi1>, %old: tensor<32xf32>) -> (f32, tensor<32xf32>) {
  %c = arith.constant dense<2.0> : tensor<32xf32>
  %none = arith.constant dense<0xFF800000> : tensor<32xf32>
  %y = arith.mulf %c, %x : tensor<32xf32>
  %s = arith.select %k, %y, %none : tensor<32xi1>, tensor<32xf32>
  %m = tile.reduce %s {axis = 0 : i32} : (tensor<32xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %r = arith.maximumf %a, %b : f32
    tile.yield %r : f32
  }
  %d = arith.subf %s, %old : tensor<32xf32>
  return %m, %d : f32, tensor<32xf32>
}

// A negative factor turns the order round, a scalar may be negative, a sum is not a maximum, a value that is used as it
// is has to be made anyway, and so has one that a mask puts 0 beside.
// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-3: arith.mulf %{{.*}} : tensor<32xf32>
// CHECK: arith.select
// CHECK-NOT: arith.mulf
// CHECK: return
func.func @left_alone(%x: tensor<32xf32>, %k: tensor<32xi1>, %s: f32) -> (f32, f32, f32, f32, f32, tensor<32xf32>) {
  %c = arith.constant dense<-2.0> : tensor<32xf32>
  %p = arith.constant dense<2.0> : tensor<32xf32>
  %zero = arith.constant dense<0.0> : tensor<32xf32>
  %t = tile.splat %s : f32 -> tensor<32xf32>
  %negative = arith.mulf %x, %c : tensor<32xf32>
  %scalar = arith.mulf %x, %t : tensor<32xf32>
  %used = arith.mulf %x, %p : tensor<32xf32>
  %masked = arith.select %k, %used, %zero : tensor<32xi1>, tensor<32xf32>
  %m0 = tile.reduce %negative {axis = 0 : i32} : (tensor<32xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %r = arith.maxnumf %a, %b : f32
    tile.yield %r : f32
  }
  %m1 = tile.reduce %scalar {axis = 0 : i32} : (tensor<32xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %r = arith.maxnumf %a, %b : f32
    tile.yield %r : f32
  }
  %m2 = tile.reduce %used {axis = 0 : i32} : (tensor<32xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %r = arith.maxnumf %a, %b : f32
    tile.yield %r : f32
  }
  %m3 = tile.reduce %masked {axis = 0 : i32} : (tensor<32xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %r = arith.maxnumf %a, %b : f32
    tile.yield %r : f32
  }
  %m4 = tile.reduce %used {axis = 0 : i32} : (tensor<32xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %b : f32
    tile.yield %r : f32
  }
  return %m0, %m1, %m2, %m3, %m4, %used : f32, f32, f32, f32, f32, tensor<32xf32>
}
