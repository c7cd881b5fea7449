// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s | weft-opt | FileCheck %s
// Round trips of the ops that merge tokens.

// CHECK-LABEL: func.func @shift
func.func @shift(%x: !attn.tensor<[B, H, N, 64], f32>, %r: !attn.tensor<[B, H, N], i1>, %cu: !attn.tensor<[S], i32>) {
  // CHECK: attn.shift %{{.*}} {by = 1 : i64} : !attn.tensor<[B, H, N, 64], f32> -> !attn.tensor<[B, H, N, 64], f32>
  %0 = attn.shift %x {by = 1 : i64} : !attn.tensor<[B, H, N, 64], f32> -> !attn.tensor<[B, H, N, 64], f32>
  // CHECK: attn.shift %{{.*}} cu_seqlens %{{.*}} {by = -2 : i64} : !attn.tensor<[B, H, N], i1>, !attn.tensor<[S], i32> -> !attn.tensor<[B, H, N], i1>
  %1 = attn.shift %r cu_seqlens %cu {by = -2 : i64} : !attn.tensor<[B, H, N], i1>, !attn.tensor<[S], i32> -> !attn.tensor<[B, H, N], i1>
  return
}

// CHECK-LABEL: func.func @merge_units
func.func @merge_units(%j: !attn.tensor<[B, H, N], i1>, %k: !attn.tensor<[B, H, N, 64], f32>, %v: !attn.tensor<[B, H, N, 32], f16>, %cu: !attn.tensor<[S], i32>) {
  // CHECK: attn.merge_units %{{.*}} cu_seqlens %{{.*}}(%{{.*}}, %{{.*}}) {maxJoins = 20 : i64, modes = [#attn<merge sum>, #attn<merge last>], offsets = array<i64: 0, 1>}
  %ku, %vu, %unit, %lower, %upper, %ends, %first, %past, %kept = attn.merge_units %j cu_seqlens %cu (%k, %v)
    {maxJoins = 20 : i64, modes = [#attn<merge sum>, #attn<merge last>], offsets = array<i64: 0, 1>}
    : !attn.tensor<[B, H, N], i1>, !attn.tensor<[S], i32> (!attn.tensor<[B, H, N, 64], f32>, !attn.tensor<[B, H, N, 32], f16>)
    -> (!attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N, 32], f16>), !attn.tensor<[B, H, N], i32>, !attn.tensor<[B, H, N], i32>, !attn.tensor<[B, H, N], i32>,
       !attn.tensor<[B, H, N], i32>, !attn.tensor<[B, H, N], i32>, !attn.tensor<[B, H, N], i32>, !attn.tensor<[B, H, N], i1>
  return
}

// CHECK-LABEL: func.func @spread
func.func @spread(%d: !attn.tensor<[B, H, N, 64], f32>, %unit: !attn.tensor<[B, H, N], i32>, %lower: !attn.tensor<[B, H, N], i32>, %ends: !attn.tensor<[B, H, N], i32>) {
  // CHECK: attn.spread %{{.*}} by %{{.*}} {mode = #attn<merge sum>, offset = 0 : i64} : !attn.tensor<[B, H, N, 64], f32>, !attn.tensor<[B, H, N], i32> -> !attn.tensor<[B, H, N, 64], f32>
  %0 = attn.spread %d by %unit {mode = #attn<merge sum>, offset = 0 : i64} : !attn.tensor<[B, H, N, 64], f32>, !attn.tensor<[B, H, N], i32> -> !attn.tensor<[B, H, N, 64], f32>
  // CHECK: attn.spread %{{.*}} by %{{.*}} lower %{{.*}} ends %{{.*}} {mode = #attn<merge mean>, offset = 1 : i64}
  %1 = attn.spread %d by %unit lower %lower ends %ends {mode = #attn<merge mean>, offset = 1 : i64}
    : !attn.tensor<[B, H, N, 64], f32>, !attn.tensor<[B, H, N], i32> lower !attn.tensor<[B, H, N], i32> ends !attn.tensor<[B, H, N], i32> -> !attn.tensor<[B, H, N, 64], f32>
  return
}
