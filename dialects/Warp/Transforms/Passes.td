// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Passes on the warp dialect.
#ifndef WEFT_DIALECTS_WARP_TRANSFORMS_PASSES_TD
#define WEFT_DIALECTS_WARP_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def WarpAllocateShared : Pass<"warp-allocate-shared", "::mlir::func::FuncOp"> {
  let summary = "give each tile and each exchange its place in shared memory";
  let description = [{
    Sets `offset` of each `warp.alloc`, `warp.scratch` of each op that exchanges data between lanes through shared memory, and the kernel's
    `warp.shared_bytes`. Two that are never live at once share bytes. Fails when the kernel needs more than a block of the target has.
  }];
}

def WarpInsertBarriers : Pass<"warp-insert-barriers", "::mlir::func::FuncOp"> {
  let summary = "insert a barrier wherever one thread's access to shared memory must wait for another's";
  let description = [{
    Reads what `warp-allocate-shared` set. A barrier is inserted before an access that overlaps an earlier one, one of them a write, with no barrier between them on some path.
    Rings (tiles of several stages) are left alone: `warp-pipeline` orders their accesses itself.
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

#endif // WEFT_DIALECTS_WARP_TRANSFORMS_PASSES_TD
