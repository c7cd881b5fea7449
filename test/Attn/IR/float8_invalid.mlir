// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --verify-diagnostics

!x = !attn.tensor<[B, H, N, 64], f8E4M3FN>
func.func @computed_on(%x: !x) {
  // expected-error@+1 {{expected no elements of 8-bit floats, but got '!attn.tensor<[B, H, N, 64], f8E4M3FN>'}}
  %0 = attn.rope %x : !x -> !x
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f8E5M2>
func.func @map_c4(%x: !x) {
  // expected-error@+1 {{expected results of 16 or 32 bits, or integers, but got '!attn.tensor<[B, H, N, 64], f8E5M2>'}}
  %0 = attn.map ins(%x : !x) -> !x {
  ^bb0(%a: f32):
    attn.yield %a : f32
  }
  return
}
