// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The ops of the warp dialect.
#ifndef WEFT_DIALECTS_WARP_IR_WARPOPS_TD
#define WEFT_DIALECTS_WARP_IR_WARPOPS_TD

include "dialects/Warp/IR/WarpTypes.td"
include "dialects/Warp/IR/WgmmaOps.td"
include "dialects/Warp/IR/TensorOps.td"
include "dialects/Warp/IR/BoxOps.td"
include "dialects/Warp/IR/RoleOps.td"
include "dialects/Tile/IR/TileAttrs.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Warp_Op<string mnemonic, list<Trait> traits = []> : Op<Warp_Dialect, mnemonic, traits>;

def Warp_ConvertLayoutOp : Warp_Op<"convert_layout", [Pure]> {
  let summary = "the same tensor in another layout";
  let description = [{
    C1: source and result differ in their encoding only. Renames registers where every lane keeps its elements, shuffles inside a warp where every warp does,
    and goes through shared memory otherwise.

    ```mlir
    #pairs = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
    #halves = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]]>
    %y = warp.convert_layout %x : tensor<64xf32, #pairs> -> tensor<64xf32, #halves>
    ```
  }];
  let arguments = (ins Tile_Tensor:$source);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Warp_MmaOp : Warp_Op<"mma", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "matrix product by matrix instructions";
  let description = [{
    result = a · b + acc, all in the fragment layouts of the matrix instruction `shape` = [m, n, k], tiled over registers and warps. PTX: `mma.sync.aligned.m16n8k16` for f16 and bf16
    (`m16n8k8` where the inner size is 8), `m16n8k8` for tf32, `m16n8k32` for i8, for f64 `m8n8k4` or, where the target
    has them, `m16n8k16`, `m16n8k8` and `m16n8k4` (ISA 9.7.14.5). With precision tf32x3 each product is three.

    C1: shapes as `tile.dot`; where b has more columns than acc, those of several products. C2: each operand's layout is one that `mmaOperandLayout` makes for the shape and warps of the accumulator's, rows or columns maybe
    `interleaved` in all that have them, and of 16-bit elements K `byWordsAlongK` in both operands.

    ```mlir
    #acc = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
    #a = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
    #b = #warp.layout<[16, 8], register = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>}
      : tensor<16x16xf16, #a> * tensor<16x8xf16, #b> -> tensor<16x8xf32, #acc>
    ```
  }];
  let arguments = (ins Tile_Tensor:$a, Tile_Tensor:$b, Tile_Tensor:$acc, DenseI32ArrayAttr:$shape,
                       DefaultValuedAttr<Tile_PrecisionAttr, "::weft::tile::Precision::TF32">:$precision);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$a `,` $b `,` $acc attr-dict `:` type($a) `*` type($b) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_SpanSelectOp : Warp_Op<"span_select", [Pure, AttrSizedOperandSegments, AllTypesMatch<["inside", "outside", "result"]>]> {
  let summary = "choose elements by whether their place along an axis lies between bounds";
  let description = [{
    Element (.., i, ..), i its place along `axis`, is that of `inside` where begin + i is no less than `least` and `lower` plus `lowerShift`, and less than `end` and `upper` plus `upperShift`, signed, and that
    of `outside` elsewhere. A bound that is not given holds for all. `lower` and `upper` are tensors of size 1 along the axis; what they come to is no number that wraps around but, beyond 32 bits, the last
    one. The sum of begin and the axis' size does not overflow.

    A thread's elements along the axis are bits of a word, `bmsk` (ISA 9.7.1.22) of how many each bound leaves. Machine code reads eight bits into predicates at once where comparisons are eight.

    C1: a bound at the least. C2: the bounds of rows have the result's shape, but 1 along the axis, and a shift each. C3: the result's layout has runs along the axis (AxisRuns.h).

    ```mlir
    #rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
    #acc = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
    %masked = warp.span_select %scores, %none from %column upper(%row plus %one : tensor<16x1xi32, #rows>) end(%n) {axis = 1 : i32} : tensor<16x8xf32, #acc>
    ```
  }];
  let arguments = (ins Tile_Tensor:$inside, Tile_Tensor:$outside, I32:$begin, Optional<Tile_Tensor>:$lower, Optional<I32>:$lowerShift, Optional<Tile_Tensor>:$upper, Optional<I32>:$upperShift,
                       Optional<I32>:$least, Optional<I32>:$end, I32Attr:$axis);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $inside `,` $outside `from` $begin (`lower` `(` $lower^ `plus` $lowerShift `:` type($lower) `)`)? (`upper` `(` $upper^ `plus` $upperShift `:` type($upper) `)`)?
    (`least` `(` $least^ `)`)? (`end` `(` $end^ `)`)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Warp_ExtremeOp : Warp_Op<"extreme", [Pure]> {
  let summary = "the least or the greatest number that a warp has";
  let description = [{
    Signed. Each warp learns of its own elements alone, so that what this decides may differ from warp to warp, and nothing of it may wait for other warps. PTX: `redux.sync.min.s32` and `.max.s32`
    (ISA 9.7.13.8).

    C1: elements of i32.

    ```mlir
    #rows = #warp.layout<[64, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
    %last = warp.extreme %row {greatest} : tensor<64x1xi32, #rows>
    ```
  }];
  let arguments = (ins Tile_Tensor:$numbers, UnitAttr:$greatest);
  let results = (outs I32:$result);
  let assemblyFormat = "$numbers attr-dict `:` type($numbers)";
  let hasVerifier = 1;
}

def Warp_AnyOp : Warp_Op<"any", [Pure]> {
  let summary = "whether one of a warp's elements is true";
  let description = [{
    Each warp learns of its own elements alone, as by `warp.extreme`. PTX: `vote.sync.any` (ISA 9.7.13.6).

    C1: elements of i1.

    ```mlir
    #rows = #warp.layout<[64], register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16], [32]]>
    %some = warp.any %grown : tensor<64xi1, #rows>
    ```
  }];
  let arguments = (ins Tile_Tensor:$truths);
  let results = (outs I1:$result);
  let assemblyFormat = "$truths attr-dict `:` type($truths)";
  let hasVerifier = 1;
}

def Warp_AllocOp : Warp_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "shared memory for a tile, or a ring of tiles";
  let description = [{
    `warp-allocate-shared` sets `offset`, where the first tile begins in the block's shared memory, and `pitch`, the bytes from one tile of a ring to the next, where they
    do not follow one another because tiles of other rings lie between them.

    ```mlir
    #s = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
    %ring = warp.alloc : !warp.shared<stages = 3, 64xf32, #s>
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$pitch);
  let results = (outs Warp_SharedType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Warp_DeallocOp : Warp_Op<"dealloc", [MemoryEffects<[MemFree]>]> {
  let summary = "end of a tile's life: its memory may be given to another";
  let description = [{
    C1: the operand is what a `warp.alloc` gives.

    ```mlir
    #s = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
    %tile = warp.alloc : !warp.shared<64xf32, #s>
    warp.dealloc %tile : !warp.shared<64xf32, #s>
    ```
  }];
  let arguments = (ins Warp_SharedType:$shared);
  let assemblyFormat = "$shared attr-dict `:` type($shared)";
  let hasVerifier = 1;
}

def Warp_StageOp : Warp_Op<"stage", [Pure]> {
  let summary = "one tile of a ring";
  let description = [{
    C1: the result is the operand's type with one stage. The index is a multiple of `step`, index / step the tile's number: 0 <= number < stages, else the behaviour is
    undefined. A step that is the bytes from one tile to the next makes the index an offset, which costs nothing.

    ```mlir
    #s = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
    %tile = warp.stage %ring[%i] : !warp.shared<stages = 3, 64xf32, #s> -> !warp.shared<64xf32, #s>
    ```
  }];
  let arguments = (ins Warp_SharedType:$ring, I32:$index, DefaultValuedAttr<I64Attr, "1">:$step);
  let results = (outs Warp_SharedType:$result);
  let assemblyFormat = "$ring `[` $index `]` attr-dict `:` type($ring) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_PermuteSharedOp : Warp_Op<"permute_shared", [Pure]> {
  let summary = "the same tile with its axes reordered, without moving data";
  let description = [{
    C1: as tile.permute, on the tile's shape and layout.

    ```mlir
    #s = #warp.layout<[4, 2], offset = [[0, 1], [1, 0], [2, 0]]>
    #t = #warp.layout<[2, 4], offset = [[1, 0], [0, 1], [0, 2]]>
    %turned = warp.permute_shared %tile {order = array<i32: 1, 0>}
      : !warp.shared<4x2xf32, #s> -> !warp.shared<2x4xf32, #t>
    ```
  }];
  let arguments = (ins Warp_SharedType:$source, DenseI32ArrayAttr:$order);
  let results = (outs Warp_SharedType:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_LoadSharedOp : Warp_Op<"load_shared", [MemoryEffects<[MemRead]>]> {
  let summary = "read a tile from shared memory into registers";
  let description = [{
    C1: equal shape and element type, one stage, no margin. PTX: `ldmatrix` (ISA 9.7.14.5.15), with or without `.trans`, where the
    two layouts allow it, else `ld.shared` as wide as they allow.

    ```mlir
    #l = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
    #s = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
    %x = warp.load_shared %tile : !warp.shared<64xf32, #s> -> tensor<64xf32, #l>
    ```
  }];
  let arguments = (ins Warp_SharedType:$shared);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$shared attr-dict `:` type($shared) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_LoadShiftedOp : Warp_Op<"load_shifted", [MemoryEffects<[MemRead]>]> {
  let summary = "read a tile from shared memory moved along an axis, zeros where nothing comes from";
  let description = [{
    As `tile.shift` of the tile: element i along `axis` is the tile's element i - offset. No data moves: lanes read other addresses, and what lies outside is replaced by zero.
    C1: equal shape and element type, one stage. C2: axis and offset as `tile.shift`; with a margin the last axis but one, and an offset of at most the margin. PTX: `ldmatrix` where rows of 16 bytes stay whole, else `ld.shared`.

    ```mlir
    #l = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
    #s = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
    %before = warp.load_shifted %tile {axis = 0 : i32, offset = 1 : i32}
      : !warp.shared<64xf32, #s> -> tensor<64xf32, #l>
    ```
  }];
  let arguments = (ins Warp_SharedType:$shared, I32Attr:$axis, I32Attr:$offset);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$shared attr-dict `:` type($shared) `->` type($result)";
  let hasVerifier = 1;
}

def Warp_StoreSharedOp : Warp_Op<"store_shared", [MemoryEffects<[MemWrite]>]> {
  let summary = "write a tensor into a tile in shared memory";
  let description = [{
    C1: equal shape and element type, one stage. A margin is filled with zeros. PTX: `st.shared` as wide as the two layouts allow.

    ```mlir
    #l = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
    #s = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
    warp.store_shared %x, %tile : tensor<64xf32, #l> -> !warp.shared<64xf32, #s>
    ```
  }];
  let arguments = (ins Tile_Tensor:$value, Warp_SharedType:$shared);
  let assemblyFormat = "$value `,` $shared attr-dict `:` type($value) `->` type($shared)";
  let hasVerifier = 1;
}

def Warp_AsyncCopyOp : Warp_Op<"async_copy", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "start copying from device memory into a tile in shared memory";
  let description = [{
    Element i of the tile is filled from pointer i, or with zero where the mask is false, which is `undefined` where nobody asked for it (PTX has a zero, and the simulator a
    number that nothing wrote). `throughL1` is what `#tile<cache ca>` asks for. Belongs to the group that the next `warp.async_commit`
    closes. C1: pointers (with a layout), mask and tile have one shape; the tile's element is the pointee. C2: each lane's contiguous pieces (`contiguity` elements,
    promised by the pointer analysis) are 4, 8 or 16 bytes. PTX: `cp.async.ca`, `.cg` for 16 bytes that do not go through L1 (ISA 9.7.9.25.3).

    ```mlir
    #l = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
    #s = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
    warp.async_copy %p masked %m to %tile {contiguity = 2 : i32}
      : tensor<64x!tile.ptr<f32>, #l>, tensor<64xi1, #l> -> !warp.shared<64xf32, #s>
    ```
  }];
  let arguments = (ins Tile_PointerTensor:$ptr, Optional<Tile_BoolTensor>:$mask, Warp_SharedType:$shared, I32Attr:$contiguity,
                       UnitAttr:$undefined, UnitAttr:$throughL1);
  let assemblyFormat = "$ptr (`masked` $mask^)? `to` $shared attr-dict `:` type($ptr) (`,` type($mask)^)? `->` type($shared)";
  let hasVerifier = 1;
}

def Warp_AsyncCommitOp : Warp_Op<"async_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "close the group of asynchronous copies started since the last one. PTX: cp.async.commit_group";
  let description = [{
    ```mlir
    warp.async_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Warp_AsyncWaitOp : Warp_Op<"async_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until at most `pending` of this thread's groups are unfinished. PTX: cp.async.wait_group";
  let description = [{
    Other threads' copies are visible only after a `warp.barrier` that follows.

    ```mlir
    warp.async_wait {pending = 1 : i32}
    ```
  }];
  let arguments = (ins I32Attr:$pending);
  let assemblyFormat = "attr-dict";
}

def Warp_FenceOp : Warp_Op<"fence", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "what this thread read and wrote of device memory before comes before what it does after, for the device";
  let description = [{
    PTX: `fence.acq_rel.gpu` (ISA 9.7.13.4).

    ```mlir
    warp.fence
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Warp_BarrierOp : Warp_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "every thread of the block arrives; shared memory written before is visible after. PTX: bar.sync 0";
  let description = [{
    Where a `warp.producer` stands in the kernel, its warp does not take part, and PTX counts the threads of the others, at a named barrier; but for `withProducer`, which both programs have.
    With `where`, the same number in all threads of the block, they arrive only if that is true: a predicate of the instruction.
    With `producerArrives` the producer does not wait there: what it did before is seen by the others. PTX: `bar.arrive`, at a named barrier of its own, so that a kernel has one such.
    With `ofCluster` every thread of the cluster's blocks arrives, and sees what the others wrote to shared memory before. PTX: `barrier.cluster` (ISA 9.7.13.4).

    C1: a barrier `ofCluster` is not one `where` something holds. C2: one at which the producer arrives is `withProducer`, and neither of these.

    ```mlir
    warp.barrier
    ```
  }];
  let arguments = (ins Optional<I1>:$where, UnitAttr:$withProducer, UnitAttr:$ofCluster, UnitAttr:$producerArrives);
  let assemblyFormat = "(`where` $where^)? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::Value()); }]>,
                  OpBuilder<(ins "::mlir::Value":$where, CArg<"bool", "false">:$withProducer, CArg<"bool", "false">:$ofCluster), [{
                    build($_builder, $_state, where, withProducer, ofCluster, /*producerArrives=*/false);
                  }]>];
  let hasVerifier = 1;
}

#endif // WEFT_DIALECTS_WARP_IR_WARPOPS_TD
