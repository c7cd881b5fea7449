// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --pass-pipeline='builtin.module(func.func(warp-stage-wgmma))' --split-input-file | FileCheck %s

#acc = #warp.layout<[128, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#along_n = #warp.layout<[32, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>

// Where the target turns elements of 8 bits, a tile has its lines along memory's axis, and is copied as it lies.
// CHECK-DAG: #[[$B:.*]] = #warp.layout<[32, 32], offset = {{\[}}[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 16], [8, 0], [16, 0]]>
// CHECK-LABEL: func.func @copied
// CHECK: %[[B:.*]] = warp.alloc : <32x32xi8, #[[$B]]>
// CHECK-NEXT: warp.async_copy %arg0 to %[[B]] {contiguity = 16 : i32}
// CHECK: warp.wgmma %arg1, %[[B]]
module attributes {warp.target = "sm_100a"} {
  func.func @copied(%p: tensor<32x32x!tile.ptr<i8>, #along_n>, %a: tensor<128x32xi8, #acc>, %c: tensor<128x32xi32, #acc>) -> tensor<128x32xi32, #acc> {
    %b = tile.load %p {warp.contiguity = 16 : i32} : tensor<32x32x!tile.ptr<i8>, #along_n>
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 128, 32, 32>} : tensor<128x32xi8, #acc> * tensor<32x32xi8, #along_n> -> tensor<128x32xi32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<128x32xi32, #acc>
    return %e : tensor<128x32xi32, #acc>
  }
}

// -----

#acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#a = #warp.layout<[128, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#along_n = #warp.layout<[32, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[0, 0], [0, 0]]>

// 16 columns of 8 bits are no line: they are stored along K.
// CHECK-DAG: #[[$B:.*]] = #warp.layout<[32, 16], offset = {{\[}}[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1], [0, 2], [16, 4], [0, 8]]>
// CHECK-LABEL: func.func @stored
// CHECK: %[[B:.*]] = warp.alloc : <32x16xi8, #[[$B]]>
// CHECK-NEXT: %[[L:.*]] = tile.load %arg0
// CHECK-NEXT: warp.store_shared %[[L]], %[[B]]
module attributes {warp.target = "sm_100a"} {
  func.func @stored(%p: tensor<32x16x!tile.ptr<i8>, #along_n>, %a: tensor<128x32xi8, #a>, %c: tensor<128x16xi32, #acc>) -> tensor<128x16xi32, #acc> {
    %b = tile.load %p {warp.contiguity = 16 : i32} : tensor<32x16x!tile.ptr<i8>, #along_n>
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 128, 16, 32>} : tensor<128x32xi8, #a> * tensor<32x16xi8, #along_n> -> tensor<128x16xi32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<128x16xi32, #acc>
    return %e : tensor<128x16xi32, #acc>
  }
}
