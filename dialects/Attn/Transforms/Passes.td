// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Passes on the attn dialect.
#ifndef WEFT_DIALECTS_ATTN_TRANSFORMS_PASSES_TD
#define WEFT_DIALECTS_ATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnApplyMixers : Pass<"attn-apply-mixers", "::mlir::func::FuncOp"> {
  let summary = "rewrite the application of mixers to ops on tensors";
  let description = [{
    (A + B) v = A v + B v and (A B) v = A (B v), until each mixer that is applied is a primitive one: a softmax becomes
    `attn.attend`, a mean `attn.sum` and a map (causal: `attn.prefix_mean`, of packed sequences: `attn.sequence_mean`),
    a toeplitz `attn.convolve`, a diag a map. The terms of a sum are f32 and one `attn.map` adds them, so that a sum
    rounds once. No mixer is left.

    Needs: mixers made by ops of the attn dialect in the same function.

    Rejects: a mixer that is a function's argument, or made by an op of another dialect; values that are not one tensor
    for each domain of a softmax, or one for any other mixer.

    ```mlir
    !t = !attn.tensor<[B, H, N, 64], f16>
    func.func @f(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
      %a = attn.softmax %q keys(%k : !t) {patterns = [#attn.causal], scale = 0.125 : f32} : !t
      %y = attn.apply %a, %v : (!t) -> !t
      return %y : !t
    }
    ```
    becomes
    ```mlir
    !t = !attn.tensor<[B, H, N, 64], f16>
    func.func @f(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
      %out, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.causal], scale = 1.250000e-01 : f32}
        : !t -> !t, !attn.tensor<[B, H, N], f32>
      return %out : !t
    }
    ```
  }];
  let dependentDialects = ["::weft::attn::AttnDialect", "::mlir::arith::ArithDialect"];
}

#endif // WEFT_DIALECTS_ATTN_TRANSFORMS_PASSES_TD
