// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The pass that differentiates programs.
#ifndef WEFT_COMPILER_DIFFERENTIATE_PASSES_TD
#define WEFT_COMPILER_DIFFERENTIATE_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnDifferentiate : Pass<"attn-differentiate", "::mlir::ModuleOp"> {
  let summary = "a forward and a backward function for every program";
  let description = [{
    Reverse mode over programs on whole tensors. A program `@f` gets two functions beside it: `@f.forward`, which gives
    what `@f` gives and what the backward needs saved, and `@f.backward`, which takes the arguments, the saved values
    and a gradient for each result of floats, and gives a gradient for each argument of floats that has one and is not
    `attn.constant`. Saved are results of merges, outputs and log-sum-exps of attention, its operands where they might
    have other bits a second time, and numbers that sum up a tensor; whatever else the backward needs is computed again. docs/Differentiation.md has the signatures in full. Ops
    give their adjoints through `DifferentiableOpInterface`.

    A program that has its two functions already, those functions themselves, and a program without floats among its
    arguments or its results are left alone.

    Needs: programs without mixers (`attn-apply-mixers`). Attentions that are to have schedules are numbered before
    (`attn-number-attends`), so that a gradient takes over its attention's number.

    Rejects: a program of several blocks; an op that makes a mixer; an op on the way from an argument to a result that
    has no derivative, which every op that only a gradient makes lacks; in the region of a map, an op without a scalar
    derivative, and `attn.element` of a tensor whose gradient is asked for anywhere but at the map's own position.

    ```mlir
    !t = !attn.tensor<[N], f32>
    func.func @f(%x: !t {attn.name = "x"}) -> (!t {attn.name = "y"}) attributes {attn.program} {
      %y = attn.map ins(%x : !t) -> !t {
      ^bb0(%a: f32):
        %s = arith.mulf %a, %a : f32
        attn.yield %s : f32
      }
      return %y : !t
    }
    ```
    becomes, beside `@f` itself,
    ```mlir
    !t = !attn.tensor<[N], f32>
    func.func @f.forward(%x: !t {attn.name = "x"}) -> (!t {attn.name = "y"}) attributes {attn.program} {
      ... // as @f
    }
    func.func @f.backward(%x: !t {attn.name = "x"}, %dy: !t {attn.name = "d_y"}) -> (!t {attn.name = "d_x"})
        attributes {attn.gradients_of = array<i64: 0>, attn.program} {
      %dx = attn.map ins(%x, %dy : !t, !t) -> !t {
      ^bb0(%a: f32, %g: f32):
        %left = arith.mulf %g, %a : f32
        %right = arith.mulf %g, %a : f32
        %s = arith.addf %left, %right : f32
        attn.yield %s : f32
      }
      return %dx : !t
    }
    ```
  }];
  let options = [
    Option<"fast", "fast", "bool", /*default=*/"false", "let attention gradients be added in any order">,
  ];
  let dependentDialects = ["::weft::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def AttnLinearise : Pass<"attn-linearise", "::mlir::ModuleOp"> {
  let summary = "for every program the function of its results and their tangents";
  let description = [{
    Forward mode over programs on whole tensors. A program `@f` gets `@f.tangent` beside it, which takes the arguments of `@f` and then a tangent for each argument of floats that is not
    `attn.constant`, and gives the results of `@f` and then a tangent for each of floats: the derivative of the results at the arguments, in the direction of the arguments' tangents. A tangent has
    the type of its value and is named `t_` and that value's name. Ops give their tangents through `LinearisableOpInterface`; one that reads no value with a tangent stays as it is.

    `arguments` names by their numbers the arguments that have tangents; those of others are zero, and are not computed with. `only` is the one program to be linearised: all others are then
    taken out of the module, and so is that program itself.

    A program that is linearised already, `@f.tangent` itself, and a program without floats among its arguments or its results are left alone.

    Needs: programs without mixers (`attn-apply-mixers`). The functions that `attn-differentiate` makes are programs, too.

    Rejects: a program of several blocks; an op that makes a mixer; an op that reads a value with a tangent and has no tangent rule, as `attn.attend_tangent` has none; in a region, an op
    without a scalar derivative; an `only` that names no such program.

    ```mlir
    !t = !attn.tensor<[N], f32>
    func.func @f(%x: !t {attn.name = "x"}) -> (!t {attn.name = "y"}) attributes {attn.program} {
      %y = attn.map ins(%x : !t) -> !t {
      ^bb0(%a: f32):
        %s = arith.mulf %a, %a : f32
        attn.yield %s : f32
      }
      return %y : !t
    }
    ```
    becomes, beside `@f` itself,
    ```mlir
    !t = !attn.tensor<[N], f32>
    func.func @f.tangent(%x: !t {attn.name = "x"}, %tx: !t {attn.name = "t_x"}) -> (!t {attn.name = "y"}, !t {attn.name = "t_y"}) attributes {attn.program} {
      %ty = attn.map ins(%x, %tx : !t, !t) -> !t {
      ^bb0(%a: f32, %d: f32):
        %left = arith.mulf %d, %a : f32
        %right = arith.mulf %d, %a : f32
        %s = arith.addf %left, %right : f32
        attn.yield %s : f32
      }
      %y = attn.map ins(%x : !t) -> !t {
      ^bb0(%a: f32):
        %square = arith.mulf %a, %a : f32
        attn.yield %square : f32
      }
      return %y, %ty : !t, !t
    }
    ```
  }];
  let options = [
    Option<"only", "only", "std::string", /*default=*/"", "the one program to be linearised; none other is kept">,
    ListOption<"arguments", "arguments", "unsigned", "the numbers of the arguments that have tangents; all if none is named">,
  ];
  let dependentDialects = ["::weft::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif // WEFT_COMPILER_DIFFERENTIATE_PASSES_TD
