// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Passes on the attn dialect.
#ifndef WEFT_DIALECTS_ATTN_TRANSFORMS_PASSES_TD
#define WEFT_DIALECTS_ATTN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnApplyMixers : Pass<"attn-apply-mixers", "::mlir::func::FuncOp"> {
  let summary = "rewrite the application of mixers to ops on tensors";
  let description = [{
    (A + B) v = A v + B v and (A B) v = A (B v), until each mixer that is applied is a primitive one: softmax becomes `attn.attend`, a mean `attn.sum` and a map (causal:
    `attn.prefix_mean`), toeplitz `attn.convolve`, diag a map. The terms of a sum are f32 and one `attn.map` adds them, so that a sum rounds once. No mixer is left.
  }];
  let dependentDialects = ["::weft::attn::AttnDialect", "::mlir::arith::ArithDialect"];
}

#endif // WEFT_DIALECTS_ATTN_TRANSFORMS_PASSES_TD
