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

def Attn_RowLocalOpInterface : OpInterface<"RowLocalOpInterface"> {
  let cppNamespace = "::weft::attn";
  let description = [{
    An op whose result at a tile of rows of [B, H, N, D] or [B, H, N] is computed from tiles of rows of its operands, so that a kernel that reads the result need not have it stored.
  }];
  let methods = [
    InterfaceMethod<"Whether this op is one: some are for some types only.",
      "bool", "isRowLocal", (ins), "", [{ return true; }]>,
    InterfaceMethod<"Whether operand `operand` is read row by row; others are read as a whole, where they are stored.",
      "bool", "readsByRow", (ins "unsigned":$operand), "", [{ return operand == 0; }]>,
    InterfaceMethod<"Whether it takes other rows of its operands than the result's.",
      "bool", "readsOtherRows", (ins), "", [{ return false; }]>
  ];
}

/// An op that implements it, and those of its methods that the op says otherwise of.
class Attn_RowLocal<list<string> methods = []> : DeclareOpInterfaceMethods<Attn_RowLocalOpInterface, methods>;

#endif // WEFT_DIALECTS_ATTN_IR_ATTNINTERFACES_TD
