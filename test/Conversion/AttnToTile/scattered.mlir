// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// A mask that leaves pairs out here and there, as dropout does: the blocks are those of the rest of the pattern, in one
// loop, as none of them is known to be whole.

!t = !attn.tensor<[B, H, N, 64], f16>
!r = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @causal(
// CHECK-NEXT: attn.launch @attend(
// CHECK-LABEL: func.func @attend(
// CHECK-COUNT-1: scf.for
// CHECK-NOT: scf.for
func.func @causal(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
  %out, %lse = attn.attend %q keys(%k : !t) values(%v : !t)
      {patterns = [#attn.and<#attn.causal, #attn.mask<0, scattered = true>>], scale = 0.125 : f32} : !t -> !t, !r masks({
    ^bb0(%b: i32, %h: i32, %n: i32, %m: i32):
      %0 = arith.muli %n, %m : i32
      %1 = arith.cmpi slt, %0, %h : i32
      attn.yield %1 : i1
    })
  return %out : !t
}

// -----

// Under `not` it may hold wherever the rest does as well.

!t = !attn.tensor<[B, H, N, 64], f16>
!r = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @not(
// CHECK-NEXT: attn.launch @attend(
func.func @not(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
  %out, %lse = attn.attend %q keys(%k : !t) values(%v : !t)
      {patterns = [#attn.and<#attn.causal, #attn.not<#attn.mask<0, scattered = true>>>], scale = 0.125 : f32} : !t -> !t, !r masks({
    ^bb0(%b: i32, %h: i32, %n: i32, %m: i32):
      %0 = arith.muli %n, %m : i32
      %1 = arith.cmpi slt, %0, %h : i32
      attn.yield %1 : i1
    })
  return %out : !t
}

// -----

// Beside a pattern whose blocks are listed, the kernel that lists them does not ask the mask, and lists none as whole.

!t = !attn.tensor<[B, H, N, 64], f16>
!d = !attn.tensor<[N], i32>
!r = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @listed(
// CHECK-NEXT: attn.launch @blocks_of_queries(
// CHECK-NEXT: attn.launch @attend(
// CHECK-LABEL: func.func @blocks_of_queries(
// CHECK-NOT: mulsi_extended
// CHECK: return
// CHECK-LABEL: func.func @attend(
// CHECK: arith.mulsi_extended
func.func @listed(%q: !t, %k: !t, %v: !t, %ids: !d) -> !t attributes {attn.program} {
  %out, %lse = attn.attend %q keys(%k : !t) values(%v : !t) over(%ids : !d)
      {patterns = [#attn.and<#attn.document<queryIds = 0, keyIds = 0>, #attn.mask<0, scattered = true>>], scale = 0.125 : f32} : !t -> !t, !r masks({
    ^bb0(%b: i32, %h: i32, %n: i32, %m: i32):
      %low, %high = arith.mulsi_extended %n, %m : i32
      %1 = arith.cmpi slt, %high, %low : i32
      attn.yield %1 : i1
    })
  return %out : !t
}
