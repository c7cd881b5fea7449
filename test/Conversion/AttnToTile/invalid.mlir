// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --verify-diagnostics

!t = !attn.tensor<[1, H, N, 64], f16>
!l = !attn.tensor<[1, H, N], f32>
!c = !attn.tensor<[S], i32>
func.func @packed(%q: !t, %k: !t, %v: !t, %cu: !c) -> !t attributes {attn.program} {
  // expected-error @below {{expected a pattern of intervals for packed sequences, but got #attn.strided<3>}}
  // expected-note @below {{pad the sequences to one length}}
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) cu_seqlens(%cu, %cu : !c, !c) {patterns = [#attn.strided<3>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}
