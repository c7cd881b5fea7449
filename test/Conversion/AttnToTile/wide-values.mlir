// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// Values of 1,536 channels: six programs a tile, of 256 channels each, of which the first stores the log-sum-exp. What is computed from the output
// channel by channel (the gate) ends each; what needs a row of it waits.

!q = !attn.tensor<[B, 1, N, 128], f16>
!v = !attn.tensor<[B, 1, N, 1536], f16>
!l = !attn.tensor<[B, 1, N], f32>
// CHECK-LABEL: func.func @forward(
// CHECK: %[[OUT:.*]]:2 = attn.launch @attend({{.*}}) grid ["(cdiv(N, 128)) * 6", "1", "B"]
// CHECK: attn.launch @rows(%[[OUT]]#1)
// CHECK-LABEL: func.func @attend(
// CHECK: arith.divsi %{{.*}}, %c6_i32
// CHECK: tile.dot {{.*}} -> tensor<128x32xf32>
// CHECK: tile.dot {{.*}} -> tensor<128x256xf32>
// CHECK: scf.if
// CHECK: tile.store {{.*}} tensor<128x!tile.ptr<f32>>
// CHECK: tile.store {{.*}} tensor<128x256x!tile.ptr<f16>>
func.func @forward(%q: !q, %k: !q, %v: !v, %g: !v) -> (!l, !v) attributes {attn.program} {
  %out, %lse = attn.attend %q keys(%k : !q) values(%v : !v) {patterns = [#attn.full], scale = 0.125 : f32} : !q -> !v, !l
  %y = attn.map ins(%out, %g : !v, !v) -> !v {
  ^bb0(%a: f32, %b: f32):
    %r = arith.mulf %a, %b : f32
    attn.yield %r : f32
  }
  %z = attn.rms_norm %y : !v -> !v
  return %lse, %z : !l, !v
}

// -----

// The backward: dk and dq in one pass, which contracts dOut vᵀ piece by piece in a loop inside the walk; dv has the channels split over the grid, as the
// forward. Programs take places, and add to a block's dq in their order: the same bits every time.

!q = !attn.tensor<[B, 1, N, 128], f16>
!v = !attn.tensor<[B, 1, N, 1536], f16>
!l = !attn.tensor<[B, 1, N], f32>
// CHECK-LABEL: func.func @backward(
// CHECK: attn.launch @attend_backward_rows({{.*}}) grid ["cdiv(N, 128) * 4", "1", "B"]
// CHECK: %[[ALL:.*]]:4 = attn.launch @attend_backward({{.*}}) grid ["cdiv(N, 128)", "1", "B"] {sizes = ["N"], zeroed = array<i64: 0, 1, 2>}
// CHECK-SAME: -> (!attn.tensor<[B, 1, N, 128], f32>, !attn.tensor<[B, 1], i32>, !attn.tensor<[B, 1, "cdiv(N, 32)"], i32>, !attn.tensor<[B, 1, N, 128], f16>)
// CHECK: %[[DV:.*]] = attn.launch @attend_backward_values({{.*}}) grid ["(cdiv(N, 64)) * 3", "1", "B"]
// CHECK: %[[DQ:.*]] = attn.launch @rows(%[[ALL]]#0)
// CHECK: return %[[DQ]], %[[ALL]]#3, %[[DV]]
// CHECK-LABEL: func.func @attend_backward(
// CHECK: tile.atomic_rmw  add {{.*}}, %c1_i32 {order = #tile<order relaxed>}
// CHECK: scf.for
// CHECK: scf.for %{{.*}} = %c0_i32 to %c24_i32
// CHECK: tile.dot {{.*}} tensor<128x64xf16>
// CHECK: scf.while
// CHECK: tile.atomic_rmw  add {{.*}}, %c0_i32 {order = #tile<order acquire>}
// CHECK: tile.atomic_rmw  fadd {{.*}}tensor<32x128xf32>
// CHECK: tile.barrier
// CHECK: tile.atomic_rmw  add {{.*}}, %c1_i32 {order = #tile<order release>}
// CHECK-LABEL: func.func @attend_backward_values(
// CHECK: scf.for
// CHECK: tile.dot {{.*}} -> tensor<64x32xf32>
// CHECK-COUNT-2: tile.dot {{.*}} -> tensor<64x256xf32>
// CHECK-NEXT: scf.yield
func.func @backward(%q: !q, %k: !q, %v: !v, %lse: !l, %delta: !l, %g: !v) -> (!q, !q, !v) attributes {attn.program} {
  %dq, %d:2 = attn.attend_backward %q keys(%k : !q) values(%v : !v) lse(%lse : !l) delta(%delta : !l) gradient(%g : !v)
      {patterns = [#attn.full], scale = 0.125 : f32} : !q -> !q, !q, !v
  return %dq, %d#0, %d#1 : !q, !q, !v
}

// -----

// In any order: nobody waits.

!q = !attn.tensor<[B, 1, N, 128], f16>
!v = !attn.tensor<[B, 1, N, 1536], f16>
!l = !attn.tensor<[B, 1, N], f32>
// CHECK-LABEL: func.func @fast(
// CHECK: attn.launch @attend_backward({{.*}}) grid ["cdiv(N, 128)", "1", "B"] {sizes = ["N"], zeroed = array<i64: 0>}
// CHECK-LABEL: func.func @attend_backward(
// CHECK-NOT: scf.while
// CHECK: tile.atomic_rmw  fadd {{.*}}tensor<32x128xf32>
func.func @fast(%q: !q, %k: !q, %v: !v, %lse: !l, %delta: !l, %g: !v) -> (!q, !q, !v) attributes {attn.program} {
  %dq, %d:2 = attn.attend_backward %q keys(%k : !q) values(%v : !v) lse(%lse : !l) delta(%delta : !l) gradient(%g : !v)
      {patterns = [#attn.full], scale = 0.125 : f32, fast} : !q -> !q, !q, !v
  return %dq, %d#0, %d#1 : !q, !q, !v
}

// -----

// Pairs in lists of blocks: nobody knows how many programs meet a block, so dq and dk have a kernel each.

!q = !attn.tensor<[B, 1, N, 128], f16>
!v = !attn.tensor<[B, 1, N, 1536], f16>
!l = !attn.tensor<[B, 1, N], f32>
// CHECK-LABEL: func.func @listed(
// CHECK: attn.launch @attend_backward_query(
// CHECK: attn.launch @attend_backward_keys(
// CHECK: attn.launch @attend_backward_values(
// CHECK-LABEL: func.func @attend_backward_query(
// CHECK: scf.for %{{.*}} = %c0_i32 to %c24_i32
// CHECK: tile.dot {{.*}} tensor<128x64xf16>
func.func @listed(%q: !q, %k: !q, %v: !v, %lse: !l, %delta: !l, %g: !v) -> (!q, !q, !v) attributes {attn.program} {
  %dq, %d:2 = attn.attend_backward %q keys(%k : !q) values(%v : !v) lse(%lse : !l) delta(%delta : !l) gradient(%g : !v)
      {patterns = [#attn.strided<4>], scale = 0.125 : f32} : !q -> !q, !q, !v
  return %dq, %d#0, %d#1 : !q, !q, !v
}

// -----

// Channels that the parts do not divide: 520 in three parts of 176, masked where there are none.

!q = !attn.tensor<[B, 1, N, 64], f16>
!v = !attn.tensor<[B, 1, N, 520], f16>
!l = !attn.tensor<[B, 1, N], f32>
// CHECK-LABEL: func.func @ragged(
// CHECK: grid ["(cdiv(N, 128)) * 3", "1", "B"]
// CHECK-LABEL: func.func @attend(
// CHECK: arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<16xi32>
func.func @ragged(%q: !q, %k: !q, %v: !v) -> !v attributes {attn.program} {
  %out, %lse = attn.attend %q keys(%k : !q) values(%v : !v) {patterns = [#attn.full], scale = 0.125 : f32} : !q -> !v, !l
  return %out : !v
}

// -----

// Channels that a schedule says: two programs a tile forward, pieces of 32 for dk and dq, and all channels at once for dv.

!q = !attn.tensor<[B, 1, N, 64], f16>
!v = !attn.tensor<[B, 1, N, 512], f16>
!l = !attn.tensor<[B, 1, N], f32>
// CHECK-LABEL: func.func @scheduled(
// CHECK: attn.launch @attend({{.*}}) grid ["(cdiv(N, 64)) * 4", "1", "B"]
// CHECK: attn.launch @attend_backward({{.*}}) grid ["cdiv(N, 32)", "1", "B"]
// CHECK: attn.launch @attend_backward_values({{.*}}) grid ["(cdiv(N, 16)) * 1", "1", "B"]
// CHECK-LABEL: func.func @attend(
// CHECK: tile.dot {{.*}} -> tensor<64x128xf32>
// CHECK-LABEL: func.func @attend_backward(
// CHECK: scf.for %{{.*}} = %c0_i32 to %c16_i32
func.func @scheduled(%q: !q, %k: !q, %v: !v, %delta: !l, %g: !v) -> (!v, !q, !q, !v) attributes {attn.program} {
  %out, %lse = attn.attend %q keys(%k : !q) values(%v : !v) {patterns = [#attn.full], scale = 0.125 : f32,
      schedule = #attn.schedule<rows = 64, columns = 32, warps = 4, stages = 2, channels = 128>} : !q -> !v, !l
  %dq, %d:2 = attn.attend_backward %q keys(%k : !q) values(%v : !v) lse(%lse : !l) delta(%delta : !l) gradient(%g : !v)
      {patterns = [#attn.full], scale = 0.125 : f32, scheduleKeys = #attn.schedule<rows = 32, columns = 32, warps = 2, stages = 2, channels = 32>,
       scheduleValues = #attn.schedule<rows = 16, columns = 32, warps = 4, stages = 2, channels = 1024>} : !q -> !q, !q, !v
  return %out, %dq, %d#0, %d#1 : !v, !q, !q, !v
}
