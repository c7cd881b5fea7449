// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm %s | weft-translate --mlir-to-ptx | FileCheck %s

#pairs = #warp.layout<[512], register = [[256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64], [128]]>

// Offsets of registers fold into addresses where a mask makes an access a predicated one.
// CHECK-LABEL: .visible .entry masked(
// CHECK: @%p{{[0-9]+}} ld.global.b32 %r{{[0-9]+}}, [[[X:%rd[0-9]+]]];
// CHECK: @%p{{[0-9]+}} ld.global.b32 %r{{[0-9]+}}, [[[X]]+1024];
// CHECK: @%p{{[0-9]+}} st.global.b32 [[[Y:%rd[0-9]+]]], %r{{[0-9]+}};
// CHECK: @%p{{[0-9]+}} st.global.b32 [[[Y]]+1024], %r{{[0-9]+}};
module attributes {warp.target = "sm_80"} {
  func.func @masked(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %s: i32)
      attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #pairs>
    %n = tile.splat %s : i32 -> tensor<512xi32, #pairs>
    %m = arith.cmpi slt, %r, %n : tensor<512xi32, #pairs>
    %zero = arith.constant dense<0.0> : tensor<512xf32, #pairs>
    %xb = tile.splat %x : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #pairs>
    %yb = tile.splat %y : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #pairs>
    %xp = tile.addptr %xb, %r : tensor<512x!tile.ptr<f32>, #pairs>, tensor<512xi32, #pairs>
    %yp = tile.addptr %yb, %r : tensor<512x!tile.ptr<f32>, #pairs>, tensor<512xi32, #pairs>
    %v = tile.load %xp, %m, %zero : tensor<512x!tile.ptr<f32>, #pairs>
    tile.store %yp, %v, %m : tensor<512x!tile.ptr<f32>, #pairs>
    return
  }
}
