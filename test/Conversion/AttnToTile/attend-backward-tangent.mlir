// RUN: weft-opt %s --attn-to-tile --split-input-file | FileCheck %s
// The tangent of a gradient is a kernel of queries and one of keys; what nobody uses is not made.

// CHECK-LABEL: func.func @both(
// CHECK-COUNT-2: attn.launch
// CHECK-NOT: attn.launch
// CHECK-LABEL: func.func @attend_backward_tangent_query(
// CHECK: scf.for
// CHECK-COUNT-8: tile.dot
// CHECK-NOT: tile.dot
// CHECK: scf.yield
// CHECK-LABEL: func.func @attend_backward_tangent_keys(
// CHECK: scf.for
// CHECK-COUNT-10: tile.dot
// CHECK-NOT: tile.dot
// CHECK: scf.yield
!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @both(%q: !x, %k: !x, %v: !x, %l: !n, %d: !n, %g: !x, %tq: !x, %tk: !x, %tv: !x, %tl: !n, %td: !n, %tg: !x) -> (!x, !x) attributes {attn.program} {
  %t, %u:2 = attn.attend_backward_tangent %q keys(%k : !x) values(%v : !x) lse(%l : !n) delta(%d : !n) gradient(%g : !x)
    query_tangent(%tq : !x) key_tangents(%tk : !x) value_tangents(%tv : !x) lse_tangent(%tl : !n) delta_tangent(%td : !n) gradient_tangent(%tg : !x)
    {patterns = [#attn.full], scale = 0.125 : f32} : !x -> !x, !x, !x
  return %t, %u#1 : !x, !x
}

// -----

// CHECK-LABEL: func.func @one(
// CHECK-COUNT-1: attn.launch
// CHECK-NOT: attn.launch
// CHECK-NOT: @attend_backward_tangent_keys
!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @one(%q: !x, %k: !x, %v: !x, %l: !n, %d: !n, %g: !x, %tq: !x, %tk: !x, %tv: !x, %tl: !n, %td: !n, %tg: !x) -> !x attributes {attn.program} {
  %t, %u:2 = attn.attend_backward_tangent %q keys(%k : !x) values(%v : !x) lse(%l : !n) delta(%d : !n) gradient(%g : !x)
    query_tangent(%tq : !x) key_tangents(%tk : !x) value_tangents(%tv : !x) lse_tangent(%tl : !n) delta_tangent(%td : !n) gradient_tangent(%tg : !x)
    {patterns = [#attn.full], scale = 0.125 : f32} : !x -> !x, !x, !x
  return %t : !x
}
