// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --verify-diagnostics
// What no operand or attribute of an op of the dialect may be, a case for each constraint on types and attributes.

func.func @tensor(%x: f32) {
  // expected-error@+1 {{operand #0 must be attn tensor, but got 'f32'}}
  %0 = attn.sum %x : f32 -> !attn.tensor<[], f32>
  return
}

// -----

func.func @scalar(%x: !attn.tensor<[N], f32>, %d: f64) {
  %0 = attn.map -> !attn.tensor<[N], f32> {
    // expected-error@+1 {{operand #0 must be variadic of i1, i32 or f32, but got 'f64'}}
    attn.yield %d : f64
  }
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
func.func @patterns(%q: !x) {
  // expected-error@+1 {{failed to satisfy constraint: array of patterns}}
  %0 = attn.softmax %q keys(%q : !x) {patterns = [1 : i64], scale = 1.0 : f32} : !x
  return
}

// -----

!n = !attn.tensor<[B, H, N], i32>
!x = !attn.tensor<[B, H, N, 64], f16>
!j = !attn.tensor<[B, H, N], i1>
func.func @merges(%j: !j, %k: !x) {
  // expected-error@+1 {{failed to satisfy constraint: array of merges}}
  %m:8 = attn.merge_units %j (%k) {maxJoins = 20 : i64, modes = [1 : i64], offsets = array<i64: 0>} : !j (!x) -> (!x), !n, !n, !n, !n, !n, !n, !j
  return
}
