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
    tensors of static shape. Element-wise arithmetic on them is `arith` and `math`, control flow
    is `scf`; this dialect adds what those lack: program indices, shapes, pointers, loads and stores, matrix products,
    reductions, scans and atomics.

    What a kernel does to device memory takes place in its order. A kernel that carries `tile.orders_accesses` promises that its
    threads' accesses meet nowhere but where it has a `tile.barrier`.

    A kernel takes pointers and scalars, and gives nothing back. It may carry `tile.schedule = #tile.schedule<warps = 4, stages = 3>`,
    the choices that the lowering reads; an `scf.for` in it may carry `tile.num_stages = 2 : i32` instead of the schedule's number.

    An integer or pointer argument may carry `tile.divisibility = 16 : i32`, a promise about its value (bytes for a pointer). So may
    an op, and `tile.contiguity` and `tile.constancy` beside it, with one number for each axis of a tensor: `array<i32: 1, 8>`.

    Tensors have at least one axis, sizes of at least 1, and at most 2^20 elements.

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
