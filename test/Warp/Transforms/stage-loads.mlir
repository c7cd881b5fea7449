// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-stage-loads | FileCheck %s

#x = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]]>
#a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [16, 0], [32, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[64, 8], register = [[1, 0], [8, 0], [16, 0], [32, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#c = #warp.layout<[64, 8], register = [[0, 1], [8, 0], [16, 0], [32, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]]>
!x = tensor<64x64xf16, #x>
!p = tensor<64x64x!tile.ptr<f16>, #x>
!a = tensor<64x64xf16, #a>
!b = tensor<64x8xf16, #b>
!c = tensor<64x8xf32, #c>
module attributes {warp.target = "sm_80"} {

// A tile that is scaled before its product: registers would have to hold 64 of it, and as many of the operand.
// CHECK-LABEL: func.func @scaled
// CHECK-SAME: (%[[P:.*]]: tensor<64x64x!tile.ptr<f16>,
// CHECK: scf.for
// CHECK-NEXT: %[[S:.*]] = warp.alloc : <64x64xf16,
// CHECK-NEXT: warp.async_copy %[[P]] to %[[S]] {contiguity = 8 : i32}
// CHECK-NEXT: warp.async_commit
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: %[[X:.*]] = warp.load_shared %[[S]]
// CHECK-NEXT: warp.dealloc %[[S]]
// CHECK-NEXT: arith.mulf %[[X]], %[[X]]
func.func @scaled(%p: !p, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %x = tile.load %p {warp.contiguity = 8 : i32} : !p
    %g = arith.mulf %x, %x : !x
    %a = warp.convert_layout %g : !x -> !a
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  return %r : !c
}

// Left alone: pieces of 8 bytes; memory that the loop writes; an address that the loop computes from a product.
// CHECK-LABEL: func.func @left
// CHECK-NOT: warp.alloc
// CHECK: return
func.func @left(%p: !p, %q: !p, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %x = tile.load %p {warp.contiguity = 4 : i32} : !p
    %y = tile.load %q {warp.contiguity = 8 : i32} : !p
    %g = arith.mulf %x, %y : !x
    tile.store %q, %g {warp.contiguity = 8 : i32} : !p
    %a = warp.convert_layout %g : !x -> !a
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  return %r : !c
}

// With one stage nothing is copied ahead.
// CHECK-LABEL: func.func @one_stage
// CHECK-NOT: warp.alloc
// CHECK: return
func.func @one_stage(%p: !p, %b: !b, %zero: !c, %n: i32) -> !c attributes {tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %x = tile.load %p {warp.contiguity = 8 : i32} : !p
    %g = arith.mulf %x, %x : !x
    %a = warp.convert_layout %g : !x -> !a
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  return %r : !c
}

// Shared memory has no room for so many stages.
// CHECK-LABEL: func.func @no_room
// CHECK-NOT: warp.alloc
// CHECK: return
func.func @no_room(%p: !p, %b: !b, %zero: !c, %n: i32) -> !c attributes {tile.schedule = #tile.schedule<warps = 1, stages = 12>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %x = tile.load %p {warp.contiguity = 8 : i32} : !p
    %g = arith.mulf %x, %x : !x
    %a = warp.convert_layout %g : !x -> !a
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  return %r : !c
}

// What threads store is no ring: there is one of it beside six stages of what is copied.
// CHECK-LABEL: func.func @stored
// CHECK: scf.for
// CHECK-NEXT: warp.alloc : <64x64xf16,
// CHECK-NEXT: warp.async_copy
// CHECK: arith.mulf
// CHECK: warp.store_shared
func.func @stored(%p: !p, %b: !b, %zero: !c, %n: i32) -> !c attributes {tile.schedule = #tile.schedule<warps = 1, stages = 6>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %x = tile.load %p {warp.contiguity = 8 : i32} : !p
    %g = arith.mulf %x, %x : !x
    %s = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.store_shared %g, %s : !x -> !warp.shared<64x64xf16, #s>
    %a = warp.load_shared %s : !warp.shared<64x64xf16, #s> -> !a
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    warp.dealloc %s : !warp.shared<64x64xf16, #s>
    scf.yield %d : !c
  }
  return %r : !c
}
}

// -----

#x = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]]>
#a = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[16, 8], register = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#c = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
!p = tensor<16x16x!tile.ptr<f16>, #x>
!c = tensor<16x8xf32, #c>

// Registers have room for a small tile.
// CHECK-LABEL: func.func @small
// CHECK-NOT: warp.alloc
// CHECK: return
module attributes {warp.target = "sm_80"} {
func.func @small(%p: !p, %b: tensor<16x8xf16, #b>, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %x = tile.load %p {warp.contiguity = 8 : i32} : !p
    %g = arith.mulf %x, %x : tensor<16x16xf16, #x>
    %a = warp.convert_layout %g : tensor<16x16xf16, #x> -> tensor<16x16xf16, #a>
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : tensor<16x16xf16, #a> * tensor<16x8xf16, #b> -> !c
    scf.yield %d : !c
  }
  return %r : !c
}
}

// -----

#x = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[0, 0]]>
#a = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 0]]>
#b = #warp.layout<[16, 8], register = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0]]>
#c = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 0]]>
#v = #warp.layout<[16], register = [[1], [2], [4]], lane = [[8], [0], [0], [0], [0]], warp = [[0]]>
#half = #warp.layout<[16], register = [[1], [2]], lane = [[4], [0], [0], [0], [0]], warp = [[8]]>
#few = #warp.layout<[8], register = [[1], [2], [4]], lane = [[0], [0], [0], [0], [0]], warp = [[0]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0]]>
!x = tensor<16x16xf16, #x>
!p = tensor<16x16x!tile.ptr<f16>, #x>
!a = tensor<16x16xf16, #a>
!b = tensor<16x8xf16, #b>
!c = tensor<16x8xf32, #c>
!s = !warp.shared<16x16xf16, #s>
module attributes {warp.target = "sm_80"} {

// Both warps scale by the same row, whose 64 bytes one of them copies beside the operand that is copied anyway.
// CHECK-LABEL: func.func @common
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<16x!tile.ptr<f32>,
// CHECK: scf.for
// CHECK: warp.alloc : <16x16xf16,
// CHECK: %[[S:.*]] = warp.alloc : <16xf32,
// CHECK-NEXT: warp.async_copy %[[V]] to %[[S]] {contiguity = 4 : i32}
// CHECK-NEXT: warp.async_commit
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: %[[X:.*]] = warp.load_shared %[[S]]
// CHECK-NEXT: warp.dealloc %[[S]]
// CHECK-NEXT: arith.truncf %[[X]]
func.func @common(%p: !p, %v: tensor<16x!tile.ptr<f32>, #v>, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %s = warp.alloc : !s
    warp.async_copy %p to %s {contiguity = 8 : i32} : !p -> !s
    warp.async_commit
    %row = tile.load %v {warp.contiguity = 4 : i32} : tensor<16x!tile.ptr<f32>, #v>
    %y = arith.truncf %row : tensor<16xf32, #v> to tensor<16xf16, #v>
    %e = tile.expand_dims %y {axis = 0 : i32} : tensor<16xf16, #v> -> tensor<1x16xf16, #warp.layout<[1, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[0, 0]]>>
    %w = tile.broadcast %e : tensor<1x16xf16, #warp.layout<[1, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[0, 0]]>> -> !x
    warp.async_wait {pending = 0 : i32}
    %x = warp.load_shared %s : !s -> !x
    warp.dealloc %s : !s
    %g = arith.mulf %x, %w : !x
    %a = warp.convert_layout %g : !x -> !a
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  return %r : !c
}

// A row of a sixteenth of what is copied stays in registers, which have it earlier.
// CHECK-LABEL: func.func @little
// CHECK-COUNT-1: warp.alloc
// CHECK-NOT: warp.alloc
// CHECK: return
func.func @little(%p: !p, %v: tensor<16x!tile.ptr<f16>, #v>, %b: !b, %zero: !c, %n: i32) -> !c {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !c : i32 {
    %s = warp.alloc : !s
    warp.async_copy %p to %s {contiguity = 8 : i32} : !p -> !s
    warp.async_commit
    %y = tile.load %v {warp.contiguity = 8 : i32} : tensor<16x!tile.ptr<f16>, #v>
    %e = tile.expand_dims %y {axis = 0 : i32} : tensor<16xf16, #v> -> tensor<1x16xf16, #warp.layout<[1, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[0, 0]]>>
    %w = tile.broadcast %e : tensor<1x16xf16, #warp.layout<[1, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[0, 0]]>> -> !x
    warp.async_wait {pending = 0 : i32}
    %x = warp.load_shared %s : !s -> !x
    warp.dealloc %s : !s
    %g = arith.mulf %x, %w : !x
    %a = warp.convert_layout %g : !x -> !a
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d : !c
  }
  return %r : !c
}

// Left alone: of which each warp has a half, less than a sector, an index, and what nothing is copied ahead beside.
// CHECK-LABEL: func.func @each_its_own
// CHECK-COUNT-1: warp.alloc
// CHECK-NOT: warp.alloc
// CHECK: return
func.func @each_its_own(%p: !p, %half: tensor<16x!tile.ptr<f16>, #half>, %few: tensor<8x!tile.ptr<f16>, #few>, %index: tensor<16x!tile.ptr<i32>, #v>, %table: tensor<16x!tile.ptr<f16>, #v>, %h: tensor<16xf16, #half>, %f: tensor<8xf16, #few>, %t: tensor<16xf16, #v>, %b: !b, %zero: !c, %n: i32) -> (!c, tensor<16xf16, #half>, tensor<8xf16, #few>, tensor<16xf16, #v>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %x = %h, %y = %f, %z = %t) -> (!c, tensor<16xf16, #half>, tensor<8xf16, #few>, tensor<16xf16, #v>) : i32 {
    %s = warp.alloc : !s
    warp.async_copy %p to %s {contiguity = 8 : i32} : !p -> !s
    warp.async_commit
    %0 = tile.load %half {warp.contiguity = 4 : i32} : tensor<16x!tile.ptr<f16>, #half>
    %1 = tile.load %few {warp.contiguity = 8 : i32} : tensor<8x!tile.ptr<f16>, #few>
    %2 = tile.load %index {warp.contiguity = 4 : i32} : tensor<16x!tile.ptr<i32>, #v>
    %3 = tile.addptr %table, %2 : tensor<16x!tile.ptr<f16>, #v>, tensor<16xi32, #v>
    %4 = tile.load %3 : tensor<16x!tile.ptr<f16>, #v>
    %5 = arith.addf %x, %0 : tensor<16xf16, #half>
    %6 = arith.addf %y, %1 : tensor<8xf16, #few>
    %7 = arith.addf %z, %4 : tensor<16xf16, #v>
    warp.async_wait {pending = 0 : i32}
    %a = warp.load_shared %s : !s -> !a
    warp.dealloc %s : !s
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d, %5, %6, %7 : !c, tensor<16xf16, #half>, tensor<8xf16, #few>, tensor<16xf16, #v>
  }
  return %r#0, %r#1, %r#2, %r#3 : !c, tensor<16xf16, #half>, tensor<8xf16, #few>, tensor<16xf16, #v>
}

// CHECK-LABEL: func.func @nothing_ahead
// CHECK-NOT: warp.alloc
// CHECK: return
func.func @nothing_ahead(%v: tensor<16x!tile.ptr<f16>, #v>, %t: tensor<16xf16, #v>, %a: !a, %b: !b, %zero: !c, %n: i32) -> (!c, tensor<16xf16, #v>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %x = %t) -> (!c, tensor<16xf16, #v>) : i32 {
    %y = tile.load %v {warp.contiguity = 8 : i32} : tensor<16x!tile.ptr<f16>, #v>
    %z = arith.addf %x, %y : tensor<16xf16, #v>
    %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : !a * !b -> !c
    scf.yield %d, %z : !c, tensor<16xf16, #v>
  }
  return %r#0, %r#1 : !c, tensor<16xf16, #v>
}
}
