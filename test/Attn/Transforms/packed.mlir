// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --attn-apply-mixers | FileCheck %s
// RUN: weft-opt %s --attn-apply-mixers --attn-differentiate --canonicalize --cse | FileCheck %s --check-prefix=GRAD
// Mixers of packed sequences hand their starts to the ops that apply them, and those to their adjoints.

!x = !attn.tensor<[1, H, N, 64], f16>
!s = !attn.tensor<[S], i32>
// CHECK-LABEL: func.func @sema(
// CHECK-SAME: %[[Q:.*]]: {{.*}}"q"}, %[[V:.*]]: {{.*}}"v"}, %[[TAPS:.*]]: {{.*}}"taps"}, %[[S:.*]]: {{.*}}"starts"})
// CHECK: attn.rope %[[Q]] cu_seqlens %[[S]]
// CHECK: attn.attend %{{.*}} cu_seqlens(%[[S]], %[[S]] :
// CHECK: attn.sequence_mean %[[V]] cu_seqlens %[[S]]
// CHECK: attn.convolve %[[V]], %[[TAPS]] cu_seqlens %[[S]] {centred}

// GRAD-LABEL: func.func @sema.backward(
// GRAD-SAME: %[[S:[a-z0-9]*]]: !attn.tensor<[S], i32>
// GRAD-DAG: attn.attend_backward {{.*}} cu_seqlens(%[[S]], %[[S]] :
// GRAD-DAG: attn.sequence_mean %{{.*}} cu_seqlens %[[S]]
// GRAD-DAG: attn.convolve %{{.*}}, %{{.*}} cu_seqlens %[[S]] {centred, transposed}
// GRAD-DAG: attn.convolve_taps_grad %{{.*}}, %{{.*}} cu_seqlens %[[S]] {centred}
// GRAD-DAG: attn.rope %{{.*}} cu_seqlens %[[S]] {inverse, window = array<i64: 32>}
func.func @sema(%q: !x {attn.name = "q"}, %v: !x {attn.name = "v"}, %taps: !attn.tensor<[3, "H*64"], f16> {attn.name = "taps"}, %s: !s {attn.name = "starts"})
    -> (!x {attn.name = "y"}) attributes {attn.program} {
  %turned = attn.rope %q cu_seqlens %s {window = array<i64: 32>} : !x, !s -> !x
  %a = attn.softmax %turned keys(%turned : !x) cu_seqlens(%s, %s : !s, !s) {patterns = [#attn.block_window<[32]>], scale = 0.125 : f32} : !x
  %m = attn.mean cu_seqlens %s : !s
  %t = attn.toeplitz %taps cu_seqlens %s {centred} : !attn.tensor<[3, "H*64"], f16>, !s
  %am = attn.add %a, %m
  %amt = attn.add %am, %t
  %y = attn.apply %amt, %v : (!x) -> !x
  return %y : !x
}
