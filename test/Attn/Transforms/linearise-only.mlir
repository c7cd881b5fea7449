// RUN: weft-opt %s --attn-differentiate --attn-linearise=only=f.backward | FileCheck %s
// One function is linearised, of those that differentiation makes too, and none other is kept. The gradient of a weight is linear in both of what it reads, that of the bias in one.

// CHECK-NOT: func.func
// CHECK: func.func @f.backward.tangent(
// CHECK-SAME: {attn.name = "d_y"}, %[[TX:[^:]*]]: {{[^{]*}} {attn.name = "t_x"}, %{{[^:]*}}: {{[^{]*}} {attn.name = "t_w"}
// CHECK-SAME: {attn.name = "t_d_y"})
// CHECK-SAME: -> ({{[^{]*}} {attn.name = "d_x"}, {{[^{]*}} {attn.name = "d_w"}, {{[^{]*}} {attn.name = "d_b"}, {{[^{]*}} {attn.name = "t_d_x"}, {{[^{]*}} {attn.name = "t_d_w"}, {{[^{]*}} {attn.name = "t_d_b"})
// CHECK: attn.linear_weight_grad {{.*}} -> !attn.tensor<[16, 16], f32>, !attn.tensor<[16], f32>
// CHECK: attn.linear_weight_grad %[[TX]], {{.*}} -> !attn.tensor<[16, 16], f32>{{$}}
// CHECK-NOT: func.func
func.func @f(%x: !attn.tensor<[B, H, N, 16], f32> {attn.name = "x"}, %w: !attn.tensor<[16, 16], f32> {attn.name = "w"}, %b: !attn.tensor<[16], f32> {attn.name = "b"})
    -> (!attn.tensor<[B, H, N, 16], f32> {attn.name = "y"}) attributes {attn.program} {
  %y = attn.linear %x, %w bias %b : !attn.tensor<[B, H, N, 16], f32>, !attn.tensor<[16, 16], f32>, !attn.tensor<[16], f32> -> !attn.tensor<[B, H, N, 16], f32>
  return %y : !attn.tensor<[B, H, N, 16], f32>
}
