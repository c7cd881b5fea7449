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

// 14×14 tokens are one tile of rows, and a loop of four blocks of keys.

!t = !attn.tensor<[B, H, N, 32], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK: attn.launch @attend({{.*}}) grid ["16 * 1", "H", "B"]
// CHECK-LABEL: func.func @attend(
// CHECK: scf.for %{{.*}} = %c0_i32 to %c4_i32
func.func @large(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.block_window<[14, 14], grid = [56, 56]>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// 128 tokens are one tile of rows, so that their keys are read once; 256 of narrow heads one of 256 rows, with four blocks of keys. Scores of 128 rows of wide heads come
// in two blocks.

!t = !attn.tensor<[B, H, N, 128], f16>
!n = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK: attn.launch @attend({{.*}}) grid ["cdiv(N, 128) * 1", "H", "B"]
// CHECK: attn.launch @[[$WIDE:attend_[0-9]+]]({{.*}}) grid ["cdiv(N, 256) * 1", "H", "B"]
// CHECK-LABEL: func.func @attend(
// CHECK: scf.for %{{.*}} = %c0_i32 to %c2_i32
// CHECK: func.func @[[$WIDE]](
// CHECK: scf.for %{{.*}} = %c0_i32 to %c4_i32
func.func @whole(%q: !t, %k: !t, %v: !t, %x: !n, %y: !n, %z: !n) -> (!t, !n) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.block_window<[128]>], scale = 0.125 : f32} : !t -> !t, !l
  %p, %m = attn.attend %x keys(%y : !n) values(%z : !n) {patterns = [#attn.block_window<[256]>], scale = 0.125 : f32} : !n -> !n, !l
  return %o, %p : !t, !n
}

// -----

// A convolution beside: small windows come several to a program, the taps before them; what is around a window of a grid is read once, and every tap but the middle picks from there.

!t = !attn.tensor<[B, H, 784, 32], f16>
!l = !attn.tensor<[B, H, 784], f32>
!w = !attn.tensor<[9, "H*32"], f16>
// CHECK: attn.launch @attend({{.*}}) grid ["2 * 1", "H", "B"]
// CHECK-LABEL: func.func @attend(
// CHECK-COUNT-9: tile.load {{.*}} : tensor<1x32x!tile.ptr<f16>>
// CHECK: scf.for
// CHECK-COUNT-3: tile.load {{.*}} : tensor<64x32x!tile.ptr<f16>>
// CHECK: %[[AROUND:.*]] = tile.load {{.*}} : tensor<128x32x!tile.ptr<f16>>
// CHECK-NOT: tile.load
// CHECK-COUNT-9: tile.gather
// CHECK-NOT: tile.load
// CHECK: tile.store
func.func @beside(%q: !t, %k: !t, %v: !t, %w: !w) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.block_window<[7, 7], grid = [28, 28]>], scale = 0.125 : f32} : !t -> !t, !l
  %c = attn.convolve %v, %w {centred, grid = array<i64: 28, 28>} : !t, !w -> !t
  %y = attn.map ins(%o, %c : !t, !t) -> !t {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    attn.yield %s : f32
  }
  return %y : !t
}

// -----

// The values of a window of several blocks of keys are read once for the products and the convolution.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!w = !attn.tensor<[3, "H*64"], f16>
// CHECK-LABEL: func.func @attend(
// CHECK: tile.load {{.*}} : tensor<256x64x!tile.ptr<f16>>
// CHECK: %[[VALUES:.*]] = tile.load {{.*}} : tensor<256x64x!tile.ptr<f16>>
// CHECK-NEXT: scf.for %{{.*}} = %c0_i32 to %c4_i32
// CHECK: tile.gather %[[VALUES]]
// CHECK: tile.load {{.*}} : tensor<64x64x!tile.ptr<f16>>
// CHECK-NOT: tile.load
// CHECK: scf.yield
func.func @held(%q: !t, %k: !t, %v: !t, %w: !w) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.block_window<[256]>], scale = 0.125 : f32} : !t -> !t, !l
  %c = attn.convolve %v, %w {centred} : !t, !w -> !t
  %y = attn.map ins(%o, %c : !t, !t) -> !t {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    attn.yield %s : f32
  }
  return %y : !t
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
