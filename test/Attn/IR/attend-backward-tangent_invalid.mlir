// RUN: weft-opt %s --split-input-file --verify-diagnostics
// What attn.attend_backward_tangent demands of its regions.

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_backward_tangent_c4(%x: !x, %n: !n) {
  // expected-error@+1 {{expected score_mod, its gradient and their tangents, or none}}
  %t, %u:2 = "attn.attend_backward_tangent"(%x, %x, %x, %n, %n, %x, %x, %x, %x, %n, %n, %x)
    <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1>, patterns = [#attn.full], scale = 1.0 : f32}> ({
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    attn.yield %s : f32
  }, {}, {}, {}) : (!x, !x, !x, !n, !n, !x, !x, !x, !x, !n, !n, !x) -> (!x, !x, !x)
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_backward_tangent_c2(%x: !x, %n: !n) {
  // expected-error@+1 {{expected a tangent of the operands of type}}
  %t, %u:2 = attn.attend_backward_tangent %x keys(%x : !x) values(%x : !x) lse(%n : !n) delta(%n : !n) gradient(%x : !x)
    query_tangent(%n : !n) key_tangents(%x : !x) value_tangents(%x : !x) lse_tangent(%n : !n) delta_tangent(%n : !n) gradient_tangent(%x : !x)
    {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !x, !x
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!k = !attn.tensor<[B, H, N, 32], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_backward_tangent_c1(%x: !x, %k: !k, %n: !n) {
  // expected-error@+1 {{expected keys of shape [B, H, N, 64], but got '!attn.tensor<[B, H, N, 32], f16>'}}
  %t, %u:2 = attn.attend_backward_tangent %x keys(%k : !k) values(%x : !x) lse(%n : !n) delta(%n : !n) gradient(%x : !x)
    query_tangent(%x : !x) key_tangents(%k : !k) value_tangents(%x : !x) lse_tangent(%n : !n) delta_tangent(%n : !n) gradient_tangent(%x : !x)
    {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !x, !x
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!k = !attn.tensor<[B, H, N, 32], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_backward_tangent_c3(%x: !x, %n: !n) {
  // expected-error@+1 {{expected the keys' gradient of shape [B, H, N, 64], but got '!attn.tensor<[B, H, N, 32], f16>'}}
  %t, %u:2 = attn.attend_backward_tangent %x keys(%x : !x) values(%x : !x) lse(%n : !n) delta(%n : !n) gradient(%x : !x)
    query_tangent(%x : !x) key_tangents(%x : !x) value_tangents(%x : !x) lse_tangent(%n : !n) delta_tangent(%n : !n) gradient_tangent(%x : !x)
    {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !k, !x
  return
}
