// RUN: weft-opt %s --split-input-file --attn-to-tile | FileCheck %s
// Linear recurrences: a program of a head's columns goes from chunk to chunk with the state.

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
!s = !attn.tensor<[B, H, 64, 64], f32>

// Two products with the state and two of tokens; the final state is not stored, as nobody reads it.
// CHECK-LABEL: func.func @plain(
// CHECK: attn.launch @linear_attention{{.*}}grid ["1", "H", "B"]
// CHECK-LABEL: func.func @linear_attention(
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (tensor<64x64xf32>)
// CHECK-COUNT-4: tile.dot
// CHECK-NOT: tile.dot
// CHECK: scf.yield
func.func @plain(%q: !x {attn.name = "q"}, %k: !x {attn.name = "k"}, %v: !x {attn.name = "v"}) -> (!x {attn.name = "y"}) attributes {attn.program} {
  %y, %s = attn.recur %q, %k, %v {scale = 0.125 : f32} : (!x, !x, !x) -> (!x, !s)
  return %y : !x
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
!s = !attn.tensor<[B, H, 64, 64], f32>

// The inverses of all chunks are made at once, before the walk.
// CHECK-LABEL: func.func @delta(
// CHECK: attn.launch @delta_inverse{{.*}}grid ["cdiv(N, 64)", "H", "B"]
// CHECK: attn.launch @delta_rule{{.*}}grid ["1", "H", "B"]
// CHECK-LABEL: func.func @delta_inverse(
// CHECK-LABEL: func.func @delta_rule(
// CHECK: scf.for
// CHECK-COUNT-6: tile.dot
// CHECK-NOT: tile.dot
// CHECK: scf.yield
func.func @delta(%q: !x {attn.name = "q"}, %k: !x {attn.name = "k"}, %v: !x {attn.name = "v"}, %b: !n {attn.name = "b"})
    -> (!x {attn.name = "y"}, !s {attn.name = "s"}) attributes {attn.program} {
  %y, %s, %r, %i = attn.recur %q, %k, %v beta(%b) {scale = 0.125 : f32} : (!x, !x, !x, !n) -> (!x, !s, !x, !x)
  return %y, %s : !x, !s
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>

// CHECK-LABEL: func.func @gradient(
// CHECK: attn.launch @chunk_states
// CHECK: attn.launch @chunk_gradients
// CHECK: attn.launch @token_gradients{{.*}}grid ["cdiv(N, 64)", "H", "B"]
func.func @gradient(%q: !x {attn.name = "q"}, %k: !x {attn.name = "k"}, %v: !x {attn.name = "v"}, %g: !n {attn.name = "g"})
    -> (!x {attn.name = "dq"}, !x {attn.name = "dk"}, !x {attn.name = "dv"}, !n {attn.name = "dg"}) attributes {attn.program} {
  %d:4 = attn.recur_backward %q, %k, %v decay(%g) gradient(%v) {scale = 0.125 : f32} : (!x, !x, !x, !n, !x) -> (!x, !x, !x, !n)
  return %d#0, %d#1, %d#2, %d#3 : !x, !x, !x, !n
}
