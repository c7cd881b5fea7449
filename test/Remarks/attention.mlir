// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --remarks-filter-missed=attention --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: sed s/TARGET/sm_86/ %S/../Conversion/AttnToTile/fit-schedules.mlir | weft-opt --attn-number-attends --attn-choose-schedules --remarks-filter-missed=attention -o /dev/null 2>&1 | FileCheck %s --check-prefix=FIT
// RUN: weft-opt %S/../Conversion/AttnToTile/tile-order.mlir --split-input-file --attn-to-tile --remarks-filter-analyse=attention --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: weft-opt %s --split-input-file --attn-to-tile -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE --allow-empty

// Nobody who does not ask is told.
// NONE-NOT: remark

// FIT: remark: [Missed] default-schedule | Category:attention | Function=large | Reason="the default schedule 128x32x8x2 is made smaller: it takes 131072 bytes of shared memory, and a block has 101376"

// ORDER: remark: [Analysis] tile-order | Category:attention | Function=causal | Reason="tiles of queries begin from the last, which has the most keys"
// ORDER: Function=causal | Reason="tiles of 2 to 16 heads, or of one, begin side by side, whose keys the L2 cache holds"
// ORDER: Function=causal
// ORDER: Function=causal | Reason="tiles of 2 to 16 heads, or of one, begin side by side, whose keys the L2 cache holds"
// ORDER: Function=causal | Reason="tiles of 2 to 16 heads, or of one, begin side by side, whose queries the L2 cache holds"
// ORDER-NOT: Function=causal
// ORDER-NOT: Function=window
// ORDER: Function=known | Reason="tiles of 4 heads begin side by side, whose keys the L2 cache holds"
// ORDER: Function=seven
// ORDER-NOT: Function=seven
// ORDER: [Analysis] tile-order | Category:attention | Function=packed

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK: [[#@LINE+2]]:{{[0-9]+}}: remark: [Missed] block-formulas | Category:attention | Function=strided | Reason="no formula gives the blocks of #attn.strided<3>: a kernel before lists them"
func.func @strided(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.strided<3>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

!q = !attn.tensor<[B, 1, N, 128], f16>
!v = !attn.tensor<[B, 1, N, 1536], f16>
!l = !attn.tensor<[B, 1, N], f32>
// CHECK: remark: [Missed] wide-values | Category:attention | Function=wide | Reason="values of 1536 channels are summed by 6 programs, each of which computes the scores"
func.func @wide(%q: !q, %k: !q, %v: !v) -> !v attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !q) values(%v : !v) {patterns = [#attn.full], scale = 0.125 : f32} : !q -> !v, !l
  return %o : !v
}

// -----

!t = !attn.tensor<[B, "4*H", N, 64], f16>
!k = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, "4*H", N], f32>
!m = !attn.tensor<["4*H"], i32>
// CHECK: remark: [Missed] packed-heads | Category:attention | Function=mask_of_the_head | Reason="the 4 query heads that share keys read them each for itself: their patterns differ, or do not divide a tile"
func.func @mask_of_the_head(%q: !t, %k: !k, %v: !k, %limit: !m) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !k) values(%v : !k) {patterns = [#attn.mask<0>], scale = 0.125 : f32} : !t -> !t, !l
    masks ({
    ^bb0(%b: i32, %h: i32, %n: i32, %m: i32):
      %last = attn.element %limit[%h] : !m -> i32
      %c = arith.cmpi sle, %m, %last : i32
      attn.yield %c : i1
    })
  return %o : !t
}

// -----

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK: remark: [Missed] one-pass-backward | Category:attention | Function=backward | Reason="gradients take a pass for queries and one for keys: sums in any order are not the same bits every time, and the backward is not asked to be fast"
func.func @backward(%q: !t, %k: !t, %v: !t, %lse: !l, %delta: !l, %g: !t) -> (!t, !t, !t) attributes {attn.program} {
  %dq, %d:2 = attn.attend_backward %q keys(%k : !t) values(%v : !t) lse(%lse : !l) delta(%delta : !l) gradient(%g : !t)
      {patterns = [#attn.window<left = 256, right = 0>], scale = 0.125 : f32} : !t -> !t, !t, !t
  return %dq, %d#0, %d#1 : !t, !t, !t
}

// -----

!t = !attn.tensor<[B, H, N, 256], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK: remark: [Missed] one-pass-backward | Category:attention | Function=large_heads | Reason="gradients take a pass for queries and one for keys: heads of more than 128 channels would spill"
func.func @large_heads(%q: !t, %k: !t, %v: !t, %lse: !l, %delta: !l, %g: !t) -> (!t, !t, !t) attributes {attn.program} {
  %dq, %d:2 = attn.attend_backward %q keys(%k : !t) values(%v : !t) lse(%lse : !l) delta(%delta : !l) gradient(%g : !t)
      {patterns = [#attn.full], scale = 0.125 : f32, fast} : !t -> !t, !t, !t
  return %dq, %d#0, %d#1 : !t, !t, !t
}

// -----

!t = !attn.tensor<[B, "4*H", N, 64], f16>
!k = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, "4*H", N], f32>
// CHECK: remark: [Missed] packed-heads | Category:attention | Function=windows | Reason="the 4 query heads that share keys read them each for itself: windows tile the kernel"
func.func @windows(%q: !t, %k: !k, %v: !k) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !k) values(%v : !k) {patterns = [#attn.block_window<[64]>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

!t = !attn.tensor<[B, "129*H", N, 64], f16>
!k = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, "129*H", N], f32>
// CHECK: remark: [Missed] packed-heads | Category:attention | Function=many_heads | Reason="the 129 query heads that share keys read them each for itself: they are more than a tile's rows"
func.func @many_heads(%q: !t, %k: !k, %v: !k) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !k) values(%v : !k) {patterns = [#attn.full], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}
