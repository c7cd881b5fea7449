// RUN: weft-opt %s --attn-differentiate --split-input-file | FileCheck %s
// Adjoints of products with weights: the transposed product, the weight's gradient, a sum for the bias; and of means over heads.

// CHECK-LABEL: func.func @head_conv.backward(
// CHECK-SAME: %[[X:[^:]*]]: !attn.tensor<[B, 4, N, 32], f16>, %[[W:[^:]*]]: !attn.tensor<[12, 4, 3], f16>, %{{[^:]*}}: !attn.tensor<[12], f32>, %[[DY:[^:]*]]: !attn.tensor<[B, 12, N, 32], f16>
// CHECK: %[[DX:.*]] = attn.head_conv %[[DY]], %[[W]] {transposed} : {{.*}} -> !attn.tensor<[B, 4, N, 32], f16>
// CHECK: %[[DW:.*]] = attn.head_conv_weight_grad %[[X]], %[[DY]] : {{.*}} -> !attn.tensor<[12, 4, 3], f16>
// CHECK: %[[DB:.*]] = attn.sum %[[DY]] away [0, 2, 3] : {{.*}} -> !attn.tensor<[12], f32>
// CHECK: return %[[DX]], %[[DW]], %[[DB]]
func.func @head_conv(%x: !attn.tensor<[B, 4, N, 32], f16>, %w: !attn.tensor<[12, 4, 3], f16>, %b: !attn.tensor<[12], f32>) -> !attn.tensor<[B, 12, N, 32], f16> attributes {attn.program} {
  %y = attn.head_conv %x, %w bias %b : !attn.tensor<[B, 4, N, 32], f16>, !attn.tensor<[12, 4, 3], f16>, !attn.tensor<[12], f32> -> !attn.tensor<[B, 12, N, 32], f16>
  return %y : !attn.tensor<[B, 12, N, 32], f16>
}

// -----

// The transpose's transpose is the product itself, and in its weight's gradient source and gradient change places.
// CHECK-LABEL: func.func @transposed.backward(
// CHECK-SAME: %[[X:[^:]*]]: !attn.tensor<[B, 12, N, 32], f16>, %[[W:[^:]*]]: !attn.tensor<[12, 4, 3], f16>, %[[DY:[^:]*]]: !attn.tensor<[B, 4, N, 32], f16>
// CHECK: attn.head_conv %[[DY]], %[[W]] : {{.*}} -> !attn.tensor<[B, 12, N, 32], f16>
// CHECK: attn.head_conv_weight_grad %[[DY]], %[[X]] : {{.*}} -> !attn.tensor<[12, 4, 3], f16>
func.func @transposed(%x: !attn.tensor<[B, 12, N, 32], f16>, %w: !attn.tensor<[12, 4, 3], f16>) -> !attn.tensor<[B, 4, N, 32], f16> attributes {attn.program} {
  %y = attn.head_conv %x, %w {transposed} : !attn.tensor<[B, 12, N, 32], f16>, !attn.tensor<[12, 4, 3], f16> -> !attn.tensor<[B, 4, N, 32], f16>
  return %y : !attn.tensor<[B, 4, N, 32], f16>
}

// -----

// CHECK-LABEL: func.func @linear.backward(
// CHECK-SAME: %[[X:[^:]*]]: !attn.tensor<[B, H, N, 64], f16>, %[[W:[^:]*]]: !attn.tensor<[96, 64], f16>, %{{[^:]*}}: !attn.tensor<[96], f16>, %[[DY:[^:]*]]: !attn.tensor<[B, H, N, 96], f16>
// CHECK: attn.linear %[[DY]], %[[W]] {transposed} : {{.*}} -> !attn.tensor<[B, H, N, 64], f16>
// CHECK: attn.linear_weight_grad %[[X]], %[[DY]] : {{.*}} -> !attn.tensor<[96, 64], f16>
// CHECK: attn.sum %[[DY]] away [0, 1, 2] : {{.*}} -> !attn.tensor<[96], f16>
func.func @linear(%x: !attn.tensor<[B, H, N, 64], f16>, %w: !attn.tensor<[96, 64], f16>, %b: !attn.tensor<[96], f16>) -> !attn.tensor<[B, H, N, 96], f16> attributes {attn.program} {
  %y = attn.linear %x, %w bias %b : !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[96, 64], f16>, !attn.tensor<[96], f16> -> !attn.tensor<[B, H, N, 96], f16>
  return %y : !attn.tensor<[B, H, N, 96], f16>
}

// -----

// PEAA after its rewrite: the mean's gradient is shared among the groups.
// CHECK-LABEL: func.func @peaa.backward(
// CHECK-SAME: %[[Y:[^:]*]]: !attn.tensor<[B, 6, N, 64], f16>, %[[W:[^:]*]]: !attn.tensor<[100, 128], f16>, %[[DZ:[^:]*]]: !attn.tensor<[B, N, 100], f16>
// CHECK: %[[DM:.*]] = attn.linear %[[DZ]], %[[W]] {concatenated, transposed} : {{.*}} -> !attn.tensor<[B, 2, N, 64], f32>
// CHECK: %[[M:.*]] = attn.mean_heads %[[Y]]
// CHECK: attn.linear_weight_grad %[[M]], %[[DZ]] {concatenated} : {{.*}} -> !attn.tensor<[100, 128], f16>
// CHECK: attn.map -> !attn.tensor<[B, 6, N, 64], f16> {
// CHECK: %[[TWO:.*]] = arith.constant 2 : i32
// CHECK: %[[HEAD:.*]] = arith.remui %{{.*}}, %[[TWO]]
// CHECK: attn.element %[[DM]][%{{.*}}, %[[HEAD]], %{{.*}}, %{{.*}}]
func.func @peaa(%y: !attn.tensor<[B, 6, N, 64], f16>, %w: !attn.tensor<[100, 128], f16>) -> !attn.tensor<[B, N, 100], f16> attributes {attn.program} {
  %m = attn.mean_heads %y : !attn.tensor<[B, 6, N, 64], f16> -> !attn.tensor<[B, 2, N, 64], f16>
  %z = attn.linear %m, %w {concatenated} : !attn.tensor<[B, 2, N, 64], f16>, !attn.tensor<[100, 128], f16> -> !attn.tensor<[B, N, 100], f16>
  return %z : !attn.tensor<[B, N, 100], f16>
}
