// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --pass-pipeline='builtin.module(func.func(warp-insert-proxy-fences))' --split-input-file | FileCheck %s

#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#r = #warp.layout<[16, 16], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>

// A store, then a barrier: a fence between, and none before a barrier that nothing more was written before. What no such product reads needs none.
// CHECK-LABEL: func.func @stored
// CHECK-NEXT: %[[S:.*]] = warp.alloc
// CHECK-NEXT: %[[T:.*]] = warp.alloc
// CHECK-NEXT: warp.store_shared %{{.*}}, %[[T]]
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.store_shared %{{.*}}, %[[S]]
// CHECK-NEXT: warp.proxy_fence
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.wgmma
// CHECK-NEXT: warp.wgmma_wait
// CHECK-NEXT: warp.barrier
func.func @stored(%a: tensor<64x16xf16, #a>, %x: tensor<16x16xf16, #r>, %c: tensor<64x16xf32, #a>) {
  %s = warp.alloc {offset = 0 : i64} : !warp.shared<16x16xf16, #s>
  %t = warp.alloc {offset = 512 : i64} : !warp.shared<16x16xf16, #s>
  warp.store_shared %x, %t : tensor<16x16xf16, #r> -> !warp.shared<16x16xf16, #s>
  warp.barrier
  warp.store_shared %x, %s : tensor<16x16xf16, #r> -> !warp.shared<16x16xf16, #s>
  warp.barrier
  %d = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #a>
  warp.barrier
  return
}

// -----

#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#r = #warp.layout<[16, 16], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>

// Copies into a ring are there after a wait, in the next iteration: the fence comes behind it. A write in one branch counts.
// CHECK-LABEL: func.func @copied
// CHECK: scf.for
// CHECK-NEXT: warp.async_wait {pending = 1 : i32}
// CHECK-NEXT: warp.proxy_fence
// CHECK-NEXT: warp.barrier
// CHECK: warp.async_copy
// CHECK: scf.if
// CHECK-NEXT: warp.store_shared
// CHECK-NEXT: }
// CHECK-NEXT: warp.proxy_fence
// CHECK-NEXT: warp.convert_layout
func.func @copied(%p: tensor<16x16x!tile.ptr<f16>, #r>, %a: tensor<64x16xf16, #a>, %x: tensor<16x16xf16, #r>, %c: tensor<64x16xf32, #a>, %n: i32, %w: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %ring = warp.alloc {offset = 0 : i64} : !warp.shared<stages = 2, 16x16xf16, #s>
  scf.for %i = %c0 to %n step %c1 : i32 {
    warp.async_wait {pending = 1 : i32}
    warp.barrier
    %to = warp.stage %ring[%c1] : !warp.shared<stages = 2, 16x16xf16, #s> -> !warp.shared<16x16xf16, #s>
    warp.async_copy %p to %to {contiguity = 2 : i32} : tensor<16x16x!tile.ptr<f16>, #r> -> !warp.shared<16x16xf16, #s>
    warp.async_commit
    %s = warp.stage %ring[%c0] : !warp.shared<stages = 2, 16x16xf16, #s> -> !warp.shared<16x16xf16, #s>
    %d = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #a>
    scf.if %w {
      warp.store_shared %x, %s : tensor<16x16xf16, #r> -> !warp.shared<16x16xf16, #s>
    }
    %y = warp.convert_layout %x {warp.scratch = 1024 : i64} : tensor<16x16xf16, #r> -> tensor<16x16xf16, #r>
  }
  return
}

// -----

#line = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#r = #warp.layout<[8, 64], register = [[0, 1], [4, 0]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp = [[1, 0], [2, 0]]>

// Bulk copies read the tile that they store so too.
// CHECK-LABEL: func.func @box
// CHECK: warp.store_shared
// CHECK-NEXT: warp.proxy_fence
// CHECK-NEXT: warp.barrier
// CHECK-NOT: warp.proxy_fence
func.func @box(%x: tensor<8x64xf16, #r>, %map: !warp.tensor_map, %i: i32) {
  %s = warp.alloc {offset = 0 : i64} : !warp.shared<8x64xf16, #line>
  warp.store_shared %x, %s : tensor<8x64xf16, #r> -> !warp.shared<8x64xf16, #line>
  warp.barrier
  %first = warp.is_first_thread
  scf.if %first {
    warp.box_store %s to %map[%i, %i] : !warp.shared<8x64xf16, #line>
    warp.box_commit
    warp.box_wait %s : !warp.shared<8x64xf16, #line>
  }
  warp.barrier
  return
}
