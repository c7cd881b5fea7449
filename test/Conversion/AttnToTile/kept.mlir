// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --attn-to-tile --canonicalize --cse | FileCheck %s

// Weights that are not kept count in the sum of a row, and multiply no value. Of gradients they have that of the sum alone:
// dP there is 0, from which delta is taken as of all others, and dv has nothing of them.

!t = !attn.tensor<[B, H, N, 64], f16>
!r = !attn.tensor<[B, H, N], f32>
!s = !attn.tensor<[2], i32>
// CHECK-LABEL: func.func @attend(
// CHECK: %[[WEIGHTS:.*]] = math.exp2 %{{.*}} : tensor<64x64xf32>
// CHECK: tile.reduce
// CHECK: %[[KEPT:.*]] = arith.cmpi sgt
// CHECK: %[[FACTORS:.*]] = arith.select %[[KEPT]], %[[WEIGHTS]], %{{.*}} : tensor<64x64xi1>, tensor<64x64xf32>
// CHECK: %[[ROUNDED:.*]] = arith.truncf %[[FACTORS]]
// CHECK: tile.dot %[[ROUNDED]]
func.func @forward(%q: !t, %k: !t, %v: !t) -> (!t, !r) attributes {attn.program} {
  %out, %lse = attn.attend %q keys(%k : !t) values(%v : !t)
      {patterns = [#attn.kept<#attn.full, #attn.mask<0, scattered = true>>], scale = 0.125 : f32, schedule = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>} : !t -> !t, !r masks({
    ^bb0(%b: i32, %h: i32, %n: i32, %m: i32):
      %0 = arith.muli %n, %m : i32
      %1 = arith.cmpi sgt, %0, %h : i32
      attn.yield %1 : i1
    })
  return %out, %lse : !t, !r
}

// CHECK-LABEL: func.func @attend_backward_keys(
// CHECK: %[[WEIGHTS:.*]] = math.exp2
// CHECK: %[[START:.*]] = tile.broadcast %{{.*}} -> tensor<64x64xf32>
// CHECK: %[[DP:.*]] = tile.dot %{{.*}}, %{{.*}}, %[[START]]
// CHECK: %[[KEPT:.*]] = arith.cmpi sgt
// CHECK: %[[CHANGE:.*]] = arith.select %[[KEPT]], %[[DP]], %[[START]]
// CHECK: arith.mulf %{{.*}}, %[[CHANGE]]
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x64xi1>, tensor<64x64xf32>
func.func @backward(%q: !t, %k: !t, %v: !t, %lse: !r, %delta: !r, %g: !t) -> (!t, !t, !t) attributes {attn.program} {
  %dq, %d:2 = attn.attend_backward %q keys(%k : !t) values(%v : !t) lse(%lse : !r) delta(%delta : !r) gradient(%g : !t)
      {patterns = [#attn.kept<#attn.full, #attn.mask<0, scattered = true>>], scale = 0.125 : f32,
       scheduleQuery = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>, scheduleKeys = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>} : !t -> !t, !t, !t masks({
    ^bb0(%b: i32, %h: i32, %n: i32, %m: i32):
      %0 = arith.muli %n, %m : i32
      %1 = arith.cmpi sgt, %0, %h : i32
      attn.yield %1 : i1
    })
  return %dq, %d#0, %d#1 : !t, !t, !t
}
