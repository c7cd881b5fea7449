// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// A convolution of a convolution computes the inner one once for each of its taps: 3 · 9 taps are one kernel.

!t = !attn.tensor<[B, H, N, 16], f32>
!w = !attn.tensor<[3, "H*16"], f32>
!v = !attn.tensor<[9, "H*16"], f32>
// CHECK-LABEL: func.func @few(
// CHECK-NEXT: %[[OUT:.*]] = attn.launch
// CHECK-NEXT: return %[[OUT]]
func.func @few(%x: !t, %w: !w, %v: !v) -> !t attributes {attn.program} {
  %inner = attn.convolve %x, %v : !t, !v -> !t
  %outer = attn.convolve %inner, %w : !t, !w -> !t
  return %outer : !t
}

// -----

// 3 · 9 · 16 taps would be a kernel of 432 of each step: what the outermost convolution reads is stored, and the inner
// two are one kernel.

!t = !attn.tensor<[B, H, N, 16], f32>
!w = !attn.tensor<[3, "H*16"], f32>
!v = !attn.tensor<[9, "H*16"], f32>
!u = !attn.tensor<[16, "H*16"], f32>
// CHECK-LABEL: func.func @many(
// CHECK-NEXT: %[[INNER:.*]] = attn.launch
// CHECK-NEXT: %[[OUT:.*]] = attn.launch {{.*}}%[[INNER]])
// CHECK-NEXT: return %[[OUT]]
func.func @many(%x: !t, %w: !w, %v: !v, %u: !u) -> !t attributes {attn.program} {
  %inner = attn.convolve %x, %u : !t, !u -> !t
  %middle = attn.convolve %inner, %v : !t, !v -> !t
  %outer = attn.convolve %middle, %w : !t, !w -> !t
  return %outer : !t
}

// -----

// Two convolutions of one that is not nested in either: each tap of 16 applies 2 · 9 taps, too many together.

!t = !attn.tensor<[B, H, N, 16], f32>
!v = !attn.tensor<[9, "H*16"], f32>
!u = !attn.tensor<[16, "H*16"], f32>
// CHECK-LABEL: func.func @beside(
// CHECK-COUNT-2: attn.launch
// CHECK-NOT: attn.launch
// CHECK: return
func.func @beside(%x: !t, %y: !t, %v: !v, %u: !u) -> !t attributes {attn.program} {
  %a = attn.convolve %x, %v : !t, !v -> !t
  %b = attn.convolve %y, %v : !t, !v -> !t
  %sum = attn.map ins(%a, %b : !t, !t) -> !t {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %q : f32
    attn.yield %s : f32
  }
  %outer = attn.convolve %sum, %u : !t, !u -> !t
  return %outer : !t
}
