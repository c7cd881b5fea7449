// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Passes on the warp dialect.
#ifndef WEFT_DIALECTS_WARP_TRANSFORMS_PASSES_TD
#define WEFT_DIALECTS_WARP_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def WarpFoldExpScale : Pass<"warp-fold-exp-scale", "::mlir::func::FuncOp"> {
  let summary = "let a product in an exponential's argument take the factor log2 e along";
  let description = [{
    exp(x · c) becomes exp2(x · (c · log2 e)) where c is a constant or a splat of a scalar: one product less for each element. f32 only.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::weft::tile::TileDialect"];
}

def WarpFoldMaxScale : Pass<"warp-fold-max-scale", "::mlir::func::FuncOp"> {
  let summary = "take the maximum of what a softmax scales before it is scaled";
  let description = [{
    max(x · c) becomes max(x) · c for a positive constant c where the product's other uses are differences, x · c - m, which become fused multiply-adds. A mask that puts
    -inf in place of elements moves to x. f32 only; the same bits but for the rounding that a fused multiply-add saves.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def WarpDeferReduction : Pass<"warp-defer-reduction", "::mlir::func::FuncOp"> {
  let summary = "let a loop add up rows lane by lane, and bring the lanes together after it";
  let description = [{
    A loop-carried sum, total · a + sum(x) along an axis that lanes or warps share, becomes one of parts, [rows, lanes of a row], with the sum over the parts behind the
    loop. Runs on tensors with layouts.
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::weft::tile::TileDialect", "::mlir::arith::ArithDialect"];
}

def WarpStageOperands : Pass<"warp-stage-operands", "::mlir::func::FuncOp"> {
  let summary = "bring the operands of products from device memory through swizzled shared memory";
  let description = [{
    A load whose value is only converted to layouts of product operands, directly or behind transpositions, becomes an asynchronous copy into a tile of shared memory and a
    `warp.load_shared` where the conversion was. Where `cp.async` cannot do what the load does (pieces under 4 bytes, an `other` that is not zero, a volatile load) the
    load stays and its value is stored to the tile.
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpStageValues : Pass<"warp-stage-values", "::mlir::func::FuncOp"> {
  let summary = "bring computed values through shared memory where they are shifted, turned or too many for registers";
  let description = [{
    A `tile.shift` becomes a `warp.load_shifted` from a tile that its source is stored to once, in the layout that its users convert it to. Operands of products whose neighbours
    in registers are along the other axis, behind a change of shape, are stored and read by `warp.load_shared`; so are those that are computed before a loop whose products take
    more than a third of a thread's registers from before it, and vectors that such a loop repeats along rows.
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::weft::tile::TileDialect"];
}

def WarpReloadOperands : Pass<"warp-reload-operands", "::mlir::func::FuncOp"> {
  let summary = "read operands in the loop that uses them where registers would not hold them";
  let description = [{
    A `warp.load_shared` before a loop, whose value only products in loops take, moves to those products if what lives in the loop would take more registers than a thread
    has; the largest first, and no more than it takes.
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpPipeline : Pass<"warp-pipeline", "::mlir::func::FuncOp"> {
  let summary = "start the copies of a loop's tiles iterations ahead";
  let description = [{
    In loops without loops inside, every tile that an asynchronous copy fills and the same iteration reads becomes a ring of as many tiles as the kernel's `tile.schedule` has
    stages, filled one iteration less ahead. An iteration waits for its group, passes one barrier, starts the copies that take the place of the tiles just read, and computes.
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::mlir::arith::ArithDialect"];
}

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

def WarpOrderAccesses : Pass<"warp-order-accesses", "::mlir::func::FuncOp"> {
  let summary = "insert a barrier wherever one thread's access to device memory must come after another's of the program";
  let description = [{
    A program's accesses take place in its order: a barrier goes before an access that may touch, in another thread, what an earlier one touched, one of the two a write;
    before an atomic that releases, for which one thread acts; and between what acquires and the next access, with a fence after volatile loads. Runs last, since barriers
    that are there serve. Kernels that carry `tile.orders_accesses` are given barriers for releases and acquires only.
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

#endif // WEFT_DIALECTS_WARP_TRANSFORMS_PASSES_TD
