// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s | weft-opt | FileCheck %s
// RUN: weft-opt %s --canonicalize | FileCheck %s --check-prefix=FOLD
// Round trips of what takes sequences packed one after another; means of means fold where they are of the same sequences.

!x = !attn.tensor<[1, H, N, 64], f16>
!s = !attn.tensor<[S], i32>
// CHECK-LABEL: func.func @mixers
func.func @mixers(%q: !x, %taps: !attn.tensor<[3, "H*64"], f16>, %s: !s) -> !x {
  // CHECK: attn.softmax %{{.*}} keys(%{{.*}}) cu_seqlens(%{{.*}}, %{{.*}} : !attn.tensor<[S], i32>, !attn.tensor<[S], i32>) {patterns = [#attn.causal]
  %a = attn.softmax %q keys(%q : !x) cu_seqlens(%s, %s : !s, !s) {patterns = [#attn.causal], scale = 1.0 : f32} : !x
  // CHECK: attn.mean cu_seqlens %{{.*}} : !attn.tensor<[S], i32>
  %m = attn.mean cu_seqlens %s : !s
  // CHECK: attn.toeplitz %{{.*}} cu_seqlens %{{.*}} {centred} : !attn.tensor<[3, "H*64"], f16>, !attn.tensor<[S], i32>
  %t = attn.toeplitz %taps cu_seqlens %s {centred} : !attn.tensor<[3, "H*64"], f16>, !s
  %am = attn.add %a, %m
  %all = attn.add %am, %t
  %y = attn.apply %all, %q : (!x) -> !x
  return %y : !x
}

// CHECK-LABEL: func.func @tensors
func.func @tensors(%x: !x, %taps: !attn.tensor<[3, "H*64"], f16>, %s: !s) {
  // CHECK: attn.sequence_mean %{{.*}} cu_seqlens %{{.*}} : !attn.tensor<[1, H, N, 64], f16>, !attn.tensor<[S], i32> -> !attn.tensor<[1, H, N, 64], f32>
  %0 = attn.sequence_mean %x cu_seqlens %s : !x, !s -> !attn.tensor<[1, H, N, 64], f32>
  // CHECK: attn.convolve %{{.*}}, %{{.*}} cu_seqlens %{{.*}} {dilation = 2 : i64} : !attn.tensor<[1, H, N, 64], f16>, !attn.tensor<[3, "H*64"], f16>, !attn.tensor<[S], i32> ->
  %1 = attn.convolve %x, %taps cu_seqlens %s {dilation = 2 : i64} : !x, !attn.tensor<[3, "H*64"], f16>, !s -> !x
  // CHECK: attn.convolve_taps_grad %{{.*}}, %{{.*}} cu_seqlens %{{.*}} {transposed} :
  %2 = attn.convolve_taps_grad %x, %1 cu_seqlens %s {transposed} : !x, !x, !s -> !attn.tensor<[3, "H*64"], f16>
  // CHECK: attn.rope %{{.*}} cu_seqlens %{{.*}} {window = array<i64: 8>} : !attn.tensor<[1, H, N, 64], f16>, !attn.tensor<[S], i32> ->
  %3 = attn.rope %x cu_seqlens %s {window = array<i64: 8>} : !x, !s -> !x
  return
}

// FOLD-LABEL: func.func @means
func.func @means(%v: !x, %s: !s, %t: !s) -> (!x, !x) {
  // FOLD: %[[MEAN:.*]] = attn.mean
  // FOLD: %[[OTHER:.*]] = attn.mean
  // FOLD-NEXT: %[[BOTH:.*]] = attn.compose %[[MEAN]], %[[OTHER]]
  // FOLD-NEXT: attn.apply %[[MEAN]]
  // FOLD-NEXT: attn.apply %[[BOTH]]
  %m = attn.mean cu_seqlens %s : !s
  %n = attn.mean cu_seqlens %t : !s
  %mm = attn.compose %m, %m
  %mn = attn.compose %m, %n
  %0 = attn.apply %mm, %v : (!x) -> !x
  %1 = attn.apply %mn, %v : (!x) -> !x
  return %0, %1 : !x, !x
}
