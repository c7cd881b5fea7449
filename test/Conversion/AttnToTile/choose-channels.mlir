// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --attn-number-attends --attn-differentiate --attn-choose-schedules="choices=0.forward=64x32x4x2,0.backward.values=32x32x8x2x1024" | FileCheck %s
// RUN: not weft-opt %s --attn-number-attends --attn-choose-schedules="choices=0.forward=64x64x4x2x100" 2>&1 | FileCheck %s --check-prefix=SIZE

// Wide values: their schedules have channels, by default where a choice says nothing of them, and dv has one of its own.
// CHECK-LABEL: func.func @wide(
// CHECK: attn.attend {{.*}}schedule = #attn.schedule<rows = 64, columns = 32, warps = 4, stages = 2, channels = 256>
// CHECK-LABEL: func.func @wide.backward(
// CHECK: scheduleKeys = #attn.schedule<rows = 128, columns = 32, warps = 8, stages = 2, channels = 64>
// CHECK-SAME: scheduleQuery = #attn.schedule<rows = 128, columns = 32, warps = 8, stages = 2, channels = 64>
// CHECK-SAME: scheduleValues = #attn.schedule<rows = 32, columns = 32, warps = 8, stages = 2, channels = 1024>
// SIZE: error: 'attn.attend' op cannot take the schedule of '0.forward': expected 'channels' to be a multiple of 16 from 16 to 4096, but got 100
func.func @wide(%q: !attn.tensor<[B, 1, N, 128], f16>, %v: !attn.tensor<[B, 1, N, 1536], f16>) -> !attn.tensor<[B, 1, N, 1536], f16> attributes {attn.program} {
  %o, %l = attn.attend %q keys(%q : !attn.tensor<[B, 1, N, 128], f16>) values(%v : !attn.tensor<[B, 1, N, 1536], f16>)
    {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, 1, N, 128], f16> -> !attn.tensor<[B, 1, N, 1536], f16>, !attn.tensor<[B, 1, N], f32>
  return %o : !attn.tensor<[B, 1, N, 1536], f16>
}
