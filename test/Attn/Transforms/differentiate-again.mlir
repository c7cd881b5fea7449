// RUN: weft-opt %s --attn-differentiate --attn-differentiate | FileCheck %s
// RUN: weft-opt %s --attn-differentiate=fast=true | FileCheck %s --check-prefix=FAST
// A program that has its gradient is left alone, and so are the functions of the gradient. `fast` goes to the attention gradients.

// CHECK: func.func @f(
// CHECK: func.func @f.forward(
// CHECK: func.func @f.backward(
// CHECK-NOT: func.func
// FAST: attn.attend_backward {{.*}} {fast,
func.func @f(%q: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
  %y, %lse = attn.attend %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) values(%q : !attn.tensor<[B, H, N, 64], f16>)
    {patterns = [#attn.causal], scale = 0.125 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
  return %y : !attn.tensor<[B, H, N, 64], f16>
}
