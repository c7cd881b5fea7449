// RUN: weft-opt %s --attn-linearise=arguments=0 --split-input-file | FileCheck %s
// Tangents of some arguments.

// What no tangent reaches stays as it is, and so do programs without floats; a result that does not change has a tangent of zeros. Results are tensors of their own.
// CHECK-LABEL: func.func @some.tangent(
// CHECK-SAME: %[[X:[^:]*]]: {{[^%]*}}%[[Y:[^:]*]]: {{[^%]*}}%[[TX:[^:]*]]: !attn.tensor<[N], f32>
// CHECK: %[[A:.*]] = attn.map ins(%[[X]]
// CHECK: %[[B:.*]] = attn.map ins(%[[Y]]
// CHECK: math.cbrt
// CHECK: %[[TA:.*]] = attn.map ins(%[[TX]]
// CHECK: %[[TB:.*]] = attn.map ->
// CHECK: arith.constant 0.0
// CHECK: return %[[A]], %[[B]], %[[TA]], %[[TB]]
// CHECK-NOT: @whole.tangent
func.func @some(%x: !attn.tensor<[N], f32>, %y: !attn.tensor<[N], f32>) -> (!attn.tensor<[N], f32>, !attn.tensor<[N], f32>) attributes {attn.program} {
  %0 = attn.map ins(%y : !attn.tensor<[N], f32>) -> !attn.tensor<[N], f32> {
  ^bb0(%a: f32):
    %b = math.cbrt %a : f32
    attn.yield %b : f32
  }
  return %x, %0 : !attn.tensor<[N], f32>, !attn.tensor<[N], f32>
}
func.func @whole(%x: !attn.tensor<[N], i32>) -> !attn.tensor<[N], i32> attributes {attn.program} {
  return %x : !attn.tensor<[N], i32>
}

// -----

// A bias alone that changes is repeated.
// CHECK-LABEL: func.func @bias.tangent(
// CHECK-SAME: %[[TB:[^:]*]]: !attn.tensor<[6], f32> {attn.name = "t_argument0"})
// CHECK: %[[T:.*]] = attn.map ->
// CHECK: %[[O:.*]] = attn.index 1
// CHECK: attn.element %[[TB]][%[[O]]]
// CHECK: %[[Y:.*]] = attn.head_conv
// CHECK: return %[[Y]], %[[T]]
func.func @bias(%b: !attn.tensor<[6], f32>, %x: !attn.tensor<[B, 2, N, 16], f32>, %w: !attn.tensor<[6, 2, 3], f32>) -> !attn.tensor<[B, 6, N, 16], f32> attributes {attn.program} {
  %1 = attn.head_conv %x, %w bias %b : !attn.tensor<[B, 2, N, 16], f32>, !attn.tensor<[6, 2, 3], f32>, !attn.tensor<[6], f32> -> !attn.tensor<[B, 6, N, 16], f32>
  return %1 : !attn.tensor<[B, 6, N, 16], f32>
}
