// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: sed s/TARGET/sm_90a/ %s | weft-opt --attn-number-attends --attn-choose-schedules --attn-to-tile | FileCheck %s --check-prefixes=CHECK,JOINED
// RUN: sed s/TARGET/sm_80/ %s | weft-opt --attn-number-attends --attn-choose-schedules --attn-to-tile | FileCheck %s --check-prefixes=CHECK,APART

// Where bulk copies run ahead of loops and a block fills a multiprocessor, blocks that need no mask and those beside them
// are one loop, whose masks ask which block it is; elsewhere each kind has a loop of its own.
module attributes {warp.target = "TARGET"} {
  // CHECK-LABEL: func.func @attend(
  // JOINED: scf.for %[[I:.*]] = %{{.*}} to %{{.*}}
  // JOINED: %[[FULL:.*]] = arith.cmpi slt, %[[I]], %{{.*}} : i32
  // JOINED: %[[ALL:.*]] = tile.splat %[[FULL]] : i1 ->
  // JOINED: arith.ori %{{.*}}, %[[ALL]]
  // JOINED: math.exp2
  // JOINED-NOT: scf.for
  // APART: scf.for
  // APART-NOT: arith.ori
  // APART: scf.for
  // APART-NOT: arith.ori
  // CHECK: return
  func.func @causal(%q: !attn.tensor<[B, H, N, 128], f16>, %k: !attn.tensor<[B, H, N, 128], f16>) -> !attn.tensor<[B, H, N, 128], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 128], f16>) values(%k : !attn.tensor<[B, H, N, 128], f16>)
      {patterns = [#attn.causal], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 128], f16> -> !attn.tensor<[B, H, N, 128], f16>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 128], f16>
  }
  // A window is cut on both sides.
  // CHECK-LABEL: func.func @attend_2(
  // JOINED: scf.for %[[I:.*]] = %{{.*}} to %{{.*}}
  // JOINED-DAG: %[[FROM:.*]] = arith.cmpi sge, %[[I]], %{{.*}} : i32
  // JOINED-DAG: %[[TO:.*]] = arith.cmpi slt, %[[I]], %{{.*}} : i32
  // JOINED: arith.andi %[[FROM]], %[[TO]] : i1
  // JOINED-NOT: scf.for
  // APART-COUNT-3: scf.for
  // CHECK: return
  func.func @window(%q: !attn.tensor<[B, H, N, 128], f16>, %k: !attn.tensor<[B, H, N, 128], f16>) -> !attn.tensor<[B, H, N, 128], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 128], f16>) values(%k : !attn.tensor<[B, H, N, 128], f16>)
      {patterns = [#attn.window<left = 256, right = 256>], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 128], f16> -> !attn.tensor<[B, H, N, 128], f16>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 128], f16>
  }
  // Of four warps, of whose blocks a multiprocessor has several, loops stay apart; so do those of packed sequences.
  // CHECK-LABEL: func.func @attend_3(
  // CHECK-NOT: arith.ori
  // CHECK: return
  func.func @small(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 64], f16>) values(%k : !attn.tensor<[B, H, N, 64], f16>)
      {patterns = [#attn.causal], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 64], f16>
  }
}
