// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --pass-pipeline='builtin.module(func.func(warp-allocate-shared))' --split-input-file --verify-diagnostics %s | FileCheck %s

#s = #warp.layout<[32, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#big = #warp.layout<[64, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]]>

// Two tiles that live together lie side by side, the larger first; one that comes after a dealloc takes the freed bytes.
// CHECK-LABEL: func.func @lifetimes
// CHECK-SAME: warp.shared_bytes = 6144 : i64
// CHECK: warp.alloc {offset = 4096 : i64}
// CHECK: warp.alloc {offset = 0 : i64}
// CHECK: warp.dealloc
// CHECK: warp.alloc {offset = 0 : i64}
module attributes {warp.target = "sm_80"} {
  func.func @lifetimes() {
    %a = warp.alloc : !warp.shared<32x32xf16, #s>
    %b = warp.alloc : !warp.shared<64x32xf16, #big>
    warp.dealloc %b : !warp.shared<64x32xf16, #big>
    %c = warp.alloc : !warp.shared<32x32xf16, #s>
    warp.dealloc %c : !warp.shared<32x32xf16, #s>
    warp.dealloc %a : !warp.shared<32x32xf16, #s>
    return
  }
}

// -----

#s = #warp.layout<[32, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>

// A ring is all its tiles, and lives through the loop that is between its alloc and its dealloc.
// CHECK-LABEL: func.func @ring
// CHECK-SAME: warp.shared_bytes = 8192 : i64
// CHECK: warp.alloc {offset = 0 : i64} : <stages = 3
// CHECK: scf.for
// CHECK: warp.alloc {offset = 6144 : i64}
// CHECK: warp.alloc {offset = 6144 : i64}
module attributes {warp.target = "sm_80"} {
  func.func @ring(%n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = warp.alloc : !warp.shared<stages = 3, 32x32xf16, #s>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %a = warp.alloc : !warp.shared<32x32xf16, #s>
      warp.dealloc %a : !warp.shared<32x32xf16, #s>
      %b = warp.alloc : !warp.shared<32x32xf16, #s>
      warp.dealloc %b : !warp.shared<32x32xf16, #s>
    }
    warp.dealloc %r : !warp.shared<stages = 3, 32x32xf16, #s>
    return
  }
}

// -----

#s = #warp.layout<[32, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#big = #warp.layout<[64, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]]>

// Rings of a loop are one: their first tiles side by side, then their second ones. A ring of other stages is not of them.
// CHECK-LABEL: func.func @rings
// CHECK-SAME: warp.shared_bytes = 18432 : i64
// CHECK: warp.alloc {offset = 0 : i64, pitch = 6144 : i64}
// CHECK: warp.alloc {offset = 2048 : i64, pitch = 6144 : i64}
// CHECK: warp.alloc {offset = 12288 : i64} : <stages = 3
module attributes {warp.target = "sm_80"} {
  func.func @rings() {
    %a = warp.alloc : !warp.shared<stages = 2, 32x32xf16, #s>
    %b = warp.alloc : !warp.shared<stages = 2, 64x32xf16, #big>
    %c = warp.alloc : !warp.shared<stages = 3, 32x32xf16, #s>
    warp.dealloc %c : !warp.shared<stages = 3, 32x32xf16, #s>
    warp.dealloc %a : !warp.shared<stages = 2, 32x32xf16, #s>
    warp.dealloc %b : !warp.shared<stages = 2, 64x32xf16, #big>
    return
  }
}

// -----

#rows = #warp.layout<[32, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#columns = #warp.layout<[32, 32], register = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]>
#reversed = #warp.layout<[32, 32], register = [[0, 16], [0, 8], [0, 4], [0, 2], [0, 1]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>

// Exchanges get scratch memory for as long as they run, one after the other apart from each other; a permutation of
// registers needs none.
// CHECK-LABEL: func.func @scratch
// CHECK-SAME: warp.shared_bytes = 6144 : i64
// CHECK: warp.convert_layout {{.*}} {warp.scratch = 0 : i64} : tensor<32x32xf32, #layout> -> tensor<32x32xf32, #layout1>
// CHECK: warp.convert_layout {{.*}} {warp.scratch = 4096 : i64} : tensor<32x32xf16, #layout1> -> tensor<32x32xf16, #layout>
// CHECK: warp.convert_layout %{{[a-z0-9]*}} : tensor<32x32xf32, #layout> -> tensor<32x32xf32, #layout2>
module attributes {warp.target = "sm_80"} {
  func.func @scratch(%x: tensor<32x32xf32, #rows>, %y: tensor<32x32xf16, #columns>) {
    %a = warp.convert_layout %x : tensor<32x32xf32, #rows> -> tensor<32x32xf32, #columns>
    %b = warp.convert_layout %y : tensor<32x32xf16, #columns> -> tensor<32x32xf16, #rows>
    %c = warp.convert_layout %x : tensor<32x32xf32, #rows> -> tensor<32x32xf32, #reversed>
    return
  }
}

// -----

#r = #warp.layout<[32, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#c = #warp.layout<[32, 32], register = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]>
#s = #warp.layout<[32, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!tile = tensor<32x32xf32, #r>
!other = tensor<32x32xf32, #c>
!shared = !warp.shared<32x32xf32, #s>

module attributes {warp.target = "sm_80"} {
// Of three exchanges in a row, whose own barriers order the first and the last, two lie apart.
// CHECK-LABEL: func.func @in_turn
// CHECK-SAME: warp.shared_bytes = 8192 : i64
// CHECK: warp.convert_layout {{.*}} {warp.scratch = 0 : i64}
// CHECK: warp.convert_layout {{.*}} {warp.scratch = 4096 : i64}
// CHECK: warp.convert_layout {{.*}} {warp.scratch = 0 : i64}
func.func @in_turn(%x: !tile) {
  %a = warp.convert_layout %x : !tile -> !other
  %b = warp.convert_layout %x : !tile -> !other
  %c = warp.convert_layout %x : !tile -> !other
  return
}

// In a loop the first one comes after the last one again.
// CHECK-LABEL: func.func @around
// CHECK-SAME: warp.shared_bytes = 12288 : i64
// CHECK: scf.for
// CHECK-DAG: warp.convert_layout {{.*}} {warp.scratch = 0 : i64}
// CHECK-DAG: warp.convert_layout {{.*}} {warp.scratch = 4096 : i64}
// CHECK-DAG: warp.convert_layout {{.*}} {warp.scratch = 8192 : i64}
func.func @around(%x: !tile, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %a = warp.convert_layout %x : !tile -> !other
    %b = warp.convert_layout %x : !tile -> !other
    %c = warp.convert_layout %x : !tile -> !other
  }
  return
}

// A tile that is written after a barrier may take the bytes of one that was read before it.
// CHECK-LABEL: func.func @ordered
// CHECK-SAME: warp.shared_bytes = 4096 : i64
func.func @ordered(%x: !tile) {
  %s = warp.alloc : !shared
  warp.store_shared %x, %s : !tile -> !shared
  %a = warp.load_shared %s : !shared -> !tile
  warp.dealloc %s : !shared
  warp.barrier
  %t = warp.alloc : !shared
  warp.store_shared %x, %t : !tile -> !shared
  warp.dealloc %t : !shared
  return
}
}

// -----

#r = #warp.layout<[128, 128], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [32, 0], [64, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#c = #warp.layout<[128, 128], register = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [0, 32], [0, 64]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]>
#small = #warp.layout<[32, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#turned = #warp.layout<[32, 32], register = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]>

// Two large ones apart would leave a multiprocessor too few blocks. There is room for the small one.
// CHECK-LABEL: func.func @room
// CHECK-SAME: warp.shared_bytes = 69632 : i64
// CHECK: warp.convert_layout {{.*}} {warp.scratch = 0 : i64}
// CHECK: warp.convert_layout {{.*}} {warp.scratch = 0 : i64}
// CHECK: warp.convert_layout {{.*}} {warp.scratch = 65536 : i64}
module attributes {warp.target = "sm_80"} {
  func.func @room(%x: tensor<128x128xf32, #r>, %y: tensor<32x32xf32, #small>) {
    %a = warp.convert_layout %x : tensor<128x128xf32, #r> -> tensor<128x128xf32, #c>
    %b = warp.convert_layout %x : tensor<128x128xf32, #r> -> tensor<128x128xf32, #c>
    %c = warp.convert_layout %y : tensor<32x32xf32, #small> -> tensor<32x32xf32, #turned>
    return
  }
}

// -----

#four = #warp.layout<[128], register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>
#one = #warp.layout<[128], register = [[32], [64]], lane = [[1], [2], [4], [8], [16]], warp = [[0], [0]]>

// A reduction over warps keeps one partial result for each; one inside a warp needs nothing.
// CHECK-LABEL: func.func @reductions
// CHECK-SAME: warp.shared_bytes = 16 : i64
// CHECK: tile.reduce %{{.*}} {axis = 0 : i32, warp.scratch = 0 : i64}
// CHECK: tile.reduce %{{[a-z0-9]*}} {axis = 0 : i32} :
module attributes {warp.target = "sm_80"} {
  func.func @reductions(%x: tensor<128xf32, #four>, %y: tensor<128xf32, #one>) {
    %a = tile.reduce %x {axis = 0 : i32} : (tensor<128xf32, #four>) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %s = arith.addf %p, %q : f32
      tile.yield %s : f32
    }
    %b = tile.reduce %y {axis = 0 : i32} : (tensor<128xf32, #one>) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %s = arith.addf %p, %q : f32
      tile.yield %s : f32
    }
    return
  }
}

// -----

#s = #warp.layout<[256, 256], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0]]>

// More than a block has: who wants how much, and what to do.
module attributes {warp.target = "sm_80"} {
  // expected-error @below {{expected at most 166912 bytes of shared memory, the limit of a block on 'sm_80', but got 393216}}
  // expected-note @below {{use smaller tiles or fewer stages}}
  func.func @too_much() {
    // expected-note @below {{262144 bytes for this}}
    %a = warp.alloc : !warp.shared<256x256xf32, #s>
    // expected-note @below {{131072 bytes for this}}
    %b = warp.alloc : !warp.shared<256x256xf16, #s>
    return
  }
}

// -----

#row = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
#line = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#r = #warp.layout<[8, 64], register = [[0, 1], [4, 0]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp = [[1, 0], [2, 0]]>

// A tile that bulk copies store begins where patterns of lines do, others where banks do.
// CHECK-LABEL: func.func @stored_box
// CHECK: warp.alloc {offset = 0 : i64} : <stages = 5, 64xf32
// CHECK: warp.alloc {offset = 1280 : i64} : <64xf32
// CHECK: warp.alloc {offset = 2048 : i64} : <8x64xf16
module attributes {warp.target = "sm_90a"} {
func.func @stored_box(%x: tensor<8x64xf16, #r>, %map: !warp.tensor_map, %i: i32) {
  %a = warp.alloc : !warp.shared<stages = 5, 64xf32, #row>
  %b = warp.alloc : !warp.shared<64xf32, #row>
  %s = warp.alloc : !warp.shared<8x64xf16, #line>
  warp.store_shared %x, %s : tensor<8x64xf16, #r> -> !warp.shared<8x64xf16, #line>
  warp.barrier
  %first = warp.is_first_thread
  scf.if %first {
    warp.box_store %s to %map[%i, %i] : !warp.shared<8x64xf16, #line>
  }
  return
}
}
