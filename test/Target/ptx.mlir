// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm %s | weft-translate --mlir-to-ptx | FileCheck %s
// RUN: weft-opt --convert-warp-to-llvm %s | weft-translate --mlir-to-ptx --line-info=false | FileCheck %s --check-prefix=PLAIN
// RUN: sed "s/{warp.target/{warp.rounds_products, warp.target/" %s | weft-opt --convert-warp-to-llvm | weft-translate --mlir-to-ptx | FileCheck %s --check-prefix=ROUNDS

#four = #warp.layout<[512], register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]]>

// The entry keeps its name and the order of its arguments; the block's size is required; offsets of registers fold into addresses.
// CHECK: .version 8.0
// CHECK: .target sm_80
// CHECK: .visible .entry add(
// CHECK-NEXT: .param .u64 .ptr .global .align 16 add_param_0,
// CHECK-NEXT: .param .u64 .ptr .global .align 16 add_param_1,
// CHECK-NEXT: .param .f32 add_param_2
// CHECK: .reqntid 128
// CHECK: .loc 1 {{[0-9]+}}
// CHECK: mov.u32 {{.*}}, %tid.x;
// CHECK: ld.global.v4.b32
// CHECK-COUNT-4: fma.rn.f32
// CHECK: st.global.v4.b32
// CHECK: .file 1

// Products are rounded before they are added where the module says so.
// ROUNDS-COUNT-4: mul.rn.f32
// ROUNDS-NOT: fma.rn.f32

// PLAIN-NOT: .loc
// PLAIN: ld.global.v4.b32
// PLAIN-NOT: .file
module attributes {warp.target = "sm_80"} {
  func.func @add(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %s: f32)
      attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #four>
    %xb = tile.splat %x : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #four>
    %yb = tile.splat %y : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #four>
    %ss = tile.splat %s : f32 -> tensor<512xf32, #four>
    %xp = tile.addptr %xb, %r : tensor<512x!tile.ptr<f32>, #four>, tensor<512xi32, #four>
    %yp = tile.addptr %yb, %r : tensor<512x!tile.ptr<f32>, #four>, tensor<512xi32, #four>
    %v = tile.load %xp {warp.contiguity = 4 : i32} : tensor<512x!tile.ptr<f32>, #four>
    %p = arith.mulf %v, %ss : tensor<512xf32, #four>
    %q = arith.addf %p, %v : tensor<512xf32, #four>
    tile.store %yp, %q {warp.contiguity = 4 : i32} : tensor<512x!tile.ptr<f32>, #four>
    return
  }
}
