// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// SEMA in two launches: the sum over tokens, and everything else. Keys are rotated inside the kernel, as each window is met once; the convolution and
// the mean join the output's tile before it is rounded and stored.

!t = !attn.tensor<[B, H, N, 64], f16>
!f = !attn.tensor<[B, H, N, 64], f32>
!m = !attn.tensor<[B, H, 1, 64], f32>
!l = !attn.tensor<[B, H, N], f32>
!w = !attn.tensor<[3, "H*64"], f16>
// CHECK-LABEL: func.func @sema(
// CHECK-NEXT: %[[SUM:.*]] = attn.launch @sum_tokens(%{{.*}}) grid ["8", "H", "B"] {{.*}} -> !attn.tensor<[B, H, 8, 64], f32>
// CHECK-NEXT: %[[OUT:.*]] = attn.launch @attend(
// CHECK-SAME: grid ["cdiv(N, 64) * 1", "H", "B"]
// CHECK-NEXT: return %[[OUT]]
// CHECK-LABEL: func.func @attend(
// CHECK: math.cos
// CHECK-NOT: math.cos
// CHECK: scf.if
// CHECK-NOT: arith.select {{.*}} tensor<64x64xi1>
// CHECK: else
// CHECK: arith.select {{.*}} tensor<64x64xi1>
// CHECK-COUNT-1: tile.store
// CHECK-NOT: tile.store
// CHECK: return
func.func @sema(%q: !t, %k: !t, %v: !t, %taps: !w) -> !t attributes {attn.program} {
  %qr = attn.rope %q {window = array<i64: 64>} : !t -> !t
  %kr = attn.rope %k {window = array<i64: 64>} : !t -> !t
  %o, %lse = attn.attend %qr keys(%kr : !t) values(%v : !t) {patterns = [#attn.block_window<[64]>], scale = 0.125 : f32} : !t -> !f, !l
  %s = attn.sum %v : !t -> !m
  %mean = attn.map ins(%s : !m) -> !m {
  ^bb0(%x: f32):
    %n = attn.size "N" : i32
    %nf = arith.sitofp %n : i32 to f32
    %r = arith.divf %x, %nf : f32
    attn.yield %r : f32
  }
  %c = attn.convolve %v, %taps {centred} : !t, !w -> !f
  %z = attn.map ins(%o, %mean, %c : !f, !m, !f) -> !t {
  ^bb0(%x: f32, %y: f32, %w: f32):
    %a = arith.addf %x, %y : f32
    %r = arith.addf %a, %w : f32
    attn.yield %r : f32
  }
  return %z : !t
}

// -----

// Under a pattern that meets keys again and again, rotated keys are stored once; rotated queries are not.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @rope_causal(
// CHECK-SAME: %[[Q:[a-z0-9]+]]: {{[^,]+, [^,]+, [^,]+, [^,]+, [^,]+}}, %[[K:[a-z0-9]+]]:
// CHECK: %[[ROTATED:.*]] = attn.launch @rows(%[[K]])
// CHECK: attn.launch @attend(%[[Q]], %[[ROTATED]],
func.func @rope_causal(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
  %qr = attn.rope %q : !t -> !t
  %kr = attn.rope %k : !t -> !t
  %o, %lse = attn.attend %qr keys(%kr : !t) values(%v : !t) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// What an epilogue takes from elsewhere is stored by itself where it is stored anyway; a value that others need beside the epilogue is stored too.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @gate(
// CHECK: %[[BOTH:.*]]:2 = attn.launch @attend(
// CHECK: return %[[BOTH]]#1, %[[BOTH]]#0
func.func @gate(%q: !t, %k: !t, %v: !t, %g: !t) -> (!t, !t) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !l
  %y = attn.map ins(%o, %g : !t, !t) -> !t {
  ^bb0(%a: f32, %b: f32):
    %r = arith.mulf %a, %b : f32
    attn.yield %r : f32
  }
  return %y, %o : !t, !t
}

// -----

// Maps of other shapes get kernels over their elements.

!t = !attn.tensor<[A, C], f32>
// CHECK-LABEL: func.func @weights(
// CHECK: attn.launch @map({{.*}}) grid ["cdiv((A) * (C), 512)", "1", "1"]
func.func @weights(%x: !t) -> !t attributes {attn.program} {
  %y = attn.map ins(%x : !t) -> !t {
  ^bb0(%a: f32):
    %r = arith.negf %a : f32
    attn.yield %r : f32
  }
  return %y : !t
}

// -----

// An attention's one channel is one tile for all chunks of what it is multiplied by.

!q = !attn.tensor<[B, H, N, 1], f32>
!k = !attn.tensor<[B, H, M, 1], f32>
!x = !attn.tensor<[B, H, N, 48], f32>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @gated(
// CHECK: attn.launch @attend(
// CHECK-NOT: attn.launch
// CHECK-LABEL: func.func @attend(
// CHECK-COUNT-2: arith.mulf {{.*}} : tensor<{{64x32|64x16}}xf32>
func.func @gated(%q: !q, %k: !k, %v: !k, %x: !x) -> !x attributes {attn.program} {
  %g, %lse = attn.attend %q keys(%k : !k) values(%v : !k) {patterns = [#attn.full], scale = 1.0 : f32} : !q -> !q, !l
  %y = attn.map ins(%g, %x : !q, !x) -> !x {
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    attn.yield %c : f32
  }
  return %y : !x
}

// -----

// An attention gated by its own log-sum-exp: the gate reads elements of what the attention stores, and is no part of its
// kernel.

!t = !attn.tensor<[B, H, N, 64], f32>
!g = !attn.tensor<[B, H, N, 1], f32>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @by_its_own_sum(
// CHECK: %[[BOTH:.*]]:2 = attn.launch @attend(
// CHECK: attn.launch @{{.*}}(%[[BOTH]]#
func.func @by_its_own_sum(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !l
  %e = attn.map ins(%lse : !l) -> !l {
  ^bb0(%a: f32):
    %r = math.exp %a : f32
    attn.yield %r : f32
  }
  %gate = attn.map -> !g {
    %b = attn.index 0 : i32
    %h = attn.index 1 : i32
    %n = attn.index 2 : i32
    %r = attn.element %e[%b, %h, %n] : !l -> f32
    attn.yield %r : f32
  }
  %y = attn.map ins(%gate, %o : !g, !t) -> !t {
  ^bb0(%a: f32, %c: f32):
    %r = arith.mulf %a, %c : f32
    attn.yield %r : f32
  }
  return %y : !t
}
