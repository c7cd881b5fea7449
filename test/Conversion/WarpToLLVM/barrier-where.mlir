// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --split-input-file --convert-warp-to-llvm %s | FileCheck %s

// A barrier under a condition is one instruction with a predicate.

module attributes {warp.target = "sm_80"} {
// CHECK-LABEL: @block
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$0 bar.sync 0;", "b,~{memory}"
// CHECK: nvvm.barrier
func.func @block(%near: i1) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  warp.barrier where %near
  warp.barrier
  return
}
}

// -----

// Of one warp it is that of its lanes.

module attributes {warp.target = "sm_80"} {
// CHECK-LABEL: @lanes
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$0 bar.warp.sync -1;", "b,~{memory}"
func.func @lanes(%near: i1) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  warp.barrier where %near
  return
}
}
