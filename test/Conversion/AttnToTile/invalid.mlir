// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --verify-diagnostics
// Programs that have no kernels.

// expected-error@+1 {{expected a program of one block}}
func.func @blocks(%x: !attn.tensor<[N], f32>) -> !attn.tensor<[N], f32> attributes {attn.program} {
  return %x : !attn.tensor<[N], f32>
^bb1:
  return %x : !attn.tensor<[N], f32>
}

// -----

!x = !attn.tensor<[B, H, N, C], f16>
func.func @attend(%x: !x) -> !x attributes {attn.program} {
  // expected-error@+1 {{expected head sizes that are integers, but got '!attn.tensor<[B, H, N, C], f16>'}}
  %o, %l = attn.attend %x keys(%x : !x) values(%x : !x) {patterns = [#attn.causal], scale = 1.0 : f32} : !x -> !x, !attn.tensor<[B, H, N], f32>
  return %o : !x
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!v = !attn.tensor<[B, H, N, C], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_backward(%q: !x, %v: !v, %n: !n) -> !x attributes {attn.program} {
  // expected-error@+1 {{expected head sizes that are integers, but got '!attn.tensor<[B, H, N, C], f16>'}}
  %dq, %d:2 = attn.attend_backward %q keys(%q : !x) values(%v : !v) lse(%n : !n) delta(%n : !n) gradient(%v : !v)
    {patterns = [#attn.causal], scale = 1.0 : f32} : !x -> !x, !x, !v
  return %dq : !x
}

// -----

!x = !attn.tensor<[B, H, N, C], f16>
func.func @prefix_mean(%x: !x) -> !x attributes {attn.program} {
  // expected-error@+1 {{expected [B, H, N, D] with a static D, but got '!attn.tensor<[B, H, N, C], f16>'}}
  %y = attn.prefix_mean %x : !x -> !x
  return %y : !x
}

// -----

!x = !attn.tensor<[B, H, N, C], f16>
func.func @long_convolution(%x: !x, %w: !attn.tensor<[N, "H*C"], f16>) -> !x attributes {attn.program} {
  // expected-error@+1 {{expected [B, H, N, C] with a static C, but got '!attn.tensor<[B, H, N, C], f16>'}}
  %y = attn.convolve %x, %w : !x, !attn.tensor<[N, "H*C"], f16> -> !x
  return %y : !x
}

// -----

!x = !attn.tensor<[B, H, N, C], f16>
!w = !attn.tensor<[N, "H*C"], f16>
func.func @long_taps(%x: !x, %g: !x) -> !w attributes {attn.program} {
  // expected-error@+1 {{expected [B, H, N, C] with a static C, but got '!attn.tensor<[B, H, N, C], f16>'}}
  %y = attn.convolve_taps_grad %x, %g : !x, !x -> !w
  return %y : !w
}

// -----

!x = !attn.tensor<[B, H, N, C], f16>
func.func @rms_norm(%x: !x) -> !x attributes {attn.program} {
  // expected-error@+1 {{has no kernel of its own}}
  %y = attn.rms_norm %x : !x -> !x
  return %y : !x
}
