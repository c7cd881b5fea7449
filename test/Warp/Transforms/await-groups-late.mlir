// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-await-copies-late | FileCheck %s

#q = #warp.layout<[64], register = [[1], [2]], lane = [[4], [8], [16], [32], [0]], warp = [[0], [0]]>
#t = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>

// The ring's first copies are two groups, behind which the wait stands, with what is read and computed then.
// CHECK-LABEL: func.func @plain
// CHECK: warp.async_commit
// CHECK-NOT: warp.async_wait
// CHECK: warp.alloc : <stages = 3
// CHECK-NEXT: warp.barrier
// CHECK: warp.async_commit
// CHECK: warp.async_commit
// CHECK-NEXT: warp.async_wait {pending = 2 : i32}
// CHECK-NEXT: %[[X:.*]] = warp.load_shared
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[X]]
// CHECK-NEXT: scf.for
// CHECK: arith.addf %{{.*}}, %[[Y]]
// CHECK: }
// CHECK-NEXT: warp.dealloc
func.func @plain(%p: tensor<64x!tile.ptr<f32>, #q>, %n: i32, %zero: tensor<64xf32, #q>) -> tensor<64xf32, #q>
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = warp.alloc : !warp.shared<64xf32, #t>
  warp.async_copy %p to %s {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  warp.async_commit
  warp.async_wait {pending = 0 : i32}
  %x = warp.load_shared %s : !warp.shared<64xf32, #t> -> tensor<64xf32, #q>
  warp.dealloc %s : !warp.shared<64xf32, #t>
  %y = arith.addf %x, %x : tensor<64xf32, #q>
  %ring = warp.alloc : !warp.shared<stages = 3, 64xf32, #t>
  warp.barrier
  %t0 = warp.stage %ring[%c0] : !warp.shared<stages = 3, 64xf32, #t> -> !warp.shared<64xf32, #t>
  warp.async_copy %p to %t0 {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  warp.async_commit
  %more = arith.cmpi slt, %c1, %n : i32
  scf.if %more {
    %t1 = warp.stage %ring[%c1] : !warp.shared<stages = 3, 64xf32, #t> -> !warp.shared<64xf32, #t>
    warp.async_copy %p to %t1 {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  }
  warp.async_commit
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64xf32, #q>) : i32 {
    warp.async_wait {pending = 1 : i32}
    warp.barrier
    %next = arith.addf %sum, %y : tensor<64xf32, #q>
    scf.yield %next : tensor<64xf32, #q>
  }
  return %r : tensor<64xf32, #q>
}

// -----

#q = #warp.layout<[64], register = [[1], [2]], lane = [[4], [8], [16], [32], [0]], warp = [[0], [0]]>
#t = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>

// In a branch: the other side waits, and what is used behind is read again where it is, in another branch too. The tile is freed
// behind the last who reads it.
// CHECK-LABEL: func.func @branch
// CHECK: warp.async_commit
// CHECK-NOT: warp.async_wait
// CHECK: scf.if
// CHECK: warp.async_commit
// CHECK-NEXT: warp.async_wait {pending = 1 : i32}
// CHECK-NEXT: %[[X:.*]] = warp.load_shared %[[TILE:[0-9]+]]
// CHECK-NEXT: scf.for
// CHECK: } else {
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: scf.yield
// CHECK: scf.if
// CHECK-NEXT: %[[AGAIN:.*]] = warp.load_shared %[[TILE]]
// CHECK-NEXT: arith.addf %[[AGAIN]], %[[AGAIN]]
// CHECK: } else {
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: warp.dealloc %[[TILE]]
func.func @branch(%p: tensor<64x!tile.ptr<f32>, #q>, %n: i32, %any: i1, %other: i1, %zero: tensor<64xf32, #q>) -> (tensor<64xf32, #q>, tensor<64xf32, #q>)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = warp.alloc : !warp.shared<64xf32, #t>
  warp.async_copy %p to %s {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  warp.async_commit
  warp.async_wait {pending = 0 : i32}
  %x = warp.load_shared %s : !warp.shared<64xf32, #t> -> tensor<64xf32, #q>
  warp.dealloc %s : !warp.shared<64xf32, #t>
  %r = scf.if %any -> (tensor<64xf32, #q>) {
    %ring = warp.alloc : !warp.shared<stages = 2, 64xf32, #t>
    warp.barrier
    %t0 = warp.stage %ring[%c0] : !warp.shared<stages = 2, 64xf32, #t> -> !warp.shared<64xf32, #t>
    warp.async_copy %p to %t0 {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
    warp.async_commit
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64xf32, #q>) : i32 {
      warp.async_wait {pending = 0 : i32}
      warp.barrier
      %next = arith.addf %sum, %x : tensor<64xf32, #q>
      scf.yield %next : tensor<64xf32, #q>
    }
    scf.yield %l : tensor<64xf32, #q>
  } else {
    scf.yield %zero : tensor<64xf32, #q>
  }
  %u = scf.if %other -> (tensor<64xf32, #q>) {
    %two = arith.addf %x, %x : tensor<64xf32, #q>
    scf.yield %two : tensor<64xf32, #q>
  } else {
    scf.yield %zero : tensor<64xf32, #q>
  }
  return %r, %u : tensor<64xf32, #q>, tensor<64xf32, #q>
}

// -----

#q = #warp.layout<[64], register = [[1], [2]], lane = [[4], [8], [16], [32], [0]], warp = [[0], [0]]>
#t = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>

// Without copies of a ring's, where the tile is read by others too, or where something is written before, nothing moves.
// CHECK-LABEL: func.func @alone
// CHECK: warp.async_commit
// CHECK-NEXT: warp.async_wait
// CHECK-NEXT: warp.load_shared
func.func @alone(%p: tensor<64x!tile.ptr<f32>, #q>, %n: i32, %zero: tensor<64xf32, #q>) -> tensor<64xf32, #q> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = warp.alloc : !warp.shared<64xf32, #t>
  warp.async_copy %p to %s {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  warp.async_commit
  warp.async_wait {pending = 0 : i32}
  %x = warp.load_shared %s : !warp.shared<64xf32, #t> -> tensor<64xf32, #q>
  warp.dealloc %s : !warp.shared<64xf32, #t>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64xf32, #q>) : i32 {
    %next = arith.addf %sum, %x : tensor<64xf32, #q>
    scf.yield %next : tensor<64xf32, #q>
  }
  return %r : tensor<64xf32, #q>
}
// CHECK-LABEL: func.func @shared
// CHECK: warp.async_commit
// CHECK-NEXT: warp.async_wait
// CHECK-NEXT: warp.load_shared
func.func @shared(%p: tensor<64x!tile.ptr<f32>, #q>, %n: i32, %zero: tensor<64xf32, #q>) -> tensor<64xf32, #q> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = warp.alloc : !warp.shared<64xf32, #t>
  warp.async_copy %p to %s {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  warp.async_commit
  warp.async_wait {pending = 0 : i32}
  %x = warp.load_shared %s : !warp.shared<64xf32, #t> -> tensor<64xf32, #q>
  %u = warp.alloc : !warp.shared<64xf32, #t>
  warp.async_copy %p to %u {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  warp.async_commit
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64xf32, #q>) : i32 {
    %y = warp.load_shared %s : !warp.shared<64xf32, #t> -> tensor<64xf32, #q>
    %z = arith.addf %x, %y : tensor<64xf32, #q>
    %next = arith.addf %sum, %z : tensor<64xf32, #q>
    scf.yield %next : tensor<64xf32, #q>
  }
  warp.dealloc %s : !warp.shared<64xf32, #t>
  return %r : tensor<64xf32, #q>
}
// CHECK-LABEL: func.func @stored
// CHECK: warp.async_commit
// CHECK-NEXT: warp.async_wait
// CHECK-NEXT: warp.load_shared
func.func @stored(%p: tensor<64x!tile.ptr<f32>, #q>, %n: i32, %zero: tensor<64xf32, #q>) -> tensor<64xf32, #q> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = warp.alloc : !warp.shared<64xf32, #t>
  warp.async_copy %p to %s {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  warp.async_commit
  warp.async_wait {pending = 0 : i32}
  %x = warp.load_shared %s : !warp.shared<64xf32, #t> -> tensor<64xf32, #q>
  warp.dealloc %s : !warp.shared<64xf32, #t>
  tile.store %p, %zero : tensor<64x!tile.ptr<f32>, #q>
  %u = warp.alloc : !warp.shared<64xf32, #t>
  warp.async_copy %p to %u {contiguity = 4 : i32} : tensor<64x!tile.ptr<f32>, #q> -> !warp.shared<64xf32, #t>
  warp.async_commit
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64xf32, #q>) : i32 {
    %next = arith.addf %sum, %x : tensor<64xf32, #q>
    scf.yield %next : tensor<64xf32, #q>
  }
  return %r : tensor<64xf32, #q>
}

// -----

#q = #warp.layout<[8192], register = [[1], [2], [4], [8], [16], [32]], lane = [[64], [128], [256], [512], [1024]], warp = [[2048], [4096]]>
#t = #warp.layout<[8192], offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256], [512], [1024], [2048], [4096]]>

// Four blocks of 32 KB are resident on a multiprocessor, and of 64 KB two.
// CHECK-LABEL: func.func @large
// CHECK: warp.async_commit
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: warp.load_shared
func.func @large(%p: tensor<8192x!tile.ptr<f32>, #q>, %n: i32, %zero: tensor<8192xf32, #q>) -> tensor<8192xf32, #q>
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = warp.alloc : !warp.shared<8192xf32, #t>
  warp.async_copy %p to %s {contiguity = 4 : i32} : tensor<8192x!tile.ptr<f32>, #q> -> !warp.shared<8192xf32, #t>
  warp.async_commit
  warp.async_wait {pending = 0 : i32}
  %x = warp.load_shared %s : !warp.shared<8192xf32, #t> -> tensor<8192xf32, #q>
  warp.dealloc %s : !warp.shared<8192xf32, #t>
  %u = warp.alloc : !warp.shared<8192xf32, #t>
  warp.async_copy %p to %u {contiguity = 4 : i32} : tensor<8192x!tile.ptr<f32>, #q> -> !warp.shared<8192xf32, #t>
  warp.async_commit
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<8192xf32, #q>) : i32 {
    %next = arith.addf %sum, %x : tensor<8192xf32, #q>
    scf.yield %next : tensor<8192xf32, #q>
  }
  return %r : tensor<8192xf32, #q>
}
