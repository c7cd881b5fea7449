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

#endif // WEFT_DIALECTS_TILE_TRANSFORMS_PASSES_TD
