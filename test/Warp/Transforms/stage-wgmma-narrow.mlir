// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --pass-pipeline='builtin.module(func.func(warp-stage-wgmma))' --remarks-filter-missed=memory 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

#acc = #warp.layout<[64, 32], register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#along_k = #warp.layout<[32, 32], register = [[1, 0], [2, 0], [4, 0], [8, 0]], lane = [[16, 0], [0, 1], [0, 2], [0, 4], [0, 8]], warp = [[0, 16], [0, 0]]>
#along_n = #warp.layout<[32, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [0, 0]]>
#a = #warp.layout<[64, 32], register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// Tiles of 8 bits have their lines along K. What lies so in registers is copied; what does not is stored by those who have it.
// CHECK-DAG: #[[$B:.*]] = #warp.layout<[32, 32], offset = {{\[}}[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1], [0, 2], [16, 4], [0, 8], [0, 16]]>
// CHECK-DAG: #[[$A:.*]] = #warp.layout<[64, 32], offset = {{\[}}[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 16], [8, 0], [16, 0], [32, 0]]>
// CHECK-LABEL: func.func @narrow
// CHECK: %[[COPIED:.*]] = warp.alloc : <32x32xi8, #[[$B]]>
// CHECK-NEXT: warp.async_copy %arg0 to %[[COPIED]] {contiguity = 16 : i32}
// CHECK: %[[STORED:.*]] = warp.alloc : <32x32xi8, #[[$B]]>
// CHECK-NEXT: %[[L:.*]] = tile.load %arg1
// CHECK-NEXT: warp.store_shared %[[L]], %[[STORED]]
// CHECK: %[[X:.*]] = warp.alloc : <64x32xi8, #[[$A]]>
// CHECK-NEXT: %[[V:.*]] = arith.addi
// CHECK-NEXT: warp.store_shared %[[V]], %[[X]]
// CHECK: warp.wgmma %[[X]], %[[COPIED]]
// CHECK: warp.wgmma %[[X]], %[[STORED]]
// REMARK-NOT: Function=narrow
// REMARK: Function=narrow | Reason="the tile's lines lie along another axis than memory's; threads load pieces of 16 bytes and store them to shared memory"
// REMARK-NOT: Function=narrow
module attributes {warp.target = "sm_90a"} {
  func.func @narrow(%p: tensor<32x32x!tile.ptr<i8>, #along_k>, %q: tensor<32x32x!tile.ptr<i8>, #along_n>, %x: tensor<64x32xi8, #a>, %c: tensor<64x32xi32, #acc>) -> tensor<64x32xi32, #acc> {
    %k = tile.load %p {warp.contiguity = 16 : i32} : tensor<32x32x!tile.ptr<i8>, #along_k>
    %n = tile.load %q {warp.contiguity = 16 : i32} : tensor<32x32x!tile.ptr<i8>, #along_n>
    %a = arith.addi %x, %x : tensor<64x32xi8, #a>
    %d = warp.wgmma %a, %k, %c {shape = array<i32: 64, 32, 32>} : tensor<64x32xi8, #a> * tensor<32x32xi8, #along_k> -> tensor<64x32xi32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x32xi32, #acc>
    %f = warp.wgmma %a, %n, %e {shape = array<i32: 64, 32, 32>} : tensor<64x32xi8, #a> * tensor<32x32xi8, #along_n> -> tensor<64x32xi32, #acc>
    %g = warp.wgmma_wait %f {pending = 0 : i32} : tensor<64x32xi32, #acc>
    return %g : tensor<64x32xi32, #acc>
  }
}
