// RUN: weft-opt %s --attn-differentiate --attn-linearise=only=f.backward --canonicalize --cse | FileCheck %s
// The gradient of attention and how it changes; delta's tangent is that of a map and a sum.

// CHECK: func.func @f.backward.tangent(
// CHECK-SAME: attn.name = "t_q"}
// CHECK-SAME: attn.name = "t_saved_lse1"}
// CHECK: %[[DELTA:.*]] = attn.sum
// CHECK: %[[TDELTA:.*]] = attn.sum
// CHECK: %[[T:.*]], %[[U:.*]]:2 = attn.attend_backward_tangent {{.*}} delta_tangent(%{{.*}} : {{.*}}) gradient_tangent(%{{.*}} : {{.*}} score_mod {
// CHECK: math.tanh
// CHECK: } tangent {
// CHECK: ^bb0(%[[S:[^:]*]]: f32, {{.*}}, %[[DS:[^:]*]]: f32):
// CHECK: } grad {
// CHECK: ^bb0(%[[S2:[^:]*]]: f32, {{.*}}, %[[G:[^:]*]]: f32):
// CHECK: } grad_tangent {
// CHECK: ^bb0(%[[S3:[^:]*]]: f32, {{.*}}, %[[G2:[^:]*]]: f32, %[[TS:[^:]*]]: f32, %[[TG:[^:]*]]: f32):
// CHECK: %[[D:.*]], %[[E:.*]]:2 = attn.attend_backward %
// CHECK: return %[[D]], %[[E]]#0, %[[E]]#1, %[[T]], %[[U]]#0, %[[U]]#1
!x = !attn.tensor<[B, H, N, 64], f32>
func.func @f(%q: !x {attn.name = "q"}, %k: !x {attn.name = "k"}, %v: !x {attn.name = "v"}) -> (!x {attn.name = "y"}) attributes {attn.program} {
  %y, %lse = attn.attend %q keys(%k : !x) values(%v : !x) {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !attn.tensor<[B, H, N], f32> score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
    %t = math.tanh %s : f32
    attn.yield %t : f32
  }
  return %y : !x
}
