// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Layout attribute, shared-memory type and the constraints the warp ops share.
#ifndef WEFT_DIALECTS_WARP_IR_WARPTYPES_TD
#define WEFT_DIALECTS_WARP_IR_WARPTYPES_TD

include "dialects/Warp/IR/WarpDialect.td"
include "dialects/Tile/IR/TileTypes.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"

def Warp_LayoutAttr : AttrDef<Warp_Dialect, "Layout", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "layout";
  let summary = "a linear layout";
  let description = [{
    The bases of a linear layout, as coordinates, lowest bit first, one list per input that has any:

    ```mlir
    #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
    ```
    maps register 1 to element (0, 1), lane 4 to (1, 0). Distributed tensors use register, lane, warp and block; shared memory uses offset.

    C1: the shape's sizes are powers of two. C2: every basis has the shape's rank and lies inside it. C3: offset stands alone.
    C4: as a tensor's encoding: the tensor's shape, five lane bits, no offset.
  }];
  let parameters = (ins AttrParameter<"::weft::warp::LinearLayout", "the map", "const ::weft::warp::LinearLayout &">:$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Warp_SharedType : TypeDef<Warp_Dialect, "Shared"> {
  let mnemonic = "shared";
  let summary = "a tile in shared memory";
  let description = [{
    `!warp.shared<64x64xf16, #warp.layout<[64, 64], offset = [...]>>`: a tile of that shape whose element at offset o (in elements) is what the layout says.
    Swizzles are layouts. `!warp.shared<stages = 3, 64x64xf16, #layout>` is a ring of 3 such tiles, each beginning where the last ends.

    C1: the layout is in `offset`, of the tile's shape, and a bijection.
  }];
  let parameters = (ins "int64_t":$stages, ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType, "::weft::warp::LayoutAttr":$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes of one tile.
    int64_t getTileBytes();
    /// Bytes of all stages.
    int64_t getBytes() { return getStages() * getTileBytes(); }
    const ::weft::warp::LinearLayout &linear() { return getLayout().getLayout(); }
  }];
}

#endif // WEFT_DIALECTS_WARP_IR_WARPTYPES_TD
