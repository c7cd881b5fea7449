// Part of Weft. SPDX-License-Identifier: Apache-2.0
// An argument whose gradient nobody asks for: what only it leads to is not computed.
// RUN: weft-opt %s --attn-differentiate | FileCheck %s

// CHECK-LABEL: func.func @scaled.backward
// CHECK-SAME: attn.gradients_of = array<i64: 0>
// CHECK: %[[DX:.*]] = attn.map ins(%arg1, %arg2
// CHECK: return %[[DX]] : !attn.tensor<[N, 64], f32>
func.func @scaled(%x: !attn.tensor<[N, 64], f32> {attn.name = "x"}, %g: !attn.tensor<[N, 64], f32> {attn.name = "g", attn.constant})
    -> !attn.tensor<[N, 64], f32> attributes {attn.program} {
  %y = attn.map ins(%x, %g : !attn.tensor<[N, 64], f32>, !attn.tensor<[N, 64], f32>) -> !attn.tensor<[N, 64], f32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    attn.yield %c : f32
  }
  return %y : !attn.tensor<[N, 64], f32>
}

// One that an attention without pairs read, and nothing else reads, has a gradient of zeros, unless nobody asks for it.
// CHECK-LABEL: func.func @left_out.backward
// CHECK-SAME: attn.gradients_of = array<i64: 0, 1>
// CHECK: %[[ZEROS:.*]] = attn.map -> !attn.tensor<[M, 64], f16> {
// CHECK: 0.0
// CHECK: return %{{.*}}, %[[ZEROS]] : !attn.tensor<[N, 64], f32>, !attn.tensor<[M, 64], f16>
func.func @left_out(%x: !attn.tensor<[N, 64], f32> {attn.name = "x"}, %k: !attn.tensor<[M, 64], f16> {attn.left_out, attn.name = "k"},
    %v: !attn.tensor<[M, 64], f16> {attn.constant, attn.left_out, attn.name = "v"}) -> !attn.tensor<[N, 64], f32> attributes {attn.program} {
  %y = attn.map ins(%x : !attn.tensor<[N, 64], f32>) -> !attn.tensor<[N, 64], f32> {
  ^bb0(%a: f32):
    %c = arith.mulf %a, %a : f32
    attn.yield %c : f32
  }
  return %y : !attn.tensor<[N, 64], f32>
}
