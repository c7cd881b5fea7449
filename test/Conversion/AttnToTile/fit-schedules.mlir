// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: sed s/TARGET/sm_80/ %s | weft-opt --attn-number-attends --attn-differentiate --attn-choose-schedules | FileCheck %s --check-prefixes=CHECK,LARGE,WARP,LARGEWARP
// RUN: sed s/TARGET/sm_90a/ %s | weft-opt --attn-number-attends --attn-differentiate --attn-choose-schedules | FileCheck %s --check-prefixes=CHECK,LARGE,GROUP
// RUN: sed s/TARGET/sm_86/ %s | weft-opt --attn-number-attends --attn-differentiate --attn-choose-schedules | FileCheck %s --check-prefixes=CHECK,SMALL,WARP
// RUN: sed s/TARGET/sm_89/ %s | weft-opt --attn-number-attends --attn-differentiate --attn-choose-schedules | FileCheck %s --check-prefixes=CHECK,SMALL,WARP
// RUN: sed s/TARGET/sm_120/ %s | weft-opt --attn-number-attends --attn-differentiate --attn-choose-schedules | FileCheck %s --check-prefixes=CHECK,SMALL,WARP
// RUN: sed 's/attributes {warp.target = "TARGET"}//' %s | weft-opt --attn-number-attends --attn-differentiate --attn-choose-schedules | FileCheck %s --check-prefixes=CHECK,LARGE,WARP,LARGEWARP

// Tiles that every target's block holds are every target's of the same matrix instructions. Those of heads of 256 channels take 128 KiB, or, where each
// warp has half the rows, which its registers hold, 68 KiB. What an op chose for itself stays.
module attributes {warp.target = "TARGET"} {
  // CHECK-LABEL: func.func @small(
  // WARP: attn.attend {{.*}}schedule = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 3>
  // GROUP: attn.attend {{.*}}schedule = #attn.schedule<rows = 128, columns = 128, warps = 8, stages = 2>
  // CHECK-LABEL: func.func @small.backward(
  // GROUP: scheduleKeys = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>, scheduleQuery = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>
  // WARP: scheduleKeys = #attn.schedule<rows = 64, columns = 32, warps = 4, stages = 3>, scheduleQuery = #attn.schedule<rows = 64, columns = 32, warps = 4, stages = 2>
  func.func @small(%q: !attn.tensor<[B, H, N, 128], f16>, %k: !attn.tensor<[B, H, N, 128], f16>, %v: !attn.tensor<[B, H, N, 128], f16>) -> !attn.tensor<[B, H, N, 128], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 128], f16>) values(%v : !attn.tensor<[B, H, N, 128], f16>)
      {patterns = [#attn.causal], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 128], f16> -> !attn.tensor<[B, H, N, 128], f16>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 128], f16>
  }
  // CHECK-LABEL: func.func @large(
  // LARGEWARP: attn.attend {{.*}}schedule = #attn.schedule<rows = 128, columns = 32, warps = 8, stages = 2>
  // GROUP: attn.attend {{.*}}schedule = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 2>
  // SMALL: attn.attend {{.*}}schedule = #attn.schedule<rows = 64, columns = 32, warps = 8, stages = 2>
  // CHECK-LABEL: func.func @large.backward(
  // WARP: scheduleKeys = #attn.schedule<rows = 64, columns = 16, warps = 8, stages = 2>, scheduleQuery = #attn.schedule<rows = 64, columns = 16, warps = 8, stages = 2>
  // GROUP: scheduleKeys = #attn.schedule<rows = 128, columns = 32, warps = 8, stages = 2>, scheduleQuery = #attn.schedule<rows = 128, columns = 32, warps = 8, stages = 2>, scheduleValues = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 2>
  func.func @large(%q: !attn.tensor<[B, H, N, 256], f16>, %k: !attn.tensor<[B, H, N, 256], f16>, %v: !attn.tensor<[B, H, N, 256], f16>) -> !attn.tensor<[B, H, N, 256], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 256], f16>) values(%v : !attn.tensor<[B, H, N, 256], f16>)
      {patterns = [#attn.causal], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 256], f16> -> !attn.tensor<[B, H, N, 256], f16>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 256], f16>
  }
  // CHECK-LABEL: func.func @single(
  // LARGE: attn.attend {{.*}}schedule = #attn.schedule<rows = 64, columns = 16, warps = 8, stages = 2>
  // SMALL: attn.attend {{.*}}schedule = #attn.schedule<rows = 32, columns = 16, warps = 4, stages = 2>
  // CHECK-LABEL: func.func @single.backward(
  // LARGE: scheduleKeys = #attn.schedule<rows = 32, columns = 16, warps = 4, stages = 2>
  // SMALL: scheduleKeys = #attn.schedule<rows = 16, columns = 16, warps = 2, stages = 2>
  func.func @single(%q: !attn.tensor<[B, H, N, 256], f32>, %k: !attn.tensor<[B, H, N, 256], f32>) -> !attn.tensor<[B, H, N, 256], f32> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 256], f32>) values(%k : !attn.tensor<[B, H, N, 256], f32>)
      {patterns = [#attn.causal], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 256], f32> -> !attn.tensor<[B, H, N, 256], f32>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 256], f32>
  }
  // CHECK-LABEL: func.func @chosen(
  // CHECK: attn.attend {{.*}}schedule = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 3>
  func.func @chosen(%q: !attn.tensor<[B, H, N, 256], f16>, %k: !attn.tensor<[B, H, N, 256], f16>) -> !attn.tensor<[B, H, N, 256], f16> attributes {attn.program} {
    %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 256], f16>) values(%k : !attn.tensor<[B, H, N, 256], f16>)
      {patterns = [#attn.causal], scale = 1.0 : f32, schedule = #attn.schedule<rows = 128, columns = 64, warps = 8, stages = 3>}
      : !attn.tensor<[B, H, N, 256], f16> -> !attn.tensor<[B, H, N, 256], f16>, !attn.tensor<[B, H, N], f32>
    return %o : !attn.tensor<[B, H, N, 256], f16>
  }
}
