// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What ops of the attn dialect say of themselves to those who compute them tile by tile.
#ifndef WEFT_DIALECTS_ATTN_IR_ATTNINTERFACES_TD
#define WEFT_DIALECTS_ATTN_IR_ATTNINTERFACES_TD

include "mlir/IR/OpBase.td"

def Attn_PaddingOpInterface : OpInterface<"PaddingOpInterface"> {
  let cppNamespace = "::weft::attn";
  let description = [{
    A tile has elements that a tensor has not: rows past the end of the sequence, channels past the head size, heads past the last. They are padding. What is loaded there is 0; what
    is computed there is f(0), which is not 0 for every f, and need not be finite. What adds up rows or channels selects padding away, unless the op says that it is 0.
  }];
  let methods = [InterfaceMethod<
    [{
      What result `result` holds past the end of its axis `axis`, where each operand holds `operands` there. (Operands that are read as a whole, such as taps, are of no account.)
    }],
    "::weft::attn::Padding", "paddingOf", (ins "unsigned":$result, "int64_t":$axis, "::llvm::ArrayRef<::weft::attn::Padding>":$operands)>];
}

def Attn_TransposableOpInterface : OpInterface<"TransposableOpInterface"> {
  let cppNamespace = "::weft::attn";
  let description = [{
    An op that is linear in its first operand, and whose transpose is the same op with other attributes. That is all that differentiation needs to know of it.
  }];
  let methods = [InterfaceMethod<"Changes the attributes to those of the transpose.", "void", "transpose">];
}

def Attn_WeightedOpInterface : OpInterface<"WeightedOpInterface"> {
  let cppNamespace = "::weft::attn";
  let description = [{
    A product with a weight, or its gradient in the weight: each element of the weight takes part in one multiply-add for each element of some axes.
  }];
  let methods = [
    InterfaceMethod<"The weight, or the gradient that is like it.", "::mlir::Value", "weightOfProduct">,
    InterfaceMethod<"The sizes of those axes.", "::llvm::SmallVector<::mlir::StringAttr>", "axesOfProduct">];
}

#endif // WEFT_DIALECTS_ATTN_IR_ATTNINTERFACES_TD
