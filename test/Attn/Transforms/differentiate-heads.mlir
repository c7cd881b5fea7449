// RUN: weft-opt %s --attn-differentiate --split-input-file | FileCheck %s
// Adjoints of products with weights: the transposed product, the weight's gradient, a sum for the bias; and of means over heads.

// CHECK-LABEL: func.func @head_conv.backward(
// CHECK-SAME: %[[X:[^:]*]]: !attn.tensor<[B, 4, N, 32], f16>, %[[W:[^:]*]]: !attn.tensor<[12, 4, 3], f16>, %{{[^:]*}}: !attn.tensor<[12], f32>, %[[DY:[^:]*]]: !attn.tensor<[B, 12, N, 32], f16>
// CHECK: %[[DX:.*]] = attn.head_conv %[[DY]], %[[W]] {transposed} : {{.*}} -> !attn.tensor<[B, 4, N, 32], f16>
// CHECK: %[[DW:.*]], %[[DB:.*]] = attn.head_conv_weight_grad %[[X]], %[[DY]] : {{.*}} -> !attn.tensor<[12, 4, 3], f16>, !attn.tensor<[12], f32>
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
// CHECK: attn.linear_weight_grad %[[X]], %[[DY]] : {{.*}} -> !attn.tensor<[96, 64], f16>, !attn.tensor<[96], f16>
func.func @linear(%x: !attn.tensor<[B, H, N, 64], f16>, %w: !attn.tensor<[96, 64], f16>, %b: !attn.tensor<[96], f16>) -> !attn.tensor<[B, H, N, 96], f16> attributes {attn.program} {
  %y = attn.linear %x, %w bias %b : !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[96, 64], f16>, !attn.tensor<[96], f16> -> !attn.tensor<[B, H, N, 96], f16>
  return %y : !attn.tensor<[B, H, N, 96], f16>
}

// -----

// A constant weight: the bias' gradient is a sum.
// CHECK-LABEL: func.func @constant_weight.backward(
// CHECK-SAME: %[[DY:[^:]*]]: !attn.tensor<[B, H, N, 96], f16> {attn.name = "d_result0"}
// CHECK: attn.sum %[[DY]] away [0, 1, 2] : {{.*}} -> !attn.tensor<[96], f16>
// CHECK-NOT: linear_weight_grad
// CHECK: return
func.func @constant_weight(%x: !attn.tensor<[B, H, N, 64], f16>, %w: !attn.tensor<[96, 64], f16> {attn.constant}, %b: !attn.tensor<[96], f16>) -> !attn.tensor<[B, H, N, 96], f16> attributes {attn.program} {
  %y = attn.linear %x, %w bias %b : !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[96, 64], f16>, !attn.tensor<[96], f16> -> !attn.tensor<[B, H, N, 96], f16>
  return %y : !attn.tensor<[B, H, N, 96], f16>
}

// -----

// A gradient that goes on to a product is rounded once as a factor, and stored so: that of relu(x) by its only reader's type, and the sum of x's.
// CHECK-LABEL: func.func @residual.backward(
// CHECK: %[[DR:.*]] = attn.head_conv %{{.*}}, %{{.*}} {transposed} : {{.*}} -> !attn.tensor<[B, 4, N, 32], f16>
// CHECK: attn.map ins({{.*}}) -> !attn.tensor<[B, 4, N, 32], f16> {
// CHECK: attn.head_conv %{{.*}}, %{{.*}} {transposed} : !attn.tensor<[B, 4, N, 32], f16>
func.func @residual(%x: !attn.tensor<[B, 4, N, 32], f16>, %w: !attn.tensor<[4, 4, 3], f16>, %w2: !attn.tensor<[4, 4, 3], f16>) -> !attn.tensor<[B, 4, N, 32], f16> attributes {attn.program} {
  %y = attn.head_conv %x, %w : !attn.tensor<[B, 4, N, 32], f16>, !attn.tensor<[4, 4, 3], f16> -> !attn.tensor<[B, 4, N, 32], f16>
  %r = attn.map ins(%y : !attn.tensor<[B, 4, N, 32], f16>) -> !attn.tensor<[B, 4, N, 32], f16> {
  ^bb0(%a: f32):
    %zero = arith.constant 0.0 : f32
    %m = arith.maximumf %a, %zero : f32
    attn.yield %m : f32
  }
  %c = attn.head_conv %r, %w2 : !attn.tensor<[B, 4, N, 32], f16>, !attn.tensor<[4, 4, 3], f16> -> !attn.tensor<[B, 4, N, 32], f16>
  %s = attn.map ins(%c, %y : !attn.tensor<[B, 4, N, 32], f16>, !attn.tensor<[B, 4, N, 32], f16>) -> !attn.tensor<[B, 4, N, 32], f16> {
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    attn.yield %t : f32
  }
  return %s : !attn.tensor<[B, 4, N, 32], f16>
}

// -----

// PEAA after its rewrite: the mean's gradient is shared among the groups.
// CHECK-LABEL: func.func @peaa.backward(
// CHECK-SAME: %[[Y:[^:]*]]: !attn.tensor<[B, 6, N, 64], f16>, %[[W:[^:]*]]: !attn.tensor<[100, 128], f16>, %[[DZ:[^:]*]]: !attn.tensor<[B, N, 100], f16>
// CHECK: %[[DM:.*]] = attn.linear %[[DZ]], %[[W]] {concatenated, transposed} : {{.*}} -> !attn.tensor<[B, 2, N, 64], f16>
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

// -----

// The gradient of what a product with weights makes, here with a residual, is stored as the adjoint of the product takes it; that of what no product makes (%v) stays f32.
// CHECK-LABEL: func.func @rounded.backward(
// CHECK: %[[DQ:.*]], %[[DKV:.*]]:2 = attn.attend_backward {{.*}} -> !attn.tensor<[B, 4, N, 32], f16>, !attn.tensor<[B, 4, N, 32], f16>, !attn.tensor<[B, 4, N, 32], f32>
// CHECK-NOT: attn.map ins(%[[DQ]]
// CHECK: attn.linear %[[DQ]], %{{.*}} {transposed}
!x = !attn.tensor<[B, 4, N, 32], f16>
!w = !attn.tensor<[32, 32], f16>
func.func @rounded(%x: !x, %y: !x, %z: !x, %w: !w, %u: !w) -> !x attributes {attn.program} {
  %h = attn.linear %x, %w : !x, !w -> !x
  %q = attn.map ins(%h, %x : !x, !x) -> !x {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    attn.yield %s : f32
  }
  %k = attn.linear %y, %u : !x, !w -> !x
  %v = attn.map ins(%z : !x) -> !x {
  ^bb0(%a: f32):
    %s = arith.mulf %a, %a : f32
    attn.yield %s : f32
  }
  %out, %lse = attn.attend %q keys(%k : !x) values(%v : !x) {patterns = [#attn.full], scale = 0.125 : f32} : !x -> !x, !attn.tensor<[B, 4, N], f32>
  return %out : !x
}

// -----

// Contributions of two uses are added in f32.
// CHECK-LABEL: func.func @added.backward(
// CHECK: attn.attend_backward {{.*}} -> !attn.tensor<[B, 4, N, 32], f32>, !attn.tensor<[B, 4, N, 32], f32>, !attn.tensor<[B, 4, N, 32], f32>
!x = !attn.tensor<[B, 4, N, 32], f16>
!w = !attn.tensor<[32, 32], f16>
func.func @added(%x: !x, %w: !w) -> !x attributes {attn.program} {
  %q = attn.linear %x, %w : !x, !w -> !x
  %out, %lse = attn.attend %q keys(%q : !x) values(%q : !x) {patterns = [#attn.full], scale = 0.125 : f32} : !x -> !x, !attn.tensor<[B, 4, N], f32>
  return %out : !x
}
