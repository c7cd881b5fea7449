// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-stage-operands | FileCheck %s

#load = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[64, 64], register = [[1, 0], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#loadT = #warp.layout<[64, 64], register = [[1, 0], [2, 0], [4, 0], [0, 16], [0, 32]], lane = [[8, 0], [16, 0], [32, 0], [0, 1], [0, 2]], warp = [[0, 4], [0, 8]]>
#line = #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], warp = [[32], [0]]>
#across = #warp.layout<[64], register = [[1], [8], [16], [32]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>
#row = #warp.layout<[1, 64], register = [[0, 1], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#loadBytes = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [0, 8], [32, 0]], lane = [[0, 16], [0, 32], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]]>
#aBytes = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [8, 0], [0, 16], [0, 32], [16, 0]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[32, 0], [0, 0]]>
#bBytes = #warp.layout<[64, 64], register = [[1, 0], [2, 0], [16, 0], [32, 0], [0, 8], [0, 16]], lane = [[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 32]]>
#accBytes = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[32, 0], [0, 32]]>
module attributes {warp.target = "sm_80"} {

// Rows of 128 bytes: eight pieces of 16 bytes, each moved by xor with the row's number.

// CHECK-DAG: #[[$BYTES:.*]] = #warp.layout<[64, 64], offset = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [4, 16], [8, 32], [2, 0], [16, 0], [32, 0]]>
// CHECK-DAG: #[[$S:.*]] = #warp.layout<[64, 64], offset = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
// CHECK-LABEL: func.func @async
// CHECK: %[[T:.*]] = warp.alloc : <64x64xf16, #[[$S]]>
// CHECK: warp.async_copy %{{.*}} masked %{{.*}} to %[[T]] {contiguity = 8 : i32}
// CHECK-NEXT: warp.async_commit
// CHECK-NOT: tile.load
// CHECK: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: %[[A:.*]] = warp.load_shared %[[T]]
// CHECK-NEXT: warp.dealloc %[[T]]
// CHECK-NEXT: warp.mma %[[A]]
func.func @async(%p: tensor<64x64x!tile.ptr<f16>, #load>, %m: tensor<64x64xi1, #load>, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> {
  %zero = arith.constant dense<0.0> : tensor<64x64xf16, #load>
  %x = tile.load %p, %m, %zero {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load>
  %a = warp.convert_layout %x : tensor<64x64xf16, #load> -> tensor<64x64xf16, #a>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
  func.return %d : tensor<64x64xf32, #a>
}

// Where nobody says what lies outside of the mask, it is undefined; through L1 where that is asked for.

// CHECK-LABEL: func.func @undefined
// CHECK: warp.async_copy %{{.*}} masked %{{.*}} to %{{.*}} {contiguity = 8 : i32, throughL1, undefined}
func.func @undefined(%p: tensor<64x64x!tile.ptr<f16>, #load>, %m: tensor<64x64xi1, #load>, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> {
  %x = tile.load %p, %m {cache = #tile<cache ca>, warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load>
  %a = warp.convert_layout %x : tensor<64x64xf16, #load> -> tensor<64x64xf16, #a>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
  func.return %d : tensor<64x64xf32, #a>
}

// Copies of fewer than 16 bytes go through L1, where they have no priority.

// CHECK-LABEL: func.func @priority
// CHECK: tile.load
// CHECK-NOT: warp.async
func.func @priority(%p: tensor<64x64x!tile.ptr<f16>, #load>, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> {
  %x = tile.load %p {eviction = #tile<eviction evict_last>, warp.contiguity = 4 : i32} : tensor<64x64x!tile.ptr<f16>, #load>
  %a = warp.convert_layout %x : tensor<64x64xf16, #load> -> tensor<64x64xf16, #a>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
  func.return %d : tensor<64x64xf32, #a>
}

// cp.async fills with zeros only, and copies at least 4 bytes: these are loaded, and stored to the tile.

// CHECK-LABEL: func.func @other_is_one
// CHECK: %[[X:.*]] = tile.load
// CHECK: warp.store_shared %[[X]], %[[T:.*]] :
// CHECK-NOT: warp.async
// CHECK: warp.load_shared %[[T]]
func.func @other_is_one(%p: tensor<64x64x!tile.ptr<f16>, #load>, %m: tensor<64x64xi1, #load>, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> {
  %one = arith.constant dense<1.0> : tensor<64x64xf16, #load>
  %x = tile.load %p, %m, %one {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load>
  %a = warp.convert_layout %x : tensor<64x64xf16, #load> -> tensor<64x64xf16, #a>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
  func.return %d : tensor<64x64xf32, #a>
}

// CHECK-LABEL: func.func @two_bytes_at_a_time
// CHECK: tile.load
// CHECK: warp.store_shared
// CHECK-NOT: warp.async
func.func @two_bytes_at_a_time(%p: tensor<64x64x!tile.ptr<f16>, #load>, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> {
  %x = tile.load %p {warp.contiguity = 1 : i32} : tensor<64x64x!tile.ptr<f16>, #load>
  %a = warp.convert_layout %x : tensor<64x64xf16, #load> -> tensor<64x64xf16, #a>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
  func.return %d : tensor<64x64xf32, #a>
}

// A transposition is done by reading the tile the other way round.

// CHECK-LABEL: func.func @transposed
// CHECK: %[[T:.*]] = warp.alloc
// CHECK: %[[V:.*]] = warp.permute_shared %[[T]] {order = array<i32: 1, 0>}
// CHECK: warp.load_shared %[[V]]
// CHECK-NOT: tile.permute
func.func @transposed(%p: tensor<64x64x!tile.ptr<f16>, #load>, %a: tensor<64x64xf16, #a>, %c: tensor<64x64xf32, #a>)
    -> tensor<64x64xf32, #a> {
  %x = tile.load %p {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load>
  %t = tile.permute %x {order = array<i32: 1, 0>} : tensor<64x64xf16, #load> -> tensor<64x64xf16, #loadT>
  %b = warp.convert_layout %t : tensor<64x64xf16, #loadT> -> tensor<64x64xf16, #b>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
  func.return %d : tensor<64x64xf32, #a>
}

// A value that something else needs too stays in registers.

// CHECK-LABEL: func.func @also_used_elsewhere
// CHECK: tile.load
// CHECK: warp.convert_layout
// CHECK-NOT: warp.alloc
func.func @also_used_elsewhere(%p: tensor<64x64x!tile.ptr<f16>, #load>, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
    -> (tensor<64x64xf32, #a>, tensor<64x64xf16, #load>) {
  %x = tile.load %p {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load>
  %a = warp.convert_layout %x : tensor<64x64xf16, #load> -> tensor<64x64xf16, #a>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
  func.return %d, %x : tensor<64x64xf32, #a>, tensor<64x64xf16, #load>
}

// A vector that a loop with products reads in another layout is copied with their operands; outside of such a loop it stays.

// CHECK-LABEL: func.func @vector
// CHECK: tile.load
// CHECK: scf.for
// CHECK: %[[T:.*]] = warp.alloc : <64xf32
// CHECK: warp.async_copy %{{.*}} to %[[T]] {contiguity = 1 : i32}
// CHECK: warp.async_wait
// CHECK-NEXT: %[[V:.*]] = warp.load_shared %[[T]]
// CHECK: tile.expand_dims %[[V]]
// CHECK-NOT: tile.load
// CHECK: scf.yield
func.func @vector(%p: tensor<64x!tile.ptr<f32>, #line>, %a: tensor<64x64xf16, #a>, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>,
                  %n: i32) -> (tensor<64x64xf32, #a>, tensor<64xf32, #across>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %before = tile.load %p {warp.contiguity = 1 : i32} : tensor<64x!tile.ptr<f32>, #line>
  %outside = warp.convert_layout %before : tensor<64xf32, #line> -> tensor<64xf32, #across>
  %d = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c) -> tensor<64x64xf32, #a> : i32 {
    %x = tile.load %p {warp.contiguity = 1 : i32} : tensor<64x!tile.ptr<f32>, #line>
    %v = warp.convert_layout %x : tensor<64xf32, #line> -> tensor<64xf32, #across>
    %r = tile.expand_dims %v {axis = 0 : i32} : tensor<64xf32, #across> -> tensor<1x64xf32, #row>
    %m = tile.broadcast %r : tensor<1x64xf32, #row> -> tensor<64x64xf32, #a>
    %q = warp.mma %a, %b, %m {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
    %t = arith.addf %s, %q : tensor<64x64xf32, #a>
    scf.yield %t : tensor<64x64xf32, #a>
  }
  func.return %d, %outside : tensor<64x64xf32, #a>, tensor<64xf32, #across>
}

// An index is not: what it addresses is read once it is there, which registers can see to an iteration before.

// CHECK-LABEL: func.func @index
// CHECK-NOT: warp.async_copy
// CHECK: scf.for
// CHECK-NEXT: %[[X:.*]] = tile.load
// CHECK-NEXT: warp.convert_layout %[[X]]
// CHECK-NOT: warp.async_copy
// CHECK: scf.yield
func.func @index(%p: tensor<64x!tile.ptr<i32>, #line>, %q: tensor<64x!tile.ptr<f32>, #across>, %a: tensor<64x64xf16, #a>,
                 %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>, %n: i32) -> tensor<64x64xf32, #a> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %d = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c) -> tensor<64x64xf32, #a> : i32 {
    %x = tile.load %p {warp.contiguity = 1 : i32} : tensor<64x!tile.ptr<i32>, #line>
    %at = warp.convert_layout %x : tensor<64xi32, #line> -> tensor<64xi32, #across>
    %there = tile.addptr %q, %at : tensor<64x!tile.ptr<f32>, #across>, tensor<64xi32, #across>
    %v = tile.load %there {warp.contiguity = 1 : i32} : tensor<64x!tile.ptr<f32>, #across>
    %r = tile.expand_dims %v {axis = 0 : i32} : tensor<64xf32, #across> -> tensor<1x64xf32, #row>
    %m = tile.broadcast %r : tensor<1x64xf32, #row> -> tensor<64x64xf32, #a>
    %t = warp.mma %a, %b, %m {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
    scf.yield %t : tensor<64x64xf32, #a>
  }
  func.return %d : tensor<64x64xf32, #a>
}

// Tiles that are read in one place are awaited once.

// CHECK-LABEL: func.func @both_in_a_branch
// CHECK-COUNT-2: warp.async_commit
// CHECK: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: scf.if
// CHECK-COUNT-2: warp.load_shared
// CHECK-NOT: warp.async_wait
// CHECK: return
func.func @both_in_a_branch(%p: tensor<64x64x!tile.ptr<f16>, #load>, %q: tensor<64x64x!tile.ptr<f16>, #load>, %x: i1,
                            %c: tensor<64x64xf32, #a>) -> tensor<64x64xf32, #a> {
  %l = tile.load %p {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load>
  %r = tile.load %q {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load>
  %y = scf.if %x -> tensor<64x64xf32, #a> {
    %a = warp.convert_layout %l : tensor<64x64xf16, #load> -> tensor<64x64xf16, #a>
    %b = warp.convert_layout %r : tensor<64x64xf16, #load> -> tensor<64x64xf16, #b>
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
    scf.yield %d : tensor<64x64xf32, #a>
  } else {
    scf.yield %c : tensor<64x64xf32, #a>
  }
  func.return %y : tensor<64x64xf32, #a>
}

// Bytes along whose lines a product does not sum are read one by one, from lines that are four apart: these are told
// apart by the swizzle, after the lines of 64 bytes that copies write together.

// CHECK-LABEL: func.func @bytes
// CHECK: warp.alloc : <64x64xi8, #[[$BYTES]]>
func.func @bytes(%p: tensor<64x64x!tile.ptr<i8>, #loadBytes>, %a: tensor<64x64xi8, #aBytes>, %c: tensor<64x64xi32, #accBytes>)
    -> tensor<64x64xi32, #accBytes> {
  %x = tile.load %p {warp.contiguity = 16 : i32} : tensor<64x64x!tile.ptr<i8>, #loadBytes>
  %b = warp.convert_layout %x : tensor<64x64xi8, #loadBytes> -> tensor<64x64xi8, #bBytes>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 32>} : tensor<64x64xi8, #aBytes> * tensor<64x64xi8, #bBytes> -> tensor<64x64xi32, #accBytes>
  func.return %d : tensor<64x64xi32, #accBytes>
}
}

// -----

#load = #warp.layout<[64, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 16], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [32, 0]]>
#words = #warp.layout<[64, 32], register = [[0, 1], [8, 0], [0, 2], [0, 16]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#bWords = #warp.layout<[32, 8], register = [[1, 0], [2, 0], [16, 0]], lane = [[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#pairs = #warp.layout<[64, 32], register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#bPairs = #warp.layout<[32, 8], register = [[1, 0], [8, 0], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#acc = #warp.layout<[64, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
module attributes {warp.target = "sm_80"} {

// An operand that is widened, by words along K: they are read as they lie, by 'ldmatrix', with those of a register first.
// CHECK-DAG: #[[$READ:.*]] = #warp.layout<[64, 32], register = {{\[\[}}0, 1], [0, 2], [8, 0], [0, 16]], lane = {{\[\[}}0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp
// CHECK-DAG: #[[$WORDS:.*]] = #warp.layout<[64, 32], register = {{\[\[}}0, 1], [8, 0], [0, 2], [0, 16]], lane = {{\[\[}}0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp
// CHECK-LABEL: func.func @widened
// CHECK: warp.async_copy
// CHECK: %[[R:.*]] = warp.load_shared {{.*}} -> tensor<64x32xf8E5M2, #[[$READ]]>
// CHECK-NEXT: %[[W:.*]] = warp.convert_layout %[[R]] : {{.*}} -> tensor<64x32xf8E5M2, #[[$WORDS]]>
// CHECK: arith.extf %[[W]]
func.func @widened(%p: tensor<64x32x!tile.ptr<f8E5M2>, #load>, %b: tensor<32x8xf16, #bWords>, %c: tensor<64x8xf32, #acc>) -> tensor<64x8xf32, #acc> {
  %x = tile.load %p {warp.contiguity = 16 : i32} : tensor<64x32x!tile.ptr<f8E5M2>, #load>
  %y = warp.convert_layout %x : tensor<64x32xf8E5M2, #load> -> tensor<64x32xf8E5M2, #words>
  %a = arith.extf %y : tensor<64x32xf8E5M2, #words> to tensor<64x32xf16, #words>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<64x32xf16, #words> * tensor<32x8xf16, #bWords> -> tensor<64x8xf32, #acc>
  func.return %d : tensor<64x8xf32, #acc>
}

// By pairs it would be read two bytes at a time: an exchange reads wider pieces.
// CHECK-LABEL: func.func @widened_by_pairs
// CHECK-NOT: warp.alloc
// CHECK: return
func.func @widened_by_pairs(%p: tensor<64x32x!tile.ptr<f8E5M2>, #load>, %b: tensor<32x8xf16, #bPairs>, %c: tensor<64x8xf32, #acc>) -> tensor<64x8xf32, #acc> {
  %x = tile.load %p {warp.contiguity = 16 : i32} : tensor<64x32x!tile.ptr<f8E5M2>, #load>
  %y = warp.convert_layout %x : tensor<64x32xf8E5M2, #load> -> tensor<64x32xf8E5M2, #pairs>
  %a = arith.extf %y : tensor<64x32xf8E5M2, #pairs> to tensor<64x32xf16, #pairs>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<64x32xf16, #pairs> * tensor<32x8xf16, #bPairs> -> tensor<64x8xf32, #acc>
  func.return %d : tensor<64x8xf32, #acc>
}
}

// -----

#batch = #warp.layout<[4, 32, 16], register = [[0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 16, 0]], lane = [[0, 0, 8], [0, 1, 0], [0, 2, 0], [0, 4, 0], [0, 8, 0]], warp = [[1, 0, 0], [2, 0, 0]]>
#turned = #warp.layout<[32, 4, 16], register = [[0, 0, 1], [0, 0, 2], [0, 0, 4], [16, 0, 0]], lane = [[0, 0, 8], [1, 0, 0], [2, 0, 0], [4, 0, 0], [8, 0, 0]], warp = [[0, 1, 0], [0, 2, 0]]>
#wide = #warp.layout<[32, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[0, 16], [0, 32]]>
#a = #warp.layout<[64, 32], register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[32, 64], register = [[1, 0], [8, 0], [16, 0], [0, 8]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 16], [0, 32]]>
#sums = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#halves = #warp.layout<[4, 32, 4, 4], register = [[0, 0, 0, 1], [0, 0, 0, 2], [0, 0, 1, 0], [0, 16, 0, 0]], lane = [[0, 0, 2, 0], [0, 1, 0, 0], [0, 2, 0, 0], [0, 4, 0, 0], [0, 8, 0, 0]], warp = [[1, 0, 0, 0], [2, 0, 0, 0]]>
#parted = #warp.layout<[32, 4, 4, 4], register = [[0, 0, 0, 1], [0, 0, 0, 2], [0, 1, 0, 0], [16, 0, 0, 0]], lane = [[0, 2, 0, 0], [1, 0, 0, 0], [2, 0, 0, 0], [4, 0, 0, 0], [8, 0, 0, 0]], warp = [[0, 0, 1, 0], [0, 0, 2, 0]]>
#apart = #warp.layout<[32, 64], register = [[0, 1], [0, 2], [0, 16], [16, 0]], lane = [[0, 32], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[0, 4], [0, 8]]>
module attributes {warp.target = "sm_80"} {

// A batch of matrices that a product takes as one: it is copied in the shape that it comes to have.
// CHECK-LABEL: func.func @batch
// CHECK: %[[Z:.*]] = tile.permute %{{.*}} {order = array<i32: 1, 0, 2>} : tensor<4x32x16x!tile.ptr<f16>,
// CHECK: %[[P:.*]] = tile.reshape %[[Z]] : {{.*}} -> tensor<32x64x!tile.ptr<f16>,
// CHECK: %[[N:.*]] = tile.permute %{{.*}} : tensor<4x32x16xi1,
// CHECK: %[[M:.*]] = tile.reshape %[[N]] : {{.*}} -> tensor<32x64xi1,
// CHECK: warp.async_copy %[[P]] masked %[[M]] to %[[S:.*]] {contiguity = 8 : i32}
// CHECK-NOT: tile.load
// CHECK: %[[B:.*]] = warp.load_shared %[[S]]
// CHECK: warp.mma %{{.*}}, %[[B]],
func.func @batch(%p: tensor<4x32x16x!tile.ptr<f16>, #batch>, %m: tensor<4x32x16xi1, #batch>, %a: tensor<64x32xf16, #a>, %c: tensor<64x16xf32, #sums>)
    -> tensor<64x16xf32, #sums> {
  %zero = arith.constant dense<0.0> : tensor<4x32x16xf16, #batch>
  %x = tile.load %p, %m, %zero {warp.contiguity = 8 : i32} : tensor<4x32x16x!tile.ptr<f16>, #batch>
  %t = tile.permute %x {order = array<i32: 1, 0, 2>} : tensor<4x32x16xf16, #batch> -> tensor<32x4x16xf16, #turned>
  %w = tile.reshape %t : tensor<32x4x16xf16, #turned> -> tensor<32x64xf16, #wide>
  %b = warp.convert_layout %w : tensor<32x64xf16, #wide> -> tensor<32x64xf16, #b>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x16xf32, #sums>
  func.return %d : tensor<64x16xf32, #sums>
}

// Not where something else takes what was loaded, ...
// CHECK-LABEL: func.func @batch_taken
// CHECK: tile.load
// CHECK-NOT: warp.async_copy
func.func @batch_taken(%p: tensor<4x32x16x!tile.ptr<f16>, #batch>, %a: tensor<64x32xf16, #a>, %c: tensor<64x16xf32, #sums>)
    -> (tensor<64x16xf32, #sums>, tensor<4x32x16xf16, #batch>) {
  %x = tile.load %p {warp.contiguity = 8 : i32} : tensor<4x32x16x!tile.ptr<f16>, #batch>
  %t = tile.permute %x {order = array<i32: 1, 0, 2>} : tensor<4x32x16xf16, #batch> -> tensor<32x4x16xf16, #turned>
  %w = tile.reshape %t : tensor<32x4x16xf16, #turned> -> tensor<32x64xf16, #wide>
  %b = warp.convert_layout %w : tensor<32x64xf16, #wide> -> tensor<32x64xf16, #b>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x16xf32, #sums>
  func.return %d, %x : tensor<64x16xf32, #sums>, tensor<4x32x16xf16, #batch>
}

// ... nor where a lane's eight neighbours come to lie apart.
// CHECK-LABEL: func.func @batch_parted
// CHECK: tile.load
// CHECK-NOT: warp.async_copy
func.func @batch_parted(%p: tensor<4x32x16x!tile.ptr<f16>, #batch>, %a: tensor<64x32xf16, #a>, %c: tensor<64x16xf32, #sums>)
    -> tensor<64x16xf32, #sums> {
  %x = tile.load %p {warp.contiguity = 8 : i32} : tensor<4x32x16x!tile.ptr<f16>, #batch>
  %h = tile.reshape %x : tensor<4x32x16xf16, #batch> -> tensor<4x32x4x4xf16, #halves>
  %t = tile.permute %h {order = array<i32: 1, 2, 0, 3>} : tensor<4x32x4x4xf16, #halves> -> tensor<32x4x4x4xf16, #parted>
  %w = tile.reshape %t : tensor<32x4x4x4xf16, #parted> -> tensor<32x64xf16, #apart>
  %b = warp.convert_layout %w : tensor<32x64xf16, #apart> -> tensor<32x64xf16, #b>
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x16xf32, #sums>
  func.return %d : tensor<64x16xf32, #sums>
}
}
