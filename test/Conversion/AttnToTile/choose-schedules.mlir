// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-number-attends --attn-differentiate --attn-choose-schedules="choices=0.forward=64x64x4x2,1.backward.keys=64x128x4x2" | FileCheck %s
// RUN: not weft-opt %s --attn-number-attends --attn-choose-schedules="choices=2.forward=64x64x4x2" 2>&1 | FileCheck %s --check-prefix=PLACE
// RUN: not weft-opt %s --attn-number-attends --attn-choose-schedules="choices=0.forward=64x64x4" 2>&1 | FileCheck %s --check-prefix=SPELLING
// RUN: not weft-opt %s --attn-number-attends --attn-choose-schedules="choices=0.forward=64x48x4x2" 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not weft-opt %s --attn-number-attends --attn-choose-schedules="choices=0.forward=64x64x4x2x128" 2>&1 | FileCheck %s --check-prefix=NARROW
// RUN: not weft-opt %s --attn-number-attends --attn-differentiate --attn-choose-schedules="choices=0.backward.values=64x64x4x2x128" 2>&1 | FileCheck %s --check-prefix=NONE

// Two attentions, of which one has a schedule of its own: it stays where nothing is chosen, and the gradients, whose
// order is the reverse, are found by number.
// CHECK-LABEL: func.func @two(
// CHECK: attn.attend {{.*}}attn.number = 0 : i64{{.*}}schedule = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>
// CHECK: attn.attend {{.*}}attn.number = 1 : i64{{.*}}schedule = #attn.schedule<rows = 32, columns = 32, warps = 2, stages = 2>
// CHECK-LABEL: func.func @two.forward(
// CHECK: attn.attend {{.*}}attn.number = 0 : i64{{.*}}schedule = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>
// CHECK: attn.attend {{.*}}attn.number = 1 : i64{{.*}}schedule = #attn.schedule<rows = 32, columns = 32, warps = 2, stages = 2>
// CHECK-LABEL: func.func @two.backward(
// CHECK: attn.attend_backward {{.*}}attn.number = 1 : i64{{.*}}scheduleKeys = #attn.schedule<rows = 64, columns = 128, warps = 4, stages = 2>, scheduleQuery = #attn.schedule<rows = 128, columns = 32, warps = 4, stages = 3>
// CHECK: attn.attend_backward {{.*}}attn.number = 0 : i64{{.*}}scheduleKeys = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 3>
// PLACE: error: expected schedules for the program's 2 attentions, counted from 0, but got one for 2
// SPELLING: error: expected a choice such as '0.forward=128x64x4x3' or 'forward.rows.0=32x4', but got '0.forward=64x64x4'
// SIZE: error: 'attn.attend' op cannot take the schedule of '0.forward': expected 'columns' to be a power of two from 16 to 1024, but got 48
// NARROW: error: 'attn.attend' op cannot take the schedule of '0.forward': expected no 'channels' for values of 64 channels, but got 128
// NONE: error: 'attn.attend_backward' op has no kernel for the schedule of '0.backward.values'
// NONE: note: {{.*}}the gradient of these values is made with that of the keys, by '0.backward.keys'
func.func @two(%x: !attn.tensor<[B, H, N, 64], f16>, %y: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
  %a, %la = attn.attend %x keys(%y : !attn.tensor<[B, H, N, 64], f16>) values(%y : !attn.tensor<[B, H, N, 64], f16>)
    {patterns = [#attn.causal], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
  %b, %lb = attn.attend %a keys(%y : !attn.tensor<[B, H, N, 64], f16>) values(%x : !attn.tensor<[B, H, N, 64], f16>)
    {patterns = [#attn.causal], scale = 1.0 : f32, schedule = #attn.schedule<rows = 32, columns = 32, warps = 2, stages = 2>}
    : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
  return %b : !attn.tensor<[B, H, N, 64], f16>
}
