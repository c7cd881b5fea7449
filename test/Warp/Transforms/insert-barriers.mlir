// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --pass-pipeline='builtin.module(func.func(warp-allocate-shared,warp-insert-barriers))' --split-input-file %s | FileCheck %s

#r = #warp.layout<[32, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#c = #warp.layout<[32, 32], register = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]>
#s = #warp.layout<[32, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!tile = tensor<32x32xf32, #r>
!shared = !warp.shared<32x32xf32, #s>

module attributes {warp.target = "sm_80"} {
// A read waits for the write, a second read does not, the next write waits for the reads.
// CHECK-LABEL: func.func @straight
// CHECK: warp.store_shared
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.load_shared
// CHECK-NEXT: warp.load_shared
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.store_shared
// CHECK-NOT: warp.barrier
func.func @straight(%x: !tile) {
  %s = warp.alloc : !shared
  warp.store_shared %x, %s : !tile -> !shared
  %a = warp.load_shared %s : !shared -> !tile
  %b = warp.load_shared %s : !shared -> !tile
  warp.store_shared %x, %s : !tile -> !shared
  return
}

// Tiles that share no byte do not wait for each other, and a barrier that is there serves.
// CHECK-LABEL: func.func @nothing_to_do
// CHECK-COUNT-1: warp.barrier
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @nothing_to_do(%x: !tile) {
  %s = warp.alloc : !shared
  %t = warp.alloc : !shared
  warp.store_shared %x, %s : !tile -> !shared
  warp.store_shared %x, %t : !tile -> !shared
  warp.barrier
  %a = warp.load_shared %s : !shared -> !tile
  %b = warp.load_shared %t : !shared -> !tile
  warp.dealloc %s : !shared
  warp.dealloc %t : !shared
  return
}

// Around a loop: the write at its start waits for the read at its end.
// CHECK-LABEL: func.func @loop
// CHECK: scf.for
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.store_shared
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.load_shared
// CHECK-NEXT: }
func.func @loop(%x: !tile, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = warp.alloc : !shared
  scf.for %i = %c0 to %n step %c1 : i32 {
    warp.store_shared %x, %s : !tile -> !shared
    %a = warp.load_shared %s : !shared -> !tile
  }
  return
}

// A write in one branch is waited for behind both.
// CHECK-LABEL: func.func @branch
// CHECK: scf.if
// CHECK-NEXT: warp.store_shared
// CHECK-NEXT: }
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.load_shared
func.func @branch(%x: !tile, %p: i1) {
  %s = warp.alloc : !shared
  scf.if %p {
    warp.store_shared %x, %s : !tile -> !shared
  }
  %a = warp.load_shared %s : !shared -> !tile
  return
}

// A while loop is left from its first region, whose last read the write behind must wait for.
// CHECK-LABEL: func.func @while
// CHECK: scf.while
// CHECK: warp.load_shared
// CHECK: } do {
// CHECK-NEXT: warp.barrier
// CHECK: warp.barrier
// CHECK-NEXT: warp.store_shared
func.func @while(%x: !tile, %p: i1) {
  %s = warp.alloc : !shared
  scf.while : () -> () {
    %a = warp.load_shared %s : !shared -> !tile
    scf.condition(%p)
  } do {
    warp.barrier
    scf.yield
  }
  warp.store_shared %x, %s : !tile -> !shared
  return
}
}

// -----

#p = #warp.layout<[32, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0]]>
#r = #warp.layout<[32, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[0, 0]]>
#s = #warp.layout<[32, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!pointers = tensor<32x32x!tile.ptr<f16>, #p>
!tile = tensor<32x32xf16, #r>
!shared = !warp.shared<32x32xf16, #s>
!ring = !warp.shared<stages = 2, 32x32xf16, #s>

module attributes {warp.target = "sm_80"} {
// A copy is under way until its wait: a barrier before the wait orders nothing, the one after it does.
// CHECK-LABEL: func.func @async
// CHECK: warp.barrier
// CHECK-NEXT: warp.async_wait
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.load_shared
func.func @async(%q: !pointers) {
  %s = warp.alloc : !shared
  warp.async_copy %q to %s {contiguity = 8 : i32} : !pointers -> !shared
  warp.async_commit
  warp.barrier
  warp.async_wait {pending = 0 : i32}
  %a = warp.load_shared %s : !shared -> !tile
  return
}

// Where nothing waits, the wait is inserted with the barrier.
// CHECK-LABEL: func.func @unwaited
// CHECK: warp.async_commit
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.load_shared
func.func @unwaited(%q: !pointers) {
  %s = warp.alloc : !shared
  warp.async_copy %q to %s {contiguity = 8 : i32} : !pointers -> !shared
  warp.async_commit
  %a = warp.load_shared %s : !shared -> !tile
  return
}

// Of two barriers with nothing but arithmetic between, on all ways from the one to the other, one stays: that before a
// loop in a loop, which another one ends. Not where one way there has an access, or a wait for copies.
// CHECK-LABEL: func.func @repeated
// CHECK: scf.for
// CHECK-NOT: warp.barrier
// CHECK: warp.store_shared
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.load_shared
// CHECK-NEXT: warp.barrier
// CHECK-NOT: warp.barrier
// CHECK: scf.yield
// CHECK: warp.store_shared
// CHECK-NEXT: scf.if
// CHECK-NEXT: warp.barrier
// CHECK: warp.barrier
// CHECK-NEXT: warp.load_shared
func.func @repeated(%x: !tile, %p: i1, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> i32 : i32 {
    %s = warp.alloc : !shared
    warp.barrier
    warp.store_shared %x, %s : !tile -> !shared
    %a = warp.load_shared %s : !shared -> !tile
    warp.barrier
    warp.dealloc %s : !shared
    %next = arith.addi %sum, %i : i32
    warp.barrier
    scf.yield %next : i32
  }
  %t = warp.alloc : !shared
  warp.store_shared %x, %t : !tile -> !shared
  scf.if %p {
    warp.barrier
  }
  warp.barrier
  %b = warp.load_shared %t : !shared -> !tile
  return %r : i32
}

// A barrier has nothing to order before the first access to shared memory, or behind the last one.
// CHECK-LABEL: func.func @idle
// CHECK-NOT: warp.barrier
// CHECK: warp.async_copy
// CHECK: warp.barrier
// CHECK: warp.load_shared
// CHECK-NOT: warp.barrier
func.func @idle(%q: !pointers, %i: i32) {
  %r = warp.alloc : !ring
  warp.barrier
  %s = warp.stage %r[%i] : !ring -> !shared
  warp.async_copy %q to %s {contiguity = 8 : i32} : !pointers -> !shared
  warp.async_commit
  warp.async_wait {pending = 0 : i32}
  warp.barrier
  %a = warp.load_shared %s : !shared -> !tile
  warp.barrier
  warp.dealloc %r : !ring
  return
}

// Neither does a user's barrier go, which orders device memory too, nor one in a loop.
// CHECK-LABEL: func.func @kept
// CHECK: tile.barrier
// CHECK: scf.for
// CHECK-NEXT: warp.barrier
// CHECK: tile.barrier
func.func @kept(%x: !tile, %n: i32) {
  tile.barrier
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = warp.alloc : !shared
  scf.for %i = %c0 to %n step %c1 : i32 {
    warp.barrier
    warp.store_shared %x, %s : !tile -> !shared
  }
  warp.dealloc %s : !shared
  tile.barrier
  return
}

// Rings are the pipeline's business.
// CHECK-LABEL: func.func @ring
// CHECK-NOT: warp.barrier
func.func @ring(%q: !pointers, %i: i32) {
  %r = warp.alloc : !ring
  %s = warp.stage %r[%i] : !ring -> !shared
  warp.async_copy %q to %s {contiguity = 8 : i32} : !pointers -> !shared
  warp.async_commit
  warp.async_wait {pending = 0 : i32}
  %a = warp.load_shared %s : !shared -> !tile
  return
}
}

// -----

#r = #warp.layout<[128, 128], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [32, 0], [64, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#c = #warp.layout<[128, 128], register = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [0, 32], [0, 64]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]>
#s = #warp.layout<[128, 128], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0]]>
!large = tensor<128x128xf32, #r>
!many = !warp.shared<128x128xf32, #s>

module attributes {warp.target = "sm_80"} {
// Memory that is given to another tile is the same memory. These are too large to lie apart.
// CHECK-LABEL: func.func @reuse
// CHECK: warp.load_shared
// CHECK: warp.barrier
// CHECK-NEXT: warp.store_shared
func.func @reuse(%x: !large) {
  %s = warp.alloc : !many
  warp.store_shared %x, %s : !large -> !many
  %a = warp.load_shared %s : !many -> !large
  warp.dealloc %s : !many
  %t = warp.alloc : !many
  warp.store_shared %a, %t : !large -> !many
  return
}

// The scratch memory of an exchange: its own barrier lies between its writes and its reads, so that the next exchange waits for the reads only.
// CHECK-LABEL: func.func @exchanges
// CHECK: warp.convert_layout
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.convert_layout
// CHECK-NEXT: return
func.func @exchanges(%x: !large) {
  %a = warp.convert_layout %x : !large -> tensor<128x128xf32, #c>
  %b = warp.convert_layout %x : !large -> tensor<128x128xf32, #c>
  return
}
}

// -----

#line = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#r = #warp.layout<[8, 64], register = [[0, 1], [4, 0]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp = [[1, 0], [2, 0]]>

module attributes {warp.target = "sm_90a"} {
// A stored box reads its tile until one thread has waited for it: then come a barrier and what fills it again.
// CHECK-LABEL: func.func @boxes
// CHECK: warp.alloc {offset = 0 : i64}
// CHECK: scf.for
// CHECK: warp.box_wait
// CHECK-NEXT: }
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.store_shared
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: scf.if
// CHECK-NEXT: warp.box_store
func.func @boxes(%x: tensor<8x64xf16, #r>, %map: !warp.tensor_map, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %first = warp.is_first_thread
  %s = warp.alloc : !warp.shared<8x64xf16, #line>
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.if %first {
      warp.box_wait %s : !warp.shared<8x64xf16, #line>
    }
    warp.store_shared %x, %s : tensor<8x64xf16, #r> -> !warp.shared<8x64xf16, #line>
    warp.barrier
    scf.if %first {
      warp.box_store %s to %map[%c0, %i] : !warp.shared<8x64xf16, #line>
      warp.box_commit
    }
  }
  scf.if %first {
    warp.box_wait %s : !warp.shared<8x64xf16, #line>
  }
  warp.dealloc %s : !warp.shared<8x64xf16, #line>
  return
}
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
#r = #warp.layout<[16, 16], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>

module attributes {warp.target = "sm_90a"} {
// A product reads its tile until it has been waited for, which no barrier before that is: what takes the tile's place
// behind the loop waits for all warpgroups once more.
// CHECK-LABEL: func.func @products_under_way
// CHECK: scf.for
// CHECK: warp.wgmma
// CHECK-NEXT: warp.wgmma_wait {pending = 1 : i32}
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: scf.yield
// CHECK: warp.wgmma_wait %{{.*}} {pending = 0 : i32}
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.store_shared
// CHECK-NOT: warp.barrier
// CHECK: return
func.func @products_under_way(%a: tensor<64x16xf16, #acc>, %x: tensor<16x16xf16, #r>, %zero: tensor<64x16xf32, #acc>, %n: i32) -> tensor<64x16xf32, #acc> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s = warp.alloc : !warp.shared<16x16xf16, #b>
  warp.store_shared %x, %s : tensor<16x16xf16, #r> -> !warp.shared<16x16xf16, #b>
  warp.barrier
  %d = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<64x16xf32, #acc>) : i32 {
    %e = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #acc> * !warp.shared<16x16xf16, #b> -> tensor<64x16xf32, #acc>
    warp.wgmma_wait {pending = 1 : i32}
    warp.barrier
    scf.yield %e : tensor<64x16xf32, #acc>
  }
  %done = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #acc>
  warp.store_shared %x, %s : tensor<16x16xf16, #r> -> !warp.shared<16x16xf16, #b>
  return %done : tensor<64x16xf32, #acc>
}

// Where nothing has waited for the product, that comes first. Of two, the first alone may be waited for.
// CHECK-LABEL: func.func @none_has_waited
// CHECK: warp.wgmma
// CHECK-NEXT: warp.wgmma
// CHECK-NEXT: warp.wgmma_wait {pending = 1 : i32}
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.store_shared
// CHECK-NEXT: warp.wgmma_wait {pending = 0 : i32}
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.store_shared
// CHECK-NEXT: return
func.func @none_has_waited(%a: tensor<64x16xf16, #acc>, %x: tensor<16x16xf16, #r>, %zero: tensor<64x16xf32, #acc>) {
  %s = warp.alloc : !warp.shared<16x16xf16, #b>
  %t = warp.alloc : !warp.shared<16x16xf16, #b>
  %d = warp.wgmma %a, %s, %zero {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #acc> * !warp.shared<16x16xf16, #b> -> tensor<64x16xf32, #acc>
  %e = warp.wgmma %a, %t, %zero {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #acc> * !warp.shared<16x16xf16, #b> -> tensor<64x16xf32, #acc>
  warp.wgmma_wait {pending = 1 : i32}
  warp.store_shared %x, %s : tensor<16x16xf16, #r> -> !warp.shared<16x16xf16, #b>
  warp.store_shared %x, %t : tensor<16x16xf16, #r> -> !warp.shared<16x16xf16, #b>
  return
}
}

// -----

// A declaration has no block to put a barrier in.
// CHECK-LABEL: func.func private @declared
func.func private @declared(!warp.shared<4xf32, #warp.layout<[4], offset = [[1], [2]]>>)
