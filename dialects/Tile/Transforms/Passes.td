// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Passes on the tile dialect.
#ifndef WEFT_DIALECTS_TILE_TRANSFORMS_PASSES_TD
#define WEFT_DIALECTS_TILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def TileSplitSizes : Pass<"tile-split-sizes", "::mlir::func::FuncOp"> {
  let summary = "split tensors into pieces whose sizes are powers of two";
  let description = [{
    Layouts are linear in the bits of an index, so that each size of a tensor that has one is a power of two. An axis of another size is cut
    into powers of two, the greatest first (80 = 64 + 16), and a tensor into the boxes that its axes' pieces make. Every axis of one size is cut
    alike, so that element-wise ops and accesses to memory go piece by piece. Products add up over the pieces of the inner axis; rows, columns and inner sizes that are
    too small for a matrix instruction are filled up with zeros. Reductions and scans take piece after piece; a reshape puts pieces together again where it cuts an axis
    elsewhere. Promises hold for pieces as far as they follow from that of the whole.

    Needs: nothing. It runs first, and leaves functions alone whose sizes are powers of two.

    Rejects: `tile.shift` and `tile.row_dot`, a scan by a region that is not element-wise, and a reshape that takes elements apart in more than 512 pieces.

    ```mlir
    func.func @f(%x: !tile.ptr<f32>) {
      %p = tile.splat %x : !tile.ptr<f32> -> tensor<80x!tile.ptr<f32>>
      %i = tile.make_range {start = 0 : i32, end = 80 : i32} : tensor<80xi32>
      %a = tile.addptr %p, %i : tensor<80x!tile.ptr<f32>>, tensor<80xi32>
      %v = tile.load %a : tensor<80x!tile.ptr<f32>>
      tile.store %a, %v : tensor<80x!tile.ptr<f32>>
      return
    }
    ```
    becomes
    ```mlir
    %p0 = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %p1 = tile.splat %x : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
    %i0 = tile.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %i1 = tile.make_range {end = 80 : i32, start = 64 : i32} : tensor<16xi32>
    %a0 = tile.addptr %p0, %i0 : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %a1 = tile.addptr %p1, %i1 : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
    %v0 = tile.load %a0 : tensor<64x!tile.ptr<f32>>
    %v1 = tile.load %a1 : tensor<16x!tile.ptr<f32>>
    tile.store %a0, %v0 : tensor<64x!tile.ptr<f32>>
    tile.store %a1, %v1 : tensor<16x!tile.ptr<f32>>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::weft::tile::TileDialect"];
}

def TileNarrowIndices : Pass<"tile-narrow-indices", "::mlir::func::FuncOp"> {
  let summary = "compute what 64-bit indices share as scalars, and what differs in 32 bits";
  let description = [{
    A tensor of 64-bit indices is a sum of what is the same for all elements and of what differs. An address's first part moves
    the pointer that all elements share; its second is computed in 32 bits where ranges of integers say that it fits. A comparison
    takes the first part to its other side, as a scalar that is cut to 32 bits: beyond every element it says the same. Sums and products of addresses
    are taken modulo 2^64, so that they may be taken apart; a bound is moved where nothing wraps.

    Needs: nothing.

    Rejects: nothing. Comparisons of unsigned numbers, and of numbers whose ranges are not known, are left alone, and so are kernels
    whose tiles give each thread one element at most, for which a scalar is no less to compute.

    ```mlir
    func.func @f(%p: !tile.ptr<f32>, %n: i32) -> (tensor<64x!tile.ptr<f32>>, tensor<64xi1>) {
      %c64 = arith.constant 64 : i64
      %pid = tile.program_id x : i32
      %pid64 = arith.extsi %pid : i32 to i64
      %begin = arith.muli %pid64, %c64 : i64
      %begins = tile.splat %begin : i64 -> tensor<64xi64>
      %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
      %r64 = arith.extsi %r : tensor<64xi32> to tensor<64xi64>
      %i = arith.addi %begins, %r64 : tensor<64xi64>
      %all = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
      %a = tile.addptr %all, %i : tensor<64x!tile.ptr<f32>>, tensor<64xi64>
      %n64 = arith.extsi %n : i32 to i64
      %limits = tile.splat %n64 : i64 -> tensor<64xi64>
      %c = arith.cmpi slt, %i, %limits : tensor<64xi64>
      return %a, %c : tensor<64x!tile.ptr<f32>>, tensor<64xi1>
    }
    ```
    becomes
    ```mlir
    %q = tile.addptr %p, %begin : !tile.ptr<f32>, i64
    %all = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
    %a = tile.addptr %all, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %n64 = arith.extsi %n : i32 to i64
    %left = arith.subi %n64, %begin : i64
    %most = arith.minsi %left, %high : i64
    %cut = arith.maxsi %most, ... : i64
    %bound = arith.trunci %cut : i64 to i32
    %bounds = tile.splat %bound : i32 -> tensor<64xi32>
    %c = arith.cmpi slt, %r, %bounds : tensor<64xi32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::weft::tile::TileDialect"];
}

def TileCountLoops : Pass<"tile-count-loops", "::mlir::func::FuncOp"> {
  let summary = "make loops that count up to a bound ones of known iterations";
  let description = [{
    A loop that goes on while a number it carries is less than one from before it, and adds a positive constant to that
    number in every iteration, becomes an `scf.for`.

    Needs: constants outside of loops, as `canonicalize` puts them.

    Rejects: nothing. Loops with other conditions, bounds of their own or steps of unknown sign are left alone.

    ```mlir
    func.func @f(%x: tensor<64xf32>, %n: i32) -> tensor<64xf32> {
      %c0 = arith.constant 0 : i32
      %c64 = arith.constant 64 : i32
      %r:2 = scf.while (%y = %x, %i = %c0) : (tensor<64xf32>, i32) -> (tensor<64xf32>, i32) {
        %less = arith.cmpi slt, %i, %n : i32
        scf.condition(%less) %y, %i : tensor<64xf32>, i32
      } do {
      ^bb0(%y: tensor<64xf32>, %i: i32):
        %z = arith.addf %y, %x : tensor<64xf32>
        %next = arith.addi %i, %c64 : i32
        scf.yield %z, %next : tensor<64xf32>, i32
      }
      return %r#0 : tensor<64xf32>
    }
    ```
    becomes
    ```mlir
    %r = scf.for %i = %c0 to %n step %c64 iter_args(%y = %x) -> (tensor<64xf32>) : i32 {
    %z = arith.addf %y, %x : tensor<64xf32>
    scf.yield %z : tensor<64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def TileJoinCounters : Pass<"tile-join-counters", "::mlir::func::FuncOp"> {
  let summary = "take the loop's variable for what a loop moves by its own step";
  let description = [{
    An integer that a loop carries and moves by the loop's step is the loop's variable and a number, where it begins a known
    number away from the lower bound, or is after a step. Its uses become those of the variable, so that what is computed from
    both is seen to be the same.

    Needs: `cse`, as bounds are compared. What was computed from both is simplified.

    Rejects: nothing.

    ```mlir
    func.func @f(%n: i32, %x: tensor<64xi32>) -> tensor<64xi32> {
      %c132 = arith.constant 132 : i32
      %first = tile.program_id x : i32
      %before = arith.subi %first, %c132 : i32
      %r:2 = scf.for %i = %first to %n step %c132 iter_args(%y = %x, %count = %before) -> (tensor<64xi32>, i32) : i32 {
        %next = arith.addi %count, %c132 : i32
        %s = tile.splat %next : i32 -> tensor<64xi32>
        %z = arith.muli %y, %s : tensor<64xi32>
        scf.yield %z, %next : tensor<64xi32>, i32
      }
      return %r#0 : tensor<64xi32>
    }
    ```
    becomes
    ```mlir
    %s = tile.splat %i : i32 -> tensor<64xi32>
    %z = arith.muli %y, %s : tensor<64xi32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileNarrowExtrema : Pass<"tile-narrow-extrema", "::mlir::func::FuncOp"> {
  let summary = "find the larger or smaller of widened numbers before they are widened";
  let description = [{
    The larger, or the smaller, of two numbers of 16 bits that were widened to more is one of them: it is found in 16 bits, of two elements
    at once, and widened. A number that 16 bits hold takes part. What is rounded back then is as it was.

    Needs: nothing.

    Rejects: nothing. Operands that have other uses are widened anyway, and scalars are one number; both are left alone.

    ```mlir
    func.func @f(%x: tensor<64xf16>, %y: tensor<64xf16>) -> tensor<64xf32> {
      %a = arith.extf %x : tensor<64xf16> to tensor<64xf32>
      %b = arith.extf %y : tensor<64xf16> to tensor<64xf32>
      %m = arith.maxnumf %a, %b : tensor<64xf32>
      return %m : tensor<64xf32>
    }
    ```
    becomes
    ```mlir
    %n = arith.maxnumf %x, %y : tensor<64xf16>
    %m = arith.extf %n : tensor<64xf16> to tensor<64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileInlineLoops : Pass<"tile-inline-loops", "::mlir::func::FuncOp"> {
  let summary = "put a loop's body in the place of a loop that runs at most once";
  let description = [{
    A loop whose bounds lie no more than a step apart, by a number that is known, runs once, or not at all where its upper bound wraps round. Where ranges
    of integers say that it does not, the loop becomes its body; else a branch that holds it. So what the loop would carry is there once, and no load is a
    loop's that need not be.

    Needs: nothing. Bounds that share a value share it as one value behind CSE.

    Rejects: nothing.

    ```mlir
    func.func @f(%x: f32) -> f32 {
      %c16 = arith.constant 16 : i32
      %c32 = arith.constant 32 : i32
      %row = tile.program_id y : i32
      %start = arith.muli %row, %c16 : i32
      %end = arith.addi %start, %c16 : i32
      %r = scf.for %i = %start to %end step %c32 iter_args(%sum = %x) -> (f32) : i32 {
        %f = arith.sitofp %i : i32 to f32
        %next = arith.addf %sum, %f : f32
        scf.yield %next : f32
      }
      return %r : f32
    }
    ```
    becomes
    ```mlir
    %start = arith.muli %row, %c16 : i32
    %end = arith.addi %start, %c16 : i32
    %f = arith.sitofp %start : i32 to f32
    %r = arith.addf %x, %f : f32
    return %r : f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileUnrollLoops : Pass<"tile-unroll-loops", "::mlir::func::FuncOp"> {
  let summary = "put all iterations of a loop that has few and short ones in its place";
  let description = [{
    A loop whose bounds and step are constants, and whose iterations come to some 600 instructions of a thread together, becomes these iterations, one after
    another; loops inside of others come first. What depends on the loop's number alone is a constant then, as are the rows and columns of a stencil, and
    loads of several iterations are in flight together. Loops that hold products, scans, other loops, or reductions that they add up, which
    threads bring together behind the loop, stay, and those of which who wrote the kernel said how they are to run: `tile.warp_specialize`, and `tile.num_stages` where there are loads that would run ahead of their iterations, which are
    those under no condition. Of a loop without products and loops inside that carries `tile.unroll_factor`, that many iterations stand one after another in
    one turn, and a second loop has the rest.

    Needs: nothing.

    Rejects: nothing.

    ```mlir
    func.func @f(%x: f32) -> f32 {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c2 = arith.constant 2 : i32
      %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%sum = %x) -> (f32) : i32 {
        %next = arith.mulf %sum, %sum : f32
        scf.yield %next : f32
      }
      return %r : f32
    }
    ```
    becomes
    ```mlir
    %x2 = arith.mulf %x, %x : f32
    %r = arith.mulf %x2, %x2 : f32
    return %r : f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def TileHoistLoads : Pass<"tile-hoist-loads", "::mlir::func::FuncOp"> {
  let summary = "read before a loop what it would read again in each iteration";
  let description = [{
    A load of a loop's own body whose pointers and mask are the same in all iterations goes before the loop, where the loop does nothing to memory but read it,
    and no read is volatile. Of a loop that may run no time the mask says whether it does. What is more than 128 bytes of a thread together stays, as it would be
    kept in registers through the loop. The compiler's own kernels are written as they are meant to be.

    Needs: nothing; loop invariants before loops, so that pointers are seen to be some.

    Rejects: nothing.

    ```mlir
    func.func @f(%p: !tile.ptr<f32>, %y: f32, %n: i32) -> f32 {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %y) -> (f32) : i32 {
        %x = tile.load %p : !tile.ptr<f32>
        %next = arith.mulf %sum, %x : f32
        scf.yield %next : f32
      }
      return %r : f32
    }
    ```
    becomes
    ```mlir
    %runs = arith.cmpi slt, %c0, %n : i32
    %x = tile.load %p, %runs : !tile.ptr<f32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %y) -> (f32) : i32 {
      %next = arith.mulf %sum, %x : f32
      scf.yield %next : f32
    }
    return %r : f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // WEFT_DIALECTS_TILE_TRANSFORMS_PASSES_TD
