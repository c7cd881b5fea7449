// RUN: weft-opt %s --attn-apply-mixers --split-input-file --verify-diagnostics

func.func @unknown_mixer(%a: !attn.mixer, %v: !attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16> {
  // expected-error@+1 {{expected a mixer made by an op of the attn dialect}}
  %0 = attn.apply %a, %v : (!attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16>
  return %0 : !attn.tensor<[B, H, N, 32], f16>
}

// -----

func.func @domains(%q: !attn.tensor<[B, H, N, 32], f16>, %v: !attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16> {
  %a = attn.softmax %q keys(%q : !attn.tensor<[B, H, N, 32], f16>) {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 32], f16>
  // expected-error@+1 {{expected one tensor of values for each of the softmax's 1 domains, but got 2}}
  %0 = attn.apply %a, %v, %v : (!attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16>
  return %0 : !attn.tensor<[B, H, N, 32], f16>
}

// -----

func.func @mean_of_two(%v: !attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16> {
  %a = attn.mean
  // expected-error@+1 {{expected one tensor of values for 'attn.mean', but got 2}}
  %0 = attn.apply %a, %v, %v : (!attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16>
  return %0 : !attn.tensor<[B, H, N, 32], f16>
}
