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

    `!warp.shared<64x32xf16, #layout, margin = 2>` is a tile that is read shifted along its last axis but one: before, between and after its runs along that axis
    lie 2 lines of zeros, which `warp.store_shared` writes, so that a shift of at most 2 is a constant of every address. For lines of more than 16 bytes there are 16
    bytes between one and the next, so that eight lines meet all banks.

    C1: the layout is in `offset`, of the tile's shape, and a bijection. C2: with a margin: one stage, at least two axes, offsets in row-major order, and a margin of at
    most the size of the last axis but one.
  }];
  let parameters = (ins "int64_t":$stages, ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType, "::weft::warp::LayoutAttr":$layout, "int64_t":$margin);
  let builders = [TypeBuilder<(ins "int64_t":$stages, "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType, "::weft::warp::LayoutAttr":$layout),
                              [{ return $_get($_ctxt, stages, shape, elementType, layout, 0); }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bytes of one tile, with its margins.
    int64_t getTileBytes();
    /// Bytes of an element, and of a line along the last axis.
    int64_t getElementBytes();
    int64_t getLineBytes() { return getShape().back() * getElementBytes(); }
    /// Bytes from one line to the next, and from one run of lines to the next, in a tile with a margin; and of the margin.
    int64_t getLinePitch();
    int64_t getRunPitch();
    int64_t getMarginBytes() { return getMargin() * getLinePitch(); }
    /// Runs of lines of a tile with a margin.
    int64_t getRuns();
    /// Bytes of all stages.
    int64_t getBytes() { return getStages() * getTileBytes(); }
    const ::weft::warp::LinearLayout &linear() { return getLayout().getLayout(); }
  }];
}

#endif // WEFT_DIALECTS_WARP_IR_WARPTYPES_TD
