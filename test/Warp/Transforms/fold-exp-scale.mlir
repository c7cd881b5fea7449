// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --warp-fold-exp-scale %s | FileCheck %s

// CHECK-LABEL: func.func @constant
// CHECK: %[[C:.*]] = arith.constant dense<0.180336878> : tensor<16xf32>
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %[[C]]
// CHECK: math.exp2 %[[P]]
// CHECK-NOT: math.exp
func.func @constant(%x: tensor<16xf32>) -> tensor<16xf32> {
  %c = arith.constant dense<0.125> : tensor<16xf32>
  %y = arith.mulf %x, %c : tensor<16xf32>
  %e = math.exp %y : tensor<16xf32>
  return %e : tensor<16xf32>
}

// CHECK-LABEL: func.func @scalar
// CHECK-SAME: %[[S:[a-z0-9]*]]: f32
// CHECK: %[[M:.*]] = arith.mulf %[[S]], %{{.*}} : f32
// CHECK: %[[F:.*]] = tile.splat %[[M]]
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %[[F]] : tensor<16xf32>
// CHECK: math.exp2 %[[P]]
func.func @scalar(%x: tensor<16xf32>, %s: f32) -> tensor<16xf32> {
  %c = tile.splat %s : f32 -> tensor<16xf32>
  %y = arith.mulf %c, %x : tensor<16xf32>
  %e = math.exp %y : tensor<16xf32>
  return %e : tensor<16xf32>
}

// A difference stays exact; a product of two tensors has nothing to fold into; f16 is left alone.
// CHECK-LABEL: func.func @left_alone
// CHECK-COUNT-3: math.exp %
func.func @left_alone(%x: tensor<16xf32>, %y: tensor<16xf32>, %h: tensor<16xf16>) -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf16>) {
  %d = arith.subf %x, %y : tensor<16xf32>
  %a = math.exp %d : tensor<16xf32>
  %p = arith.mulf %x, %y : tensor<16xf32>
  %b = math.exp %p : tensor<16xf32>
  %c = arith.constant dense<0.125> : tensor<16xf16>
  %q = arith.mulf %h, %c : tensor<16xf16>
  %e = math.exp %q : tensor<16xf16>
  return %a, %b, %e : tensor<16xf32>, tensor<16xf32>, tensor<16xf16>
}
