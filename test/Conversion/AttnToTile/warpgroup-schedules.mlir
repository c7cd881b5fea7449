// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: sed s/TARGET/sm_90a/ %s | weft-opt --attn-number-attends --attn-differentiate --attn-choose-schedules | FileCheck %s --check-prefixes=CHECK,GROUP
// RUN: sed s/TARGET/sm_80/ %s | weft-opt --attn-number-attends --attn-differentiate --attn-choose-schedules | FileCheck %s --check-prefixes=CHECK,WARP

// Where the target has matrix instructions of warpgroups, a gradient's tile has the 64 rows of one, and at 64 channels so few columns and
// stages that a multiprocessor holds three blocks. Tables with an element for each pair take fewer columns on every target. Of more than 128 channels
// dk and dv are made apart. In windows, whose tokens make the tiles, and for f32 operands schedules are every target's.
module attributes {warp.target = "TARGET"} {
  // CHECK-LABEL: func.func @full(
  // GROUP: schedule = #attn.schedule<rows = 64, columns = 128, warps = 4, stages = 2>
  // WARP: schedule = #attn.schedule<rows = 128, columns = 64, warps = 4, stages = 3>
  // CHECK-LABEL: func.func @full.backward(
  // GROUP: scheduleKeys = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>, scheduleQuery = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>
  // WARP: scheduleKeys = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 3>, scheduleQuery = #attn.schedule<rows = 128, columns = 32, warps = 4, stages = 3>
  func.func @full(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, N, 64], f16>, %v: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 64], f16>) values(%v : !attn.tensor<[B, H, N, 64], f16>)
      {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 64], f16>
  }
  // CHECK-LABEL: func.func @causal.backward(
  // GROUP: scheduleKeys = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 3>, scheduleQuery = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>
  // WARP: scheduleKeys = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 3>, scheduleQuery = #attn.schedule<rows = 128, columns = 32, warps = 4, stages = 3>
  func.func @causal(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 64], f16>) values(%k : !attn.tensor<[B, H, N, 64], f16>)
      {patterns = [#attn.causal], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 64], f16>
  }
  // CHECK-LABEL: func.func @grouped(
  // GROUP: schedule = #attn.schedule<rows = 64, columns = 128, warps = 4, stages = 2>
  // WARP: schedule = #attn.schedule<rows = 128, columns = 64, warps = 4, stages = 3>
  // CHECK-LABEL: func.func @grouped.backward(
  // GROUP: scheduleKeys = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>, scheduleQuery = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>
  // WARP: scheduleKeys = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 3>, scheduleQuery = #attn.schedule<rows = 128, columns = 32, warps = 4, stages = 3>
  func.func @grouped(%q: !attn.tensor<[B, 8, N, 64], f16>, %k: !attn.tensor<[B, 2, N, 64], f16>) -> !attn.tensor<[B, 8, N, 64], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, 2, N, 64], f16>) values(%k : !attn.tensor<[B, 2, N, 64], f16>)
      {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, 8, N, 64], f16> -> !attn.tensor<[B, 8, N, 64], f16>, !attn.tensor<[B, 8, N], f32>
    return %o : !attn.tensor<[B, 8, N, 64], f16>
  }
  // CHECK-LABEL: func.func @modified(
  // GROUP: schedule = #attn.schedule<rows = 64, columns = 128, warps = 4, stages = 2>
  // WARP: schedule = #attn.schedule<rows = 128, columns = 64, warps = 4, stages = 3>
  // CHECK-LABEL: func.func @modified.backward(
  // GROUP: scheduleKeys = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>
  // WARP: scheduleKeys = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 3>
  func.func @modified(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 64], f16>) values(%k : !attn.tensor<[B, H, N, 64], f16>)
      {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32> score_mod {
    ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
      %c = arith.constant 0.5 : f32
      %m = arith.mulf %score, %c : f32
      attn.yield %m : f32
    }
    return %o : !attn.tensor<[B, H, N, 64], f16>
  }
  // CHECK-LABEL: func.func @biased(
  // GROUP: schedule = #attn.schedule<rows = 64, columns = 128, warps = 4, stages = 2>
  // WARP: schedule = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>
  // CHECK-LABEL: func.func @biased.backward(
  // WARP: scheduleKeys = #attn.schedule<rows = 64, columns = 32, warps = 4, stages = 2>, scheduleQuery = #attn.schedule<rows = 64, columns = 32, warps = 4, stages = 2>
  func.func @biased(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, N, 64], f16>, %t: !attn.tensor<[N, N], f32>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 64], f16>) values(%k : !attn.tensor<[B, H, N, 64], f16>)
      {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32> score_mod {
    ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
      %e = attn.element %t[%i, %j] : !attn.tensor<[N, N], f32> -> f32
      %m = arith.addf %score, %e : f32
      attn.yield %m : f32
    }
    return %o : !attn.tensor<[B, H, N, 64], f16>
  }
  // A table of rows has no element for each pair.
  // CHECK-LABEL: func.func @of_rows(
  // WARP: schedule = #attn.schedule<rows = 128, columns = 64, warps = 4, stages = 3>
  func.func @of_rows(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, N, 64], f16>, %t: !attn.tensor<[N], f32>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 64], f16>) values(%k : !attn.tensor<[B, H, N, 64], f16>)
      {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32> score_mod {
    ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
      %e = attn.element %t[%i] : !attn.tensor<[N], f32> -> f32
      %m = arith.addf %score, %e : f32
      attn.yield %m : f32
    }
    return %o : !attn.tensor<[B, H, N, 64], f16>
  }
  // CHECK-LABEL: func.func @large.backward(
  // GROUP: scheduleKeys = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>, scheduleQuery = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 2>
  // WARP: scheduleKeys = #attn.schedule<rows = 128, columns = 16, warps = 8, stages = 2>, scheduleQuery = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 2>
  func.func @large(%q: !attn.tensor<[B, H, N, 128], f16>, %k: !attn.tensor<[B, H, N, 128], f16>) -> !attn.tensor<[B, H, N, 128], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 128], f16>) values(%k : !attn.tensor<[B, H, N, 128], f16>)
      {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 128], f16> -> !attn.tensor<[B, H, N, 128], f16>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 128], f16>
  }
  // CHECK-LABEL: func.func @fast.backward(
  // GROUP: scheduleKeys = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>
  // WARP: scheduleKeys = #attn.schedule<rows = 128, columns = 32, warps = 8, stages = 2>
  func.func @fast(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 64], f16>) values(%k : !attn.tensor<[B, H, N, 64], f16>)
      {patterns = [#attn.full], scale = 1.0 : f32, attn.fast} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 64], f16>
  }
  // CHECK-LABEL: func.func @fast_large(
  // GROUP: schedule = #attn.schedule<rows = 128, columns = 128, warps = 8, stages = 2>
  // WARP: schedule = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 3>
  // CHECK-LABEL: func.func @fast_large.backward(
  // GROUP: scheduleKeys = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 3>
  // WARP: scheduleKeys = #attn.schedule<rows = 128, columns = 32, warps = 8, stages = 2>
  func.func @fast_large(%q: !attn.tensor<[B, H, N, 128], f16>, %k: !attn.tensor<[B, H, N, 128], f16>, %v: !attn.tensor<[B, H, N, 128], f16>) -> !attn.tensor<[B, H, N, 128], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 128], f16>) values(%v : !attn.tensor<[B, H, N, 128], f16>)
      {patterns = [#attn.full], scale = 1.0 : f32, attn.fast} : !attn.tensor<[B, H, N, 128], f16> -> !attn.tensor<[B, H, N, 128], f16>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 128], f16>
  }
  // CHECK-LABEL: func.func @largest(
  // GROUP: schedule = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 2>
  // WARP: schedule = #attn.schedule<rows = 128, columns = 32, warps = 8, stages = 2>
  // CHECK-LABEL: func.func @largest.backward(
  // GROUP: scheduleKeys = #attn.schedule<rows = 128, columns = 32, warps = 8, stages = 2>, scheduleQuery = #attn.schedule<rows = 128, columns = 32, warps = 8, stages = 2>, scheduleValues = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 2>
  // WARP-NOT: scheduleValues
  // WARP: scheduleKeys = #attn.schedule<rows = 64, columns = 16, warps = 8, stages = 2>, scheduleQuery = #attn.schedule<rows = 64, columns = 16, warps = 8, stages = 2>
  func.func @largest(%q: !attn.tensor<[B, H, N, 256], f16>, %k: !attn.tensor<[B, H, N, 256], f16>, %v: !attn.tensor<[B, H, N, 256], f16>) -> !attn.tensor<[B, H, N, 256], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 256], f16>) values(%v : !attn.tensor<[B, H, N, 256], f16>)
      {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 256], f16> -> !attn.tensor<[B, H, N, 256], f16>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 256], f16>
  }
  // CHECK-LABEL: func.func @single.backward(
  // CHECK: scheduleKeys = #attn.schedule<rows = 64, columns = 16, warps = 4, stages = 2>, scheduleQuery = #attn.schedule<rows = 64, columns = 16, warps = 4, stages = 2>
  func.func @single(%q: !attn.tensor<[B, H, N, 64], f32>, %k: !attn.tensor<[B, H, N, 64], f32>) -> !attn.tensor<[B, H, N, 64], f32> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 64], f32>) values(%k : !attn.tensor<[B, H, N, 64], f32>)
      {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f32> -> !attn.tensor<[B, H, N, 64], f32>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 64], f32>
  }
  // CHECK-LABEL: func.func @window.backward(
  // CHECK: scheduleKeys = #attn.schedule<rows = 64, columns = 64, warps = 8, stages = 3>
  func.func @window(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 64], f16>) values(%k : !attn.tensor<[B, H, N, 64], f16>)
      {patterns = [#attn.block_window<[128]>], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 64], f16>
  }
  // The kernel computes the queries, and has no registers for larger tiles.
  // CHECK-LABEL: func.func @computed(
  // GROUP: schedule = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 3>
  // WARP: schedule = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 3>
  func.func @computed(%q: !attn.tensor<[B, H, N, 128], f16>, %k: !attn.tensor<[B, H, N, 128], f16>, %v: !attn.tensor<[B, H, N, 128], f16>) -> !attn.tensor<[B, H, N, 128], f16> attributes {attn.program} {
    %x = attn.map ins(%q : !attn.tensor<[B, H, N, 128], f16>) -> !attn.tensor<[B, H, N, 128], f16> {
    ^bb0(%e: f32):
      %y = arith.mulf %e, %e : f32
      attn.yield %y : f32
    }
    %o, %l = attn.attend %x keys(%k : !attn.tensor<[B, H, N, 128], f16>) values(%v : !attn.tensor<[B, H, N, 128], f16>)
      {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 128], f16> -> !attn.tensor<[B, H, N, 128], f16>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 128], f16>
  }
}
