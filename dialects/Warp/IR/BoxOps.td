// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Copies of whole boxes of tensors into shared memory, and the barriers in shared memory at which they arrive; boxes
// stored from there, or combined with what a tensor has.
#ifndef WEFT_DIALECTS_WARP_IR_BOXOPS_TD
#define WEFT_DIALECTS_WARP_IR_BOXOPS_TD

include "dialects/Warp/IR/WarpTypes.td"
include "dialects/Tile/IR/TileAttrs.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Warp_TensorMapType : TypeDef<Warp_Dialect, "TensorMap"> {
  let mnemonic = "tensor_map";
  let summary = "128 bytes that the driver makes at a launch: where a tensor lies, and which boxes of it are copied";
}

def Warp_TensorMapOp : Op<Warp_Dialect, "tensor_map", [Pure, AttrSizedOperandSegments]> {
  let summary = "describe a tensor in device memory by what a launch knows";
  let description = [{
    The tensor begins at `base` and has as many axes as `sizes`, the innermost first, whose neighbours lie side by side; `strides` are those of the other axes, in elements. What a copy reads outside of the
    sizes is zero. Boxes of `box` elements are copied, in lines of `box[0]` elements whose pieces of 16 bytes are exchanged as `wgmmaTileLayout` says, or with `vector` one element behind another.

    The base, the sizes and the strides are sums of products of the kernel's arguments and constants, which the runtime computes again before a launch: the map becomes a parameter of the kernel behind its own.
    PTX: `.param .align 64 .b8 [128]`. C1: one box size and one size for each axis, one stride less.

    ```mlir
    %map = warp.tensor_map %base sizes(%d, %n) strides(%stride) {box = array<i32: 64, 128>} : <f16>
    ```
  }];
  let arguments = (ins Tile_PointerType:$base, Variadic<I64>:$sizes, Variadic<I64>:$strides, DenseI32ArrayAttr:$box,
                       UnitAttr:$vector);
  let results = (outs Warp_TensorMapType:$map);
  let assemblyFormat = "$base `sizes` `(` $sizes `)` `strides` `(` $strides `)` attr-dict `:` type($base)";
  let hasVerifier = 1;
}

def Warp_BoxCopyOp : Op<Warp_Dialect, "box_copy", [MemoryEffects<[MemRead, MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "start copying a box of a tensor into a part of a tile in shared memory";
  let description = [{
    The box whose first element has the given coordinates, innermost first, goes to `offset` bytes from the tile's begin, and its bytes arrive at the barrier. One thread of the block runs this.
    Written asynchronously: `warp.mbarrier_wait` gives it to the thread that waits. C1: one coordinate for each axis, at most five.
    With `by` only that block of the cluster copies it, for all of them: to the same place in each one's shared memory, and the bytes arrive at each one's barrier. C2: it is from 0 to 7, and the kernel's cluster has that block.
    `where` something holds, which is one number in all blocks of the cluster; where it does not, each block copies for itself.
    PTX: `cp.async.bulk.tensor` (ISA 9.7.9.27.5.2), with `by` `.multicast::cluster`.

    ```mlir
    #s = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
    #b = #warp.layout<[1], offset = []>
    warp.box_copy %map[%x, %y] to %tile on %full {offset = 0 : i64}
      : !warp.shared<8x64xf16, #s>, !warp.shared<1xi64, #b>
    ```
  }];
  let arguments = (ins Warp_TensorMapType:$map, Variadic<I32>:$coordinates, Warp_SharedType:$shared, Warp_SharedType:$barrier,
                       Optional<I1>:$where, DefaultValuedAttr<I64Attr, "0">:$offset, OptionalAttr<I64Attr>:$by);
  let assemblyFormat = "$map `[` $coordinates `]` `to` $shared `on` $barrier (`where` $where^)? attr-dict `:` type($shared) `,` type($barrier)";
  let hasVerifier = 1;
}

def Warp_BoxStoreOp : Op<Warp_Dialect, "box_store", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "start storing a part of a tile in shared memory to a box of a tensor";
  let description = [{
    The box whose first element has the given coordinates, innermost first, gets what lies from `offset` bytes from the tile's begin on; what is outside of the tensor is left out. With `combine` each element is
    combined with what is there, as one step, as a relaxed atomic does it. One thread of the block runs this. It reads the tile, and writes, asynchronously: `warp.box_wait` waits for what the thread has closed
    by `warp.box_commit`. C1: one coordinate for each axis, at most five. C2: `combine` is `fadd` of floats, or of integers, which maps have with a sign, `add`, `max`, `min`, `and`, `or` or `xor`.
    PTX: `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor` (ISA 9.7.9.27.5.2, 9.7.9.27.5.3).

    ```mlir
    #s = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
    warp.box_store %tile to %map[%x, %y] {offset = 0 : i64} : !warp.shared<8x64xf16, #s>
    warp.box_store %tile to %map[%x, %y] {combine = #tile<atomic fadd>} : !warp.shared<8x64xf16, #s>
    ```
  }];
  let arguments = (ins Warp_SharedType:$shared, Warp_TensorMapType:$map, Variadic<I32>:$coordinates,
                       OptionalAttr<Tile_AtomicKindAttr>:$combine, DefaultValuedAttr<I64Attr, "0">:$offset);
  let assemblyFormat = "$shared `to` $map `[` $coordinates `]` attr-dict `:` type($shared)";
  let hasVerifier = 1;
}

def Warp_BoxCommitOp : Op<Warp_Dialect, "box_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "close the group of boxes that this thread has started to store since the last one. PTX: cp.async.bulk.commit_group";
  let description = [{
    ```mlir
    warp.box_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Warp_BoxWaitOp : Op<Warp_Dialect, "box_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until all of this thread's groups of stored boxes have read their tiles; with `written`, until they are complete";
  let description = [{
    The tiles are those that may have other contents behind a `warp.barrier` that follows. PTX: `cp.async.bulk.wait_group.read`, or without `.read` (ISA 9.7.9.25.4.3).

    ```mlir
    #s = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
    warp.box_wait %tile : !warp.shared<8x64xf16, #s>
    warp.box_wait %tile {written} : !warp.shared<8x64xf16, #s>
    ```
  }];
  let arguments = (ins Variadic<Warp_SharedType>:$tiles, UnitAttr:$written);
  let assemblyFormat = "$tiles attr-dict `:` type($tiles)";
}

def Warp_MbarrierInitOp : Op<Warp_Dialect, "mbarrier_init", [MemoryEffects<[MemWrite]>]> {
  let summary = "make each stage of a ring a barrier at which one thread arrives, and bytes; or several barriers";
  let description = [{
    A stage has as many barriers as `arrivals` has numbers, of arrivals that end a phase. C1: so many elements has the ring's tile.
    PTX: `mbarrier.init.shared::cta.b64` (ISA 9.7.13.15.9) for each, by the first thread. Others see it behind a `warp.barrier`; those of other blocks behind one `ofCluster`, before which
    a kernel of clusters has `fence.mbarrier_init` (ISA 9.7.13.4).

    ```mlir
    #b = #warp.layout<[1], offset = []>
    warp.mbarrier_init %ring : !warp.shared<stages = 3, 1xi64, #b>
    ```
  }];
  let arguments = (ins Warp_SharedType:$ring, DefaultValuedAttr<DenseI64ArrayAttr, "{1}">:$arrivals);
  let assemblyFormat = "$ring attr-dict `:` type($ring)";
  let hasVerifier = 1;
}

def Warp_MbarrierInvalOp : Op<Warp_Dialect, "mbarrier_inval", [MemoryEffects<[MemWrite]>]> {
  let summary = "end the barriers of a ring, behind a `warp.barrier` that all who waited have passed";
  let description = [{
    PTX: `mbarrier.inval.shared::cta.b64` (ISA 9.7.13.15.10), by the first thread.

    `next`: the place of the tile that would come next, and its turn, as of `warp.ring_start`; until `warp-keep-rings` has run.

    ```mlir
    #b = #warp.layout<[1], offset = []>
    warp.mbarrier_inval %ring : !warp.shared<stages = 3, 1xi64, #b>
    ```
  }];
  let arguments = (ins Warp_SharedType:$ring, Variadic<I32>:$next);
  let builders = [OpBuilder<(ins "::mlir::Value":$ring), [{ build($_builder, $_state, ring, ::mlir::ValueRange()); }]>];
  let assemblyFormat = "$ring (`next` $next^)? attr-dict `:` type($ring)";
}

def Warp_RingStartOp : Op<Warp_Dialect, "ring_start", [Pure]> {
  let summary = "where a loop's ring stands when its first tiles are copied";
  let description = [{
    The place of the first tile (the bytes before it), of the one that comes before it around the ring, and the turn: bits of which the highest is the parity of the phase that ends when the
    tile has come, or that parity itself. They are 0, `before` and 0, unless the ring goes on from an iteration of a loop around its own (`warp-keep-rings`), which replaces them.

    ```mlir
    #b = #warp.layout<[1], offset = []>
    %place, %freed, %turn = warp.ring_start %ring {before = 2048 : i64} : !warp.shared<stages = 2, 1xi64, #b>
    ```
  }];
  let arguments = (ins Warp_SharedType:$ring, I64Attr:$before);
  let results = (outs I32:$place, I32:$freed, I32:$turn);
  let assemblyFormat = "$ring attr-dict `:` type($ring)";
}

def Warp_MbarrierExpectOp : Op<Warp_Dialect, "mbarrier_expect", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "arrive at a barrier, whose phase ends when `bytes` have arrived too";
  let description = [{
    One thread of the block runs this. `ofCluster`: it also arrives at that barrier in each of the cluster's other blocks.
    PTX: `mbarrier.arrive.expect_tx` (ISA 9.7.13.15.13); `mapa` (ISA 9.7.9.23) and `mbarrier.arrive` for other blocks' barriers.

    ```mlir
    #b = #warp.layout<[1], offset = []>
    warp.mbarrier_expect %full {bytes = 32768 : i64} : !warp.shared<1xi64, #b>
    ```
  }];
  let arguments = (ins Warp_SharedType:$barrier, I64Attr:$bytes, UnitAttr:$ofCluster);
  let assemblyFormat = "$barrier attr-dict `:` type($barrier)";
}

def Warp_MbarrierWaitOp : Op<Warp_Dialect, "mbarrier_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until the barrier's phase of that parity (0 or 1) has ended";
  let description = [{
    Every thread waits for itself: then it sees what the phase's copies wrote. Of a stage's barriers it is number `index`. With `ofCluster` it also sees what threads of the cluster's other blocks did before they arrived.
    PTX: `mbarrier.try_wait.parity` until it is true (ISA 9.7.13.15.16).

    ```mlir
    #b = #warp.layout<[1], offset = []>
    warp.mbarrier_wait %full, %parity : !warp.shared<1xi64, #b>
    ```
  }];
  let arguments = (ins Warp_SharedType:$barrier, I32:$parity, DefaultValuedAttr<I64Attr, "0">:$index, UnitAttr:$ofCluster);
  let assemblyFormat = "$barrier `,` $parity attr-dict `:` type($barrier)";
}

def Warp_IsFirstThreadOp : Op<Warp_Dialect, "is_first_thread", [Pure]> {
  let summary = "true in one thread of the block";
  let description = [{
    ```mlir
    %acts = warp.is_first_thread
    ```
  }];
  let results = (outs I1:$result);
  let assemblyFormat = "attr-dict";
}

#endif // WEFT_DIALECTS_WARP_IR_BOXOPS_TD
