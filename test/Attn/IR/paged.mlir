// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s | weft-opt | FileCheck %s

// CHECK: attn.paged %{{.*}} by %{{.*}} lengths %{{.*}} : !attn.tensor<[P, 16, H, 64], f16>, !attn.tensor<[B, T], i32>, !attn.tensor<[B], i32> -> !attn.tensor<[B, H, "16*T", 64], f16>
func.func @paged(%pages: !attn.tensor<[P, 16, H, 64], f16>, %table: !attn.tensor<[B, T], i32>, %n: !attn.tensor<[B], i32>) {
  %k = attn.paged %pages by %table lengths %n : !attn.tensor<[P, 16, H, 64], f16>, !attn.tensor<[B, T], i32>, !attn.tensor<[B], i32> -> !attn.tensor<[B, H, "16*T", 64], f16>
  return
}
