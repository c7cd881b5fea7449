// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s
// Products with weights, each a kernel: maps of stored values are computed on the way in, maps of the result on the way out.

!x = !attn.tensor<[B, 4, N, 32], f32>
!y = !attn.tensor<[B, 12, N, 32], f32>
// In halves this would be one kernel, as in expansion.mlir. relu(x1) is computed by the second convolution; the sum with x1 is stored in the place of its result.
// CHECK-LABEL: func.func @expand(
// CHECK-SAME: %[[X:.*]]: !attn.tensor<[B, 4, N, 32], f32>, %[[W1:.*]]: !attn.tensor<[12, 4, 3], f32>, %[[B1:.*]]: !attn.tensor<[12], f32>, %[[W2:.*]]: !attn.tensor<[12, 12, 3], f32>
// CHECK-NEXT: %[[X1:.*]] = attn.launch @head_conv(%[[W1]], %[[X]], %[[B1]]) grid ["(B) * cdiv(N, 4)", "1", "1"] {sizes = ["N"]}
// CHECK-NEXT: %[[X2:.*]] = attn.launch @head_conv_2(%[[W2]], %[[X1]]) grid ["(B) * cdiv(N, 4)", "1", "1"] {sizes = ["N"]}
// CHECK-NEXT: return %[[X2]]
// One product for each tap: 12 heads, in a tile of 16, times four tokens' 32 channels.
// CHECK-LABEL: func.func @head_conv(
// CHECK: scf.for
// CHECK: tile.load {{.*}} tensor<16x16x!tile.ptr<f32>>
// CHECK: tile.load {{.*}} tensor<16x4x32x!tile.ptr<f32>>
// CHECK: tile.dot {{.*}} : tensor<16x16xf32> * tensor<16x128xf32> -> tensor<16x128xf32>
// CHECK: tile.store
// CHECK-LABEL: func.func @head_conv_2(
// CHECK: scf.for
// CHECK: arith.maximumf
// CHECK: tile.dot
// CHECK: arith.addf
// CHECK: tile.store
// CHECK-NOT: tile.store
// CHECK: return
func.func @expand(%x: !x, %w1: !attn.tensor<[12, 4, 3], f32>, %b1: !attn.tensor<[12], f32>, %w2: !attn.tensor<[12, 12, 3], f32>) -> !y attributes {attn.program} {
  %x1 = attn.head_conv %x, %w1 bias %b1 : !x, !attn.tensor<[12, 4, 3], f32>, !attn.tensor<[12], f32> -> !y
  %relu = attn.map ins(%x1 : !y) -> !y {
  ^bb0(%a: f32):
    %zero = arith.constant 0.0 : f32
    %r = arith.maximumf %a, %zero : f32
    attn.yield %r : f32
  }
  %c = attn.head_conv %relu, %w2 : !y, !attn.tensor<[12, 12, 3], f32> -> !y
  %x2 = attn.map ins(%c, %x1 : !y, !y) -> !y {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %b : f32
    attn.yield %r : f32
  }
  return %x2 : !y
}

// -----

// 96 results are a product of 64 and one of 32; f32 multiplies in three parts.
// CHECK-LABEL: func.func @linear(
// CHECK-NEXT: attn.launch @linear_2(%{{.*}}, %{{.*}}, %{{.*}}) grid ["(B) * (H) * cdiv(N, 64)", "1", "1"]
// CHECK-LABEL: func.func @linear_2(
// CHECK: tile.dot {{.*}} {precision = #tile<precision tf32x3>} : tensor<64x64xf32> * tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK: tile.dot {{.*}} {precision = #tile<precision tf32x3>} : tensor<64x64xf32> * tensor<64x32xf32> -> tensor<64x32xf32>
func.func @linear(%x: !attn.tensor<[B, H, N, 64], f32>, %w: !attn.tensor<[96, 64], f32>, %b: !attn.tensor<[96], f32>) -> !attn.tensor<[B, H, N, 96], f32> attributes {attn.program} {
  %y = attn.linear %x, %w bias %b : !attn.tensor<[B, H, N, 64], f32>, !attn.tensor<[96, 64], f32>, !attn.tensor<[96], f32> -> !attn.tensor<[B, H, N, 96], f32>
  return %y : !attn.tensor<[B, H, N, 96], f32>
}

// -----

// The mean over groups of heads is taken where the linear map reads it; heads side by side are a loop over them.
// CHECK-LABEL: func.func @peaa(
// CHECK-NEXT: %[[Z:.*]] = attn.launch @linear(%{{.*}}, %{{.*}}) grid ["(B) * cdiv(N, 64)", "1", "1"]
// CHECK-NEXT: return %[[Z]]
// CHECK-LABEL: func.func @linear(
// CHECK: scf.for
// CHECK-COUNT-3: tile.load {{.*}} tensor<64x64x!tile.ptr<f16>>
// CHECK: tile.dot
func.func @peaa(%y: !attn.tensor<[B, 6, N, 64], f16>, %w: !attn.tensor<[100, 128], f16>) -> !attn.tensor<[B, N, 100], f16> attributes {attn.program} {
  %m = attn.mean_heads %y : !attn.tensor<[B, 6, N, 64], f16> -> !attn.tensor<[B, 2, N, 64], f16>
  %z = attn.linear %m, %w {concatenated} : !attn.tensor<[B, 2, N, 64], f16>, !attn.tensor<[100, 128], f16> -> !attn.tensor<[B, N, 100], f16>
  return %z : !attn.tensor<[B, N, 100], f16>
}

// -----

!x = !attn.tensor<[B, 4, N, 32], f32>
!y = !attn.tensor<[B, 12, N, 32], f32>
// Gradients of weights in f32 (in halves they are expansions' kernels: expansion-backward.mlir): partial sums of tiles of tokens, as many as there are tiles but no more than 64, then added.
// The bias' gradient is a column of the products.
// CHECK-LABEL: func.func @weight_grads(
// CHECK-NEXT: %[[Q:.*]]:2 = attn.launch @linear_weight_grad(%{{.*}}, %{{.*}}) grid ["max(1, min(64, (B) * (4) * cdiv(N, 64)))", "1", "1"]
// CHECK-NEXT: attn.launch @sum(%[[Q]]#0){{.*}} -> !attn.tensor<[48, 32], f32>
// CHECK-NEXT: attn.launch @sum_2(%[[Q]]#1){{.*}} -> !attn.tensor<[48], f32>
// CHECK-NEXT: %[[P:.*]] = attn.launch @head_conv_weight_grad(%{{.*}}, %{{.*}}) grid ["max(1, min(64, (B) * cdiv(N, 4)))", "3", "1"]
// CHECK-SAME: -> !attn.tensor<["max(1, min(64, (B) * cdiv(N, 4)))", 12, 4, 3], f32>
// CHECK-NEXT: attn.launch @sum_3(%[[P]]) grid ["9", "1", "1"] {{.*}} -> !attn.tensor<[12, 4, 3], f32>
// CHECK-LABEL: func.func @linear_weight_grad(
// CHECK-COUNT-2: tile.dot {{.*}} : tensor<32x64xf32> * tensor<64x{{32|16}}xf32>
func.func @weight_grads(%x: !x, %g: !y, %e: !attn.tensor<[B, 4, N, 48], f32>) -> (!attn.tensor<[12, 4, 3], f32>, !attn.tensor<[48, 32], f32>, !attn.tensor<[48], f32>) attributes {attn.program} {
  %c = attn.head_conv_weight_grad %x, %g : !x, !y -> !attn.tensor<[12, 4, 3], f32>
  %l, %b = attn.linear_weight_grad %x, %e : !x, !attn.tensor<[B, 4, N, 48], f32> -> !attn.tensor<[48, 32], f32>, !attn.tensor<[48], f32>
  return %c, %l, %b : !attn.tensor<[12, 4, 3], f32>, !attn.tensor<[48, 32], f32>, !attn.tensor<[48], f32>
}

// -----

!x = !attn.tensor<[B, 6, N, 64], f16>
// What a mean over heads reads is stored before it.
// CHECK-LABEL: func.func @mean_of_a_norm(
// CHECK-NEXT: %[[ROWS:.*]] = attn.launch @rows(
// CHECK-NEXT: %[[MEAN:.*]] = attn.launch @mean_heads(%[[ROWS]])
// CHECK-NEXT: return %[[MEAN]]
func.func @mean_of_a_norm(%x: !x) -> !attn.tensor<[B, 2, N, 64], f16> attributes {attn.program} {
  %y = attn.rms_norm %x : !x -> !x
  %m = attn.mean_heads %y : !x -> !attn.tensor<[B, 2, N, 64], f16>
  return %m : !attn.tensor<[B, 2, N, 64], f16>
}
