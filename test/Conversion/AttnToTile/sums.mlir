// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// Over tokens: eight parts, added by whoever reads them; heads that share a key head are summed together.

!t = !attn.tensor<[B, "4*H", N, 64], f16>
!m = !attn.tensor<[B, H, 1, 64], f32>
// CHECK-LABEL: func.func @tokens(
// CHECK: %[[PARTS:.*]] = attn.launch @sum_tokens(%{{.*}}) grid ["8", "H", "B"]
// CHECK: attn.launch @rows(%[[PARTS]])
func.func @tokens(%x: !t) -> !m attributes {attn.program} {
  %s = attn.sum %x : !t -> !m
  %y = attn.map ins(%s : !m) -> !m {
  ^bb0(%a: f32):
    %r = arith.negf %a : f32
    attn.yield %r : f32
  }
  return %y : !m
}

// -----

// Any other: sixteen results a program.

!t = !attn.tensor<[B, H, N], f32>
!h = !attn.tensor<[1, H, 1], f32>
// CHECK-LABEL: func.func @heads(
// CHECK: attn.launch @sum(%{{.*}}) grid ["cdiv((H), 16)", "1", "1"]
func.func @heads(%x: !t) -> !h attributes {attn.program} {
  %s = attn.sum %x : !t -> !h
  return %s : !h
}

// -----

// Over channels: no kernel of its own.

!t = !attn.tensor<[B, H, N, 64], f16>
!r = !attn.tensor<[B, H, N, 1], f32>
// CHECK-LABEL: func.func @channels(
// CHECK-NEXT: attn.launch @rows(
// CHECK-NEXT: return
func.func @channels(%x: !t) -> !r attributes {attn.program} {
  %s = attn.sum %x : !t -> !r
  %y = attn.map ins(%s : !r) -> !r {
  ^bb0(%a: f32):
    %e = math.exp %a : f32
    attn.yield %e : f32
  }
  return %y : !r
}
