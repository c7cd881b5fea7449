// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-await-copies-late | FileCheck %s

#q = #warp.layout<[64], register = [[1], [2]], lane = [[4], [8], [16], [32], [0]], warp = [[0], [0]]>
#t = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
#b = #warp.layout<[1], offset = []>

// Both copies arrive beside the ring's first.
// CHECK-LABEL: func.func @plain
// CHECK-COUNT-2: warp.async_commit
// CHECK-NOT: warp.async_wait
// CHECK: warp.mbarrier_init
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: warp.proxy_fence
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.load_shared
// CHECK-NOT: warp.async_wait
func.func @plain(%p: tensor<64x!tile.ptr<f32>, #q>) -> tensor<64xf32, #q> {
  %s = warp.alloc : !warp.shared<64xf32, #t>
  warp.async_copy %p to %s {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  warp.async_commit
  warp.async_wait {pending = 0 : i32}
  %u = warp.alloc : !warp.shared<64xf32, #t>
  warp.async_copy %p to %u {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  warp.async_commit
  warp.async_wait {pending = 0 : i32}
  %ring = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
  warp.proxy_fence
  warp.barrier
  warp.mbarrier_init %ring {arrivals = array<i64: 1>} : !warp.shared<stages = 2, 1xi64, #b>
  warp.barrier
  %x = warp.load_shared %s : !warp.shared<64xf32, #t> -> tensor<64xf32, #q>
  return %x : tensor<64xf32, #q>
}

// -----

#q = #warp.layout<[64], register = [[1], [2]], lane = [[4], [8], [16], [32], [0]], warp = [[0], [0]]>
#t = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
#b = #warp.layout<[1], offset = []>

// Where the ring is in a branch, what is behind the branch waits too.
// CHECK-LABEL: func.func @branch
// CHECK: warp.async_commit
// CHECK-NEXT: scf.if
// CHECK: warp.mbarrier_init
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: warp.proxy_fence
// CHECK-NEXT: warp.barrier
// CHECK: }
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: warp.load_shared
func.func @branch(%p: tensor<64x!tile.ptr<f32>, #q>, %any: i1) -> tensor<64xf32, #q> {
  %s = warp.alloc : !warp.shared<64xf32, #t>
  warp.async_copy %p to %s {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  warp.async_commit
  warp.async_wait {pending = 0 : i32}
  scf.if %any {
    %ring = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
    warp.mbarrier_init %ring {arrivals = array<i64: 1>} : !warp.shared<stages = 2, 1xi64, #b>
    warp.barrier
  }
  %x = warp.load_shared %s : !warp.shared<64xf32, #t> -> tensor<64xf32, #q>
  return %x : tensor<64xf32, #q>
}

// -----

#q = #warp.layout<[64], register = [[1], [2]], lane = [[4], [8], [16], [32], [0]], warp = [[0], [0]]>
#t = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
#b = #warp.layout<[1], offset = []>

// What is read before the ring is there before it.
// CHECK-LABEL: func.func @read
// CHECK: warp.async_commit
// CHECK-NEXT: warp.async_wait
// CHECK-NEXT: warp.load_shared
// CHECK: warp.mbarrier_init
// CHECK-NOT: warp.async_wait
func.func @read(%p: tensor<64x!tile.ptr<f32>, #q>) -> tensor<64xf32, #q> {
  %s = warp.alloc : !warp.shared<64xf32, #t>
  warp.async_copy %p to %s {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  warp.async_commit
  warp.async_wait {pending = 0 : i32}
  %x = warp.load_shared %s : !warp.shared<64xf32, #t> -> tensor<64xf32, #q>
  %ring = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
  warp.mbarrier_init %ring {arrivals = array<i64: 1>} : !warp.shared<stages = 2, 1xi64, #b>
  warp.barrier
  return %x : tensor<64xf32, #q>
}

// -----

#q = #warp.layout<[64], register = [[1], [2]], lane = [[4], [8], [16], [32], [0]], warp = [[0], [0]]>
#t = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
#b = #warp.layout<[1], offset = []>

// Groups of copies into the ring would be waited for with it.
// CHECK-LABEL: func.func @groups
// CHECK: warp.async_commit
// CHECK-NEXT: warp.async_wait
// CHECK: warp.mbarrier_init
// CHECK: warp.barrier
// CHECK-NEXT: return
func.func @groups(%p: tensor<64x!tile.ptr<f32>, #q>, %r: !warp.shared<64xf32, #t>) {
  %s = warp.alloc : !warp.shared<64xf32, #t>
  warp.async_copy %p to %s {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  warp.async_commit
  warp.async_wait {pending = 0 : i32}
  %ring = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
  warp.mbarrier_init %ring {arrivals = array<i64: 1>} : !warp.shared<stages = 2, 1xi64, #b>
  warp.async_copy %p to %r {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  warp.async_commit
  warp.barrier
  return
}
