// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// Tiles of queries of a causal pattern begin from the last, whose rows have the most keys, forward and for dq. Tiles of keys go on in ascending order: the first have the most queries.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @attend(
// CHECK: %[[X:.*]] = tile.program_id {{ *}}x
// CHECK: %[[COUNT:.*]] = tile.num_programs {{ *}}x
// CHECK: %[[LAST:.*]] = arith.subi %[[COUNT]], %c1
// CHECK: %[[TILE:.*]] = arith.subi %[[LAST]], %[[X]]
// CHECK: arith.muli %[[TILE]], %c128
// CHECK-LABEL: func.func @attend_backward_query(
// CHECK: %[[X:.*]] = tile.program_id {{ *}}x
// CHECK: tile.num_programs {{ *}}x
// CHECK: %[[TILE:.*]] = arith.subi %{{.*}}, %[[X]]
// CHECK: arith.muli %[[TILE]], %c128
// CHECK-LABEL: func.func @attend_backward_keys(
// CHECK: %[[X:.*]] = tile.program_id {{ *}}x
// CHECK-NOT: tile.num_programs
// CHECK: arith.muli %[[X]], %c64
func.func @causal(%q: !t, %k: !t, %v: !t, %delta: !l, %g: !t) -> (!t, !t, !t, !t) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !l
  %dq, %d:2 = attn.attend_backward %q keys(%k : !t) values(%v : !t) lse(%lse : !l) delta(%delta : !l) gradient(%g : !t)
      {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !t, !t
  return %o, %dq, %d#0, %d#1 : !t, !t, !t, !t
}

// -----

// A window has as many keys everywhere, and no order is better.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @attend(
// CHECK: %[[X:.*]] = tile.program_id {{ *}}x
// CHECK: arith.muli %[[X]], %c128
func.func @window(%q: !t, %k: !t, %v: !t) -> (!t, !l) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.window<left = 256, right = 0>], scale = 0.125 : f32} : !t -> !t, !l
  return %o, %lse : !t, !l
}

// -----

// Of packed sequences each may have a tile more than the whole; the last sequence begins first.

!t = !attn.tensor<[1, H, N, 64], f16>
!s = !attn.tensor<[S], i32>
!l = !attn.tensor<[1, H, N], f32>
// CHECK-LABEL: func.func @attend(
// CHECK: %[[X:.*]] = tile.program_id {{ *}}x
// CHECK: tile.num_programs {{ *}}x
// CHECK: %[[TILE:.*]] = arith.subi %{{.*}}, %[[X]]
// CHECK: scf.for
func.func @packed(%q: !t, %k: !t, %v: !t, %s: !s) -> (!t, !l) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) cu_seqlens(%s, %s : !s, !s) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !l
  return %o, %lse : !t, !l
}
