// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The pass that assigns layouts, and the one before it.
#ifndef WEFT_COMPILER_CONVERSION_TILETOWARP_PASSES_TD
#define WEFT_COMPILER_CONVERSION_TILETOWARP_PASSES_TD

include "mlir/Pass/PassBase.td"

def TileToWarp : Pass<"tile-to-warp", "::mlir::ModuleOp"> {
  let summary = "give every tensor of a kernel a layout, and every product its instruction";
  let description = [{
    Matrix products, loads and stores fix layouts; these spread forward through the values computed from them to a fixed
    point; then each kernel is rewritten by demand. A value that costs nothing (constants, ranges, masks, addresses) is
    made again in the layout that its user wants, any other is converted once by `warp.convert_layout`. A `tile.dot`
    that the target has a matrix instruction for becomes `warp.mma`.

    8-bit floats are operands of instructions of warpgroups where both lie along K; their sum is then added to the accumulator
    by `arith.addf`, unless the `tile.dot` carries `tile.imprecise_sums`. Others become f16, and a remark says why.
    Operands of 16 bits that are cut out of words along K, as 8 or 4 bits, are taken four, eight or sixteen neighbours a
    lane, of both operands (`byWordsAlongK`), and travel as they were loaded; where only one is, if no other warp computes
    the same, for which warps may lie along the other axis.

    After the pass, loads, stores and atomics on tensors carry `warp.contiguity = c : i32`: every aligned group of c
    registers of the op's layout holds neighbours in memory, the first at an address that is a multiple of the group's
    bytes, and all under the same mask.

    Where a thread makes several accesses, `warp.runs` says of their pointers, for each axis, how many neighbours count up
    by one element, whatever masks and alignment are: such addresses become one and constants. Promises on ops
    (`tile.contiguity`) do not count for that.

    Needs: a module with `warp.target`, or the option `target`. A kernel's `tile.schedule` says how many warps it runs
    on; without one, 4.

    Rejects: a target that is not known; more warps than the target has; a kernel of several blocks, or with control
    flow other than `scf.for`, `scf.while` and `scf.if`; an op on tensors of a dialect other than tile, arith and math;
    a product whose inner size no instruction of the target takes.

    ```mlir
    module attributes {warp.target = "sm_80"} {
      func.func @negate(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32})
          attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
        %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
        %b = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
        %a = tile.addptr %b, %r : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
        %x = tile.load %a : tensor<128x!tile.ptr<f32>>
        %y = arith.negf %x : tensor<128xf32>
        tile.store %a, %y : tensor<128x!tile.ptr<f32>>
        return
      }
    }
    ```
    becomes, each lane holding four neighbours in its registers,
    ```mlir
    #l = #warp.layout<[128], register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>
    module attributes {warp.target = "sm_80"} {
      func.func @negate(...) ... {
        %r = tile.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #l>
        %b = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #l>
        %a = tile.addptr %b, %r : tensor<128x!tile.ptr<f32>, #l>, tensor<128xi32, #l>
        %x = tile.load %a {warp.contiguity = 4 : i32} : tensor<128x!tile.ptr<f32>, #l>
        %y = arith.negf %x : tensor<128xf32, #l>
        tile.store %a, %y {warp.contiguity = 4 : i32} : tensor<128x!tile.ptr<f32>, #l>
        return
      }
    }
    ```
  }];
  let options = [
    Option<"target", "target", "std::string", /*default=*/"", "mark the module with this target first">,
  ];
  let dependentDialects = ["::weft::warp::WarpDialect"];
}

def TileMarkWraps : Pass<"tile-mark-wraps", "::mlir::func::FuncOp"> {
  let summary = "find rows that wrap around a matrix's end and are not read";
  let description = [{
    Indices that are taken modulo a size, or are the first or the last one from a size on, so that a tile's rows behind a
    matrix's end are others of it, are marked (`tile.wraps_unread`) where all that is computed from such a row is not stored. Bulk copies of boxes, which the target
    fills behind an end, may then bring what they like for it; threads that copy wrap as the program says.

    A row's numbers stay its own through operations on elements, products whose rows or columns they are, and reductions
    over other axes; stores have to have a mask that compares the same indices with the same size.

    Needs: `canonicalize` and `cse`, as the indices of loads and those of masks are compared.

    Rejects: nothing. Left alone are targets without copies of boxes, remainders of what may be negative, and numbers that reach
    other rows, the next iteration of a loop that has other indices or another size, atomics, scans, volatile loads,
    addresses of loads, or masks, that are made of what was loaded, or what a store's mask is made of.

    ```mlir
    module attributes {warp.target = "sm_90a"} {
      func.func @copy(%p: !tile.ptr<f16>, %q: !tile.ptr<f16>, %n: i32) attributes {tile.kernel} {
        %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
        %s = tile.splat %n : i32 -> tensor<64xi32>
        %w = arith.remsi %r, %s : tensor<64xi32>
        %b = tile.splat %p : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
        %a = tile.addptr %b, %w : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
        %x = tile.load %a : tensor<64x!tile.ptr<f16>>
        %m = arith.cmpi slt, %r, %s : tensor<64xi32>
        %c = tile.splat %q : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
        %d = tile.addptr %c, %r : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
        tile.store %d, %x, %m : tensor<64x!tile.ptr<f16>>
        return
      }
    }
    ```
    becomes
    ```mlir
    %w = arith.remsi %r, %s {tile.wraps_unread} : tensor<64xi32>
    ```
  }];
}

def TileSplitInterior : Pass<"tile-split-interior", "::mlir::func::FuncOp"> {
  let summary = "give programs inside of all bounds a body without masks";
  let description = [{
    A bound that is no multiple of a vector keeps accesses narrow: elements are loaded and stored one by one, in every
    program, though only one of them meets the bound. A kernel with such accesses becomes a branch: where all that their
    masks compare holds for a whole tile, its ops run without these masks, else as they are.

    What comes before the first access to a tensor stays before the branch. A comparison is known where sums of ranges and
    of scalars from there meet; where a sum may wrap, its first element is compared with its last.

    Needs: facts on arguments (`tile.divisibility`), without which no access is wide.

    Rejects: nothing. Left alone are kernels with loops or branches, of more than 400 ops, that the compiler writes
    (`tile.orders_accesses`), with accesses of which nothing is known, as of indices that are loaded, or whose accesses
    would be no wider without their masks.

    ```mlir
    func.func @negate(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32) attributes {tile.kernel} {
      %r = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
      %b = tile.splat %p : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
      %a = tile.addptr %b, %r : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
      %s = tile.splat %n : i32 -> tensor<512xi32>
      %m = arith.cmpi slt, %r, %s : tensor<512xi32>
      %x = tile.load %a, %m : tensor<512x!tile.ptr<f32>>
      %y = arith.negf %x : tensor<512xf32>
      tile.store %a, %y, %m : tensor<512x!tile.ptr<f32>>
      return
    }
    ```
    becomes
    ```mlir
    %m = arith.cmpi slt, %r, %s ...
    %inside = arith.cmpi sgt, %n, %c511_i32 : i32
    scf.if %inside {
      %x = tile.load %a : ...
      %y = arith.negf %x ...
      tile.store %a, %y : ...
    } else {
      %x = tile.load %a, %m ...
      %y = arith.negf %x ...
      tile.store %a, %y, %m ...
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

#endif // WEFT_COMPILER_CONVERSION_TILETOWARP_PASSES_TD
