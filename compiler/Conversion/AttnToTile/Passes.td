// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The passes that make launches of tile kernels from a program on whole tensors, in the order in which they run.
#ifndef WEFT_COMPILER_CONVERSION_ATTNTOTILE_PASSES_TD
#define WEFT_COMPILER_CONVERSION_ATTNTOTILE_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnNumberAttends : Pass<"attn-number-attends", "::mlir::ModuleOp"> {
  let summary = "number the attentions of each program";
  let description = [{
    Each `attn.attend` of a program gets its place among them as `attn.number`, which its gradient takes over. A
    schedule names an attention by that number, however the backward was simplified.

    Needs: programs without mixers (`attn-apply-mixers`), and before they are differentiated.

    Rejects: nothing.

    ```mlir
    !t = !attn.tensor<[B, H, N, 64], f16>
    !n = !attn.tensor<[B, H, N], f32>
    func.func @f(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
      %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.causal], scale = 0.125 : f32}
        : !t -> !t, !n
      return %o : !t
    }
    ```
    becomes
    ```mlir
    %o, %lse = attn.attend ... {attn.number = 0 : i64, patterns = [#attn.causal], ...}
    ```
  }];
}

def AttnChooseSchedules : Pass<"attn-choose-schedules", "::mlir::ModuleOp"> {
  let summary = "every attention gets its schedule, chosen or by default";
  let description = [{
    Each attention, and each of the kernels of an attention's gradient, gets a `#attn.schedule`: the one that `choices`
    has for it, else the one that it has, else the default. A choice is NUMBER.KERNEL=ROWSxCOLUMNSxWARPSxSTAGES, and
    xCHANNELS where values are wide, or 0, xPROGRAMS of a cluster, and x1 for a persistent kernel; the kernels are `forward`, `backward.query`, `backward.keys` and,
    where dv is made apart from dk, `backward.values`.

    A choice for a kernel that is no attention's is PART.KIND.NUMBER=ROWSxWARPS, such as forward.rows.0=32x4: of the
    kernels `rows` that the program itself launches, the first. It is noted on the module, and `attn-to-tile` takes it.

    Needs: numbered attentions (`attn-number-attends`). One without a number, or whose head sizes are no integers, is
    left alone.

    Rejects: a choice that is not spelled so; one for an attention that no program has; one for a kernel that the
    attention does not have; numbers that `#attn.schedule` does not take; channels where values are not wide.

    ```mlir
    // weft-opt --attn-choose-schedules="choices=0.forward=64x32x4x2"
    !t = !attn.tensor<[B, H, N, 64], f16>
    !n = !attn.tensor<[B, H, N], f32>
    func.func @f(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
      %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t)
        {attn.number = 0 : i64, patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !n
      return %o : !t
    }
    ```
    becomes
    ```mlir
    %o, %lse = attn.attend ... {attn.number = 0 : i64, patterns = [#attn.causal], ...,
      schedule = #attn.schedule<rows = 64, columns = 32, warps = 4, stages = 2>}
    ```
  }];
  let options = [
    ListOption<"choices", "choices", "std::string", "such as 0.forward=128x64x4x3 or forward.rows.0=32x4">,
  ];
}

def AttnToTile : Pass<"attn-to-tile", "::mlir::ModuleOp"> {
  let summary = "programs on whole tensors become launches of tile kernels";
  let description = [{
    An op that walks the sequence (attention, its gradient, sums over tokens, causal means) becomes an `attn.launch` of
    a kernel of its own. Kernels pull: a tile of an operand is loaded where the operand is stored, else computed in the
    kernel from tiles of what it is made of; what is computed from the results row by row is computed before they are
    stored. What is left gets kernels of its own. Nothing but launches stays in the program.

    Needs: programs of one block, without mixers (`attn-apply-mixers`). A program's gradient is made before
    (`attn-differentiate`).

    Rejects: a program of several blocks; an attention, a long convolution or a causal mean whose number of channels is
    not an integer; a value that no kernel stores and that cannot be computed tile by tile.

    ```mlir
    !t = !attn.tensor<[N], f32>
    func.func @f(%x: !t) -> !t attributes {attn.program} {
      %y = attn.map ins(%x : !t) -> !t {
      ^bb0(%a: f32):
        %s = arith.mulf %a, %a : f32
        attn.yield %s : f32
      }
      return %y : !t
    }
    ```
    becomes
    ```mlir
    !t = !attn.tensor<[N], f32>
    func.func @f(%x: !t) -> !t attributes {attn.program} {
      %y = attn.launch @map(%x) grid ["cdiv((N), 512)", "1", "1"] {sizes = ["N"]} : (!t) -> !t
      return %y : !t
    }
    func.func @map(%px: !tile.ptr<f32>, %py: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32)
        attributes {tile.kernel, ...} {
      ...
      %x = tile.load %from, %inside, %zero : tensor<512x!tile.ptr<f32>>
      %s = arith.mulf %x, %x : tensor<512xf32>
      ...
      tile.store %to, %s, %inside : tensor<512x!tile.ptr<f32>>
      return
    }
    ```
  }];
  let dependentDialects = [
    "::weft::tile::TileDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"
  ];
}

def AttnBatchLaunches : Pass<"attn-batch-launches", "::mlir::ModuleOp"> {
  let summary = "launches of kernels that do the same become one";
  let description = [{
    Launches that do not wait for one another, of kernels that do the same, become one launch of that kernel, whose
    programs choose their operands and results by their number. Queries and keys that are treated alike, gradients of
    weights of one shape, and sums of their parts come so. `attn-merge-launches` is for kernels that differ.

    Needs: programs of launches (`attn-to-tile`).

    Rejects: nothing. Launches with `reals`, of kernels whose arguments promise different things, or whose joint grid a
    library cannot spell, stay apart.

    ```mlir
    !t = !attn.tensor<[N], f32>
    !u = !attn.tensor<[M], f32>
    func.func @program(%x: !t, %y: !u) -> (!t, !u) attributes {attn.program} {
      %a = attn.launch @f(%x) grid ["N", "1", "1"] : (!t) -> !t
      %b = attn.launch @f_2(%y) grid ["M", "1", "1"] : (!u) -> !u
      return %a, %b : !t, !u
    }
    func.func @f(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>)
        attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
      %v = tile.load %x : !tile.ptr<f32>
      tile.store %y, %v : !tile.ptr<f32>
      return
    }
    func.func @f_2(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>)
        attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
      %v = tile.load %x : !tile.ptr<f32>
      tile.store %y, %v : !tile.ptr<f32>
      return
    }
    ```
    becomes
    ```mlir
    !t = !attn.tensor<[N], f32>
    !u = !attn.tensor<[M], f32>
    func.func @program(%x: !t, %y: !u) -> (!t, !u) attributes {attn.program} {
      %both:2 = attn.launch @f_batch(%x, %y) grid ["(N) + (M)", "1", "1"] {sizes = ["N", "M"]} : (!t, !u) -> (!t, !u)
      return %both#0, %both#1 : !t, !u
    }
    func.func @f_batch(%x0: !tile.ptr<f32>, %x1: !tile.ptr<f32>, %y0: !tile.ptr<f32>, %y1: !tile.ptr<f32>, %n: i32, ...
      %program = tile.program_id x : i32
      ...
      %second = arith.cmpi sge, %program, %n : i32
      ...
      %x = arith.select %second, %x1, %x0 : !tile.ptr<f32>
      %y = arith.select %second, %y1, %y0 : !tile.ptr<f32>
      %v = tile.load %x : !tile.ptr<f32>
      tile.store %y, %v : !tile.ptr<f32>
      return
    }
    ```
  }];
  let dependentDialects = ["::weft::tile::TileDialect", "::mlir::arith::ArithDialect"];
}

def AttnMergeLaunches : Pass<"attn-merge-launches", "::mlir::ModuleOp"> {
  let summary = "launches that do not wait for one another become one";
  let description = [{
    Two launches that do not wait for one another become one launch of a kernel that branches: its first programs run
    the one kernel, the others the other. Kernels merge that run on as many warps and hold no matrix products: a program
    is given the registers and the shared memory of the larger, and those with products need them. Kernels with
    `attn.shares_launch` merge with one another whatever they hold. One program that gives numbers alone, such as the
    last sum of a loss, goes along with any kernel, on as many warps as that has.

    Needs: programs of launches (`attn-to-tile`); `attn-batch-launches` before, since a batch's code is as long as one
    kernel's.

    Rejects: nothing. Launches with `reals`, or whose joint grid a library cannot spell, stay apart.

    ```mlir
    !t = !attn.tensor<[N], f32>
    func.func @program(%x: !t, %y: !t) -> (!t, !t) attributes {attn.program} {
      %a = attn.launch @f(%x) grid ["N", "1", "1"] : (!t) -> !t
      %b = attn.launch @g(%y) grid ["1", "1", "1"] : (!t) -> !t
      return %a, %b : !t, !t
    }
    func.func @f(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>)
        attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
      %v = tile.load %x : !tile.ptr<f32>
      tile.store %y, %v : !tile.ptr<f32>
      return
    }
    func.func @g(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>)
        attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
      %v = tile.load %x : !tile.ptr<f32>
      %w = arith.negf %v : f32
      tile.store %y, %w : !tile.ptr<f32>
      return
    }
    ```
    becomes
    ```mlir
    !t = !attn.tensor<[N], f32>
    func.func @program(%x: !t, %y: !t) -> (!t, !t) attributes {attn.program} {
      %both:2 = attn.launch @f_g(%x, %y) grid ["(N) + 1", "1", "1"] {sizes = ["N", "1"]} : (!t, !t) -> (!t, !t)
      return %both#0, %both#1 : !t, !t
    }
    func.func @f_g(...) attributes {tile.kernel, tile.orders_accesses, ...} {
      %program = tile.program_id x : i32
      ...
      %first = arith.cmpi slt, %program, %count : i32
      scf.if %first {
        ...
        %v = tile.load %x0 : !tile.ptr<f32>
        tile.store %y0, %v : !tile.ptr<f32>
      } else {
        ...
        %v1 = tile.load %x1 : !tile.ptr<f32>
        %w = arith.negf %v1 : f32
        tile.store %y1, %w : !tile.ptr<f32>
      }
      return
    }
    ```
  }];
  let dependentDialects = ["::weft::tile::TileDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def AttnShareKernels : Pass<"attn-share-kernels", "::mlir::ModuleOp"> {
  let summary = "kernels that do the same become one";
  let description = [{
    Of kernels that are alike but for their names, the first stays and every launch is of it. A program and its forward,
    which saves more, begin alike; each kernel that they share is compiled once.

    Needs: programs of launches (`attn-to-tile`).

    Rejects: nothing.

    ```mlir
    !t = !attn.tensor<[N], f32>
    func.func @program(%x: !t) -> !t attributes {attn.program} {
      %a = attn.launch @f(%x) grid ["N", "1", "1"] : (!t) -> !t
      return %a : !t
    }
    func.func @program.forward(%x: !t) -> !t attributes {attn.program} {
      %a = attn.launch @f_2(%x) grid ["N", "1", "1"] : (!t) -> !t
      return %a : !t
    }
    func.func @f(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel} {
      %v = tile.load %x : !tile.ptr<f32>
      tile.store %y, %v : !tile.ptr<f32>
      return
    }
    func.func @f_2(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel} {
      %v = tile.load %x : !tile.ptr<f32>
      tile.store %y, %v : !tile.ptr<f32>
      return
    }
    ```
    becomes
    ```mlir
    func.func @program(...
      %a = attn.launch @f(%x) ...
    func.func @program.forward(...
      %b = attn.launch @f(%z) ...
    func.func @f(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) attributes {tile.kernel} {
      %v = tile.load %p : !tile.ptr<f32>
      tile.store %q, %v : !tile.ptr<f32>
      return
    }
    ```
  }];
}

#endif // WEFT_COMPILER_CONVERSION_ATTNTOTILE_PASSES_TD
