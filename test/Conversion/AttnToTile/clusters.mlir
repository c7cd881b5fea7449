// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --attn-number-attends --attn-choose-schedules="choices=0.forward=128x128x8x2x0x2" --attn-to-tile | FileCheck %s
// RUN: not weft-opt %s --attn-number-attends --attn-choose-schedules="choices=0.forward=128x128x8x2x0x3" 2>&1 | FileCheck %s --check-prefix=SIZE

// The grid has a multiple of the cluster's programs; the last may have no rows, and stores none.
// CHECK-DAG: attn.launch @{{.*}} grid ["cdiv(cdiv(N, 128), 2) * 2", "H", "B"]
// CHECK-DAG: tile.schedule = #tile.schedule<warps = 8, stages = 2, cluster = 2>
// Where rows decide the walk there is no cluster, and no program behind the last rows.
// CHECK-DAG: attn.launch @{{.*}} grid ["(cdiv(N, 128)) * {{.*}}", "(H) / ({{.*}})", "B"]
// CHECK-DAG: tile.schedule = #tile.schedule<warps = 8, stages = 2>
// SIZE: error: 'attn.attend' op cannot take the schedule of '0.forward': expected 'cluster' to be 1, 2, 4 or 8, but got 3
module attributes {warp.target = "sm_90a"} {
  func.func @full(%x: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
    %a, %la = attn.attend %x keys(%x : !attn.tensor<[B, H, N, 64], f16>) values(%x : !attn.tensor<[B, H, N, 64], f16>)
      {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
    return %a : !attn.tensor<[B, H, N, 64], f16>
  }
  func.func @causal(%x: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
    %a, %la = attn.attend %x keys(%x : !attn.tensor<[B, H, N, 64], f16>) values(%x : !attn.tensor<[B, H, N, 64], f16>)
      {patterns = [#attn.causal], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
    return %a : !attn.tensor<[B, H, N, 64], f16>
  }
}
