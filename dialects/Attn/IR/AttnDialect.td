// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The attn dialect: what a program computes, on whole tensors.
#ifndef WEFT_DIALECTS_ATTN_IR_ATTNDIALECT_TD
#define WEFT_DIALECTS_ATTN_IR_ATTNDIALECT_TD

include "mlir/IR/OpBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::weft::attn";
  let summary = "What an attention mechanism computes, on whole tensors";
  let description = [{
    A program is a `func.func` with the unit attribute `attn.program` over `!attn.tensor`s. Its arguments may carry `attn.name = "q"`, and
    `attn.aligned`, a promise that the address and every stride are multiples of 16 bytes, `attn.constant`: its gradient is not asked for, and `attn.left_out`: an attention without pairs read it, so that its gradient is zero where nothing else reads it. `attn.starts` says that its numbers are where packed sequences start, of so many tokens.

    There are two levels. Sequence mixers (`!attn.mixer`: `attn.softmax`, `attn.mean`, `attn.toeplitz`, `attn.diag`, combined by
    `attn.add` and `attn.compose`) are linear maps over the sequence, applied to values by `attn.apply`. `attn-apply-mixers` rewrites every
    application to ops on tensors: `attn.attend`, `attn.sum`, `attn.prefix_mean`, `attn.convolve` and `attn.map`. Differentiation and lowering
    work on those.

    Which pairs of a query and a key attend is a pattern: an attribute (`#attn.causal`, `#attn.and<...>`). Where a pattern depends on tensors
    or on code, it names an operand or a region of the op that carries it by number.

    The outcome of lowering is a program whose body is `attn.launch` ops of tile kernels in the same module.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::func::FuncDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

#endif // WEFT_DIALECTS_ATTN_IR_ATTNDIALECT_TD
