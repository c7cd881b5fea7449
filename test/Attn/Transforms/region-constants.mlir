// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Constants of a score_mod and of a mask stay in their regions, through folding and into the backward function.
// RUN: weft-opt %s --canonicalize --cse | FileCheck %s
// RUN: weft-opt %s --canonicalize --cse --attn-differentiate | FileCheck %s --check-prefix=BACKWARD

// CHECK-LABEL: func.func @capped
// CHECK-NEXT: attn.attend
// CHECK: ^bb0
// CHECK-NEXT: arith.constant 2.000000e+01
// CHECK: masks
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.constant 16
// BACKWARD-LABEL: func.func @capped.backward
// BACKWARD-NOT: arith.constant
// BACKWARD: attn.attend_backward
// BACKWARD: arith.constant 2.000000e+01
// BACKWARD: masks
// BACKWARD: arith.constant 16
func.func @capped(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, N, 64], f16>, %v: !attn.tensor<[B, H, N, 64], f16>)
    -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
  %out, %lse = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 64], f16>) values(%v : !attn.tensor<[B, H, N, 64], f16>)
      {patterns = [#attn.mask<0>], scale = 0.125 : f32}
      : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
  score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
    %cap = arith.constant 20.0 : f32
    %x = arith.divf %s, %cap : f32
    %t = math.tanh %x : f32
    %cap2 = arith.constant 20.0 : f32
    %y = arith.mulf %cap2, %t : f32
    attn.yield %y : f32
  } masks({
  ^bb0(%b: i32, %h: i32, %n: i32, %m: i32):
    %step = arith.constant 16 : i32
    %at = arith.muli %m, %step : i32
    %in = arith.cmpi sle, %at, %n : i32
    attn.yield %in : i1
  })
  return %out : !attn.tensor<[B, H, N, 64], f16>
}
