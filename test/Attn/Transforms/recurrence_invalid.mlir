// RUN: weft-opt %s --split-input-file --attn-apply-mixers --verify-diagnostics

!x = !attn.tensor<[B, H, N, 64], f16>

func.func @final_state_c1(%v: !x) -> !attn.tensor<[B, H, 64, 64], f32> {
  %m = attn.mean
  // expected-error@+1 {{expected a mixer made by 'attn.recurrence'}}
  %s = attn.final_state %m, %v : !x -> !attn.tensor<[B, H, 64, 64], f32>
  return %s : !attn.tensor<[B, H, 64, 64], f32>
}
