// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// Windows of a grid: 49 tokens are a tile of 64 rows, gathered window by window; 64 windows.

!t = !attn.tensor<[B, H, N, 32], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK: attn.launch @attend({{.*}}) grid ["64 * 1", "H", "B"]
// CHECK-LABEL: func.func @attend(
// CHECK-NOT: scf.for
// CHECK-COUNT-1: tile.dot {{.*}} -> tensor<64x64xf32>
func.func @grid(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.block_window<[7, 7], grid = [56, 56]>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// 14×14 tokens are two tiles of rows, and a loop of four blocks of keys.

!t = !attn.tensor<[B, H, N, 32], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK: attn.launch @attend({{.*}}) grid ["16 * 2", "H", "B"]
// CHECK-LABEL: func.func @attend(
// CHECK: scf.for %{{.*}} = %c0_i32 to %c4_i32
func.func @large(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.block_window<[14, 14], grid = [56, 56]>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// 128 tokens are one tile, so that their keys are read once; 256 of narrow heads one of 256 rows, with four blocks of keys.

!t = !attn.tensor<[B, H, N, 128], f16>
!n = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK: attn.launch @attend({{.*}}) grid ["cdiv(N, 128) * 1", "H", "B"]
// CHECK: attn.launch @[[$WIDE:attend_[0-9]+]]({{.*}}) grid ["cdiv(N, 256) * 1", "H", "B"]
// CHECK-LABEL: func.func @attend(
// CHECK-NOT: scf.for
// CHECK: func.func @[[$WIDE]](
// CHECK: scf.for %{{.*}} = %c0_i32 to %c4_i32
func.func @whole(%q: !t, %k: !t, %v: !t, %x: !n, %y: !n, %z: !n) -> (!t, !n) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.block_window<[128]>], scale = 0.125 : f32} : !t -> !t, !l
  %p, %m = attn.attend %x keys(%y : !n) values(%z : !n) {patterns = [#attn.block_window<[256]>], scale = 0.125 : f32} : !n -> !n, !l
  return %o, %p : !t, !n
}

// -----

// Long windows along a line are walked as any pattern is.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK: attn.launch @attend({{.*}}) grid ["cdiv(N, 128)", "H", "B"]
func.func @line(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.block_window<[1024]>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}
