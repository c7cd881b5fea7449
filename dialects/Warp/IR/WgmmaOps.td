// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Matrix instructions of warpgroups, and what orders shared memory for them.
#ifndef WEFT_DIALECTS_WARP_IR_WGMMAOPS_TD
#define WEFT_DIALECTS_WARP_IR_WGMMAOPS_TD

include "dialects/Warp/IR/WarpTypes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Warp_TensorOrShared : AnyTypeOf<[Tile_Tensor, Warp_SharedType], "tensor or tile in shared memory">;

def Warp_WgmmaOp : Op<Warp_Dialect, "wgmma", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["acc", "result"]>]> {
  let summary = "start a matrix product by instructions of whole warpgroups";
  let description = [{
    result = a · b + acc, asynchronously: nothing but a further `warp.wgmma` onto the result, of the same shape, may read or write it, registers of `a` included, before
    `warp.wgmma_wait`; nor may the tiles be written. Instructions are of `shape` = [64, n, k]; n is at most 256 and the columns of a warpgroup are a multiple of it.
    With 128 rows, where the accumulator's layout has a row a thread, sums come to lie in tensor memory: `warp-tensor-memory` makes these `warp.tensor_product`.

    `tile-to-warp` gives tensors; `warp-stage-wgmma` puts `b`, and `a` unless it is in registers as the instructions take it, into shared memory.
    What other threads wrote there needs `warp.proxy_fence` in theirs and a barrier. With `fenced`, a `warp.wgmma_fence` stands before it for what was written to its registers; without, it has one of
    its own. PTX: `wgmma.fence`, `wgmma.mma_async` for each tile of 64 × n and each step of k, `wgmma.commit_group` (ISA 9.7.15).

    C1: shapes as `tile.dot`. C2: the accumulator's layout is one of `wgmmaAccLayout`, and its rows and columns are whole instructions for each warpgroup. C3: a tile in shared memory lies as
    `wgmmaTileLayout` says, one stage; neighbours along M or N for elements of 16 or 8 bits only, of 8 where sums are in tensor memory. C4: a and b have one element type, of 16 or 8 bits, or f32, of which TF32's bits are read.

    ```mlir
    #acc = #warp.layout<[64, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
    #a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
    #b = #warp.layout<[16, 8], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4]]>
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 8, 16>}
      : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
    ```
  }];
  let arguments = (ins Warp_TensorOrShared:$a, Warp_TensorOrShared:$b, Tile_Tensor:$acc, DenseI32ArrayAttr:$shape, UnitAttr:$fenced);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$a `,` $b `,` $acc attr-dict `:` type($a) `*` type($b) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether `a` is a tensor that lies in registers as the instructions take it.
    bool takesRegisters();
    /// Whether the sums start from zero.
    bool startsFromZero();
  }];
}

def Warp_WgmmaFenceOp : Op<Warp_Dialect, "wgmma_fence", [MemoryEffects<[MemRead, MemWrite]>,
    TypesMatchWith<"operands and results have the same types", "values", "results", "$_self">]> {
  let summary = "what was written to registers is there for the products that start next";
  let description = [{
    The results are the operands, accumulators and operands a in registers: `warp.wgmma` that are `fenced` use the results, so that all of them are written before the fence.
    C1: operands and results have the same types. PTX: `wgmma.fence` (ISA 9.7.15.7.1).

    ```mlir
    #acc = #warp.layout<[64, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
    %ready = warp.wgmma_fence %c : tensor<64x8xf32, #acc>
    ```
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$values);
  let results = (outs Variadic<Tile_Tensor>:$results);
  let assemblyFormat = "$values attr-dict (`:` type($values)^)?";
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$values), [{
    build($_builder, $_state, values.getTypes(), values);
  }]>];
}

def Warp_WgmmaWaitOp : Op<Warp_Dialect, "wgmma_wait", [MemoryEffects<[MemRead, MemWrite]>,
    TypesMatchWith<"operands and results have the same types", "values", "results", "$_self">]> {
  let summary = "wait until at most `pending` products of this warp are unfinished";
  let description = [{
    The results are the operands, accumulators and operands a in registers, which may be read and written again where their products are among the finished ones: what uses them uses the results,
    so that nothing moves before the wait. Without operands it is for what the products read. C1: operands and results have the same types. C2: `pending` is from 0 to 7. PTX: `wgmma.wait_group` (ISA 9.7.15.7.2).

    ```mlir
    #acc = #warp.layout<[64, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
    %done = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x8xf32, #acc>
    ```
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$values, I32Attr:$pending);
  let results = (outs Variadic<Tile_Tensor>:$results);
  let assemblyFormat = "$values attr-dict (`:` type($values)^)?";
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$values, "int":$pending), [{
    build($_builder, $_state, values.getTypes(), values, $_builder.getI32IntegerAttr(pending));
  }]>];
  let extraClassDeclaration = "static constexpr int mostPending = 7;";
  let hasVerifier = 1;
}

def Warp_RoundTF32Op : Op<Warp_Dialect, "round_tf32", [Pure, SameOperandsAndResultType]#ElementwiseMappable.traits> {
  let summary = "numbers of f32 to the nearest ones of TF32";
  let description = [{
    `warp.wgmma` reads TF32's bits of f32 operands alone, and so would truncate them. C1: operand and result are f32. PTX: `cvt.rn.tf32.f32`, ties to even, which is one
    instruction from sm_90 on; before, `cvt.rna.tf32.f32`, ties away from zero, which ptxas makes of three.

    ```mlir
    %y = warp.round_tf32 %x : tensor<64x16xf32>
    ```
  }];
  let arguments = (ins TensorOf<[F32]>:$source);
  let results = (outs TensorOf<[F32]>:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
}

def Warp_ProxyFenceOp : Op<Warp_Dialect, "proxy_fence", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "what this thread wrote to shared memory, and what it knows to be written, is there for asynchronous readers";
  let description = [{
    Matrix instructions of warpgroups and bulk copies read shared memory by another way, the asynchronous proxy, than threads write it. A barrier that follows gives it to the whole block.
    PTX: `fence.proxy.async.shared::cta` (ISA 9.7.13.4).

    ```mlir
    warp.proxy_fence
    ```
  }];
  let assemblyFormat = "attr-dict";
}

#endif // WEFT_DIALECTS_WARP_IR_WGMMAOPS_TD
