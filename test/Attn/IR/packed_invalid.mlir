// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --verify-diagnostics
// Constraints of what takes packed sequences, one a case, named after them.

!x = !attn.tensor<[1, H, N, 64], f16>
func.func @convolve_c4_type(%x: !x, %taps: !attn.tensor<[3, "H*64"], f16>, %s: !attn.tensor<[S], i64>) {
  // expected-error@+1 {{expected cu_seqlens of rank 1 and i32 elements, but got '!attn.tensor<[S], i64>'}}
  %0 = attn.convolve %x, %taps cu_seqlens %s : !x, !attn.tensor<[3, "H*64"], f16>, !attn.tensor<[S], i64> -> !x
  return
}

// -----

!x = !attn.tensor<[1, H, 64, 64], f16>
func.func @convolve_c4_grid(%x: !x, %taps: !attn.tensor<[9, "H*64"], f16>, %s: !attn.tensor<[S], i32>) {
  // expected-error@+1 {{expected no grid with cu_seqlens}}
  %0 = attn.convolve %x, %taps cu_seqlens %s {grid = array<i64: 8, 8>} : !x, !attn.tensor<[9, "H*64"], f16>, !attn.tensor<[S], i32> -> !x
  return
}

// -----

!x = !attn.tensor<[1, H, N, 64], f16>
func.func @convolve_c1(%x: !x, %taps: !attn.tensor<[K, "H*64"], f16>, %s: !attn.tensor<[S], i32>) {
  // expected-error@+1 {{expected taps [K, H*C] with K an integer where they are centred, dilated, on a grid or of packed sequences, but got '!attn.tensor<[K, "H*64"], f16>'}}
  %0 = attn.convolve %x, %taps cu_seqlens %s : !x, !attn.tensor<[K, "H*64"], f16>, !attn.tensor<[S], i32> -> !x
  return
}

// -----

!x = !attn.tensor<[1, H, 64, 64], f16>
func.func @rope_c3(%x: !x, %s: !attn.tensor<[S], i32>) {
  // expected-error@+1 {{expected no grid with cu_seqlens}}
  %0 = attn.rope %x cu_seqlens %s {form = #attn<rope axial>, grid = array<i64: 8, 8>, window = array<i64: 4, 4>} : !x, !attn.tensor<[S], i32> -> !x
  return
}

// -----

func.func @mean_c1_causal(%s: !attn.tensor<[S], i32>) {
  // expected-error@+1 {{expected a mean of packed sequences that is not causal}}
  %0 = attn.mean cu_seqlens %s {causal} : !attn.tensor<[S], i32>
  return
}

// -----

func.func @mean_c1_type(%s: !attn.tensor<[S, 2], i32>) {
  // expected-error@+1 {{expected cu_seqlens of rank 1 and i32 elements, but got '!attn.tensor<[S, 2], i32>'}}
  %0 = attn.mean cu_seqlens %s : !attn.tensor<[S, 2], i32>
  return
}

// -----

func.func @sequence_mean_c1(%x: !attn.tensor<[1, H, N, D], f16>, %s: !attn.tensor<[S], i32>) {
  // expected-error@+1 {{expected a source [B, H, N, D] with a static D, but got '!attn.tensor<[1, H, N, D], f16>'}}
  %0 = attn.sequence_mean %x cu_seqlens %s : !attn.tensor<[1, H, N, D], f16>, !attn.tensor<[S], i32> -> !attn.tensor<[1, H, N, D], f16>
  return
}

// -----

!x = !attn.tensor<[2, H, N, 64], f16>
func.func @softmax_batch(%q: !x, %s: !attn.tensor<[S], i32>) {
  // expected-error@+1 {{expected a batch of 1 for packed sequences, but got '!attn.tensor<[2, H, N, 64], f16>'}}
  %0 = attn.softmax %q keys(%q : !x) cu_seqlens(%s, %s : !attn.tensor<[S], i32>, !attn.tensor<[S], i32>) {patterns = [#attn.causal], scale = 1.0 : f32} : !x
  return
}

// -----

func.func @sequence_mean_c2(%x: !attn.tensor<[1, H, N, 64], f16>, %s: !attn.tensor<[S], i64>) {
  // expected-error@+1 {{expected cu_seqlens of rank 1 and i32 elements, but got '!attn.tensor<[S], i64>'}}
  %0 = attn.sequence_mean %x cu_seqlens %s : !attn.tensor<[1, H, N, 64], f16>, !attn.tensor<[S], i64> -> !attn.tensor<[1, H, N, 64], f32>
  return
}
