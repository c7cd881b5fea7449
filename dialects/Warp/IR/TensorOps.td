// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Matrix products whose sums lie in tensor memory: 128 lanes of columns of 32 bits (PTX ISA 9.7.16).
#ifndef WEFT_DIALECTS_WARP_IR_TENSOROPS_TD
#define WEFT_DIALECTS_WARP_IR_TENSOROPS_TD

include "dialects/Warp/IR/WarpTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Warp_TensorBeginOp : Op<Warp_Dialect, "tensor_begin", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "take columns of tensor memory, and begin the barriers at which products arrive";
  let description = [{
    `slots` has an mbarrier for each of `barriers` products that a warpgroup may have under way, for one warpgroup after another, and behind them the word that the allocation's address comes in. Each warpgroup has `columns`
    columns of its own, and the lanes of its warps: `area` is the address of the first of these columns, `lanes` the same at the first lane of this warp. Threads of the block meet.
    PTX: `mbarrier.init`, `tcgen05.alloc`, `tcgen05.relinquish_alloc_permit` (ISA 9.7.16.7).

    C1: `barriers` and `columns` are powers of two, `columns` at most 512. C2: `slots` has room for all barriers and the word.

    ```mlir
    #b = #warp.layout<[8], offset = [[1], [2], [4]]>
    %area, %lanes = warp.tensor_begin %slots {columns = 128 : i32, barriers = 4 : i32} : !warp.shared<8xi64, #b>
    ```
  }];
  let arguments = (ins Warp_SharedType:$slots, I32Attr:$columns, I32Attr:$barriers);
  let results = (outs I32:$area, I32:$lanes);
  let assemblyFormat = "$slots attr-dict `:` type($slots)";
  let hasVerifier = 1;
}

def Warp_TensorEndOp : Op<Warp_Dialect, "tensor_end", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "give the columns of tensor memory back";
  let description = [{
    Threads of the block meet before. PTX: `tcgen05.dealloc` (ISA 9.7.16.7).

    ```mlir
    warp.tensor_end %area {columns = 128 : i32}
    ```
  }];
  let arguments = (ins I32:$area, I32Attr:$columns);
  let assemblyFormat = "$area attr-dict";
}

def Warp_TensorLoadOp : Op<Warp_Dialect, "tensor_load", [MemoryEffects<[MemRead]>]> {
  let summary = "sums from tensor memory";
  let description = [{
    Each thread loads its elements of a tile that begins at column `column` of its warpgroup's: of 128 rows one row, of 64 rows, which lie in the first 16 lanes of each warp, as `mma.m16n8` has sums. C1: the result has 32-bit elements in a layout `wgmmaAccLayout`.
    PTX: `tcgen05.ld.32x32b` or `.16x256b`, `tcgen05.wait::ld` (ISA 9.7.16.8).

    ```mlir
    #acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
    %x = warp.tensor_load %lanes {column = 0 : i32} : tensor<128x16xf32, #acc>
    ```
  }];
  let arguments = (ins I32:$lanes, I32Attr:$column);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$lanes attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Warp_TensorStoreOp : Op<Warp_Dialect, "tensor_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "sums, or an operand a, to tensor memory";
  let description = [{
    Each thread stores its elements from column `column` of its warpgroup's on, as `warp.tensor_load` loads them; of narrower elements as many as fill 32 bits share a column. C1: the layout is `wgmmaAccLayout` or `wgmmaALayout`.
    PTX: `tcgen05.st.32x32b`, of 64 rows `.16x256b` for sums and `.16x128b` for an operand, `tcgen05.wait::st` (ISA 9.7.16.8).

    ```mlir
    #acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
    warp.tensor_store %x, %lanes {column = 0 : i32} : tensor<128x16xf32, #acc>
    ```
  }];
  let arguments = (ins Tile_Tensor:$value, I32:$lanes, I32Attr:$column);
  let assemblyFormat = "$value `,` $lanes attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Warp_JoinColumnsOp : Op<Warp_Dialect, "join_columns", [Pure]> {
  let summary = "pieces of rows as whole rows";
  let description = [{
    Each thread has a row: its columns are those of its pieces, one after another. C1: a row a thread, of pieces of one type, which together have as many registers as the result.

    ```mlir
    #half = #warp.layout<[128, 8], register = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
    #row = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
    %row = warp.join_columns %x, %y : tensor<128x8xf16, #half>, tensor<128x8xf16, #half> -> tensor<128x16xf16, #row>
    ```
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$pieces);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$pieces attr-dict `:` type($pieces) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_TensorScaleOp : Op<Warp_Dialect, "tensor_scale", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "multiply sums in tensor memory";
  let description = [{
    Each thread multiplies its row, a few columns at a time, by the factors of `by`, which has the sums' type. C1: as of `warp.tensor_load`.
    PTX: `tcgen05.ld`, `tcgen05.st` and their waits (ISA 9.7.16.8).

    ```mlir
    #acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
    warp.tensor_scale %by, %lanes {column = 0 : i32} : tensor<128x16xf32, #acc>
    ```
  }];
  let arguments = (ins Tile_Tensor:$by, I32:$lanes, I32Attr:$column);
  let assemblyFormat = "$by `,` $lanes attr-dict `:` type($by)";
  let hasVerifier = 1;
}

def Warp_TensorReadyOp : Op<Warp_Dialect, "tensor_ready", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "what the threads of a warpgroup loaded from and stored to tensor memory is over for the products that start next";
  let description = [{
    The threads of a warpgroup meet. PTX: `tcgen05.fence` before and behind a `bar.sync` of 128 threads (ISA 9.7.16.11).

    ```mlir
    warp.tensor_ready
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Warp_TensorProductOp : Op<Warp_Dialect, "tensor_product", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "start a matrix product whose sums are in tensor memory";
  let description = [{
    What `warp.wgmma` is, with sums of type `sums` from column `column` of the warpgroup's on; operand a is a tile in shared memory, or stored as type `stored` from column `from` on. With `zero` the sums start from zero.
    One thread of each warpgroup starts it, and it arrives at the next of the warpgroup's barriers: that of the number of its products so far.
    PTX: `tcgen05.mma`, `tcgen05.commit` (ISA 9.7.16.10, 9.7.16.12).

    C1: `a`, or `from` and `stored`.

    ```mlir
    #acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
    #a = #warp.layout<[128, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0], [64, 0]]>
    #b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>
    #s = #warp.layout<[8], offset = [[1], [2], [4]]>
    warp.tensor_product %b, %area, %slots with %a {column = 0 : i32, sums = tensor<128x16xf32, #acc>, shape = array<i32: 128, 16, 16>, zero}
      : !warp.shared<16x16xf16, #b>, !warp.shared<8xi64, #s>, !warp.shared<128x16xf16, #a>
    ```
  }];
  let arguments = (ins Warp_SharedType:$b, I32:$area, Warp_SharedType:$slots, Optional<Warp_SharedType>:$a, I32Attr:$column,
                       OptionalAttr<I32Attr>:$from, OptionalAttr<TypeAttr>:$stored, TypeAttr:$sums, DenseI32ArrayAttr:$shape,
                       UnitAttr:$zero);
  let assemblyFormat = "$b `,` $area `,` $slots (`with` $a^)? attr-dict `:` type($b) `,` type($slots) (`,` type($a)^)?";
  let hasVerifier = 1;
}

def Warp_TensorWaitOp : Op<Warp_Dialect, "tensor_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until at most `pending` products of this warpgroup are unfinished";
  let description = [{
    It waits for the last but `pending` product, if there has been one, and for those before it, `count` in all, that no wait was for: a thread that comes back to a barrier knows that its last phase is over.
    PTX: `mbarrier.try_wait.parity` at the barrier of each, `tcgen05.fence::after_thread_sync`.
    C1: `count` is at least 1, and with `pending` at most the number of a warpgroup's barriers.

    ```mlir
    #s = #warp.layout<[8], offset = [[1], [2], [4]]>
    warp.tensor_wait %slots {pending = 0 : i32} : !warp.shared<8xi64, #s>
    ```
  }];
  let arguments = (ins Warp_SharedType:$slots, I32Attr:$pending, DefaultValuedAttr<I32Attr, "1">:$count);
  let assemblyFormat = "$slots attr-dict `:` type($slots)";
  let builders = [OpBuilder<(ins "::mlir::Value":$slots, "int":$pending), [{
    build($_builder, $_state, slots, $_builder.getI32IntegerAttr(pending), $_builder.getI32IntegerAttr(1));
  }]>];
  let hasVerifier = 1;
}

#endif // WEFT_DIALECTS_WARP_IR_TENSOROPS_TD
