// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --verify-diagnostics

func.func @paged_c1_rows(%pages: !attn.tensor<[P, S, H, 64], f16>, %table: !attn.tensor<[B, T], i32>, %n: !attn.tensor<[B], i32>) {
  // expected-error@+1 {{expected pages of a known number of rows, but got '!attn.tensor<[P, S, H, 64], f16>'}}
  %k = attn.paged %pages by %table lengths %n : !attn.tensor<[P, S, H, 64], f16>, !attn.tensor<[B, T], i32>, !attn.tensor<[B], i32> -> !attn.tensor<[B, H, M, 64], f16>
  return
}

// -----

func.func @paged_c1_elements(%pages: !attn.tensor<[P, 16, H, 64], f16>, %table: !attn.tensor<[B, T], i32>, %n: !attn.tensor<[B], i32>) {
  // expected-error@+1 {{expected rows of the pages' elements 'f16', but got '!attn.tensor<[B, H, "16*T", 64], f32>'}}
  %k = attn.paged %pages by %table lengths %n : !attn.tensor<[P, 16, H, 64], f16>, !attn.tensor<[B, T], i32>, !attn.tensor<[B], i32> -> !attn.tensor<[B, H, "16*T", 64], f32>
  return
}

// -----

func.func @paged_c2_table(%pages: !attn.tensor<[P, 16, H, 64], f16>, %table: !attn.tensor<[B, T], i64>, %n: !attn.tensor<[B], i32>) {
  // expected-error@+1 {{expected a table of rank 2 and i32 elements, but got '!attn.tensor<[B, T], i64>'}}
  %k = attn.paged %pages by %table lengths %n : !attn.tensor<[P, 16, H, 64], f16>, !attn.tensor<[B, T], i64>, !attn.tensor<[B], i32> -> !attn.tensor<[B, H, "16*T", 64], f16>
  return
}

// -----

func.func @paged_c2_lengths(%pages: !attn.tensor<[P, 16, H, 64], f16>, %table: !attn.tensor<[B, T], i32>, %n: !attn.tensor<[B, G], i32>) {
  // expected-error@+1 {{expected lengths of shape [B, H], but got '!attn.tensor<[B, G], i32>'}}
  %k = attn.paged %pages by %table lengths %n : !attn.tensor<[P, 16, H, 64], f16>, !attn.tensor<[B, T], i32>, !attn.tensor<[B, G], i32> -> !attn.tensor<[B, H, "16*T", 64], f16>
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
func.func @attend_c6_negative(%q: !x) {
  // expected-error@+1 {{expected 'splits' to be at least 0, but got -1}}
  %0 = attn.softmax %q keys(%q : !x) {patterns = [#attn.full], scale = 1.0 : f32, splits = -1 : i64} : !x
  return
}
