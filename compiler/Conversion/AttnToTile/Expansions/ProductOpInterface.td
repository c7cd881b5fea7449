// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a product with a weight, or the gradient of a weight, implements to be a part of an expansion.
#ifndef WEFT_COMPILER_CONVERSION_ATTNTOTILE_EXPANSIONS_PRODUCTOPINTERFACE_TD
#define WEFT_COMPILER_CONVERSION_ATTNTOTILE_EXPANSIONS_PRODUCTOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def ProductOpInterface : OpInterface<"ProductOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    A product of values [B, H, N, D] with a weight, or the gradient of such a weight: what kernels of expansions are made
    of, beside maps. A product's first operand is its source, the others its weight and bias; a gradient's are the
    source and the gradient of the product. The implementations are external models in Expansions/Products, one product
    a file.
  }];
  let methods = [
    InterfaceMethod<"Whether a kernel of an expansion can hold this op: its types and sizes allow it.",
      "bool", "fitsExpansion">,
    InterfaceMethod<"Which form of a tile it multiplies, and its sums have.",
      "::weft::ProductForm", "form">,
    InterfaceMethod<"Whether it is the gradient of a weight.",
      "bool", "isWeightGradient", (ins), "", [{ return false; }]>,

    // Of a product.
    InterfaceMethod<"Multiply-adds for each token.",
      "int64_t", "multiplyAdds", (ins), "", [{ return 0; }]>,
    InterfaceMethod<"The parts of its weight and bias, as operands of type `element`; `inner`: chunks of the source's channels.",
      "::weft::ProductWeights", "loadWeights",
      (ins "::weft::KernelFrame &":$frame, "const ::weft::StoredValues &":$stored, "::llvm::ArrayRef<::weft::Chunk>":$inner, "::mlir::Type":$element),
      "", [{ return {}; }]>,
    InterfaceMethod<"The sums of the kernel's tokens, from those of `start` on (null: from the bias).",
      "::weft::ExpansionTiles", "multiply", (ins "::weft::ExpansionKernel &":$kernel, "const ::weft::ExpansionTiles *":$start),
      "", [{ return {}; }]>,

    // Of the gradient of a weight.
    InterfaceMethod<"The products that it is summed up of, a tile of sums each.",
      "::llvm::SmallVector<::weft::GradientTile>", "gradientTiles", (ins), "", [{ return {}; }]>,
    InterfaceMethod<"Stores one tile of sums into part `part` (i64) of the outputs for weight and bias.",
      "void", "storeTile",
      (ins "::weft::TileBuilder &":$b, "const ::weft::GradientTile &":$tile, "::llvm::ArrayRef<::weft::TensorParameter>":$outputs,
           "::mlir::Value":$part, "::mlir::Value":$sum), "", [{ return; }]>
  ];
}

#endif // WEFT_COMPILER_CONVERSION_ATTNTOTILE_EXPANSIONS_PRODUCTOPINTERFACE_TD
