// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --pass-pipeline='builtin.module(func.func(warp-allocate-shared))' --split-input-file --verify-diagnostics
// Of tensors without layouts nobody knows what their exchanges need.

module attributes {warp.target = "sm_80"} {
  func.func @sums(%x: !tile.ptr<f32>) attributes {tile.kernel} {
    // expected-error@+1 {{'tile.splat' op has a result of type 'tensor<128x4x!tile.ptr<f32>>' without a layout; run 'tile-to-warp' before}}
    %p = tile.splat %x : !tile.ptr<f32> -> tensor<128x4x!tile.ptr<f32>>
    %v = tile.load %p : tensor<128x4x!tile.ptr<f32>>
    %sum = tile.reduce %v {axis = 1 : i32} : (tensor<128x4xf32>) -> tensor<128xf32> {
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      tile.yield %s : f32
    }
    return
  }
}
