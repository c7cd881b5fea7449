// RUN: weft-opt %s --split-input-file --attn-apply-mixers | FileCheck %s
// RUN: weft-opt %s --split-input-file --attn-apply-mixers --attn-differentiate | FileCheck %s --check-prefix=GRAD
// Linear recurrences are applied by one op, which gives the state that is asked for too; their gradient is one op.

!x = !attn.tensor<[B, "2*H", N, 64], f16>
!k = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, "2*H", N], f32>
!s = !attn.tensor<[B, "2*H", 64, 64], f32>

// CHECK-LABEL: func.func @delta(
// CHECK: %[[O:.*]], %[[S:.*]], %{{.*}}:2 = attn.recur %arg0, %arg1, %arg2 beta(%arg3) {{.*}} -> (!attn.tensor<[B, "2*H", N, 64], f16>, !attn.tensor<[B, "2*H", 64, 64], f32>, !attn.tensor<[B, "2*H", N, 64], f16>, !attn.tensor<[B, "2*H", N, 64], f16>)
// CHECK-NOT: attn.recur
// CHECK: return %[[O]], %[[S]] :
// GRAD-LABEL: func.func @delta.backward(
// GRAD-SAME: "saved_recurrence
// GRAD: attn.recur_backward %{{.*}}, %{{.*}}, %{{.*}} beta(%{{.*}}) delta(%{{.*}}, %{{.*}}) gradient(%{{.*}}) state_gradient(%{{.*}})
// Keys and values serve two query heads each.
// GRAD-COUNT-2: attn.sum
func.func @delta(%q: !x {attn.name = "q"}, %k: !k {attn.name = "k"}, %v: !k {attn.name = "v"}, %b: !n {attn.name = "b"})
    -> (!x {attn.name = "y"}, !s {attn.name = "s"}) attributes {attn.program} {
  %a = attn.recurrence %q, %k beta(%b) {scale = 0.125 : f32} : (!x, !k, !n) -> !attn.mixer
  %y = attn.apply %a, %v : (!k) -> !x
  %s = attn.final_state %a, %v : !k -> !s
  return %y, %s : !x, !s
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>

// A sum with a softmax is added in f32.
// CHECK-LABEL: func.func @sum(
// CHECK: attn.attend
// CHECK: attn.recur {{.*}} -> (!attn.tensor<[B, H, N, 64], f32>
// CHECK: attn.map
func.func @sum(%q: !x {attn.name = "q"}, %k: !x {attn.name = "k"}, %v: !x {attn.name = "v"}) -> (!x {attn.name = "y"}) attributes {attn.program} {
  %p = attn.softmax %q keys(%k : !x) {patterns = [#attn.causal], scale = 0.125 : f32} : !x
  %a = attn.recurrence %q, %k {scale = 0.125 : f32} : (!x, !x) -> !attn.mixer
  %m = attn.add %p, %a
  %y = attn.apply %m, %v : (!x) -> !x
  return %y : !x
}
