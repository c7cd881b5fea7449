// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The tile dialect: what one program of a grid computes on tensors, machine-independent.
#ifndef WEFT_DIALECTS_TILE_IR_TILEDIALECT_TD
#define WEFT_DIALECTS_TILE_IR_TILEDIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::weft::tile";
  let summary = "How a block of a kernel is computed, independent of the machine";
  let description = [{
    A kernel is a `func.func` with the unit attribute `tile.kernel`. It runs once for every program of a grid and works on
    tensors of static shape whose sizes are powers of two. Element-wise arithmetic on them is `arith` and `math`, control flow
    is `scf`; this dialect adds what those lack: program indices, shapes, pointers, loads and stores, matrix products,
    reductions, scans and atomics.

    A kernel may carry `tile.schedule = #tile.schedule<warps = 4, stages = 3>`, the choices that the lowering reads. An
    integer or pointer argument may carry `tile.divisibility = 16 : i32`, a promise about its value (bytes for a pointer).

    A tensor type may carry a `#warp.layout` encoding once layouts have been assigned. The ops of this dialect then say what
    the lanes compute; their result's encoding follows from their operands' as each op describes.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
                           "::mlir::func::FuncDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasConstantMaterializer = 1;
}

#endif // WEFT_DIALECTS_TILE_IR_TILEDIALECT_TD
