// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Passes on the warp dialect.
#ifndef WEFT_DIALECTS_WARP_TRANSFORMS_PASSES_TD
#define WEFT_DIALECTS_WARP_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def WarpFoldExpScale : Pass<"warp-fold-exp-scale", "::mlir::func::FuncOp"> {
  let summary = "let a product in an exponential's argument take the factor log2 e along";
  let description = [{
    exp(x · c) becomes exp2(x · (c · log2 e)) where c is a constant or a splat of a scalar: one product less for each
    element. f32 only.

    Needs: nothing. It runs before layouts are assigned, since a splat's scalar is then still at hand.

    Rejects: nothing. An exponential of anything else, or of other elements, is left alone.

    ```mlir
    func.func @f(%x: tensor<16xf32>) -> tensor<16xf32> {
      %c = arith.constant dense<0.5> : tensor<16xf32>
      %y = arith.mulf %x, %c : tensor<16xf32>
      %e = math.exp %y : tensor<16xf32>
      return %e : tensor<16xf32>
    }
    ```
    becomes
    ```mlir
    %c = arith.constant dense<0.72134751> : tensor<16xf32>
    %y = arith.mulf %x, %c : tensor<16xf32>
    %e = math.exp2 %y : tensor<16xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::weft::tile::TileDialect"];
}

def WarpFoldMaxScale : Pass<"warp-fold-max-scale", "::mlir::func::FuncOp"> {
  let summary = "take the maximum of what a softmax scales before it is scaled";
  let description = [{
    max(x · c) becomes max(x) · c for a positive constant c where the product's other uses are differences, x · c - m,
    which become fused multiply-adds. A mask that puts -inf in place of elements moves to x. f32 only; the same bits but
    for the rounding that a fused multiply-add saves.

    Needs: nothing. It runs before layouts are assigned.

    Rejects: nothing. A factor that is not a positive constant, or a product that is used as it is, is left alone.

    ```mlir
    func.func @f(%x: tensor<32xf32>, %m: tensor<32xf32>) -> (f32, tensor<32xf32>) {
      %c = arith.constant dense<0.125> : tensor<32xf32>
      %y = arith.mulf %x, %c : tensor<32xf32>
      %max = tile.reduce %y {axis = 0 : i32} : (tensor<32xf32>) -> f32 {
      ^bb0(%a: f32, %b: f32):
        %r = arith.maxnumf %a, %b : f32
        tile.yield %r : f32
      }
      %d = arith.subf %y, %m : tensor<32xf32>
      return %max, %d : f32, tensor<32xf32>
    }
    ```
    becomes
    ```mlir
    %y = arith.mulf %x, %c : tensor<32xf32>
    %unscaled = tile.reduce %x {axis = 0 : i32} : (tensor<32xf32>) -> f32 {
    ...
    }
    %s = arith.constant 1.250000e-01 : f32
    %max = arith.mulf %unscaled, %s : f32
    %d = arith.subf %y, %m : tensor<32xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def WarpDeferReduction : Pass<"warp-defer-reduction", "::mlir::func::FuncOp"> {
  let summary = "let a loop add up rows lane by lane, and bring the lanes together after it";
  let description = [{
    A loop-carried sum, total · a + sum(x) along an axis that lanes or warps share, becomes one of parts, a tensor
    [rows, lanes of a row], with the sum over the parts behind the loop.

    Needs: tensors with layouts (`tile-to-warp`).

    Rejects: nothing. A reduction whose axis lies within each thread, or that is not a sum, is left alone.

    ```mlir
    #x = #warp.layout<[8, 8], register = [[0, 4]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]]>
    #r = #warp.layout<[8], lane = [[0], [0], [1], [2], [4]]>
    func.func @f(%x: tensor<8x8xf32, #x>, %n: i32) -> tensor<8xf32, #r> {
      %zero = arith.constant dense<0.0> : tensor<8xf32, #r>
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %t = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> tensor<8xf32, #r> : i32 {
        %r = tile.reduce %x {axis = 1 : i32} : (tensor<8x8xf32, #x>) -> tensor<8xf32, #r> {
        ^bb0(%p: f32, %q: f32):
          %o = arith.addf %p, %q : f32
          tile.yield %o : f32
        }
        %u = arith.addf %s, %r : tensor<8xf32, #r>
        scf.yield %u : tensor<8xf32, #r>
      }
      return %t : tensor<8xf32, #r>
    }
    ```
    becomes, four lanes sharing a row and each holding two of its elements,
    ```mlir
    #parts = #warp.layout<[8, 4], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]]>
    ...
    %zero = arith.constant dense<0.000000e+00> : tensor<8x4xf32, #parts>
    %t = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<8x4xf32, #parts>) : i32 {
      %x2 = tile.reshape %x : tensor<8x8xf32, #x> -> tensor<8x2x4xf32, #x2>
      %own = tile.reduce %x2 {axis = 1 : i32} : (tensor<8x2x4xf32, #x2>) -> tensor<8x4xf32, #parts> {
      ...
      %u = arith.addf %s, %part : tensor<8x4xf32, #parts>
      scf.yield %u : tensor<8x4xf32, #parts>
    }
    %total = tile.reduce %t {axis = 1 : i32} : (tensor<8x4xf32, #parts>) -> tensor<8xf32, #r> {
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::weft::tile::TileDialect", "::mlir::arith::ArithDialect"];
}

def WarpStageWgmma : Pass<"warp-stage-wgmma", "::mlir::func::FuncOp"> {
  let summary = "bring the operands of products of warpgroups into shared memory, where their descriptors describe them";
  let description = [{
    Operand b of a `warp.wgmma`, and operand a unless registers hold it as the instructions take it, becomes a tile in
    shared memory, seen through the transpositions between it and the product. A load that nothing else reads becomes an
    asynchronous copy where `cp.async` does what it does; any other value is stored by the threads that hold it. Barriers
    are inserted later.

    Needs: tensors with layouts (`tile-to-warp`) in a module with `warp.target`.

    Rejects: a target that is not known.

    ```mlir
    #load = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[0, 0], [0, 0]]>
    #a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
    module attributes {warp.target = "sm_90a"} {
      func.func @f(%p: tensor<16x16x!tile.ptr<f16>, #load>, %a: tensor<64x16xf16, #a>, %c: tensor<64x16xf32, #a>)
          -> tensor<64x16xf32, #a> {
        %b = tile.load %p {warp.contiguity = 8 : i32} : tensor<16x16x!tile.ptr<f16>, #load>
        %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 16>}
          : tensor<64x16xf16, #a> * tensor<16x16xf16, #load> -> tensor<64x16xf32, #a>
        %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #a>
        return %e : tensor<64x16xf32, #a>
      }
    }
    ```
    becomes, `#s` being swizzled,
    ```mlir
    %s = warp.alloc : <16x16xf16, #s>
    warp.async_copy %p to %s {contiguity = 8 : i32} : tensor<16x16x!tile.ptr<f16>, #load> -> <16x16xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : ...
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #a>
    warp.dealloc %s : <16x16xf16, #s>
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpStageOperands : Pass<"warp-stage-operands", "::mlir::func::FuncOp"> {
  let summary = "bring the operands of products from device memory through swizzled shared memory";
  let description = [{
    A load whose value is only converted to layouts of product operands, directly or behind transpositions, becomes an
    asynchronous copy into a tile of shared memory and a `warp.load_shared` where the conversion was. Where `cp.async`
    cannot do what the load does (pieces under 4 bytes, an `other` that is not zero, a volatile load) the load stays and
    its value is stored to the tile. Barriers are inserted later. Behind changes of shape the addresses change theirs
    instead, where what a lane copies at once stays side by side. What is widened behind its conversion is read by
    `ldmatrix`, elements that share a register first; where their layout has no such, it is left to an exchange.

    Needs: tensors with layouts (`tile-to-warp`) in a module with `warp.target`.

    Rejects: a target that is not known.

    ```mlir
    #load = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]]>
    #acc = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
    #b = #warp.layout<[16, 16], register = [[1, 0], [8, 0], [0, 8]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
    module attributes {warp.target = "sm_80"} {
      func.func @f(%p: tensor<16x16x!tile.ptr<f16>, #load>, %b: tensor<16x16xf16, #b>, %c: tensor<16x16xf32, #acc>)
          -> tensor<16x16xf32, #acc> {
        %x = tile.load %p {warp.contiguity = 8 : i32} : tensor<16x16x!tile.ptr<f16>, #load>
        %a = warp.convert_layout %x : tensor<16x16xf16, #load> -> tensor<16x16xf16, #acc>
        %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>}
          : tensor<16x16xf16, #acc> * tensor<16x16xf16, #b> -> tensor<16x16xf32, #acc>
        return %d : tensor<16x16xf32, #acc>
      }
    }
    ```
    becomes, `#s` being swizzled,
    ```mlir
    %s = warp.alloc : <16x16xf16, #s>
    warp.async_copy %p to %s {contiguity = 8 : i32} : tensor<16x16x!tile.ptr<f16>, #load> -> <16x16xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %a = warp.load_shared %s : <16x16xf16, #s> -> tensor<16x16xf16, #acc>
    warp.dealloc %s : <16x16xf16, #s>
    %d = warp.mma %a, %b, %c ...
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpStageLoads : Pass<"warp-stage-loads", "::mlir::func::FuncOp"> {
  let summary = "bring tiles that a loop with products loads for something else through shared memory, too";
  let description = [{
    In loops with products and without loops inside, a load of a tile that is no product's operand becomes an asynchronous
    copy into a tile of shared memory, read where its value is used first, so that `warp-pipeline` can start the copy
    iterations ahead. So no register holds the value meanwhile: gates, scales, packed weights. The largest are staged,
    until half of a thread's registers hold the others, loaded an iteration ahead (`warp-load-ahead`), beside what lives
    in the loop, and while half of a block's shared memory has room for the stages of all.

    What several warps would load each for itself, such as a row of scales, is staged wherever threads copy ahead anyway:
    one warp copies it, if that spares the others a sector for each instruction that they pass over. Where bulk copies
    bring all of a loop's tiles, it is not.

    Needs: operands of products staged already (`warp-stage-operands`). With one stage nothing is done, nor in kernels that
    the compiler writes (`tile.orders_accesses`).

    Rejects: nothing. A load in pieces under 16 bytes or of less than 4 registers, one that `cp.async` cannot make, of
    memory that the loop may write, or whose address depends on what the iteration computes is left alone. So is, of what
    warps have in common, an index, which addresses other loads.

    ```mlir
    #x = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]]>
    #a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [16, 0], [32, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
    #b = #warp.layout<[64, 8], register = [[1, 0], [8, 0], [16, 0], [32, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
    #c = #warp.layout<[64, 8], register = [[0, 1], [8, 0], [16, 0], [32, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
    !x = tensor<64x64xf16, #x>
    !c = tensor<64x8xf32, #c>
    module attributes {warp.target = "sm_80"} {
      func.func @f(%p: tensor<64x64x!tile.ptr<f16>, #x>, %b: tensor<64x8xf16, #b>, %zero: !c, %n: i32) -> !c {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
          %x = tile.load %p {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #x>
          %g = arith.mulf %x, %x : !x
          %a = warp.convert_layout %g : !x -> tensor<64x64xf16, #a>
          %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x8xf16, #b> -> !c
          scf.yield %d : !c
        }
        return %r : !c
      }
    }
    ```
    becomes, `#s` being swizzled,
    ```mlir
    scf.for ... {
      %s = warp.alloc : <64x64xf16, #s>
      warp.async_copy %p to %s {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #x> -> <64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %x = warp.load_shared %s : <64x64xf16, #s> -> tensor<64x64xf16, #x>
      warp.dealloc %s : <64x64xf16, #s>
      %g = arith.mulf %x, %x : tensor<64x64xf16, #x>
      ...
    }
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpStageValues : Pass<"warp-stage-values", "::mlir::func::FuncOp"> {
  let summary = "bring computed values through shared memory where they are shifted, turned or too many for registers";
  let description = [{
    A `tile.shift` becomes a `warp.load_shifted` from a tile that its source is stored to once, in the layout that its
    users convert it to, at each of them. A tile whose shifts are along its last axis but one has lines of zeros beside its runs
    along that, as many as the shifts go far, so that these are constants of addresses. Operands of products by fused multiply-adds, of which lanes need whole rows or columns, are read
    from such a tile at each product. Operands of matrix instructions whose neighbours in registers are along the other
    axis, behind a change of shape, are stored and read by `warp.load_shared`; so are values of 16 bits that are operands in
    several layouts, where one store takes less than as many exchanges, those that are computed before a
    loop whose products take more than a third of a thread's registers from before it, and vectors that such a loop
    repeats along rows. Barriers
    are inserted later.

    Needs: tensors with layouts (`tile-to-warp`) in a module with `warp.target`.

    Rejects: a target that is not known.

    ```mlir
    #x = #warp.layout<[8, 8], register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
    module attributes {warp.target = "sm_80"} {
      func.func @f(%x: tensor<8x8xf16, #x>) -> tensor<8x8xf16, #x> {
        %above = tile.shift %x {axis = 0 : i32, offset = 1 : i32} : tensor<8x8xf16, #x>
        %below = tile.shift %x {axis = 0 : i32, offset = -1 : i32} : tensor<8x8xf16, #x>
        %y = arith.addf %above, %below : tensor<8x8xf16, #x>
        return %y : tensor<8x8xf16, #x>
      }
    }
    ```
    becomes
    ```mlir
    %s = warp.alloc : <8x8xf16, #s, margin = 1>
    warp.store_shared %x, %s : tensor<8x8xf16, #x> -> <8x8xf16, #s, margin = 1>
    %above = warp.load_shifted %s {axis = 0 : i32, offset = 1 : i32} : <8x8xf16, #s, margin = 1> -> tensor<8x8xf16, #x>
    %below = warp.load_shifted %s {axis = 0 : i32, offset = -1 : i32} : <8x8xf16, #s, margin = 1> -> tensor<8x8xf16, #x>
    warp.dealloc %s : <8x8xf16, #s, margin = 1>
    %y = arith.addf %above, %below : tensor<8x8xf16, #x>
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::weft::tile::TileDialect"];
}

def WarpReloadOperands : Pass<"warp-reload-operands", "::mlir::func::FuncOp"> {
  let summary = "read operands in the loop that uses them where registers would not hold them";
  let description = [{
    A `warp.load_shared` before a loop, whose value only products in loops take, moves to those products if what lives
    in the loop would take more registers than a thread has; the largest first, and no more than it takes. Where shared
    memory has no room for the tile beside the loop's rings, the value stays in registers.

    Needs: operands in shared memory (`warp-stage-operands`, `warp-stage-values`) in a module with `warp.target`, and
    loops that are not pipelined yet.

    Rejects: a target that is not known.

    ```mlir
    #a = #warp.layout<[16, 512],
      register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [0, 256]],
      lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
    #b = #warp.layout<[512, 32],
      register = [[1, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0], [256, 0], [0, 8], [0, 16]],
      lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
    #acc = #warp.layout<[16, 32],
      register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
    #s = #warp.layout<[16, 512],
      offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [0, 256],
                [1, 0], [2, 0], [4, 0], [8, 0]]>
    module attributes {warp.target = "sm_80"} {
      func.func @f(%b: tensor<512x32xf16, #b>, %zero: tensor<16x32xf32, #acc>, %n: i32) -> tensor<16x32xf32, #acc>
          attributes {tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %s = warp.alloc : <16x512xf16, #s>
        %a = warp.load_shared %s : <16x512xf16, #s> -> tensor<16x512xf16, #a>
        warp.dealloc %s : <16x512xf16, #s>
        %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> tensor<16x32xf32, #acc> : i32 {
          %d = warp.mma %a, %b, %sum {shape = array<i32: 16, 8, 16>}
            : tensor<16x512xf16, #a> * tensor<512x32xf16, #b> -> tensor<16x32xf32, #acc>
          scf.yield %d : tensor<16x32xf32, #acc>
        }
        return %r : tensor<16x32xf32, #acc>
      }
    }
    ```
    becomes, as `%a` takes 128 registers beside the 256 of `%b`,
    ```mlir
    %s = warp.alloc : <16x512xf16, #s>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<16x32xf32, #acc>) : i32 {
      %a = warp.load_shared %s : <16x512xf16, #s> -> tensor<16x512xf16, #a>
      %d = warp.mma %a, %b, %sum ...
      scf.yield %d : tensor<16x32xf32, #acc>
    }
    warp.dealloc %s : <16x512xf16, #s>
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpPipeline : Pass<"warp-pipeline", "::mlir::func::FuncOp"> {
  let summary = "start the copies of a loop's tiles iterations ahead";
  let description = [{
    In loops without loops inside, every tile that an asynchronous copy fills and the same iteration reads becomes a
    ring of as many tiles as the kernel's `tile.schedule` has stages, filled one iteration less ahead. An iteration
    waits for its group, passes one barrier, starts the copies that take the place of the tiles just read, and computes.
    A product of warpgroups that a loop adds up goes on into the next iteration: copies then stand behind the wait for it.
    Copies past the loop's end are masked off; of a loop that carries `tile.few_iterations`, a branch leaves them out with their addresses, unless
    the loop carries these. What such addresses take from a table at the iteration's number over a power of two is held from one iteration to the
    next, and loaded where a period begins: pages of rows. With `boxes`, as by default, tiles that are boxes of a tensor of the kernel's arguments are copied by one
    thread (`warp.box_copy`), and waited for at a barrier of their stage (`warp.mbarrier_wait`), on targets that copy boxes. Where a block of the target has no
    shared memory for so many tiles, the kernel gets fewer stages, and its `tile.schedule` says so. Tiles that threads copy
    for instructions of single warps get fewer where a multiprocessor then holds more blocks and has more tiles under way,
    but in kernels that the compiler writes (`tile.orders_accesses`), whose schedules are chosen as they are.

    Needs: copies of one iteration, each committed and waited for in it (`warp-stage-operands`). A `tile.num_stages` on
    the loop stands instead of the schedule's number; without either there are 3. With one stage nothing is done.

    Rejects: nothing. A copy whose address depends on more than the loop carries is left alone.

    ```mlir
    #l = #warp.layout<[128], register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>
    #s = #warp.layout<[128], offset = [[1], [2], [4], [8], [16], [32], [64]]>
    !x = tensor<128xf32, #l>
    !p = tensor<128x!tile.ptr<f32>, #l>
    !s = !warp.shared<128xf32, #s>
    func.func @f(%p: !p, %step: tensor<128xi32, #l>, %n: i32, %zero: !x) -> !x
        attributes {tile.schedule = #tile.schedule<warps = 1, stages = 2>} {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %sum:2 = scf.for %i = %c0 to %n step %c1 iter_args(%total = %zero, %q = %p) -> (!x, !p) : i32 {
        %t = warp.alloc : !s
        warp.async_copy %q to %t {contiguity = 4 : i32} : !p -> !s
        warp.async_commit
        warp.async_wait {pending = 0 : i32}
        %x = warp.load_shared %t : !s -> !x
        warp.dealloc %t : !s
        %next = arith.addf %total, %x : !x
        %r = tile.addptr %q, %step : !p, tensor<128xi32, #l>
        scf.yield %next, %r : !x, !p
      }
      return %sum#0 : !x
    }
    ```
    becomes
    ```mlir
    !x = tensor<128xf32, #l>
    !p = tensor<128x!tile.ptr<f32>, #l>
    !m = tensor<128xi1, #l>
    %ring = warp.alloc : <stages = 2, 128xf32, #s>
    ...
    %t0 = warp.stage %ring[%zero] {step = 512 : i64} : <stages = 2, 128xf32, #s> -> <128xf32, #s>
    %any = tile.splat ...
    warp.async_copy %p masked %any to %t0 {contiguity = 4 : i32} : !p, !m -> <128xf32, #s>
    warp.async_commit
    ...
    %sum:3 = scf.for %i = %c0 to %n step %c1 iter_args(%total = %x0, %ahead = %p1, %read = %at) -> (!x, !p, i32) : i32 {
      warp.async_wait {pending = 0 : i32}
      warp.barrier
      ...
      %freed = arith.xori %read, %bytes : i32
      ...
      warp.async_copy %ahead masked %inside to %t1 {contiguity = 4 : i32} : !p, !m -> <128xf32, #s>
      warp.async_commit
      %t = warp.stage %ring[%read] {step = 512 : i64} : <stages = 2, 128xf32, #s> -> <128xf32, #s>
      %x = warp.load_shared %t : <128xf32, #s> -> !x
      %next = arith.addf %total, %x : !x
      scf.yield %next, %p2, %freed : !x, !p, i32
    }
    warp.async_wait {pending = 0 : i32}
    warp.barrier
    warp.dealloc %ring : <stages = 2, 128xf32, #s>
    ```
  }];
  let options = [Option<"boxes", "boxes", "bool", /*default=*/"true",
                        "fill rings by bulk copies of boxes, where the target has them and a tile is one">];
  let dependentDialects = ["::weft::warp::WarpDialect", "::mlir::arith::ArithDialect"];
}

def WarpSpecialise : Pass<"warp-specialise", "::mlir::func::FuncOp"> {
  let summary = "let a warp of its own make the bulk copies of loops";
  let description = [{
    Copies of boxes into a loop's ring go into `warp.produce`, which warps behind those of the schedule run, and stages
    get a second barrier, at which each warp that computes arrives when it has read. The barrier of the block that did
    this in the loop goes.

    Taken where one warp can compute what the copies need (integers, no tensors), all of the ring is filled by bulk
    copies, and it pays: the target lets warpgroups trade registers, the warps that compute keep nearly as many as
    without, and a multiprocessor holds one block, so that no other computes while it waits.

    Needs: loops as `warp-pipeline` leaves them.

    Rejects: nothing. A loop that is left as it is says why, in a remark.

    ```mlir
    func.func @copies(%i: i32, %full: !warp.shared<1xi64, #warp.layout<[1], offset = []>>) {
      warp.mbarrier_expect %full {bytes = 32768 : i64} : !warp.shared<1xi64, #warp.layout<[1], offset = []>>
      return
    }
    ```
    stays, for nothing waits for the copies there:
    ```mlir
    func.func @copies(%i: i32, %full: ...) {
      warp.mbarrier_expect %full {bytes = 32768 : i64} : <1xi64, ...>
      return
    }
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def WarpLoadAhead : Pass<"warp-load-ahead", "::mlir::func::FuncOp"> {
  let summary = "load into registers, one iteration ahead, what a loop loads otherwise";
  let description = [{
    In loops without loops inside, a load into registers is made one iteration before the one that uses it, and its value
    carried: gates, scales, packed weights, indices, a recurrence's rows. What others are addressed by is loaded two
    iterations before, so that it is there when they are. Loads past the loop's end are masked off; those
    that have many predicates are in a branch instead. The smallest values come first, as long as registers are left beside
    what lives in the loop; a number that has none is loaded before its own iteration's first product. Where a loop has no
    products, few warps must have room beside what lives in it, so that they do not hide latency, and an iteration must
    compute much of each value; then an eighth more registers are taken. Where such a loop's author asks for iterations in
    flight (`tile.num_stages` on the loop), room is enough.

    Needs: copies that go ahead are there already (`warp-pipeline`). With one stage, of the loop or else of the kernel, nothing is done, nor in kernels that the
    compiler writes (`tile.orders_accesses`), whose schedules were chosen for the registers they take.

    Rejects: nothing. A load that is volatile, of memory that the loop may write, or whose address depends on a load of
    the same iteration that cannot go two ahead is left alone; in a loop without products, also one of a tile of the type
    and shape that the loop stores, which may be one tensor given twice, and all where no more than two iterations run.

    ```mlir
    #a = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
    #b = #warp.layout<[16, 8], register = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
    #c = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
    !a = tensor<16x16xf16, #a>
    !p = tensor<16x16x!tile.ptr<f16>, #a>
    !c = tensor<16x8xf32, #c>
    func.func @f(%p: !p, %step: tensor<16x16xi32, #a>, %b: tensor<16x8xf16, #b>, %zero: !c, %n: i32) -> !c {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %q = %p) -> (!c, !p) : i32 {
        %x = tile.load %q : !p
        %g = arith.mulf %x, %x : !a
        %d = warp.mma %g, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * tensor<16x8xf16, #b> -> !c
        %next = tile.addptr %q, %step : !p, tensor<16x16xi32, #a>
        scf.yield %d, %next : !c, !p
      }
      return %r#0 : !c
    }
    ```
    becomes
    ```mlir
    %x0 = tile.load %p, %some ...
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %q = %p, %x = %x0) -> ... {
      %p1 = tile.addptr %q, ...
      %inside = arith.cmpi slt, %i, ...
      %g = arith.mulf %x, %x ...
      %mask = tile.splat %inside ...
      %x1 = tile.load %p1, %mask ...
      %d = warp.mma %g, ...
      scf.yield %d, %next, %x1 ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect",
                           "::weft::tile::TileDialect"];
}

def WarpReadLate : Pass<"warp-read-late", "::mlir::func::FuncOp"> {
  let summary = "tiles that one product by multiply-adds takes are read right before it";
  let description = [{
    A `warp.load_shared` whose value one `tile.dot` of its block takes, and nothing else, goes down to it. What the block
    has written itself is read before what has come by copies, so that one barrier stands before both. Where nothing
    stands between read and product, code is made that reads a few elements at a time and holds no whole rows and columns.

    Needs: `warp-pipeline` done, whose waits belong to reads; `warp-insert-barriers` to come.

    Rejects: nothing. A read stays where its memory is written between the two, or something between has other effects on
    memory, such as a barrier. The end of the memory's life goes along.

    ```mlir
    #a = #warp.layout<[16, 8], register = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 0]]>
    #b = #warp.layout<[8, 8], register = [[1, 0], [2, 0], [4, 0], [0, 1], [0, 2]], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 4]]>
    #c = #warp.layout<[16, 8], register = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4]]>
    #sa = #warp.layout<[16, 8], offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
    #sb = #warp.layout<[8, 8], offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
    func.func @f(%p: tensor<16x8xf32, #c>, %t: !warp.shared<8x8xf32, #sb>, %c: tensor<16x8xf32, #c>) -> tensor<16x8xf32, #c> {
      %v = warp.load_shared %t : !warp.shared<8x8xf32, #sb> -> tensor<8x8xf32, #b>
      %u = warp.alloc : !warp.shared<16x8xf32, #sa>
      warp.store_shared %p, %u : tensor<16x8xf32, #c> -> !warp.shared<16x8xf32, #sa>
      %q = warp.load_shared %u : !warp.shared<16x8xf32, #sa> -> tensor<16x8xf32, #a>
      %d = tile.dot %q, %v, %c {precision = #tile<precision ieee>}
        : tensor<16x8xf32, #a> * tensor<8x8xf32, #b> -> tensor<16x8xf32, #c>
      return %d : tensor<16x8xf32, #c>
    }
    ```

    becomes

    ```mlir
    %u = warp.alloc : ...
    warp.store_shared %p, %u : ...
    %q = warp.load_shared %u : ...
    %v = warp.load_shared %t : ...
    %d = tile.dot %q, %v, %c ...
    ```
  }];
}

def WarpJoinExchanges : Pass<"warp-join-exchanges", "::mlir::func::FuncOp"> {
  let summary = "one barrier for conversions through shared memory that do not wait for one another";
  let description = [{
    Of two `warp.convert_layout` through shared memory, one the next exchange of the other's block, the earlier one goes
    down to the later one, what is computed from it behind both, and `warp.joined` says that it is read behind the later
    one's barrier. Between them is arithmetic, or loads from device memory, and no product. More than two are joined one
    after another.

    Needs: all passes that make tiles or exchanges done; a module with `warp.target`.

    Rejects: nothing. Exchanges of which one's value is made from the other's are left alone, those of more than four
    registers, or with which more than 32 are computed, which would be held meanwhile, and those whose scratch memory at once would take more than lets a
    multiprocessor hold as many blocks, or 16 warps. So are all where barriers would not be fewer.

    ```mlir
    #a = #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], warp = [[32]]>
    #b = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [0]], warp = [[16]]>
    !a = tensor<64xf32, #a>
    !b = tensor<64xf32, #b>
    module attributes {warp.target = "sm_80"} {
      func.func @f(%x: !a, %y: !a) -> !b attributes {tile.schedule = #tile.schedule<warps = 2, stages = 2>} {
        %p = warp.convert_layout %x : !a -> !b
        %n = arith.negf %p : !b
        %q = warp.convert_layout %y : !a -> !b
        %s = arith.addf %n, %q : !b
        return %s : !b
      }
    }
    ```
    becomes
    ```mlir
    %p = warp.convert_layout %x {warp.joined} ...
    %q = warp.convert_layout %y ...
    %n = arith.negf %p ...
    ```
  }];
}

def WarpAllocateShared : Pass<"warp-allocate-shared", "::mlir::func::FuncOp"> {
  let summary = "give each tile and each exchange its place in shared memory";
  let description = [{
    Sets `offset` of each `warp.alloc`, `warp.scratch` of each op that exchanges data between lanes through shared
    memory, and the kernel's `warp.shared_bytes`. Two that are never live at once share bytes, unless no barrier is
    between them and a multiprocessor keeps as many blocks, or 16 warps, with them apart. Rings of as many stages that are
    allocated one right after another are one, which `pitch` says.

    Needs: a module with `warp.target`, and all passes that make tiles or exchanges done.

    Rejects: a target that is not known; a kernel that needs more bytes than a block of the target has.

    ```mlir
    #s = #warp.layout<[256], offset = [[1], [2], [4], [8], [16], [32], [64], [128]]>
    module attributes {warp.target = "sm_80"} {
      func.func @f() {
        %a = warp.alloc : !warp.shared<256xf32, #s>
        %b = warp.alloc : !warp.shared<256xf32, #s>
        warp.dealloc %b : !warp.shared<256xf32, #s>
        %c = warp.alloc : !warp.shared<256xf32, #s>
        warp.dealloc %c : !warp.shared<256xf32, #s>
        warp.dealloc %a : !warp.shared<256xf32, #s>
        return
      }
    }
    ```
    becomes
    ```mlir
    func.func @f() attributes {warp.shared_bytes = 2048 : i64} {
      %a = warp.alloc {offset = 0 : i64} : <256xf32, #s>
      %b = warp.alloc {offset = 1024 : i64} : <256xf32, #s>
      warp.dealloc %b : <256xf32, #s>
      %c = warp.alloc {offset = 1024 : i64} : <256xf32, #s>
      warp.dealloc %c : <256xf32, #s>
      warp.dealloc %a : <256xf32, #s>
      return
    }
    ```
  }];
}

def WarpInsertBarriers : Pass<"warp-insert-barriers", "::mlir::func::FuncOp"> {
  let summary = "insert a barrier wherever one thread's access to shared memory must wait for another's";
  let description = [{
    A barrier is inserted before an access to shared memory that overlaps an earlier one, one of them a write, with no
    barrier between them on some path. Copies and products of warpgroups under way are waited for before. Rings (tiles of
    several stages) are left alone: `warp-pipeline` orders their accesses itself. Its barriers before a kernel's first access to shared memory and behind its last one go, and
    those between which and the one before is nothing but arithmetic, on all ways there.

    Needs: places in shared memory (`warp-allocate-shared`).

    Rejects: nothing.

    ```mlir
    #r = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]]>
    #s = #warp.layout<[32], offset = [[1], [2], [4], [8], [16]]>
    func.func @f(%x: tensor<32xf32, #r>) -> tensor<32xf32, #r> {
      %s = warp.alloc {offset = 0 : i64} : !warp.shared<32xf32, #s>
      warp.store_shared %x, %s : tensor<32xf32, #r> -> !warp.shared<32xf32, #s>
      %y = warp.load_shared %s : !warp.shared<32xf32, #s> -> tensor<32xf32, #r>
      return %y : tensor<32xf32, #r>
    }
    ```
    becomes
    ```mlir
    warp.store_shared %x, %s : tensor<32xf32, #r> -> <32xf32, #s>
    warp.barrier
    %y = warp.load_shared %s : <32xf32, #s> -> tensor<32xf32, #r>
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpStoreBoxes : Pass<"warp-store-boxes", "::mlir::func::FuncOp"> {
  let summary = "store results by bulk copies of boxes, from shared memory";
  let description = [{
    A tile of a matrix that threads would store, by addresses and masks of their own, is filled in shared memory and stored
    by one thread, as the boxes of a tensor of the kernel's arguments that it is; the map's ends take the masks' place.
    Atomics whose old values nobody reads are reductions. The thread waits where the tile's block ends; in a loop, where
    shared memory has room for the tile around it, before the tile is filled again, and for boxes before to be written.

    It does so where that takes fewer instructions, conflicts of banks counted, and of atomics the sectors that each changes
    a part of; where as many blocks stay resident on a multiprocessor; and where nothing may depend on who writes: the kernel touches the memory nowhere else, has no barriers of
    its own, and tells no other program what it has written. A remark says what stands in the way.

    Needs: layouts (`tile-to-warp`), and rings of all their stages (`warp-pipeline`). `warp-insert-barriers` and
    `warp-insert-proxy-fences` order the tile's accesses.

    Rejects: nothing. Targets without copies of boxes are left alone.

    ```mlir
    #acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
    #l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
    #r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
    #c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
    #r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
    #c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
    module attributes {warp.target = "sm_90a"} {
      func.func @f(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>)
          attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
        %c64 = arith.constant 64 : i32
        %i = tile.program_id x : i32
        %from = arith.muli %i, %c64 : i32
        %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
        %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
        %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
        %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
        %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
        %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
        %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
        %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
        %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
        %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
        %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
        %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
        %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
        %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
        %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
        %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
        %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
        tile.store %to, %y, %mask {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
        return
      }
    }
    ```
    becomes
    ```mlir
    %map = warp.tensor_map %p sizes(...) strides(...) {box = array<i32: 64, 64>} : <f16>
    ...
    %t = warp.alloc : <64x64xf16, ...>
    warp.store_shared %x, %t : ...
    warp.barrier
    %one = warp.is_first_thread
    scf.if %one {
      ...
      warp.box_store %t to %map[...] : ...
      warp.box_commit
    }
    %same = warp.is_first_thread
    scf.if %same {
      warp.box_wait %t : ...
    }
    warp.dealloc %t : ...
    return
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def WarpInsertProxyFences : Pass<"warp-insert-proxy-fences", "::mlir::func::FuncOp"> {
  let summary = "make what threads write to shared memory known to matrix instructions of warpgroups, and to stored boxes";
  let description = [{
    These read shared memory through the asynchronous proxy: a thread that wrote a tile which they read, or waited for
    copies to it, needs a fence before the barrier behind which they run. A fence goes before every barrier, and every
    exchange with a barrier of its own, that such writes may reach without one.

    Needs: all barriers for shared memory in their places (`warp-insert-barriers`).

    Rejects: nothing. A kernel without products of warpgroups and stored boxes is left alone.

    ```mlir
    #a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
    #s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
    #r = #warp.layout<[16, 16], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
    func.func @f(%a: tensor<64x16xf16, #a>, %x: tensor<16x16xf16, #r>, %c: tensor<64x16xf32, #a>)
        -> tensor<64x16xf32, #a> {
      %s = warp.alloc {offset = 0 : i64} : !warp.shared<16x16xf16, #s>
      warp.store_shared %x, %s : tensor<16x16xf16, #r> -> !warp.shared<16x16xf16, #s>
      warp.barrier
      %d = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>}
        : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
      %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #a>
      return %e : tensor<64x16xf32, #a>
    }
    ```
    becomes
    ```mlir
    warp.store_shared %x, %s : tensor<16x16xf16, #r> -> <16x16xf16, #s>
    warp.proxy_fence
    warp.barrier
    %d = warp.wgmma %a, %s, %c ...
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpMaskSpans : Pass<"warp-mask-spans", "::mlir::func::FuncOp"> {
  let summary = "compare the elements of a row with a bound by bits of a word";
  let description = [{
    An `arith.select` by a mask that compares running indices along an axis with bounds of rows, or of all, becomes
    `warp.span_select`, if a thread has at least 32 elements along it: `key <= row`, `0 <= row - key`, `key < n`, and what
    several of them say together. What holds of whole rows becomes part of their bounds. Sums of indices are taken not to
    overflow, as those of addresses are.

    Needs: layouts.

    Rejects: nothing. Other masks, and those that anything else takes too, are left alone.

    ```mlir
    #rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
    #acc = #warp.layout<[16, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
    #columns = #warp.layout<[128], register = [[1], [8], [16], [32], [64]], lane = [[2], [4], [0], [0], [0]]>
    #line = #warp.layout<[1, 128], register = [[0, 1], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]]>
    func.func @f(%row: tensor<16x1xi32, #rows>, %s: tensor<16x128xf32, #acc>, %none: tensor<16x128xf32, #acc>) -> tensor<16x128xf32, #acc> {
      %j = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #columns>
      %line = tile.expand_dims %j {axis = 0 : i32} : tensor<128xi32, #columns> -> tensor<1x128xi32, #line>
      %columns = tile.broadcast %line : tensor<1x128xi32, #line> -> tensor<16x128xi32, #acc>
      %limits = tile.broadcast %row : tensor<16x1xi32, #rows> -> tensor<16x128xi32, #acc>
      %mask = arith.cmpi sle, %columns, %limits : tensor<16x128xi32, #acc>
      %r = arith.select %mask, %s, %none : tensor<16x128xi1, #acc>, tensor<16x128xf32, #acc>
      return %r : tensor<16x128xf32, #acc>
    }
    ```
    becomes
    ```mlir
    %r = warp.span_select %s, %none from %c0 upper(%row plus %c1 : tensor<16x1xi32, #rows>) {axis = 1 : i32} : tensor<16x128xf32, #acc>
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::mlir::arith::ArithDialect", "::weft::tile::TileDialect"];
}

def WarpPlaceTotals : Pass<"warp-place-totals", "::mlir::func::FuncOp"> {
  let summary = "read what several warps reduce in the layout in which it is wanted";
  let description = [{
    Partial results of warps meet in shared memory, where a thread finds any element. A conversion of such results, or of
    what is computed of them alone, element by element, is dropped: the results are read in its layout.

    Needs: layouts. It runs after the last pass that makes reductions, and before shared memory is allocated, since a
    conversion's exchange is not needed any more.

    Rejects: nothing. Left alone are results of one warp's own, results that are wanted in two layouts, and conversions to
    layouts with more registers.

    ```mlir
    #tile = #warp.layout<[16, 32], register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]],
                         warp = [[4, 0], [8, 0]]>
    #rows = #warp.layout<[32], register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = [[0], [0]]>
    #line = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]], warp = [[0], [0]]>
    func.func @f(%x: tensor<16x32xf32, #tile>) -> tensor<32xf32, #line> {
      %sum = tile.reduce %x {axis = 0 : i32} : (tensor<16x32xf32, #tile>) -> tensor<32xf32, #rows> {
      ^bb0(%a: f32, %b: f32):
        %r = arith.addf %a, %b : f32
        tile.yield %r : f32
      }
      %line = warp.convert_layout %sum : tensor<32xf32, #rows> -> tensor<32xf32, #line>
      return %line : tensor<32xf32, #line>
    }
    ```
    becomes
    ```mlir
    %sum = tile.reduce %x {axis = 0 : i32} : (tensor<16x32xf32, #tile>) -> tensor<32xf32, #line> {
    ...
    }
    return %sum : tensor<32xf32, #line>
    ```
  }];
}

def WarpJoinBounds : Pass<"warp-join-bounds", "::mlir::func::FuncOp"> {
  let summary = "find by one comparison whether a number is between 0 and a bound";
  let description = [{
    Where a mask of tensors asks of the same numbers that they are not negative and less than a scalar, it asks whether they are
    less than the scalar, or 0 if that is more, as numbers without a sign: negative ones are the largest then. The scalar is
    made where the bound is, before the loops that the bound comes from outside of.

    Needs: layouts. It runs behind the passes that read masks.

    Rejects: nothing. Bounds that differ from element to element, or are constants, which LLVM joins, are left alone.

    ```mlir
    #l = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]]>
    func.func @f(%x: tensor<64xi32, #l>, %n: i32, %p: tensor<64xi1, #l>) -> tensor<64xi1, #l> {
      %zeros = arith.constant dense<0> : tensor<64xi32, #l>
      %limits = tile.splat %n : i32 -> tensor<64xi32, #l>
      %a = arith.cmpi sge, %x, %zeros : tensor<64xi32, #l>
      %b = arith.cmpi slt, %x, %limits : tensor<64xi32, #l>
      %c = arith.andi %p, %a : tensor<64xi1, #l>
      %r = arith.andi %c, %b : tensor<64xi1, #l>
      return %r : tensor<64xi1, #l>
    }
    ```
    becomes
    ```mlir
    %0 = arith.maxsi %n, %c0_i32 : i32
    %1 = tile.splat %0 : i32 -> tensor<64xi32, #l>
    %2 = arith.cmpi ult, %x, %1 : tensor<64xi32, #l>
    %r = arith.andi %p, %2 : tensor<64xi1, #l>
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::mlir::arith::ArithDialect", "::weft::tile::TileDialect"];
}

def WarpSplitLoops : Pass<"warp-split-loops", "::mlir::func::FuncOp"> {
  let summary = "split a loop where its tiles depend on which iteration it is";
  let description = [{
    Where a mask of elements is joined with a comparison of the loop's variable and of what the loop does not change, or a
    tile is selected by one, the loop becomes one loop before and one behind the iteration where the comparison changes; each begins with what the one
    before it carried, so that copies and products that run ahead go on. Loops over blocks of keys, of which some need no
    mask, come so from `attn-to-tile`. What a split leaves is split once more at the most.
    Outside of loops, as in iterations that were taken out of one, what is selected by such a mask becomes a branch on the
    condition: where it is true no mask is computed.

    Needs: nothing. Comparisons of sums of indices are taken not to overflow, as those of addresses are.

    Rejects: nothing. Loops of another step than 1 and of unsigned bounds are left alone, and comparisons that decide what is copied or loaded.

    ```mlir
    func.func @f(%n: i32, %p: i32, %mask: tensor<64xi1>, %x: tensor<64xf32>, %none: tensor<64xf32>) -> tensor<64xf32> {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %r = scf.for %i = %zero to %n step %one iter_args(%acc = %none) -> (tensor<64xf32>) : i32 {
        %all = arith.cmpi slt, %i, %p : i32
        %everywhere = tile.splat %all : i1 -> tensor<64xi1>
        %m = arith.ori %mask, %everywhere : tensor<64xi1>
        %y = arith.select %m, %x, %none : tensor<64xi1>, tensor<64xf32>
        %sum = arith.addf %acc, %y : tensor<64xf32>
        scf.yield %sum : tensor<64xf32>
      }
      return %r : tensor<64xf32>
    }
    ```
    becomes
    ```mlir
    %least = arith.minsi %p, %n : i32
    %place = arith.maxsi %least, %zero : i32
    %first = scf.for %i = %zero to %place step %one iter_args(%acc = %none) -> (tensor<64xf32>) : i32 {
      ...
      %sum = arith.addf %acc, %x : tensor<64xf32>
      scf.yield %sum : tensor<64xf32>
    }
    %r = scf.for %j = %place to %n step %one iter_args(%before = %first) -> (tensor<64xf32>) : i32 {
      ...
      %y = arith.select %mask, %x, %none : tensor<64xi1>, tensor<64xf32>
      ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def WarpAwaitCopiesLate : Pass<"warp-await-copies-late", "::mlir::func::FuncOp"> {
  let summary = "wait for what is copied before a loop when the loop's first copies are under way";
  let description = [{
    A `warp.async_wait` before a ring of bulk copies moves behind the barrier that lets these begin, with a proxy fence and a
    barrier of its own: copies before the loop and the loop's first arrive together. Where the ring is in a branch, a wait
    stays behind the branch too.

    Where threads copy into the ring, the wait moves behind the groups of its first copies, which it leaves pending, with what is read behind
    it. Where that is in a branch, the other side waits too, and who reads behind both reads again.

    Left as it is where what was copied is read before, or where a tile that was freed before the ring began would cost a resident block
    beside it.

    Needs: rings as `warp-pipeline` and `warp-specialise` leave them, and no barriers but theirs.

    Rejects: nothing.

    ```mlir
    #q = #warp.layout<[64], register = [[1], [2]], lane = [[4], [8], [16], [32], [0]], warp = [[0], [0]]>
    #t = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
    #b = #warp.layout<[1], offset = []>
    func.func @f(%p: tensor<64x!tile.ptr<f32>, #q>, %t: !warp.shared<64xf32, #t>, %ring: !warp.shared<stages = 2, 1xi64, #b>) {
      warp.async_copy %p to %t {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      warp.mbarrier_init %ring : !warp.shared<stages = 2, 1xi64, #b>
      warp.barrier
      return
    }
    ```
    becomes
    ```mlir
    func.func @f(%p: tensor<64x!tile.ptr<f32>, ...>, %t: ..., %ring: ...) {
      warp.async_copy %p to %t {contiguity = 4 : i32} : ...
      warp.async_commit
      warp.mbarrier_init %ring : ...
      warp.barrier
      warp.async_wait {pending = 0 : i32}
      warp.proxy_fence
      warp.barrier
      return
    }
    ```
  }];
}

def WarpDeferWaits : Pass<"warp-defer-waits", "::mlir::func::FuncOp"> {
  let summary = "wait for products of warpgroups where their sums are needed first";
  let description = [{
    A `warp.wgmma_wait` moves down to what needs its result, past products that are started in between, which it then
    leaves unfinished; a product that starts from zero, any of more than three in a block, or one of those whose sums tensor
    memory holds all at once, moves up to an earlier one, if its operands are there. Sums that go on from product to product are waited for once. No wait moves past a barrier or
    an exchange, behind which other threads may write the tiles that its product reads, past a write to shared memory, or
    out of its block.

    Needs: all barriers for shared memory in their places (`warp-insert-barriers`).

    Rejects: nothing. A kernel without products of warpgroups is left alone.

    ```mlir
    #a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
    #s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
    func.func @f(%a: tensor<64x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>) -> tensor<64x16xf32, #a> {
      %z = arith.constant dense<0.0> : tensor<64x16xf32, #a>
      %d = warp.wgmma %a, %s, %z {shape = array<i32: 64, 16, 16>}
        : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
      %x = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #a>
      %p = math.exp2 %x : tensor<64x16xf32, #a>
      %e = warp.wgmma %a, %s, %z {shape = array<i32: 64, 16, 16>}
        : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
      %y = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x16xf32, #a>
      %r = arith.mulf %p, %y : tensor<64x16xf32, #a>
      return %r : tensor<64x16xf32, #a>
    }
    ```
    becomes
    ```mlir
    %d = warp.wgmma ...
    %e = warp.wgmma ...
    %x = warp.wgmma_wait %d {pending = 1 : i32} : tensor<64x16xf32, #a>
    %p = math.exp2 %x : tensor<64x16xf32, #a>
    %y = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x16xf32, #a>
    %r = arith.mulf %p, %y : tensor<64x16xf32, #a>
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpOrderAccesses : Pass<"warp-order-accesses", "::mlir::func::FuncOp"> {
  let summary = "insert a barrier wherever one thread's access to device memory must come after another's";
  let description = [{
    A program's accesses take place in its order: a barrier goes before an access that may touch, in another thread,
    what an earlier one touched, one of the two a write; before an atomic that releases, for which one thread acts; and
    between what acquires and the next access, with a fence after volatile loads. What a loop would be given for the sake
    of accesses before it alone goes before the loop. Of accesses that a loop moves by a stride, which meet where that is less
    than their tiles reach, the block waits `where` the stride is. One thread makes all accesses by scalars, but for loads,
    which all threads make: of those whose values only go back to memory, by scalars too, it makes those of arrays that the
    kernel writes alone (`warp.of_owners`). Kernels that carry `tile.orders_accesses` are given barriers for
    releases and acquires only. On those that carry `warp.arrays_apart`, whose arguments are promised to be arrays that
    share no memory, `warp.relied_apart` names the pairs of arguments of which use was made.

    Needs: tensors with layouts (`tile-to-warp`), and all other barriers in their places, since those serve: it runs
    last.

    Rejects: nothing.

    ```mlir
    func.func @f(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) {
      %x = tile.load %p : !tile.ptr<f32>
      tile.store %q, %x : !tile.ptr<f32>
      return
    }
    ```
    becomes, as all threads read what one of them writes if the two pointers are equal,
    ```mlir
    %x = tile.load %p : !tile.ptr<f32>
    warp.barrier
    tile.store %q, %x : !tile.ptr<f32>
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpBeginTensorMemory : Pass<"warp-begin-tensor-memory", "::mlir::func::FuncOp"> {
  let summary = "take tensor memory, and barriers in shared memory, for products whose sums lie there";
  let description = [{
    A kernel with products of 128 rows gets a `warp.alloc` for the barriers at which they arrive, a `warp.tensor_begin` at
    its begin and a `warp.tensor_end` at its end. How many columns they take, `warp-tensor-memory` says.

    Needs: products of warpgroups (`tile-to-warp`) in a module with `warp.target`; `warp-allocate-shared` comes behind it.

    Rejects: nothing. Other kernels stay as they are.

    ```mlir
    #acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
    #a = #warp.layout<[128, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0], [64, 0]]>
    #b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>
    module attributes {warp.target = "sm_100a"} {
      func.func @f(%a: !warp.shared<128x16xf16, #a>, %b: !warp.shared<16x16xf16, #b>, %c: tensor<128x16xf32, #acc>) -> tensor<128x16xf32, #acc>
          attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
        %d = warp.wgmma %a, %b, %c {shape = array<i32: 128, 16, 16>} : !warp.shared<128x16xf16, #a> * !warp.shared<16x16xf16, #b> -> tensor<128x16xf32, #acc>
        %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<128x16xf32, #acc>
        return %e : tensor<128x16xf32, #acc>
      }
    }
    ```
    becomes
    ```mlir
    %slots = warp.alloc : <16xi64, #s>
    %area, %lanes = warp.tensor_begin %slots {barriers = 8 : i32, columns = 512 : i32} : <16xi64, #s>
    ...
    warp.tensor_end %area {columns = 512 : i32}
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpAddBehind : Pass<"warp-add-behind", "::mlir::func::FuncOp"> {
  let summary = "add what a product in tensor memory starts from when threads have its sums";
  let description = [{
    A `warp.wgmma` whose sums lie in tensor memory, and which starts from one number for each row, starts from zero, and
    threads add these where they compute with its sums first. Tensor memory would have to be written before the product.
    What the numbers are loaded by goes along.

    Needs: products of warpgroups (`tile-to-warp`), barriers (`warp-insert-barriers`); `warp-defer-waits` comes behind it.

    Rejects: nothing. Sums that another product goes on from, or that leave their block, other values that products start
    from, as numbers of columns are, which would take as many registers as the sums, products with sums in registers, and
    those of which tensor memory does not hold all sums at once, stay as they are.

    ```mlir
    #acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
    #row = #warp.layout<[128, 1], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
    #a = #warp.layout<[128, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0], [64, 0]]>
    #b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>
    module attributes {warp.target = "sm_100a"} {
      func.func @f(%a: !warp.shared<128x16xf16, #a>, %b: !warp.shared<16x16xf16, #b>, %delta: tensor<128x1xf32, #row>) -> tensor<128x16xf32, #acc>
          attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
        %c = tile.broadcast %delta : tensor<128x1xf32, #row> -> tensor<128x16xf32, #acc>
        %d = warp.wgmma %a, %b, %c {shape = array<i32: 128, 16, 16>} : !warp.shared<128x16xf16, #a> * !warp.shared<16x16xf16, #b> -> tensor<128x16xf32, #acc>
        %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<128x16xf32, #acc>
        %x = arith.negf %e : tensor<128x16xf32, #acc>
        return %x : tensor<128x16xf32, #acc>
      }
    }
    ```
    becomes
    ```mlir
    %zero = arith.constant dense<0.000000e+00> : tensor<128x16xf32, #acc>
    %d = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 16, 16>} ...
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<128x16xf32, #acc>
    %c = tile.broadcast %delta : tensor<128x1xf32, #row> -> tensor<128x16xf32, #acc>
    %f = arith.addf %e, %c : tensor<128x16xf32, #acc>
    %x = arith.negf %f : tensor<128x16xf32, #acc>
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::mlir::arith::ArithDialect"];
}

def WarpTensorMemory : Pass<"warp-tensor-memory", "::mlir::func::FuncOp"> {
  let summary = "keep the sums of products in tensor memory, and load them where threads compute with them";
  let description = [{
    `warp.wgmma` and `warp.wgmma_wait` of a kernel with a `warp.tensor_begin` become `warp.tensor_product` and
    `warp.tensor_wait`. Sums that go from a product to the next one, through loops and branches too, stay where they are;
    what threads compute is stored before the product that starts from it, what they compute with is loaded as late as the
    tile still holds it. An operand a in registers is stored to columns of its own. Before a product, the threads of its
    warpgroup meet where they have accessed tensor memory since the last. Tiles that are not needed at once share columns.
    A kernel with a `scf.while` that reads memory, whose blocks may wait for one another, asks for as much shared memory that
    no block waits for columns beside one that has them.

    Needs: roles that are split (`warp-split-roles`): it comes last.

    Rejects: sums and operands that the target's columns do not hold, but for `mark`: the kernel is of no use then, and to be
    compiled again from `tile-to-warp` on with the attribute `warp.lacks_columns`, with products of warps.

    ```mlir
    #acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
    #a = #warp.layout<[128, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0], [64, 0]]>
    #b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>
    #s = #warp.layout<[8], offset = [[1], [2], [4]]>
    module attributes {warp.target = "sm_100a"} {
      func.func @f(%a: !warp.shared<128x16xf16, #a>, %b: !warp.shared<16x16xf16, #b>, %s: !warp.shared<8xi64, #s>) -> tensor<128x16xf32, #acc>
          attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
        %area, %lanes = warp.tensor_begin %s {barriers = 4 : i32, columns = 512 : i32} : !warp.shared<8xi64, #s>
        %zero = arith.constant dense<0.0> : tensor<128x16xf32, #acc>
        %d = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 16, 16>} : !warp.shared<128x16xf16, #a> * !warp.shared<16x16xf16, #b> -> tensor<128x16xf32, #acc>
        %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<128x16xf32, #acc>
        %x = arith.negf %e : tensor<128x16xf32, #acc>
        warp.tensor_end %area {columns = 512 : i32}
        return %x : tensor<128x16xf32, #acc>
      }
    }
    ```
    becomes
    ```mlir
    warp.tensor_product %b, %area, %s with %a {column = 0 : i32, shape = array<i32: 128, 16, 16>, sums = tensor<128x16xf32, #acc>, zero} ...
    warp.tensor_wait %s {pending = 0 : i32} : <8xi64, #s>
    %e = warp.tensor_load %lanes {column = 0 : i32} : tensor<128x16xf32, #acc>
    %x = arith.negf %e : tensor<128x16xf32, #acc>
    warp.tensor_end %area {columns = 32 : i32}
    return %x : tensor<128x16xf32, #acc>
    ```
  }];
  let options = [Option<"mark", "mark", "bool", /*default=*/"false",
                        "give a kernel that needs more columns than there are the attribute 'warp.lacks_columns', and fail not">];
  let dependentDialects = ["::weft::warp::WarpDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def WarpReleaseLate : Pass<"warp-release-late", "::mlir::func::FuncOp"> {
  let summary = "wait for a loop's last products in tensor memory with the next iteration's first ones";
  let description = [{
    Where a loop's iteration ends with a wait for its products, and the next one begins with others, these start right behind
    those: tensor cores take what a thread starts in order. The wait for the first products is then for the last ones of
    the iteration before too, and warps arrive there for the tiles which those have read, as no thread touches tensor
    memory before. Behind the loop they wait and arrive for its last iteration. A product may so write the columns from
    which the one before it reads its operand.

    Needs: sums in tensor memory (`warp-tensor-memory`): it comes last.

    Rejects: nothing. Loops whose threads load from tensor memory, write shared memory or meet before their first wait, whose
    ring has one stage or is a cluster's, and in which something before that wait would write what the last products write,
    or threads what those read, stay as they are.

    ```mlir
    #acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
    #half = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
    #a = #warp.layout<[128, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0], [64, 0]]>
    #b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>
    #s = #warp.layout<[16], offset = [[1], [2], [4], [8]]>
    #m = #warp.layout<[2], offset = [[1]]>
    func.func @f(%q: !warp.shared<128x16xf16, #a>, %k: !warp.shared<16x16xf16, #b>, %s: !warp.shared<16xi64, #s>, %ring: !warp.shared<stages = 2, 2xi64, #m>, %n: i32)
        attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
      %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 32 : i32} : !warp.shared<16xi64, #s>
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c16 = arith.constant 16 : i32
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%place = %c0) -> (i32) : i32 {
        %full = warp.stage %ring[%place] {step = 16 : i64} : !warp.shared<stages = 2, 2xi64, #m> -> !warp.shared<2xi64, #m>
        warp.tensor_product %k, %area, %s with %q {column = 0 : i32, shape = array<i32: 128, 16, 16>, sums = tensor<128x16xf32, #acc>, zero} : !warp.shared<16x16xf16, #b>, !warp.shared<16xi64, #s>, !warp.shared<128x16xf16, #a>
        warp.tensor_wait %s {pending = 0 : i32} : !warp.shared<16xi64, #s>
        %x = warp.tensor_load %lanes {column = 0 : i32} : tensor<128x16xf32, #acc>
        %p = arith.truncf %x : tensor<128x16xf32, #acc> to tensor<128x16xf16, #half>
        warp.tensor_store %p, %lanes {column = 0 : i32} : tensor<128x16xf16, #half>
        warp.tensor_ready
        warp.tensor_product %k, %area, %s {column = 16 : i32, from = 0 : i32, shape = array<i32: 128, 16, 16>, stored = tensor<128x16xf16, #half>, sums = tensor<128x16xf32, #acc>} : !warp.shared<16x16xf16, #b>, !warp.shared<16xi64, #s>
        warp.tensor_wait %s {pending = 0 : i32} : !warp.shared<16xi64, #s>
        warp.mbarrier_arrive %full {index = 1 : i64, together} : !warp.shared<2xi64, #m>
        %next = arith.xori %place, %c16 : i32
        scf.yield %next : i32
      }
      warp.tensor_end %area {columns = 32 : i32}
      return
    }
    ```
    becomes
    ```mlir
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%place = %c0, %before = %none) -> (i32, i32) : i32 {
      ...
      warp.tensor_product %k, %area, %s with %q {column = 0 : i32, shape = array<i32: 128, 16, 16>, sums = tensor<128x16xf32, #acc>, zero} ...
      warp.tensor_wait %s {count = 2 : i32, pending = 0 : i32} : <16xi64, #s>
      %later = arith.cmpi ne, %i, %c0 : i32
      scf.if %later {
        %read = warp.stage %ring[%before] {step = 16 : i64} : <stages = 2, 2xi64, #m> -> <2xi64, #m>
        warp.mbarrier_arrive %read {index = 1 : i64, together} : <2xi64, #m>
      }
      ...
      warp.tensor_product %k, %area, %s {column = 16 : i32, from = 0 : i32, shape = array<i32: 128, 16, 16>, stored = tensor<128x16xf16, #acc>, sums = tensor<128x16xf32, #acc>} ...
      %next = arith.xori %place, %c16 : i32
      scf.yield %next, %place : i32, i32
    }
    %any = arith.cmpi slt, %c0, %n : i32
    scf.if %any {
      warp.tensor_wait %s {pending = 0 : i32} : <16xi64, #s>
      %last = warp.stage %ring[%r#1] {step = 16 : i64} : <stages = 2, 2xi64, #m> -> <2xi64, #m>
      warp.mbarrier_arrive %last {index = 1 : i64, together} : <2xi64, #m>
    }
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def WarpFenceProducts : Pass<"warp-fence-products", "::mlir::func::FuncOp"> {
  let summary = "share one fence of registers among products that start one after another, where registers are few";
  let description = [{
    Consecutive `warp.wgmma` whose operands in registers are all there before the first of them, or are sums that they go on
    with, become `fenced`, behind one `warp.wgmma_fence` of what sums start from and of the factors that their block
    computes: where sums, factors and what these are converted from would leave fewer than 60 of a thread's registers, and
    where there are sums to start from and no such factors.

    What such a product takes that is computed behind the first, as the sums that it starts from, is computed before it.

    Needs: products where they start (`warp-defer-waits`, `warp-take-turns`); the target that the module names.

    Rejects: nothing. A product alone keeps the fence of its own; a run ends at a wait for products, at a barrier, at
    memory that threads access, and where a product needs what is computed behind the first.

    ```mlir
    #acc = #warp.layout<[64, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
    #a = #warp.layout<[64, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
    #q = #warp.layout<[64, 128], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 64]]>
    #b = #warp.layout<[128, 128], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0], [0, 64]]>
    func.func @f(%q: !warp.shared<64x128xf16, #q>, %w: tensor<64x128xf32, #a>, %k: !warp.shared<128x128xf16, #b>, %v: !warp.shared<128x128xf16, #b>,
                 %o: tensor<64x128xf32, #acc>) -> (tensor<64x128xf32, #acc>, tensor<64x128xf32, #acc>) {
      %z = arith.constant dense<0.0> : tensor<64x128xf32, #acc>
      %p = arith.truncf %w : tensor<64x128xf32, #a> to tensor<64x128xf16, #a>
      %d = warp.wgmma %q, %k, %z {shape = array<i32: 64, 128, 16>} : !warp.shared<64x128xf16, #q> * !warp.shared<128x128xf16, #b> -> tensor<64x128xf32, #acc>
      %e = warp.wgmma %p, %v, %o {shape = array<i32: 64, 128, 16>} : tensor<64x128xf16, #a> * !warp.shared<128x128xf16, #b> -> tensor<64x128xf32, #acc>
      %r:2 = warp.wgmma_wait %d, %e {pending = 0 : i32} : tensor<64x128xf32, #acc>, tensor<64x128xf32, #acc>
      return %r#0, %r#1 : tensor<64x128xf32, #acc>, tensor<64x128xf32, #acc>
    }
    ```
    becomes
    ```mlir
    %f:2 = warp.wgmma_fence %o, %p : tensor<64x128xf32, #acc>, tensor<64x128xf16, #a>
    %d = warp.wgmma %q, %k, %z {fenced, shape = array<i32: 64, 128, 16>} ...
    %e = warp.wgmma %f#1, %v, %f#0 {fenced, shape = array<i32: 64, 128, 16>} ...
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpSkipRows : Pass<"warp-skip-rows", "::mlir::func::FuncOp"> {
  let summary = "let a warp pass over iterations in which a mask leaves nothing of its rows";
  let description = [{
    Where a select says that rows without any of its elements leave what the loop carries as it was (`tile.leaves_rows`), the
    end of the loop's body, behind its last barrier, copy or wait, that gives what is carried of them comes under a
    condition: that the mask's comparisons with bounds of rows let the block's first or last column through, for the least or
    greatest bound of the warp's rows (`warp.extreme`). Across a diagonal, of four blocks of 32 columns by 128 rows, 6 of 16
    parts of 32 rows are empty.

    Needs: barriers. What each warp decides for itself must not meet others.

    Rejects: nothing. Masks that are not comparisons of running columns with bounds of rows that are known before the loop,
    sums of half of a thread's registers or more, blocks as wide as high, layouts that share a row between warps, and
    results that do not add up what the loop carries are left alone, as is what products of warpgroups give.

    ```mlir
    #row = #warp.layout<[32], register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[16]]>
    #rows = #warp.layout<[32, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
    #acc = #warp.layout<[32, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
    #columns = #warp.layout<[1, 8], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = [[0, 0]]>
    #column = #warp.layout<[8], register = [[1]], lane = [[2], [4], [0], [0], [0]], warp = [[0]]>
    func.func @f(%x: tensor<32x8xf32, #acc>, %row: tensor<32x1xi32, #rows>, %n: i32) -> tensor<32x8xf32, #acc> {
      %c0 = arith.constant 0 : i32
      %c8 = arith.constant 8 : i32
      %zero = arith.constant dense<0.0> : tensor<32x8xf32, #acc>
      %ends = tile.broadcast %row : tensor<32x1xi32, #rows> -> tensor<32x8xi32, #acc>
      %places = tile.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #column>
      %r = scf.for %i = %c0 to %n step %c8 iter_args(%sum = %zero) -> (tensor<32x8xf32, #acc>) : i32 {
        %begin = tile.splat %i : i32 -> tensor<8xi32, #column>
        %column = arith.addi %begin, %places : tensor<8xi32, #column>
        %across = tile.expand_dims %column {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, #columns>
        %columns = tile.broadcast %across : tensor<1x8xi32, #columns> -> tensor<32x8xi32, #acc>
        %mask = arith.cmpi sle, %columns, %ends : tensor<32x8xi32, #acc>
        %p = arith.select %mask, %x, %zero {tile.leaves_rows} : tensor<32x8xi1, #acc>, tensor<32x8xf32, #acc>
        %next = arith.addf %sum, %p : tensor<32x8xf32, #acc>
        scf.yield %next : tensor<32x8xf32, #acc>
      }
      return %r : tensor<32x8xf32, #acc>
    }
    ```
    becomes
    ```mlir
    %last = warp.extreme %row {greatest} : tensor<32x1xi32, #rows>
    %r = scf.for %i = %c0 to %n step %c8 iter_args(%sum = %zero) -> (tensor<32x8xf32, #acc>) : i32 {
      %some = arith.cmpi sle, %i, %last : i32
      %next = scf.if %some -> (tensor<32x8xf32, #acc>) {
        %begin = tile.splat %i : i32 -> tensor<8xi32, #column>
        %column = arith.addi %begin, %places : tensor<8xi32, #column>
        %across = tile.expand_dims %column {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, #columns>
        %columns = tile.broadcast %across : tensor<1x8xi32, #columns> -> tensor<32x8xi32, #acc>
        %mask = arith.cmpi sle, %columns, %ends : tensor<32x8xi32, #acc>
        %p = arith.select %mask, %x, %zero {tile.leaves_rows} : tensor<32x8xi1, #acc>, tensor<32x8xf32, #acc>
        %sums = arith.addf %sum, %p : tensor<32x8xf32, #acc>
        scf.yield %sums : tensor<32x8xf32, #acc>
      } else {
        scf.yield %sum : tensor<32x8xf32, #acc>
      }
      scf.yield %next : tensor<32x8xf32, #acc>
    }
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::weft::tile::TileDialect"];
}

def WarpSkipScaling : Pass<"warp-skip-scaling", "::mlir::func::FuncOp"> {
  let summary = "multiply sums by what a maximum's growth makes of them only where it has grown";
  let description = [{
    Sums of 48 registers of a thread or more that a loop multiplies by powers of how much a running maximum has grown, as
    attention's are, stay as they are where all of the warp's factors are 1 (`warp.any`). The results are the same bits.
    What factors are made of, and the branch, move up to where they can be, before powers that products take next.

    Needs: products where they start (`warp-fence-products`), as sums that a branch gives are none that other passes know.

    Rejects: nothing. Factors that are not an exponential of the difference of what a loop carries and its maximum with
    others, products that are added to something, which is one instruction (fma), and loops that are known to have few
    iterations, are left alone. So are, where the factors are of the same iteration, loops with masks or products of
    warpgroups and sums of 128 registers, where a branch costs more than it saves.

    ```mlir
    #row = #warp.layout<[16], register = [[8]], lane = [[0], [0], [1], [2], [4]]>
    #rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
    #acc = #warp.layout<[16, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
    func.func @f(%x: tensor<16xf32, #row>, %m0: tensor<16xf32, #row>, %s0: tensor<16x128xf32, #acc>, %n: i32) -> tensor<16x128xf32, #acc> {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0, %sums = %s0) -> (tensor<16xf32, #row>, tensor<16x128xf32, #acc>) : i32 {
        %now = arith.maximumf %m, %x : tensor<16xf32, #row>
        %grown = arith.subf %m, %now : tensor<16xf32, #row>
        %f = math.exp2 %grown : tensor<16xf32, #row>
        %g = tile.expand_dims %f {axis = 1 : i32} : tensor<16xf32, #row> -> tensor<16x1xf32, #rows>
        %h = tile.broadcast %g : tensor<16x1xf32, #rows> -> tensor<16x128xf32, #acc>
        %s = arith.mulf %sums, %h : tensor<16x128xf32, #acc>
        scf.yield %now, %s : tensor<16xf32, #row>, tensor<16x128xf32, #acc>
      }
      return %r#1 : tensor<16x128xf32, #acc>
    }
    ```
    becomes
    ```mlir
    %zeros = arith.constant dense<0.000000e+00> : tensor<16xf32, #row>
    %others = arith.cmpf une, %grown, %zeros : tensor<16xf32, #row>
    %some = warp.any %others : tensor<16xi1, #row>
    %f = math.exp2 %grown : tensor<16xf32, #row>
    %g = tile.expand_dims %f {axis = 1 : i32} : tensor<16xf32, #row> -> tensor<16x1xf32, #rows>
    %h = tile.broadcast %g : tensor<16x1xf32, #rows> -> tensor<16x128xf32, #acc>
    %t = scf.if %some -> (tensor<16x128xf32, #acc>) {
      %s = arith.mulf %sums, %h : tensor<16x128xf32, #acc>
      scf.yield %s : tensor<16x128xf32, #acc>
    } else {
      scf.yield %sums : tensor<16x128xf32, #acc>
    }
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def WarpShareExponentials : Pass<"warp-share-exponentials", "::mlir::func::FuncOp"> {
  let summary = "compute a share of a loop's exponentials by polynomials";
  let description = [{
    Of loops with products of warpgroups, where the units for special functions would take longer for an iteration than
    the matrix units: of each 16 neighbouring powers of a thread, some are marked to be computed by polynomials, as many
    as leave the unit that has most to do the least. Where a scheduler has one warp, which computes nothing while it waits
    for products, these count for nothing. What the target's units take is in its description.

    Needs: products of warpgroups whose operands are in shared memory (`warp-stage-wgmma`).

    Rejects: nothing. Targets without arithmetic of two f32 at once are left alone, where a polynomial takes longer than the
    unit does, powers of which a thread has fewer than 16, and loops around others.

    ```mlir
    #a = #warp.layout<[128, 128], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
    #q = #warp.layout<[128, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0], [64, 0]]>
    #k = #warp.layout<[16, 128], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8], [0, 16], [0, 32], [0, 64]]>
    module attributes {warp.target = "sm_100a"} {
      func.func @f(%n: i32, %q: !warp.shared<128x16xf16, #q>, %k: !warp.shared<16x128xf16, #k>, %x: tensor<128x128xf32, #a>) -> tensor<128x128xf32, #a>
          attributes {tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %z = arith.constant dense<0.0> : tensor<128x128xf32, #a>
        %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<128x128xf32, #a>) : i32 {
          %d = warp.wgmma %q, %k, %z {shape = array<i32: 128, 128, 16>}
            : !warp.shared<128x16xf16, #q> * !warp.shared<16x128xf16, #k> -> tensor<128x128xf32, #a>
          %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<128x128xf32, #a>
          %w = math.exp2 %e : tensor<128x128xf32, #a>
          %t = arith.addf %s, %w : tensor<128x128xf32, #a>
          scf.yield %t : tensor<128x128xf32, #a>
        }
        return %r : tensor<128x128xf32, #a>
      }
    }
    ```
    becomes
    ```mlir
    %w = math.exp2 %e {warp.by_polynomial = 6 : i32} : tensor<128x128xf32, #a>
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpTakeTurns : Pass<"warp-take-turns", "::mlir::func::FuncOp"> {
  let summary = "let one warpgroup's products run beside what another computes from its own";
  let description = [{
    Of loops whose products run beside the next iteration's: a warpgroup starts an iteration's products when it is its
    turn, and passes the turn on behind them. While it computes from what they give, the next one's run.

    Needs: products in the order in which they are started (`warp-defer-waits`).

    Rejects: nothing. Loops with one product under way are left alone, loops whose warps meet in an iteration, and
    kernels of one warpgroup or without a producer: there the block's barrier has all of them at one place.

    ```mlir
    #a = #warp.layout<[128, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
    #s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
    #b = #warp.layout<[1], offset = []>
    module attributes {warp.target = "sm_90a"} {
      func.func @f(%n: i32, %a: tensor<128x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>, %x: tensor<128x16xf32, #a>, %full: !warp.shared<1xi64, #b>) -> tensor<128x16xf32, #a>
          attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %z = arith.constant dense<0.0> : tensor<128x16xf32, #a>
        %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x, %p = %a) -> (tensor<128x16xf32, #a>, tensor<128x16xf16, #a>) : i32 {
          warp.produce {
            warp.mbarrier_expect %full {bytes = 32768 : i64} : !warp.shared<1xi64, #b>
          }
          %d = warp.wgmma %a, %s, %z {shape = array<i32: 64, 16, 16>}
            : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
          %e = warp.wgmma %p, %s, %acc {shape = array<i32: 64, 16, 16>}
            : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
          %y = warp.wgmma_wait %d {pending = 1 : i32} : tensor<128x16xf32, #a>
          %w = math.exp2 %y : tensor<128x16xf32, #a>
          %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<128x16xf32, #a>
          %h = arith.truncf %w : tensor<128x16xf32, #a> to tensor<128x16xf16, #a>
          scf.yield %o, %h : tensor<128x16xf32, #a>, tensor<128x16xf16, #a>
        }
        return %r#0 : tensor<128x16xf32, #a>
      }
    }
    ```
    becomes
    ```mlir
    warp.turn_pass {last}
    %r:2 = scf.for ...
      ...
      warp.turn_wait
      %d = warp.wgmma ...
      %e = warp.wgmma ...
      warp.turn_pass
      %y = warp.wgmma_wait %d {pending = 1 : i32} : tensor<128x16xf32, #a>
      %w = math.exp2 %y : tensor<128x16xf32, #a>
      ...
    }
    warp.turn_wait {first}
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpCopyWithRing : Pass<"warp-copy-with-ring", "::mlir::func::FuncOp"> {
  let summary = "copy what a loop reads in each iteration with the first tiles of its ring";
  let description = [{
    A tile that threads copy before a kernel's first ring, and that nobody reads who has not waited for the ring's first tiles, is copied as boxes on the barrier of these, which expects its bytes too.
    Where somebody may read it without, as a second loop does when the first has no iteration, it is copied on a barrier of its own, at which the first reader of each branch waits; if as many blocks are resident with that, and no producer makes the copies.

    Rejects: nothing. It leaves alone copies that are no boxes, kernels that use shared memory before, and those of clusters.

    Needs: rings of bulk copies (`warp-pipeline`). It runs behind `warp-specialise`, so that the producer makes the copies, and before `warp-await-copies-late`.

    ```mlir
    #b = #warp.layout<[1]>
    #s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
    #t = #warp.layout<[64, 64], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>
    #a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
    #p = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
    #column = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
    #row = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
    #c = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
    #r = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
    module attributes {warp.target = "sm_90a"} {
      func.func @f(%q: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %map: !warp.tensor_map, %n: i32) attributes {tile.orders_accesses, tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %width = arith.constant dense<64> : tensor<64x1xi32, #column>
        %zero = arith.constant dense<0.0> : tensor<64x64xf32, #a>
        %lines = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
        %along = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
        %ls = tile.expand_dims %lines {axis = 1 : i32} : tensor<64xi32, #c> -> tensor<64x1xi32, #column>
        %as = tile.expand_dims %along {axis = 0 : i32} : tensor<64xi32, #r> -> tensor<1x64xi32, #row>
        %begins = arith.muli %ls, %width : tensor<64x1xi32, #column>
        %far = tile.broadcast %begins : tensor<64x1xi32, #column> -> tensor<64x64xi32, #p>
        %near = tile.broadcast %as : tensor<1x64xi32, #row> -> tensor<64x64xi32, #p>
        %offsets = arith.addi %far, %near : tensor<64x64xi32, #p>
        %base = tile.splat %q : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #p>
        %pointers = tile.addptr %base, %offsets : tensor<64x64x!tile.ptr<f16>, #p>, tensor<64x64xi32, #p>
        %tile = warp.alloc : !warp.shared<64x64xf16, #s>
        warp.async_copy %pointers to %tile {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #p> -> !warp.shared<64x64xf16, #s>
        warp.async_commit
        warp.async_wait {pending = 0 : i32}
        %tiles = warp.alloc : !warp.shared<stages = 2, 64x64xf16, #s>
        %ring = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
        warp.barrier
        warp.mbarrier_init %ring : !warp.shared<stages = 2, 1xi64, #b>
        %acts = warp.is_first_thread
        scf.if %acts {
          %first = warp.stage %ring[%c0] {step = 9216 : i64} : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
          warp.mbarrier_expect %first {bytes = 8192 : i64} : !warp.shared<1xi64, #b>
          %to = warp.stage %tiles[%c0] {step = 9216 : i64} : !warp.shared<stages = 2, 64x64xf16, #s> -> !warp.shared<64x64xf16, #s>
          warp.box_copy %map[%c0, %c0] to %to on %first : !warp.shared<64x64xf16, #s>, !warp.shared<1xi64, #b>
        }
        warp.barrier
        %sums = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32, #a>) : i32 {
          %full = warp.stage %ring[%c0] {step = 9216 : i64} : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
          warp.mbarrier_wait %full, %c0 : !warp.shared<1xi64, #b>
          %k = warp.stage %tiles[%c0] {step = 9216 : i64} : !warp.shared<stages = 2, 64x64xf16, #s> -> !warp.shared<64x64xf16, #s>
          %turned = warp.permute_shared %k {order = array<i32: 1, 0>} : !warp.shared<64x64xf16, #s> -> !warp.shared<64x64xf16, #t>
          %product = warp.wgmma %tile, %turned, %sum {shape = array<i32: 64, 64, 16>} : !warp.shared<64x64xf16, #s> * !warp.shared<64x64xf16, #t> -> tensor<64x64xf32, #a>
          %next = warp.wgmma_wait %product {pending = 0 : i32} : tensor<64x64xf32, #a>
          scf.yield %next : tensor<64x64xf32, #a>
        }
        return
      }
    }
    ```
    becomes
    ```mlir
    %query = warp.tensor_map %q ... {box = array<i32: 64, 64>} : <f16>
    ...
    %tile = warp.alloc : <64x64xf16, ...>
    ...
    warp.mbarrier_init %ring : <stages = 2, 1xi64, ...>
    %acts = warp.is_first_thread
    scf.if %acts {
      %first = warp.stage %ring[%c0] {step = 9216 : i64} : ...
      warp.mbarrier_expect %first {bytes = 16384 : i64} : <1xi64, ...>
      warp.box_copy %query[...] to %tile on %first : <64x64xf16, ...>, <1xi64, ...>
      %to = warp.stage %tiles[%c0] {step = 9216 : i64} : ...
      warp.box_copy %map[%c0, %c0] to %to on %first : <64x64xf16, ...>, <1xi64, ...>
    }
    ...
    ... = warp.wgmma %tile, ...
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::mlir::arith::ArithDialect", "::weft::tile::TileDialect"];
}

def WarpOwnBytes : Pass<"warp-own-bytes", "::mlir::func::FuncOp"> {
  let summary = "begin rings without a wait, and leave them without an end, where their bytes are nothing else";
  let description = [{
    A ring whose bytes of shared memory nothing has before it needs no fence and no barrier there. The first such ring whose copies a producer makes is begun by that: it makes the barriers, arrives where the others wait for them, and copies
    at once. A ring whose barriers' bytes nothing has behind it is not ended, nor waited for where its tiles' bytes are nothing else either.

    Rejects: nothing. It leaves alone rings in loops, where they come again, and kernels of clusters, whose blocks arrive at one another's barriers.

    Needs: places in shared memory (`warp-allocate-shared`). It runs before `warp-insert-barriers`, which waits where something else has to.

    ```mlir
    #b = #warp.layout<[2], offset = [[1]]>
    #s = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
    module attributes {warp.target = "sm_90a"} {
      func.func @f(%n: i32) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
        %tiles = warp.alloc {offset = 0 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s>
        %ring = warp.alloc {offset = 1024 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b>
        warp.proxy_fence
        warp.barrier
        warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
        warp.barrier {withProducer}
        warp.barrier
        warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
        warp.dealloc %ring : !warp.shared<stages = 2, 2xi64, #b>
        return
      }
    }
    ```
    becomes
    ```mlir
    %ring = warp.alloc {offset = 1024 : i64, pitch = 2048 : i64} : <stages = 2, 2xi64, ...>
    warp.produce {
      warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : <stages = 2, 2xi64, ...>
    }
    warp.barrier {producerArrives, withProducer}
    warp.dealloc %ring : <stages = 2, 2xi64, ...>
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def WarpPersist : Pass<"warp-persist", "::mlir::func::FuncOp"> {
  let summary = "let one block on each multiprocessor go over the grid's programs";
  let description = [{
    Where a kernel's schedule says `persistent`, and its ring of copies can outlive a program, its body stands in a loop over programs, and the ring goes on from one to the next: the
    producer copies for the next program while the other warps end one. A launch gives the grid of the programs behind the kernel's parameters, and starts no more blocks than there are
    multiprocessors. Programs are taken in the order in which blocks would begin, back and forth.

    Rejects: nothing. It leaves alone kernels without a producer, or with several rings, those of which a multiprocessor holds several blocks, rings that cannot go on, and those for which shared memory has no room
    beside what a program stores; a remark says why.

    Needs: `warp.produce` around copies (`warp-specialise`).

    ```mlir
    #b = #warp.layout<[2], offset = [[1]]>
    #s = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
    #t = #warp.layout<[8, 64], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp = [[1, 0], [2, 0], [4, 0]]>
    module attributes {warp.target = "sm_90a"} {
      func.func @f(%n: i32, %p: !tile.ptr<f16>, %q: !tile.ptr<i32>, %s: i64, %e64: i64, %v: tensor<8x64xf16, #t>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, persistent = true>} {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c30 = arith.constant 1073741824 : i32
        %c31 = arith.constant 31 : i32
        %c2048 = arith.constant 2048 : i32
        %x = tile.program_id x : i32
        %count = tile.num_programs x : i32
        %map = warp.tensor_map %p sizes(%e64, %e64) strides(%s) {box = array<i32: 64, 8>} : !tile.ptr<f16>
        %any = arith.cmpi sgt, %n, %x : i32
        %first = warp.is_first_thread
        %beside = warp.alloc : !warp.shared<8x64xf16, #s>
        scf.if %any {
          %tiles = warp.alloc : !warp.shared<stages = 2, 8x64xf16, #s>
          %ring = warp.alloc : !warp.shared<stages = 2, 2xi64, #b>
          warp.proxy_fence
          warp.barrier
          warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
          warp.barrier {withProducer}
          warp.produce {
            scf.if %first {
              %full = warp.stage %ring[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
              warp.mbarrier_expect %full {bytes = 2048 : i64} : !warp.shared<2xi64, #b>
              warp.box_copy %map[%c0, %x] to %beside on %full : !warp.shared<8x64xf16, #s>, !warp.shared<2xi64, #b>
              %to = warp.stage %tiles[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s> -> !warp.shared<8x64xf16, #s>
              warp.box_copy %map[%c0, %c0] to %to on %full : !warp.shared<8x64xf16, #s>, !warp.shared<2xi64, #b>
            }
          }
          %place, %freed, %turn = warp.ring_start %ring {before = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b>
          %r:2 = scf.if %any -> (i32, i32) {
            %parity = arith.shrui %turn, %c31 : i32
            %full = warp.stage %ring[%place] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
            warp.mbarrier_wait %full, %parity : !warp.shared<2xi64, #b>
            %other = arith.xori %place, %c2048 : i32
            warp.produce {
              scf.if %first {
                %next = warp.stage %ring[%other] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
                warp.mbarrier_expect %next {bytes = 1024 : i64} : !warp.shared<2xi64, #b>
              }
            }
            %second = arith.addi %turn, %c30 : i32
            %l:3 = scf.for %i = %c1 to %n step %c1 iter_args(%at = %other, %now = %second, %before = %parity) -> (i32, i32, i32) : i32 {
              warp.wgmma_wait {pending = 0 : i32}
              %read = arith.xori %at, %c2048 : i32
              %done = warp.stage %ring[%read] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
              warp.mbarrier_arrive %done {index = 1 : i64, together} : !warp.shared<2xi64, #b>
              %even = arith.shrui %now, %c31 : i32
              %here = warp.stage %ring[%at] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
              warp.mbarrier_wait %here, %even : !warp.shared<2xi64, #b>
              warp.produce {
                scf.if %first {
                  warp.mbarrier_wait %done, %before {index = 1 : i64} : !warp.shared<2xi64, #b>
                  warp.mbarrier_expect %done {bytes = 1024 : i64} : !warp.shared<2xi64, #b>
                }
              }
              %then = arith.addi %now, %c30 : i32
              scf.yield %read, %then, %even : i32, i32, i32
            }
            warp.wgmma_wait {pending = 0 : i32}
            %even = arith.shrui %l#1, %c31 : i32
            %last = warp.stage %ring[%l#0] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
            warp.mbarrier_wait %last, %even : !warp.shared<2xi64, #b>
            warp.wgmma_wait {pending = 0 : i32}
            %behind = arith.xori %l#0, %c2048 : i32
            %then = arith.addi %l#1, %c30 : i32
            scf.yield %behind, %then : i32, i32
          } else {
            scf.yield %place, %turn : i32, i32
          }
          warp.barrier
          warp.mbarrier_inval %ring next %r#0, %r#1 : !warp.shared<stages = 2, 2xi64, #b>
          warp.dealloc %ring : !warp.shared<stages = 2, 2xi64, #b>
          warp.dealloc %tiles : !warp.shared<stages = 2, 8x64xf16, #s>
        }
        warp.dealloc %beside : !warp.shared<8x64xf16, #s>
        %o = warp.alloc : !warp.shared<8x64xf16, #s>
        warp.store_shared %v, %o : tensor<8x64xf16, #t> -> !warp.shared<8x64xf16, #s>
        warp.barrier
        scf.if %first {
          warp.box_store %o to %map[%c0, %x] : !warp.shared<8x64xf16, #s>
          warp.box_commit
        }
        %stores = warp.is_first_thread
        scf.if %stores {
          warp.box_wait %o : !warp.shared<8x64xf16, #s>
        }
        warp.dealloc %o : !warp.shared<8x64xf16, #s>
        tile.store %q, %count : !tile.ptr<i32>
        return
      }
    }
    ```
    becomes
    ```mlir
    %gx, %gy, %gz = warp.programs
    ...
    warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : <stages = 2, 2xi64, ...>
    warp.barrier {withProducer}
    ...
    ... = scf.for %round = ... iter_args(%at = ..., %way = ...) -> (i32, i32) : i32 {
      ...
      %last = warp.stage %ring[...] {step = 2048 : i64} : ...
      warp.mbarrier_wait %last, ... : <2xi64, ...>
      warp.wgmma_wait {pending = 0 : i32}
      ...
      warp.mbarrier_arrive %last {index = 1 : i64, together} : <2xi64, ...>
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::weft::tile::TileDialect", "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def WarpKeepRings : Pass<"warp-keep-rings", "::mlir::func::FuncOp"> {
  let summary = "let a producer's ring outlive an iteration of the loop around its own";
  let description = [{
    Where a loop whose copies a producer makes stands in another one, as in persistent kernels, its ring begins before the outer loop and ends behind it. What the inner loop carries of the ring, its place and turns, the outer one carries on; the
    first copies of an iteration go where the ring is by then, and wait until that has been read. So the producer copies for the next iteration while the other warps end this one.

    Rejects: nothing. It leaves alone rings whose places depend on more than what the inner loop carries from constants, and those for which shared memory has no room beside the outer loop's other tiles; a remark says why.

    Needs: `warp.produce` around copies (`warp-specialise`).

    ```mlir
    #b = #warp.layout<[2], offset = [[1]]>
    #s = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
    module attributes {warp.target = "sm_90a"} {
      func.func @f(%n: i32, %map: !warp.tensor_map) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c2048 = arith.constant 2048 : i32
        scf.for %t = %c0 to %n step %c1 : i32 {
          %tiles = warp.alloc : !warp.shared<stages = 2, 8x64xf16, #s>
          %ring = warp.alloc : !warp.shared<stages = 2, 2xi64, #b>
          warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
          warp.barrier {withProducer}
          warp.produce {
            %full = warp.stage %ring[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
            warp.mbarrier_expect %full {bytes = 1024 : i64} : !warp.shared<2xi64, #b>
            %to = warp.stage %tiles[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s> -> !warp.shared<8x64xf16, #s>
            warp.box_copy %map[%c0, %t] to %to on %full : !warp.shared<8x64xf16, #s>, !warp.shared<2xi64, #b>
          }
          %at:3 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0, %turn = %c0, %before = %c1) -> (i32, i32, i32) : i32 {
            %full = warp.stage %ring[%stage] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
            warp.mbarrier_wait %full, %turn : !warp.shared<2xi64, #b>
            %freed = arith.xori %stage, %c2048 : i32
            warp.produce {
              %empty = warp.stage %ring[%freed] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
              warp.mbarrier_wait %empty, %before {index = 1 : i64} : !warp.shared<2xi64, #b>
            }
            warp.mbarrier_arrive %full {index = 1 : i64} : !warp.shared<2xi64, #b>
            %last = arith.cmpi eq, %stage, %c2048 : i32
            %flips = arith.extui %last : i1 to i32
            %next = arith.xori %turn, %flips : i32
            scf.yield %freed, %next, %turn : i32, i32, i32
          }
          warp.barrier
          warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
          warp.dealloc %ring : !warp.shared<stages = 2, 2xi64, #b>
          warp.dealloc %tiles : !warp.shared<stages = 2, 8x64xf16, #s>
        }
        return
      }
    }
    ```
    becomes
    ```mlir
    warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : <stages = 2, 2xi64, ...>
    warp.barrier {withProducer}
    ... = scf.for %t = %c0 to %n step %c1 iter_args(%turn = ..., %stage = ..., %before = ...) -> (i32, i32, i32) : i32 {
      ...
      warp.produce {
        %full = warp.stage %ring[%stage] {step = 2048 : i64} : ...
        warp.mbarrier_wait %full, ... {index = 1 : i64} : ...
        warp.mbarrier_expect %full {bytes = 1024 : i64} : ...
        ...
      }
      ... = scf.for %i = %c0 to %n step %c1 iter_args(...) -> (i32, i32, i32) : i32 {
        ...
      }
      scf.yield ...
    }
    warp.barrier
    warp.mbarrier_inval %ring : <stages = 2, 2xi64, ...>
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def WarpMulticast : Pass<"warp-multicast", "::mlir::func::FuncOp"> {
  let summary = "let programs that are neighbours share what their producers copy";
  let description = [{
    Where a kernel's schedule names a cluster, programs that are neighbours along the grid's first axis run as one. A copy of `warp.produce` whose coordinates are the same in all of them
    is made by one of the blocks for all, in turn: the others get its bytes from it, and memory is read once. Producers wait for the warps of all blocks, and tell the others' warps; no block ends before the others.

    Rejects: nothing. It leaves alone copies whose coordinates depend on the program, which each block makes for itself. Where all do, how often copies are made depends on the program, no warp of its own makes them, or
    the target has no clusters of so many blocks, the schedule's cluster becomes 1, and a remark says why.

    Needs: `warp.produce` around copies (`warp-specialise`), and all barriers; `warp-split-roles` comes behind.

    ```mlir
    #b = #warp.layout<[2], offset = [[1]]>
    #s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
    module attributes {warp.target = "sm_90a"} {
      func.func @f(%n: i32, %map: !warp.tensor_map, %ring: !warp.shared<stages = 2, 2xi64, #b>, %full: !warp.shared<2xi64, #b>, %k: !warp.shared<64x64xf16, #s>, %v: !warp.shared<64x64xf16, #s>)
          attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, cluster = 2>} {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
        warp.barrier {withProducer}
        scf.for %i = %c0 to %n step %c1 : i32 {
          warp.produce {
            warp.mbarrier_wait %full, %c0 {index = 1 : i64} : !warp.shared<2xi64, #b>
            warp.mbarrier_expect %full {bytes = 16384 : i64, ofCluster} : !warp.shared<2xi64, #b>
            warp.box_copy %map[%c0, %i] to %k on %full : !warp.shared<64x64xf16, #s>, !warp.shared<2xi64, #b>
            warp.box_copy %map[%c1, %i] to %v on %full : !warp.shared<64x64xf16, #s>, !warp.shared<2xi64, #b>
          }
          warp.mbarrier_arrive %full {index = 1 : i64} : !warp.shared<2xi64, #b>
        }
        warp.barrier
        warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
        return
      }
    }
    ```
    becomes
    ```mlir
    warp.mbarrier_init %ring {arrivals = array<i64: 2, 16>} : <stages = 2, 2xi64, ...>
    warp.barrier {ofCluster, withProducer}
    scf.for %i = %c0 to %n step %c1 : i32 {
      warp.produce {
        warp.mbarrier_wait %full, %c0 {index = 1 : i64, ofCluster} : <2xi64, ...>
        warp.mbarrier_expect %full {bytes = 16384 : i64, ofCluster} : <2xi64, ...>
        warp.box_copy %map[%c0, %i] to %k on %full {by = 0 : i64} : <64x64xf16, ...>
        warp.box_copy %map[%c1, %i] to %v on %full {by = 1 : i64} : <64x64xf16, ...>
      }
      warp.mbarrier_arrive %full {index = 1 : i64, ofCluster} : <2xi64, ...>
    }
    warp.barrier {ofCluster, withProducer}
    warp.mbarrier_inval %ring : <stages = 2, 2xi64, ...>
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::weft::tile::TileDialect"];
}

def WarpSplitRoles : Pass<"warp-split-roles", "::mlir::func::FuncOp"> {
  let summary = "make the producer's program beside that of the other warps";
  let description = [{
    What stands in `warp.produce` goes into one `warp.producer` at the kernel's begin, with the loops and branches around
    it and what they are computed from; it stays nowhere else. `warp.barrier {withProducer}` stands in both programs.

    Needs: places in shared memory (`warp-allocate-shared`) and all barriers: it runs last.

    Rejects: copies that need what one warp alone cannot compute, and targets whose warpgroups trade no registers.

    ```mlir
    module attributes {warp.target = "sm_90a"} {
      func.func @f(%n: i32, %full: !warp.shared<1xi64, #warp.layout<[1], offset = []>>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        scf.for %i = %c0 to %n step %c1 : i32 {
          warp.produce {
            warp.mbarrier_expect %full {bytes = 32768 : i64} : !warp.shared<1xi64, #warp.layout<[1], offset = []>>
          }
          warp.mbarrier_wait %full, %c0 : !warp.shared<1xi64, #warp.layout<[1], offset = []>>
        }
        return
      }
    }
    ```
    becomes
    ```mlir
    warp.producer warps = 4 registers = 24 others = 240 {
      %first = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      scf.for %j = %first to %n step %one : i32 {
        warp.mbarrier_expect %full {bytes = 32768 : i64} : <1xi64, ...>
      }
    }
    ...
    scf.for %i = %c0 to %n step %c1 : i32 {
      warp.mbarrier_wait %full, %c0 : <1xi64, ...>
    }
    ```
  }];
  let dependentDialects = ["::weft::warp::WarpDialect", "::mlir::scf::SCFDialect"];
}

#endif // WEFT_DIALECTS_WARP_TRANSFORMS_PASSES_TD
