// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// A window has three loops: blocks it enters, blocks wholly inside, blocks it leaves. The middle one neither compares nor selects.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @window(
// CHECK: attn.launch @attend(%{{.*}}) grid ["cdiv(N, 128)", "H", "B"] {sizes = ["N"]}
// CHECK-LABEL: func.func @attend(
// CHECK-SAME: tile.kernel, tile.orders_accesses, tile.schedule = #tile.schedule<warps = 4, stages = 3>
// CHECK: scf.for
// CHECK: arith.select {{.*}} tensor<128x64xi1>
// CHECK: scf.for
// CHECK-NOT: arith.cmpi {{.*}} tensor<128x64
// CHECK-NOT: arith.select {{.*}} tensor<128x64
// CHECK: scf.for
// CHECK: arith.select {{.*}} tensor<128x64xi1>
func.func @window(%q: !t, %k: !t, %v: !t) -> (!t, !l) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.window<left = 256, right = 0>], scale = 0.125 : f32} : !t -> !t, !l
  return %o, %lse : !t, !l
}

// -----

// Causal: whole blocks, then those on the diagonal; keys and queries of lengths of their own. No query has a key past the end, so that none is asked whether it exists.

!t = !attn.tensor<[B, H, N, 64], f16>
!k = !attn.tensor<[B, H, M, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @attend(
// CHECK: scf.for
// CHECK-NOT: arith.select {{.*}} tensor<128x64
// CHECK: scf.for
// CHECK-NOT: arith.andi {{.*}} tensor<128x64xi1>
// CHECK: arith.select {{.*}} tensor<128x64xi1>
// CHECK-NOT: scf.for
// CHECK: return
func.func @causal(%q: !t, %k: !k, %v: !k) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !k) values(%v : !k) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// A result that nobody uses is not stored.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @lse_only(
// CHECK: attn.launch @attend({{.*}}) -> !attn.tensor<[B, H, N], f32>
func.func @lse_only(%q: !t, %k: !t, %v: !t) -> !l attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.full], scale = 0.125 : f32} : !t -> !t, !l
  return %lse : !l
}

// -----

// Several domains under one softmax: the state goes through the loops of both. A sink begins it.

!t = !attn.tensor<[B, H, N, 64], f16>
!p = !attn.tensor<[B, H, P, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @domains(
// CHECK-LABEL: func.func @attend(
// CHECK: tile.load %{{[0-9a-z]+}} : !tile.ptr<f32>
// CHECK-COUNT-4: scf.for
// CHECK-NOT: scf.for
func.func @domains(%q: !t, %k: !t, %v: !t, %k2: !p, %v2: !p, %sink: !attn.tensor<[H], f32>) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k, %k2 : !t, !p) values(%v, %v2 : !t, !p) sink(%sink : !attn.tensor<[H], f32>)
    {patterns = [#attn.causal, #attn.full], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// A head size of 72 is computed as 64 + 16 channels, not as 128.

!t = !attn.tensor<[B, H, N, 72], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @head_72(
// CHECK-LABEL: func.func @attend(
// CHECK: tile.dot {{.*}} : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
// CHECK: tile.dot {{.*}} : tensor<128x16xf16> * tensor<16x64xf16> -> tensor<128x64xf32>
// CHECK: tile.dot {{.*}} : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
// CHECK: tile.dot {{.*}} : tensor<128x64xf16> * tensor<64x16xf16> -> tensor<128x16xf32>
func.func @head_72(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.full], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// The schedule is the op's where it has one.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK: attn.launch @attend({{.*}}) grid ["cdiv(N, 64)", "H", "B"]
// CHECK: tile.schedule = #tile.schedule<warps = 2, stages = 4>
// CHECK: tile.dot {{.*}} : tensor<64x64xf16> * tensor<64x32xf16> -> tensor<64x32xf32>
func.func @schedule(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t)
    {patterns = [#attn.full], scale = 0.125 : f32, schedule = #attn.schedule<rows = 64, columns = 32, warps = 2, stages = 4>} : !t -> !t, !l
  return %o : !t
}

// -----

// Query heads that share keys are packed into a tile, so that keys are read once for them: row r is token r / 4 of head r % 4.

!t = !attn.tensor<[B, "4*K", N, 64], f16>
!k = !attn.tensor<[B, K, M, 64], f16>
!l = !attn.tensor<[B, "4*K", N], f32>
// CHECK-LABEL: func.func @grouped(
// CHECK: attn.launch @attend({{.*}}) grid ["(cdiv((N) * 4, 128)) * {{.*}}", "(K) / ({{.*}})", "B"]
// CHECK-LABEL: func.func @attend(
// CHECK: %[[TWO:.*]] = arith.constant dense<2> : tensor<128xi32>
// CHECK: arith.shrsi %{{.*}}, %[[TWO]] : tensor<128xi32>
func.func @grouped(%q: !t, %k: !k, %v: !k) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !k) values(%v : !k) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}
