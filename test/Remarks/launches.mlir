// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-merge-launches --remarks-filter-missed=launches --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s

!t = !attn.tensor<[N], f32>
// CHECK: [[#@LINE+3]]:{{[0-9]+}}: remark: [Missed] merged-launches | Category:launches | Function=warps | Reason="'f' and 'g', which do not wait for one another, are two launches: they run on 4 and 8 warps"
func.func @warps(%x: !t, %y: !t) -> (!t, !t) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["N", "1", "1"] : (!t) -> !t
  %b = attn.launch @g(%y) grid ["N", "1", "1"] : (!t) -> !t
  return %a, %b : !t, !t
}
func.func @f(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}
func.func @g(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 1>} {
  return
}

// -----

!t = !attn.tensor<[N], f32>
// CHECK: [[#@LINE+3]]:{{[0-9]+}}: remark: [Missed] merged-launches | Category:launches | Function=products | Reason="'f' and 'g', which do not wait for one another, are two launches: every program would hold the registers and the shared memory of matrix products"
func.func @products(%x: !t, %y: !t) -> (!t, !t) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["N", "1", "1"] : (!t) -> !t
  %b = attn.launch @g(%y) grid ["N", "1", "1"] : (!t) -> !t
  return %a, %b : !t, !t
}
func.func @f(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = arith.constant dense<0.0> : tensor<64x64xf16>
  %c = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %a, %a, %c : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  return
}
func.func @g(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}

// -----

!t = !attn.tensor<[N], f32>
// CHECK: [[#@LINE+3]]:{{[0-9]+}}: remark: [Missed] merged-launches | Category:launches | Function=grids | Reason="'f' and 'g', which do not wait for one another, are two launches: the grid of both is longer than a library's expressions may be"
func.func @grids(%x: !t, %y: !t) -> (!t, !t) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64)", "1", "1"] : (!t) -> !t
  %b = attn.launch @g(%y) grid ["cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64) + cdiv(N, 64)", "1", "1"] : (!t) -> !t
  return %a, %b : !t, !t
}
func.func @f(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}
func.func @g(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}

// -----

!t = !attn.tensor<[N], f32>
// CHECK: [[#@LINE+3]]:{{[0-9]+}}: remark: [Missed] merged-launches | Category:launches | Function=zeroed | Reason="'f' and 'g', which do not wait for one another, are two launches: one of them has results to zero where its grid is empty"
func.func @zeroed(%x: !t, %y: !t) -> (!t, !t) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["M", "1", "1"] : (!t) -> !t
  %b = attn.launch @g(%y) grid ["N", "1", "1"] : (!t) -> !t
  return %a, %b : !t, !t
}
func.func @f(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}
func.func @g(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}

// -----

!t = !attn.tensor<[N], f32>
// CHECK: [[#@LINE+3]]:{{[0-9]+}}: remark: [Missed] merged-launches | Category:launches | Function=reals | Reason="'f' and 'g', which do not wait for one another, are two launches: one of them takes a real number"
func.func @reals(%x: !t, %y: !t) -> (!t, !t) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["N", "1", "1"] : (!t) -> !t
  %b = attn.launch @g(%y) grid ["N", "1", "1"] {reals = [2.0]} : (!t) -> !t
  return %a, %b : !t, !t
}
func.func @f(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}
func.func @g(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %r: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}

// -----

// Nothing is said of launches of which one waits for the other.

!t = !attn.tensor<[N], f32>
// CHECK-NOT: remark
func.func @waits(%x: !t) -> (!t, !t) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["N", "1", "1"] : (!t) -> !t
  %b = attn.launch @g(%a) grid ["N", "1", "1"] : (!t) -> !t
  return %a, %b : !t, !t
}
func.func @f(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}
func.func @g(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 1>} {
  return
}
