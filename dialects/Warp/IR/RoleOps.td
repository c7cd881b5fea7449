// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the warps of a kernel do apart: a producer copies, the schedule's warps, its consumers, do all else.
#ifndef WEFT_DIALECTS_WARP_IR_ROLEOPS_TD
#define WEFT_DIALECTS_WARP_IR_ROLEOPS_TD

include "dialects/Warp/IR/WarpTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Warp_ProduceOp : Op<Warp_Dialect, "produce", [MemoryEffects<[MemRead, MemWrite]>, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "what the producer does at this place of the program, and no other warp";
  let description = [{
    `warp-specialise` puts copies into it; `warp-split-roles` gathers them in a `warp.producer`, with the control flow around them. Between the two the kernel is one program, so that passes see
    when tiles live. In the region `warp.is_first_thread` is true in one thread of the producer.

    ```mlir
    #b = #warp.layout<[2], offset = [[1]]>
    warp.produce {
      warp.mbarrier_expect %full {bytes = 32768 : i64} : !warp.shared<2xi64, #b>
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
}

def Warp_ProducerOp : Op<Warp_Dialect, "producer", [MemoryEffects<[MemRead, MemWrite]>, SingleBlock, NoTerminator, NoRegionArguments]> {
  let summary = "the whole program of one warp more, behind those of the schedule";
  let description = [{
    `warps` warps are added to the block, of which the first runs the region and then ends. All others go on behind the op; the added ones do not. The op stands in the kernel's block.
    Where `registers` is given, a thread of the added warps keeps that many, and each thread of the others takes `others`.
    PTX: a branch on `%tid`; `setmaxnreg` (ISA 9.7.19.5); `.minnctapersm 1`, without which ptxas does not know how many registers there are.

    C1: `registers` and `others` come together.

    ```mlir
    #b = #warp.layout<[2], offset = [[1]]>
    warp.producer warps = 4 registers = 24 others = 240 {
      warp.mbarrier_expect %full {bytes = 32768 : i64} : !warp.shared<2xi64, #b>
    }
    ```
  }];
  let arguments = (ins I32Attr:$warps, OptionalAttr<I32Attr>:$registers, OptionalAttr<I32Attr>:$others);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`warps` `=` $warps (`registers` `=` $registers^)? (`others` `=` $others^)? $body attr-dict";
  let hasVerifier = 1;
}

def Warp_MbarrierArriveOp : Op<Warp_Dialect, "mbarrier_arrive", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "one thread of each warp arrives at a barrier: the warp has read what the barrier stands for";
  let description = [{
    `together` says that a warp's threads are at one instruction since they read, as behind a `warp.wgmma_wait`; else they meet first.
    `ofCluster`: it arrives at that barrier in each of the cluster's blocks.
    PTX: `mbarrier.arrive` (ISA 9.7.13.15.13), behind a `bar.warp.sync` where the threads must meet; `mapa` (ISA 9.7.9.23) for other blocks' barriers.

    ```mlir
    #b = #warp.layout<[2], offset = [[1]]>
    warp.mbarrier_arrive %stage {index = 1 : i64} : !warp.shared<2xi64, #b>
    ```
  }];
  let arguments = (ins Warp_SharedType:$barrier, DefaultValuedAttr<I64Attr, "0">:$index, UnitAttr:$together, UnitAttr:$ofCluster);
  let assemblyFormat = "$barrier attr-dict `:` type($barrier)";
}

def Warp_TurnWaitOp : Op<Warp_Dialect, "turn_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the warps of a warpgroup wait until it is its turn";
  let description = [{
    Warpgroups take turns: each waits for the one before it, the first one for the last one, which has its turn behind it. `first`: only the first warpgroup waits.
    PTX: `bar.sync` (ISA 9.7.13.1) at a barrier of the warpgroup, with the threads of two warpgroups.

    ```mlir
    warp.turn_wait
    warp.turn_wait {first}
    ```
  }];
  let arguments = (ins UnitAttr:$first);
  let assemblyFormat = "attr-dict";
}

def Warp_TurnPassOp : Op<Warp_Dialect, "turn_pass", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a warpgroup passes its turn on to the next one";
  let description = [{
    As `warp.turn_wait` says. `last`: only the last warpgroup does, so that the first one has its turn.
    PTX: `bar.arrive` (ISA 9.7.13.1) at a barrier of the next warpgroup, with the threads of two warpgroups.

    ```mlir
    warp.turn_pass {last}
    warp.turn_pass
    ```
  }];
  let arguments = (ins UnitAttr:$last);
  let assemblyFormat = "attr-dict";
}

def Warp_ProgramsOp : Op<Warp_Dialect, "programs", [Pure]> {
  let summary = "the extents of the grid that a persistent kernel is launched over";
  let description = [{
    Its blocks are no more than the multiprocessors, and go over these programs. A launch passes the extents behind the kernel's own parameters and its tensor maps.

    ```mlir
    %x, %y, %z = warp.programs
    ```
  }];
  let results = (outs I32:$x, I32:$y, I32:$z);
  let assemblyFormat = "attr-dict";
}

#endif // WEFT_DIALECTS_WARP_IR_ROLEOPS_TD
