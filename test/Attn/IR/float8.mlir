// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s | weft-opt | FileCheck %s

// 8-bit floats are in memory and in pages; a map converts them.

// CHECK-LABEL: func.func @stored(
// CHECK: attn.paged {{.*}} -> !attn.tensor<[B, H, "16*T", 64], f8E4M3FN>
// CHECK: attn.map ins(%{{.*}}, %{{.*}} : !attn.tensor<[B, H, "16*T", 64], f8E4M3FN>, !attn.tensor<[H, 1, 64], f8E5M2>)
func.func @stored(%pages: !attn.tensor<[P, 16, H, 64], f8E4M3FN>, %table: !attn.tensor<[B, T], i32>, %n: !attn.tensor<[B], i32>, %other: !attn.tensor<[H, 1, 64], f8E5M2>) {
  %k = attn.paged %pages by %table lengths %n : !attn.tensor<[P, 16, H, 64], f8E4M3FN>, !attn.tensor<[B, T], i32>, !attn.tensor<[B], i32> -> !attn.tensor<[B, H, "16*T", 64], f8E4M3FN>
  %0 = attn.map ins(%k, %other : !attn.tensor<[B, H, "16*T", 64], f8E4M3FN>, !attn.tensor<[H, 1, 64], f8E5M2>) -> !attn.tensor<[B, H, "16*T", 64], f16> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.mulf %a, %b : f32
    attn.yield %c : f32
  }
  return
}
