// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The warp dialect: on which registers, lanes, warps and shared memory a kernel computes.
#ifndef WEFT_DIALECTS_WARP_IR_WARPDIALECT_TD
#define WEFT_DIALECTS_WARP_IR_WARPDIALECT_TD

include "mlir/IR/OpBase.td"

def Warp_Dialect : Dialect {
  let name = "warp";
  let cppNamespace = "::weft::warp";
  let summary = "How a kernel is spread over registers, lanes, warps and shared memory";
  let description = [{
    Tensors carry a layout as their encoding, `tensor<64x64xf16, #warp.layout<...>>`: which register of which lane of which warp holds
    which element. Shared memory, asynchronous copies, barriers and matrix instructions are ops. Element-wise arithmetic stays `arith` and
    `math`, loads, stores and reductions stay `tile`, all on tensors with layouts.

    A module carries `warp.target = "sm_80"`; a kernel, its `tile.schedule`. After `warp-allocate-shared` each `warp.alloc` carries its byte
    offset, and the kernel `warp.shared_bytes`.
  }];
  let dependentDialects = ["::weft::tile::TileDialect", "::mlir::arith::ArithDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

#endif // WEFT_DIALECTS_WARP_IR_WARPDIALECT_TD
