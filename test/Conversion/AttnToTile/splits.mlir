// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// Split keys: a program for each run of blocks of keys, whose parts another kernel merges. Runs that follow from lengths are short, and their
// loops say so. Query heads that share keys are rows of one tile.

!q = !attn.tensor<[B, "4*H", N, 64], f16>
!k = !attn.tensor<[B, H, M, 64], f16>
!l = !attn.tensor<[B, "4*H", N], f32>
!n = !attn.tensor<[B], i32>
// CHECK-LABEL: func.func @by_length(
// CHECK: %[[PARTS:.*]]:2 = attn.launch @attend({{.*}}) grid ["(cdiv((N) * 4, 16)) * min(128, max(1, cdiv(M, 96)))", "H", "B"] {{.*}} -> (!attn.tensor<[B, "4*H", "(min(128, max(1, cdiv(M, 96)))) * (N)", 64], f32>, !attn.tensor<[B, "4*H", "(min(128, max(1, cdiv(M, 96)))) * (N)"], f32>)
// CHECK: %[[OUT:.*]] = attn.launch @merge_splits({{.*}}%[[PARTS]]#{{.*}}) grid ["N", "4*H", "B"]
// CHECK: return %[[OUT]]
// CHECK-LABEL: func.func @attend(
// CHECK: tile.dot {{.*}} tensor<16x64xf16>
// CHECK: } {tile.few_iterations}
// CHECK-LABEL: func.func @merge_splits(
// CHECK: scf.for
// CHECK-NOT: tile.few_iterations
func.func @by_length(%q: !q, %k: !k, %v: !k, %n: !n) -> !q attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !k) values(%v : !k) counts(%n : !n) {patterns = [#attn.causal], scale = 0.125 : f32, splits = 0 : i64} : !q -> !q, !l
  return %o : !q
}

// -----

// As many as are asked for; what is computed from the results ends the merging kernel; blocks that are listed are shared out by their places in the lists.

!q = !attn.tensor<[B, H, N, 64], f16>
!k = !attn.tensor<[B, H, M, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @listed(
// CHECK: attn.launch @blocks_of_queries
// CHECK: attn.launch @attend({{.*}}) grid ["(cdiv(N, 16)) * 3", "H", "B"]
// CHECK: attn.launch @merge_splits
// CHECK-NOT: attn.launch
// CHECK-NOT: tile.few_iterations
// CHECK-LABEL: func.func @merge_splits(
// CHECK: arith.addf {{.*}} tensor<1x64xf32>
func.func @listed(%q: !q, %k: !k, %v: !k) -> !q attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !k) values(%v : !k) {patterns = [#attn.strided<3>], scale = 0.125 : f32, splits = 3 : i64} : !q -> !q, !l
  %y = attn.map ins(%o, %q : !q, !q) -> !q {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    attn.yield %s : f32
  }
  return %y : !q
}

// -----

// A tile takes as many of the heads that share keys as it has rows.

!q = !attn.tensor<[B, "128*H", N, 64], f16>
!k = !attn.tensor<[B, H, M, 64], f16>
!l = !attn.tensor<[B, "128*H", N], f32>
// CHECK: attn.launch @attend({{.*}}) grid ["(cdiv((N) * 64, 64)) * 2", "2*H", "B"]
func.func @one_key_head(%q: !q, %k: !k, %v: !k) -> !q attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !k) values(%v : !k) {patterns = [#attn.causal], scale = 0.125 : f32, splits = 2 : i64} : !q -> !q, !l
  return %o : !q
}

// -----

// Packed sequences: a split's parts begin with it, at the token where the sequence begins; the merging kernel has a row for each token that there is.

!q = !attn.tensor<[1, H, N, 64], f16>
!l = !attn.tensor<[1, H, N], f32>
!c = !attn.tensor<[S], i32>
// CHECK-LABEL: func.func @packed(
// CHECK: attn.launch @attend({{.*}}) grid ["(cdiv(N, 16) + S) * min(128, max(1, cdiv(N, 96)))", "H", "1"]
// CHECK: attn.launch @merge_splits({{.*}}) grid ["N", "H", "1"]
func.func @packed(%q: !q, %c: !c) -> !q attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%q : !q) values(%q : !q) cu_seqlens(%c, %c : !c, !c) {patterns = [#attn.causal], scale = 0.125 : f32, splits = 0 : i64} : !q -> !q, !l
  return %o : !q
}

// -----

// Few queries meet each key once: keys and values that are computed row by row, here from 8-bit floats, are computed on the way. Where a number of
// splits is asked for there may be many queries, and a kernel computes them for all.

!q = !attn.tensor<[B, H, N, 64], f16>
!k = !attn.tensor<[B, H, M, 64], f16>
!k8 = !attn.tensor<[B, H, M, 64], f8E4M3FN>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @on_the_way(
// CHECK-NEXT: attn.launch @attend(%arg0, %arg1, %arg2{{.*}}f8E4M3FN
// CHECK-LABEL: func.func @attend(
// CHECK: scf.for
// CHECK: tile.load {{.*}} : tensor<{{.*}}x64x!tile.ptr<f8E4M3FN>>
// CHECK: tile.dot
func.func @on_the_way(%q: !q, %k: !k8, %v: !k8) -> !q attributes {attn.program} {
  %keys = attn.map ins(%k : !k8) -> !k {
  ^bb0(%a: f32):
    attn.yield %a : f32
  }
  %values = attn.map ins(%v : !k8) -> !k {
  ^bb0(%a: f32):
    attn.yield %a : f32
  }
  %o, %lse = attn.attend %q keys(%keys : !k) values(%values : !k) {patterns = [#attn.causal], scale = 0.125 : f32, splits = 0 : i64} : !q -> !q, !l
  return %o : !q
}

// -----

!q = !attn.tensor<[B, H, N, 64], f16>
!k = !attn.tensor<[B, H, M, 64], f16>
!k8 = !attn.tensor<[B, H, M, 64], f8E4M3FN>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @before(
// CHECK-NEXT: attn.launch @{{.*}}f8E4M3FN
// CHECK: attn.launch @attend(
func.func @before(%q: !q, %k: !k8, %v: !k8) -> !q attributes {attn.program} {
  %keys = attn.map ins(%k : !k8) -> !k {
  ^bb0(%a: f32):
    attn.yield %a : f32
  }
  %values = attn.map ins(%v : !k8) -> !k {
  ^bb0(%a: f32):
    attn.yield %a : f32
  }
  %o, %lse = attn.attend %q keys(%keys : !k) values(%values : !k) {patterns = [#attn.causal], scale = 0.125 : f32, splits = 2 : i64} : !q -> !q, !l
  return %o : !q
}
