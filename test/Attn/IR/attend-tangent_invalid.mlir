// RUN: weft-opt %s --split-input-file --verify-diagnostics
// What attn.attend_tangent demands beside attn.attend.

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_tangent_c2(%x: !x, %sink: !attn.tensor<[H], f32>) {
  // expected-error@+1 {{expected a sink's tangent only with a sink}}
  %o, %l, %t, %u = attn.attend_tangent %x keys(%x : !x) values(%x : !x) sink_tangent(%sink : !attn.tensor<[H], f32>) {patterns = [#attn.full], scale = 1.0 : f32} : !x -> !x, !n, !x, !n
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_tangent_c2(%x: !x) {
  // expected-error@+1 {{expected no tangents of the keys or 1, but got 2}}
  %o, %l, %t, %u = attn.attend_tangent %x keys(%x : !x) values(%x : !x) key_tangents(%x, %x : !x, !x) {patterns = [#attn.full], scale = 1.0 : f32} : !x -> !x, !n, !x, !n
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_tangent_c2(%x: !x, %y: !attn.tensor<[B, H, N, 64], f32>) {
  // expected-error@+1 {{expected a tangent of the values of type '!attn.tensor<[B, H, N, 64], f16>', but got '!attn.tensor<[B, H, N, 64], f32>'}}
  %o, %l, %t, %u = attn.attend_tangent %x keys(%x : !x) values(%x : !x) value_tangents(%y : !attn.tensor<[B, H, N, 64], f32>) {patterns = [#attn.full], scale = 1.0 : f32} : !x -> !x, !n, !x, !n
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_tangent_c3(%x: !x) {
  // expected-error@+1 {{expected the outputs' tangent}}
  %o, %l, %t, %u = attn.attend_tangent %x keys(%x : !x) values(%x : !x) query_tangent(%x : !x) {patterns = [#attn.full], scale = 1.0 : f32} : !x -> !x, !n, !n, !n
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_tangent_c4(%x: !x) {
  // expected-error@+1 {{expected both score_mod and its tangent, or neither}}
  %o, %l, %t, %u = "attn.attend_tangent"(%x, %x, %x, %x) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0>, patterns = [#attn.full], scale = 1.0 : f32}> ({
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    attn.yield %s : f32
  }, {}) : (!x, !x, !x, !x) -> (!x, !n, !x, !n)
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_tangent_c4(%x: !x) {
  // expected-error@+1 {{expected the tangent of score_mod}}
  %o, %l, %t, %u = attn.attend_tangent %x keys(%x : !x) values(%x : !x) query_tangent(%x : !x) {patterns = [#attn.full], scale = 1.0 : f32} : !x -> !x, !n, !x, !n score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    attn.yield %s : f32
  } tangent {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    attn.yield %s : f32
  }
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_tangent_c1(%x: !x, %k: !attn.tensor<[B, H, N, 32], f16>) {
  // expected-error@+1 {{expected keys of shape [B, H, N, 64], but got '!attn.tensor<[B, H, N, 32], f16>'}}
  %o, %l, %t, %u = attn.attend_tangent %x keys(%k : !attn.tensor<[B, H, N, 32], f16>) values(%x : !x) query_tangent(%x : !x) {patterns = [#attn.full], scale = 1.0 : f32} : !x -> !x, !n, !x, !n
  return
}
