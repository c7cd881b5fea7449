// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-differentiate --canonicalize --cse | FileCheck %s
// Adjoints of the ops that merge tokens: a shift goes back, a unit's gradient goes to its tokens. What a merge gives is saved, not computed again.

!x = !attn.tensor<[B, H, N, 64], f32>
// CHECK-LABEL: func.func @shift.backward(
// CHECK-SAME: %[[X:.*]]: {{.*}}"x"}, %[[CU:.*]]: {{.*}}"cu"}, %[[DY:.*]]: {{.*}}"d_y"})
// CHECK-NEXT: %[[DX:.*]] = attn.shift %[[DY]] cu_seqlens %[[CU]] {by = -1 : i64}
// CHECK-NEXT: return %[[DX]]
func.func @shift(%x: !x {attn.name = "x"}, %cu: !attn.tensor<[S], i32> {attn.name = "cu"}) -> (!x {attn.name = "y"}) attributes {attn.program} {
  %y = attn.shift %x cu_seqlens %cu {by = 1 : i64} : !x, !attn.tensor<[S], i32> -> !x
  return %y : !x
}

// -----

!j = !attn.tensor<[B, H, N], i1>
!t = !attn.tensor<[B, H, N], i32>
!x = !attn.tensor<[B, H, N, 64], f32>
!v = !attn.tensor<[B, H, N, 64], f16>
// CHECK-LABEL: func.func @merge.forward(
// CHECK: %[[MERGED:.*]]:2, %[[UNIT:.*]], %[[LOWER:.*]], %{{.*}}, %[[ENDS:.*]], %{{.*}}, %{{.*}}, %{{.*}} = attn.merge_units
// CHECK: return %[[MERGED]]#0, %[[MERGED]]#1, %[[UNIT]], %[[LOWER]], %[[ENDS]] :
// CHECK-LABEL: func.func @merge.backward(
// CHECK-SAME: "saved_units0"}, {{.*}}"saved_units1"}, {{.*}}"saved_units2"}
// CHECK-NOT: attn.merge_units
// CHECK-DAG: attn.spread %{{.*}} by %{{.*}} {mode = #attn<merge sum>, offset = 0 : i64} : {{.*}} -> !attn.tensor<[B, H, N, 64], f32>
// CHECK-DAG: attn.spread %{{.*}} by %{{.*}} lower %{{.*}} ends %{{.*}} {mode = #attn<merge mean>, offset = 1 : i64} : {{.*}} -> !attn.tensor<[B, H, N, 64], f16>
// CHECK: return
func.func @merge(%j: !j, %k: !x, %v: !v) -> (!v, !v) attributes {attn.program} {
  %ku, %vu, %u, %l, %up, %e, %f, %p, %kept = attn.merge_units %j (%k, %v)
    {maxJoins = 20 : i64, modes = [#attn<merge sum>, #attn<merge mean>], offsets = array<i64: 0, 1>} : !j (!x, !v) -> (!v, !v), !t, !t, !t, !t, !t, !t, !j
  return %ku, %vu : !v, !v
}
