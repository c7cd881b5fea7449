// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --verify-diagnostics
// What is multiplied, turned or averaged has elements of floats, and integers have no signs of their own.

!i = !attn.tensor<[B, H, N, 64], i8>
func.func @queries(%x: !i) {
  // expected-error@+1 {{expected queries of floats, but got '!attn.tensor<[B, H, N, 64], i8>'}}
  %a = attn.softmax %x keys(%x : !i) {patterns = [#attn.full], scale = 1.0 : f32} : !i
  return
}

// -----

!f = !attn.tensor<[B, H, N, 64], f16>
!i = !attn.tensor<[B, H, N, 64], i8>
func.func @keys(%x: !f, %k: !i) {
  // expected-error@+1 {{expected keys of floats, but got}}
  %a = attn.softmax %x keys(%k : !i) {patterns = [#attn.full], scale = 1.0 : f32} : !f
  return
}

// -----

!f = !attn.tensor<[B, H, N, 64], f16>
!i = !attn.tensor<[B, H, N, 64], i32>
!l = !attn.tensor<[B, H, N], f32>
func.func @values(%x: !f, %v: !i) {
  // expected-error@+1 {{expected values of floats, but got}}
  %a, %la = attn.attend %x keys(%x : !f) values(%v : !i) {patterns = [#attn.full], scale = 1.0 : f32} : !f -> !f, !l
  return
}

// -----

!f = !attn.tensor<[B, H, N, 64], f16>
!i = !attn.tensor<[B, H, N, 64], i64>
func.func @applied(%x: !f, %v: !i) {
  %a = attn.softmax %x keys(%x : !f) {patterns = [#attn.full], scale = 1.0 : f32} : !f
  // expected-error@+1 {{expected values of floats, but got}}
  %y = attn.apply %a, %v : (!i) -> !f
  return
}

// -----

func.func @taps(%taps: !attn.tensor<[3, 64], i8>) {
  // expected-error@+1 {{expected taps of floats, but got '!attn.tensor<[3, 64], i8>'}}
  %0 = attn.toeplitz %taps : !attn.tensor<[3, 64], i8>
  return
}

// -----

// expected-error@+1 {{expected elements of i1, i8, i32, i64, f8E4M3FN, f8E5M2, f16, bf16 or f32, but got 'ui8'}}
func.func private @signed(!attn.tensor<[B, H, N, 64], ui8>)
