// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Types of the tile dialect, and the type constraints its ops share.
#ifndef WEFT_DIALECTS_TILE_IR_TILETYPES_TD
#define WEFT_DIALECTS_TILE_IR_TILETYPES_TD

include "dialects/Tile/IR/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

def Tile_PointerType : TypeDef<Tile_Dialect, "Pointer"> {
  let mnemonic = "ptr";
  let summary = "the address of a value in device memory";
  let description = [{
    `!tile.ptr<f16>` is the 64-bit address of an f16 in global memory. The pointee is an integer of 1, 8, 16, 32 or 64 bits, a float
    of 8 to 64 bits, or another pointer. `tensor<64x!tile.ptr<f16>>` holds one address an element.
  }];
  let parameters = (ins "::mlir::Type":$pointee);
  let assemblyFormat = "`<` $pointee `>`";
  let genVerifyDecl = 1;
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::Type":$pointee), [{
    return $_get(pointee.getContext(), pointee);
  }]>];
}

def Tile_Element : AnyTypeOf<[I1, I8, I16, I32, I64, F8E4M3FN, F8E5M2, F16, BF16, F32, F64, Tile_PointerType],
                             "integer, float or pointer">;
def Tile_Tensor : RankedTensorOf<[Tile_Element], [HasStaticShapePred], "tensor of static shape">;
def Tile_IntTensor : RankedTensorOf<[I1, I8, I16, I32, I64], [HasStaticShapePred], "tensor of integers">;
def Tile_PointerTensor : RankedTensorOf<[Tile_PointerType], [HasStaticShapePred], "tensor of pointers">;
def Tile_BoolTensor : RankedTensorOf<[I1], [HasStaticShapePred], "tensor of i1">;

/// A scalar or a tensor of it.
def Tile_Value : AnyTypeOf<[Tile_Element, Tile_Tensor], "scalar or tensor">;
def Tile_PointerLike : AnyTypeOf<[Tile_PointerType, Tile_PointerTensor], "pointer or tensor of pointers">;
def Tile_IntLike : AnyTypeOf<[I1, I8, I16, I32, I64, Tile_IntTensor], "integer or tensor of integers">;
def Tile_BoolLike : AnyTypeOf<[I1, Tile_BoolTensor], "i1 or tensor of i1">;

#endif // WEFT_DIALECTS_TILE_IR_TILETYPES_TD
