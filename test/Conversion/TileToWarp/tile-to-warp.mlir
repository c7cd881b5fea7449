// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_80 | FileCheck %s

// A vector of f32, 16 bytes a lane: 4 registers walk first, then 32 lanes, then the warps.

// CHECK: #[[$L:.*]] = #warp.layout<[1024], register = {{\[\[}}1], [2], [512]], lane = {{\[\[}}4], [8], [16], [32], [64]], warp = {{\[\[}}128], [256]]>
// CHECK: module attributes {warp.target = "sm_80"}
// CHECK-LABEL: func.func @coalesced
// CHECK: %[[P:.*]] = tile.addptr {{.*}} : tensor<1024x!tile.ptr<f32>, #[[$L]]>
// CHECK: %[[X:.*]] = tile.load %[[P]] {warp.contiguity = 4 : i32{{.*}}} : tensor<1024x!tile.ptr<f32>, #[[$L]]>
// CHECK: tile.store %[[P]], %[[X]] {warp.contiguity = 4 : i32{{.*}}}
// CHECK-NOT: warp.convert_layout
func.func @coalesced(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %a = tile.addptr %b, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %x = tile.load %a : tensor<1024x!tile.ptr<f32>>
  tile.store %a, %x : tensor<1024x!tile.ptr<f32>>
  func.return
}

// -----

// Without a promise about the pointer nothing can be joined: neighbours go to neighbouring lanes.

// CHECK: #[[$L:.*]] = #warp.layout<[1024], register = {{\[\[}}128], [256], [512]], lane = {{\[\[}}1], [2],
// CHECK-LABEL: func.func @unaligned
// CHECK: tile.load {{.*}} {warp.contiguity = 1 : i32{{.*}}} : tensor<1024x!tile.ptr<f32>, #[[$L]]>
func.func @unaligned(%p: !tile.ptr<f32>) attributes {tile.kernel} {
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %a = tile.addptr %b, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %x = tile.load %a : tensor<1024x!tile.ptr<f32>>
  tile.store %a, %x : tensor<1024x!tile.ptr<f32>>
  func.return
}

// -----

// A range that two accesses need in two layouts is made twice, and nothing is converted.

// CHECK-LABEL: func.func @free_values_are_made_twice
// CHECK-COUNT-2: tile.make_range
// CHECK-NOT: warp.convert_layout
func.func @free_values_are_made_twice(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32>, %v: f32) attributes {tile.kernel} {
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %s = tile.splat %v : f32 -> tensor<1024xf32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %a = tile.addptr %b, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  tile.store %a, %s : tensor<1024x!tile.ptr<f32>>
  %d = tile.splat %q : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %c = tile.addptr %d, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  tile.store %c, %s : tensor<1024x!tile.ptr<f32>>
  func.return
}

// -----

// What a reduction gives has its operand's layout without the axis; broadcasting it back is free.

// CHECK-DAG: #[[$L:.*]] = #warp.layout<[16, 64], register = {{\[\[}}0, 1], [0, 2]], lane = {{\[\[}}0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], warp = {{\[\[}}2, 0], [4, 0], [8, 0]]>
// CHECK-DAG: #[[$R:.*]] = #warp.layout<[16], lane = {{\[\[}}0], [0], [0], [0], [1]], warp = {{\[\[}}2], [4], [8]]>
// CHECK-LABEL: func.func @reduce
// CHECK: tile.reduce {{.*}} : (tensor<16x64xf32, #[[$L]]>) -> tensor<16xf32, #[[$R]]>
// CHECK: tile.broadcast {{.*}} -> tensor<16x64xf32, #[[$L]]>
// CHECK-NOT: warp.convert_layout
func.func @reduce(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 3>} {
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %e = tile.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %w = tile.broadcast %e : tensor<1x64xi32> -> tensor<16x64xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<16x64x!tile.ptr<f32>>
  %a = tile.addptr %b, %w : tensor<16x64x!tile.ptr<f32>>, tensor<16x64xi32>
  %x = tile.load %a : tensor<16x64x!tile.ptr<f32>>
  %m = tile.reduce %x {axis = 1 : i32} : (tensor<16x64xf32>) -> tensor<16xf32> {
  ^bb0(%u: f32, %v: f32):
    %z = arith.addf %u, %v : f32
    tile.yield %z : f32
  }
  %n = tile.expand_dims %m {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %o = tile.broadcast %n : tensor<16x1xf32> -> tensor<16x64xf32>
  %y = arith.subf %x, %o : tensor<16x64xf32>
  tile.store %a, %y : tensor<16x64x!tile.ptr<f32>>
  func.return
}

// -----

// A function that is no kernel keeps its tensors as they are.

// CHECK-LABEL: func.func @no_kernel
// CHECK-NEXT: tile.make_range {{.*}} : tensor<64xi32>{{$}}
func.func @no_kernel() -> tensor<64xi32> {
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  func.return %r : tensor<64xi32>
}
