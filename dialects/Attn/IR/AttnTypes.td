// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Types of the attn dialect, and the type constraints its ops share.
#ifndef WEFT_DIALECTS_ATTN_IR_ATTNTYPES_TD
#define WEFT_DIALECTS_ATTN_IR_ATTNTYPES_TD

include "dialects/Attn/IR/AttnDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

def Attn_TensorType : TypeDef<Attn_Dialect, "WholeTensor"> {
  let mnemonic = "tensor";
  let summary = "a whole tensor in device memory, its sizes named";
  let description = [{
    `!attn.tensor<[B, H, N, 64], f16>`. A size is an integer, a symbol, or an expression over symbols in quotes, `"4*Hkv"`, `"cdiv(N, 64)"`, in
    the language of a library's grid expressions (docs/LibraryFormat.md). Two sizes are the same size when they are spelled alike.

    C1: rank 0 to 6. C2: element i1, i8, i32, i64, f8E4M3FN, f8E5M2, f16, bf16 or f32. C3: integers are at least 1.

    8-bit floats are what memory holds, nothing is computed on them: `attn.map` converts them as they are loaded, and has no gradient for them.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$dims, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [TypeBuilderWithInferredContext<(ins "::llvm::ArrayRef<::mlir::StringAttr>":$dims, "::mlir::Type":$elementType), [{
    return $_get(elementType.getContext(), dims, elementType);
  }]>];
  let extraClassDeclaration = [{
    int64_t getRank() const { return getDims().size(); }
    /// Size `axis` as it is spelled.
    llvm::StringRef dim(unsigned axis) const { return getDims()[axis].getValue(); }
    /// Size `axis` where it is an integer.
    std::optional<int64_t> staticDim(unsigned axis) const;
    /// The same with another element type.
    WholeTensorType withElement(::mlir::Type element) const;
    /// The same with one size replaced.
    WholeTensorType withDim(unsigned axis, llvm::StringRef size) const;
  }];
}

def Attn_MixerType : TypeDef<Attn_Dialect, "Mixer"> {
  let mnemonic = "mixer";
  let summary = "a linear map over the sequence: one N×M matrix per batch and head, never stored";
}

def Attn_Tensor : DialectType<Attn_Dialect, CPred<"::llvm::isa<::weft::attn::WholeTensorType>($_self)">, "attn tensor">;
/// What the scalar regions of the dialect compute on.
def Attn_Scalar : AnyTypeOf<[I1, I32, F32], "i1, i32 or f32">;

#endif // WEFT_DIALECTS_ATTN_IR_ATTNTYPES_TD
