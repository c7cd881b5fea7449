// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Kernels that are no attention's are tiled as chosen, by their place; the others as usual; the choice is noted.
// RUN: weft-opt %s --split-input-file --attn-choose-schedules="choices=forward.rows.1=16x2" --attn-to-tile | FileCheck %s
// RUN: weft-opt %s --split-input-file --attn-choose-schedules --attn-to-tile | FileCheck %s --check-prefix=USUAL
// RUN: not weft-opt %s --attn-choose-schedules="choices=forward.rows.2=16x2" --attn-to-tile 2>&1 | FileCheck %s --check-prefix=PLACE
// RUN: not weft-opt %s --attn-choose-schedules="choices=forward.rows.0=24x4" --attn-to-tile 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not weft-opt %s --attn-choose-schedules="choices=sideways.rows.0=16x4" 2>&1 | FileCheck %s --check-prefix=SPELLING
// A program without a backward has no use for a choice for one, and lets it be.
// RUN: weft-opt %s --split-input-file --attn-choose-schedules="choices=backward.rows.0=16x2" --attn-to-tile | FileCheck %s --check-prefix=USUAL

// The second norm is of rows that the first sum is made of: two kernels.
// CHECK-LABEL: func.func @two(
// CHECK-SAME: attn.tilings = [{place = "forward.rows.0", rows = array<i64: 16, 32, 64, 128>, tiling = array<i64: 64, 4>, warps = array<i64: 1, 2, 4, 8>},
// CHECK-SAME: {place = "forward.rows.1", rows = array<i64: 16, 32, 64, 128>, tiling = array<i64: 16, 2>
// CHECK: attn.launch @rows(%{{.*}}) grid ["cdiv(N, 64)", "H", "B"]
// CHECK: attn.launch @rows_2(%{{.*}}) grid ["cdiv(N, 16)", "H", "B"]
// CHECK-LABEL: func.func @rows(
// CHECK-SAME: tile.schedule = #tile.schedule<warps = 4
// CHECK-LABEL: func.func @rows_2(
// CHECK-SAME: tile.schedule = #tile.schedule<warps = 2
// USUAL-LABEL: func.func @two(
// USUAL: attn.launch @rows_2(%{{.*}}) grid ["cdiv(N, 64)", "H", "B"]
// USUAL-NOT: attn.tiling_choices
// PLACE: error: expected tilings of kernels that the programs have, but got one for 'forward.rows.2'
// PLACE: note: they have forward.rows.0, forward.rows.1
// SIZE: error: 'forward.rows.0' cannot take its tiling: expected rows among 16, 32, 64, 128 and warps among 1, 2, 4, 8, but got 24x4
// SPELLING: error: expected a choice such as '0.forward=128x64x4x3' or 'forward.rows.0=32x4', but got 'sideways.rows.0=16x4'
!t = !attn.tensor<[B, H, N, 64], f16>
func.func @two(%x: !t) -> (!t, !t) attributes {attn.program} {
  %a = attn.rms_norm %x : !t -> !t
  %m = attn.prefix_mean %a : !t -> !t
  %b = attn.rms_norm %m : !t -> !t
  return %a, %b : !t, !t
}
