// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// Rows past the end hold f(0). What a sum over tokens adds up is 0 there: selected, where the map's body does not say so.

!x = !attn.tensor<[B, H, N, 64], f32>
!s = !attn.tensor<[B, H, 1, 64], f32>
// CHECK-LABEL: func.func @sum_tokens(
// CHECK: scf.for
// CHECK: math.cos
// CHECK: arith.select {{.*}} : tensor<64x64xi1>, tensor<64x64xf32>
// CHECK: scf.yield
func.func @not_zero_at_zero(%x: !x) -> !s attributes {attn.program} {
  %y = attn.map ins(%x : !x) -> !x {
  ^bb0(%a: f32):
    %c = math.cos %a : f32
    attn.yield %c : f32
  }
  %s = attn.sum %y : !x -> !s
  return %s : !s
}

// -----

// x sigmoid(x) w with a w of each channel: 0 where x is.

!x = !attn.tensor<[B, H, N, 64], f32>
!w = !attn.tensor<[64], f32>
!s = !attn.tensor<[B, H, 1, 64], f32>
// CHECK-LABEL: func.func @sum_tokens(
// CHECK: scf.for
// CHECK: math.exp
// CHECK-NOT: arith.select {{.*}} : tensor<64x64xi1>, tensor<64x64xf32>
// CHECK: scf.yield
func.func @zero_at_zero(%x: !x, %w: !w) -> !s attributes {attn.program} {
  %y = attn.map ins(%x, %w : !x, !w) -> !x {
  ^bb0(%a: f32, %b: f32):
    %one = arith.constant 1.0 : f32
    %n = arith.negf %a : f32
    %e = math.exp %n : f32
    %d = arith.addf %one, %e : f32
    %q = arith.divf %a, %d : f32
    %p = arith.mulf %q, %b : f32
    attn.yield %p : f32
  }
  %s = attn.sum %y : !x -> !s
  return %s : !s
}

// -----

// A divisor of each token is 0 past the end too: 0 / 0.

!x = !attn.tensor<[B, H, N, 64], f32>
!w = !attn.tensor<[B, H, N, 1], f32>
!s = !attn.tensor<[B, H, 1, 64], f32>
// CHECK-LABEL: func.func @sum_tokens(
// CHECK: arith.divf
// CHECK: arith.select {{.*}} : tensor<64x64xi1>, tensor<64x64xf32>
// CHECK: scf.yield
func.func @divided(%x: !x, %w: !w) -> !s attributes {attn.program} {
  %y = attn.map ins(%x, %w : !x, !w) -> !x {
  ^bb0(%a: f32, %b: f32):
    %q = arith.divf %a, %b : f32
    attn.yield %q : f32
  }
  %s = attn.sum %y : !x -> !s
  return %s : !s
}

// -----

// Of channels past the head size likewise: 24 are 16, and 16 of which 8 exist.

!x = !attn.tensor<[B, H, N, 24], f32>
!r = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @rows(
// CHECK: math.cos {{.*}} : tensor<64x16xf32>
// CHECK-NOT: arith.select {{.*}} : tensor<64x16xi1>
// CHECK: math.cos {{.*}} : tensor<64x16xf32>
// CHECK: arith.select {{.*}} : tensor<64x16xi1>, tensor<64x16xf32>
// CHECK: tile.reduce
func.func @channels(%x: !x) -> !r attributes {attn.program} {
  %y = attn.map ins(%x : !x) -> !x {
  ^bb0(%a: f32):
    %c = math.cos %a : f32
    attn.yield %c : f32
  }
  %s = attn.sum %y away [3] : !x -> !r
  return %s : !r
}

// -----

!x = !attn.tensor<[B, H, N, 24], f32>
!r = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @rows(
// CHECK-COUNT-2: tile.load
// CHECK-NOT: arith.select {{.*}} : tensor<64x16xi1>
// CHECK: tile.reduce
func.func @channels_as_loaded(%x: !x) -> !r attributes {attn.program} {
  %s = attn.sum %x away [3] : !x -> !r
  return %s : !r
}

// -----

// A row that is moved is 0 where there is none before it.

!x = !attn.tensor<[B, H, N, 64], f32>
// CHECK-LABEL: func.func @rows(
// CHECK: math.cos
// CHECK: arith.select {{.*}} : tensor<64x64xi1>, tensor<64x64xf32>
// CHECK: tile.store
func.func @later(%x: !x) -> !x attributes {attn.program} {
  %c = attn.map ins(%x : !x) -> !x {
  ^bb0(%a: f32):
    %c = math.cos %a : f32
    attn.yield %c : f32
  }
  %y = attn.shift %c {by = -1 : i64} : !x -> !x
  return %y : !x
}

// -----

// The sum is returned: its eight parts are added.

!x = !attn.tensor<[B, H, N, 64], f32>
!s = !attn.tensor<[B, H, 1, 64], f32>
// CHECK-LABEL: func.func @returned(
// CHECK: %[[PARTS:.*]] = attn.launch @sum_tokens({{.*}} -> !attn.tensor<[B, H, 8, 64], f32>
// CHECK: %[[SUM:.*]] = attn.launch @sum(%[[PARTS]]) {{.*}} -> !attn.tensor<[B, H, 1, 64], f32>
// CHECK: return %[[SUM]]
func.func @returned(%x: !x) -> !s attributes {attn.program} {
  %s = attn.sum %x : !x -> !s
  return %s : !s
}
