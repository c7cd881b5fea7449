// RUN: weft-opt %s --attn-to-tile --split-input-file | FileCheck %s
// Attention with its tangent is one kernel, which walks the keys once: six products a block, two of weights with values.

// CHECK-LABEL: func.func @f(
// CHECK-COUNT-1: attn.launch
// CHECK-NOT: attn.launch
// CHECK-LABEL: func.func @attend_tangent(
// CHECK: scf.for
// CHECK: %[[S:.*]] = tile.dot
// CHECK: %[[DS:.*]] = tile.dot
// CHECK: %[[DS2:.*]] = tile.dot {{.*}}, %[[DS]]
// CHECK: tile.reduce
// CHECK: math.exp2
// CHECK: tile.dot
// CHECK: tile.dot
// CHECK: tile.dot
// CHECK-NOT: tile.dot
// CHECK: scf.yield
!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @f(%q: !x, %k: !x, %v: !x, %dq: !x, %dk: !x, %dv: !x) -> (!x, !x) attributes {attn.program} {
  %out, %lse, %dout, %dlse = attn.attend_tangent %q keys(%k : !x) values(%v : !x) query_tangent(%dq : !x) key_tangents(%dk : !x) value_tangents(%dv : !x)
    {patterns = [#attn.full], scale = 0.125 : f32} : !x -> !x, !n, !x, !n
  return %out, %dout : !x, !x
}

// -----

// Without tangents of the scores there is neither a mean nor its products.
// CHECK-LABEL: func.func @values(
// CHECK-LABEL: func.func @attend_tangent(
// CHECK: scf.for
// CHECK-COUNT-3: tile.dot
// CHECK-NOT: tile.dot
// CHECK: scf.yield
!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @values(%q: !x, %k: !x, %v: !x, %dv: !x) -> !x attributes {attn.program} {
  %out, %lse, %dout, %dlse = attn.attend_tangent %q keys(%k : !x) values(%v : !x) value_tangents(%dv : !x)
    {patterns = [#attn.full], scale = 0.125 : f32} : !x -> !x, !n, !x, !n
  return %dout : !x
}
