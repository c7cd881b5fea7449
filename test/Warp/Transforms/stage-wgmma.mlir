// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --pass-pipeline='builtin.module(func.func(warp-stage-wgmma))' --split-input-file | FileCheck %s

#load = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[0, 0], [0, 0]]>
#turned = #warp.layout<[16, 16], register = [[1, 0], [2, 0], [4, 0]], lane = [[8, 0], [0, 1], [0, 2], [0, 4], [0, 8]], warp = [[0, 0], [0, 0]]>
#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#la = #warp.layout<[64, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [32, 0]]>

// Loads become copies; a tile is taken as it is and turned, and lives until the last product that reads it is there. Registers that hold operand a stay.
// CHECK-DAG: #[[$S:.*]] = #warp.layout<[16, 16], offset = {{\[}}[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
// CHECK-LABEL: func.func @copied
// CHECK-NEXT: %[[B:.*]] = warp.alloc : <16x16xf16, #[[$S]]>
// CHECK-NEXT: warp.async_copy %arg0 to %[[B]] {contiguity = 8 : i32}
// CHECK-NEXT: warp.async_commit
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: %[[D:.*]] = warp.wgmma %arg1, %[[B]], %arg2
// CHECK-NEXT: %[[E:.*]] = warp.wgmma_wait %[[D]]
// CHECK-NEXT: %[[T:.*]] = warp.permute_shared %[[B]] {order = array<i32: 1, 0>}
// CHECK-NEXT: %[[F:.*]] = warp.wgmma %arg1, %[[T]], %[[E]]
// CHECK-NEXT: %[[G:.*]] = warp.wgmma_wait %[[F]]
// CHECK-NEXT: warp.dealloc %[[B]]
// CHECK-NEXT: return %[[G]]
module attributes {warp.target = "sm_90a"} {
  func.func @copied(%p: tensor<16x16x!tile.ptr<f16>, #load>, %a: tensor<64x16xf16, #a>, %c: tensor<64x16xf32, #a>) -> tensor<64x16xf32, #a> {
    %b = tile.load %p {warp.contiguity = 8 : i32} : tensor<16x16x!tile.ptr<f16>, #load>
    %t = tile.permute %b {order = array<i32: 1, 0>} : tensor<16x16xf16, #load> -> tensor<16x16xf16, #turned>
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * tensor<16x16xf16, #load> -> tensor<64x16xf32, #a>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #a>
    %f = warp.wgmma %a, %t, %e {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * tensor<16x16xf16, #turned> -> tensor<64x16xf32, #a>
    %g = warp.wgmma_wait %f {pending = 0 : i32} : tensor<64x16xf32, #a>
    return %g : tensor<64x16xf32, #a>
  }
}

// -----

#load = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[0, 0], [0, 0]]>
#b = #warp.layout<[16, 16], register = [[1, 0], [8, 0], [0, 8]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#la = #warp.layout<[64, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [32, 0]]>

// What is read elsewhere too, and what is computed, is stored by those who have it. Another product's operand is read from the tile.
// CHECK-LABEL: func.func @stored
// CHECK-NEXT: %[[B:.*]] = warp.alloc : <16x16xf16
// CHECK-NEXT: %[[X:.*]] = tile.load
// CHECK-NEXT: warp.store_shared %[[X]], %[[B]]
// CHECK-NEXT: arith.negf %[[X]]
// CHECK: %[[A:.*]] = warp.alloc : <64x16xf16
// CHECK-NEXT: %[[N:.*]] = arith.negf %arg1
// CHECK-NEXT: warp.store_shared %[[N]], %[[A]]
// CHECK-NEXT: warp.wgmma %[[A]], %[[B]]
// CHECK-NEXT: warp.wgmma_wait
// CHECK-NEXT: warp.dealloc %[[A]]
// CHECK-NEXT: warp.load_shared %[[B]]
// CHECK-NEXT: warp.dealloc %[[B]]
// CHECK-NEXT: warp.mma
module attributes {warp.target = "sm_90a"} {
  func.func @stored(%p: tensor<16x16x!tile.ptr<f16>, #load>, %x: tensor<64x16xf16, #la>, %c: tensor<64x16xf32, #a>, %q: tensor<64x16xf16, #a>) -> (tensor<64x16xf32, #a>, tensor<16x16xf16, #load>) {
    %l = tile.load %p {warp.contiguity = 8 : i32} : tensor<16x16x!tile.ptr<f16>, #load>
    %y = arith.negf %l : tensor<16x16xf16, #load>
    %n = arith.negf %x : tensor<64x16xf16, #la>
    %d = warp.wgmma %n, %l, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #la> * tensor<16x16xf16, #load> -> tensor<64x16xf32, #a>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #a>
    %m = warp.convert_layout %l : tensor<16x16xf16, #load> -> tensor<16x16xf16, #b>
    %f = warp.mma %q, %m, %e {shape = array<i32: 16, 8, 16>} : tensor<64x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<64x16xf32, #a>
    return %f, %y : tensor<64x16xf32, #a>, tensor<16x16xf16, #load>
  }
}

// -----

#load = #warp.layout<[16, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [0, 0]]>
#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [0, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [0, 32]]>

// Two warpgroups take 32 columns each: lines along them have 64 bytes, so that each begins with one.
// CHECK-DAG: #[[$HALVED:.*]] = #warp.layout<[16, 64], offset = {{\[}}[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [0, 32]]>
// CHECK-LABEL: func.func @columns_split
// CHECK-NEXT: warp.alloc : <16x64xf16, #[[$HALVED]]>
module attributes {warp.target = "sm_90a"} {
  func.func @columns_split(%p: tensor<16x64x!tile.ptr<f16>, #load>, %a: tensor<64x16xf16, #a>, %c: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc> {
    %b = tile.load %p {warp.contiguity = 8 : i32} : tensor<16x64x!tile.ptr<f16>, #load>
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 32, 16>} : tensor<64x16xf16, #a> * tensor<16x64xf16, #load> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    return %e : tensor<64x64xf32, #acc>
  }
}

// -----

#load = #warp.layout<[64, 64], register = [[32, 0], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[0, 1], [0, 2]]>
#a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// Elements that lanes load one by one lie in lines along their fellows', so that a warp stores neighbours.
// CHECK-DAG: #[[$K:.*]] = #warp.layout<[64, 64], offset = {{\[}}[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>
// CHECK-LABEL: func.func @one_by_one
// CHECK-NEXT: warp.alloc : <64x64xf16, #[[$K]]>
module attributes {warp.target = "sm_90a"} {
  func.func @one_by_one(%b: tensor<64x64xf16, #load>, %a: tensor<64x64xf16, #a>, %c: tensor<64x64xf32, #a>) -> tensor<64x64xf32, #a> {
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #load> -> tensor<64x64xf32, #a>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #a>
    return %e : tensor<64x64xf32, #a>
  }
}
