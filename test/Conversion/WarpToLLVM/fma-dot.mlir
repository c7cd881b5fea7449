// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

#acc = #warp.layout<[16, 16], register = [[0, 1], [1, 0], [2, 0]], lane = [[0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], warp = []>
#a = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], lane = [[0, 0], [0, 0], [0, 0], [4, 0], [8, 0]], warp = []>
#b = #warp.layout<[16, 16], register = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 0], [0, 0]], warp = []>

// Eight elements of the accumulator a thread, sixteen products each.
// CHECK-LABEL: llvm.func @products
// CHECK-COUNT-128: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
module attributes {warp.target = "sm_80"} {
  func.func @products(%x: !tile.ptr<f32>, %s: f32, %t: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %a = tile.splat %s : f32 -> tensor<16x16xf32, #a>
    %b = tile.splat %t : f32 -> tensor<16x16xf32, #b>
    %c = arith.constant dense<0.0> : tensor<16x16xf32, #acc>
    %d = tile.dot %a, %b, %c {precision = #tile<precision ieee>} : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #acc>
    %p = tile.splat %x : !tile.ptr<f32> -> tensor<16x16x!tile.ptr<f32>, #acc>
    tile.store %p, %d : tensor<16x16x!tile.ptr<f32>, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[16, 16], register = [[0, 1], [1, 0], [2, 0]], lane = [[0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], warp = []>
#a = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], lane = [[0, 0], [0, 0], [0, 0], [4, 0], [8, 0]], warp = []>
#b = #warp.layout<[16, 16], register = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 0], [0, 0]], warp = []>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0]]>
!tile = !warp.shared<16x16xf32, #s>

// Tiles that the product alone reads, right before it, are read where they are multiplied: four columns of a row of a
// and a row of two columns of b at a time.
// CHECK-LABEL: llvm.func @read_late
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK: llvm.load {{.*}} -> vector<2xf32>
// CHECK: llvm.intr.fma
// CHECK: llvm.load {{.*}} -> vector<4xf32>
// CHECK: llvm.intr.fma
// Behind a barrier others may write the tile: it is read before.
// CHECK: nvvm.bar.warp.sync
// CHECK-NOT: llvm.load
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @read_late(%x: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %s = warp.alloc {offset = 0 : i64} : !tile
    %t = warp.alloc {offset = 1024 : i64} : !tile
    %c = arith.constant dense<0.0> : tensor<16x16xf32, #acc>
    %a = warp.load_shared %s : !tile -> tensor<16x16xf32, #a>
    %b = warp.load_shared %t : !tile -> tensor<16x16xf32, #b>
    %d = tile.dot %a, %b, %c {precision = #tile<precision ieee>} : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #acc>
    %a2 = warp.load_shared %s : !tile -> tensor<16x16xf32, #a>
    %b2 = warp.load_shared %t : !tile -> tensor<16x16xf32, #b>
    warp.barrier
    %e = tile.dot %a2, %b2, %d {precision = #tile<precision ieee>} : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #acc>
    %p = tile.splat %x : !tile.ptr<f32> -> tensor<16x16x!tile.ptr<f32>, #acc>
    tile.store %p, %e : tensor<16x16x!tile.ptr<f32>, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[16, 16], register = [[0, 1], [1, 0], [2, 0]], lane = [[0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], warp = []>

module attributes {warp.target = "sm_80"} {
  func.func @apart(%s: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %a = tile.splat %s : f32 -> tensor<16x16xf32, #acc>
    // expected-error @+1 {{expected operands whose lanes and warps follow the accumulator's}}
    %d = tile.dot %a, %a, %a {precision = #tile<precision ieee>} : tensor<16x16xf32, #acc> * tensor<16x16xf32, #acc> -> tensor<16x16xf32, #acc>
    return
  }
}
