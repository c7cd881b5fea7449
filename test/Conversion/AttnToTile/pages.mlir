// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// Keys and values in pages are read where they are. Pages that hold whole blocks of keys have one entry of the table for each block.

!q = !attn.tensor<[B, H, N, 64], f16>
!p = !attn.tensor<[P, 64, H, 64], f16>
!k = !attn.tensor<[B, H, "64*T", 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!t = !attn.tensor<[B, T], i32>
!n = !attn.tensor<[B], i32>
// CHECK-LABEL: func.func @large_pages(
// CHECK-NOT: attn.launch
// CHECK: attn.launch @attend(%{{.*}}) grid
// CHECK-LABEL: func.func @attend(
// CHECK: scf.for
// CHECK: tile.load {{.*}} : !tile.ptr<i32>
// CHECK-NOT: tile.load {{.*}} : tensor<{{.*}}xi32>
// CHECK: tile.load {{.*}} tensor<32x64x!tile.ptr<f16>>
func.func @large_pages(%q: !q, %k: !p, %v: !p, %table: !t, %n: !n) -> !q attributes {attn.program} {
  %keys = attn.paged %k by %table lengths %n : !p, !t, !n -> !k
  %values = attn.paged %v by %table lengths %n : !p, !t, !n -> !k
  %o, %lse = attn.attend %q keys(%keys : !k) values(%values : !k) counts(%n : !n) {patterns = [#attn.full], scale = 0.125 : f32, splits = 0 : i64} : !q -> !q, !l
  return %o : !q
}

// -----

// What is asked for as a whole is copied, 0 behind each sequence's end.

!p = !attn.tensor<[P, 16, H, 64], f16>
!k = !attn.tensor<[B, H, "16*T", 64], f16>
!t = !attn.tensor<[B, T], i32>
!n = !attn.tensor<[B], i32>
// CHECK-LABEL: func.func @whole(
// CHECK: attn.launch @rows
// CHECK: tile.load {{.*}} : tensor<{{.*}}x!tile.ptr<i32>>
func.func @whole(%k: !p, %table: !t, %n: !n) -> !k attributes {attn.program} {
  %keys = attn.paged %k by %table lengths %n : !p, !t, !n -> !k
  return %keys : !k
}

// -----

// 8-bit floats become those of 16 bits at once, not by way of 32.

!q = !attn.tensor<[B, H, N, 64], f16>
!p = !attn.tensor<[P, 64, H, 64], f8E4M3FN>
!e = !attn.tensor<[B, H, "64*T", 64], f8E4M3FN>
!k = !attn.tensor<[B, H, "64*T", 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!t = !attn.tensor<[B, T], i32>
!n = !attn.tensor<[B], i32>
// CHECK-LABEL: func.func @float8(
// CHECK-LABEL: func.func @attend(
// CHECK: scf.for
// CHECK: %[[BYTES:.*]] = tile.load {{.*}} tensor<32x64x!tile.ptr<f8E4M3FN>>
// CHECK: arith.extf %[[BYTES]] : tensor<32x64xf8E4M3FN> to tensor<32x64xf16>
// CHECK-NOT: tensor<32x64xf8E4M3FN> to tensor<32x64xf32>
func.func @float8(%q: !q, %pages: !p, %table: !t, %n: !n) -> !q attributes {attn.program} {
  %stored = attn.paged %pages by %table lengths %n : !p, !t, !n -> !e
  %k = attn.map ins(%stored : !e) -> !k {
  ^bb0(%a: f32):
    attn.yield %a : f32
  }
  %o, %lse = attn.attend %q keys(%k : !k) values(%k : !k) counts(%n : !n) {patterns = [#attn.full], scale = 0.125 : f32, splits = 0 : i64} : !q -> !q, !l
  return %o : !q
}
