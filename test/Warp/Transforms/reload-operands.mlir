// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-reload-operands | FileCheck %s

// One warp: the sum that the loop carries takes 128 registers, the first operand 64, and each product's result 32.

#acc = #warp.layout<[16, 256], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#score = #warp.layout<[16, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#a = #warp.layout<[16, 256], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[256, 64], register = [[1, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0], [0, 8], [0, 16], [0, 32]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#p = #warp.layout<[16, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#v = #warp.layout<[64, 256], register = [[1, 0], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#s = #warp.layout<[16, 256], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [1, 0], [2, 0], [4, 0], [8, 0]]>
#sk = #warp.layout<[256, 64], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0], [0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]]>
#sv = #warp.layout<[64, 256], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]]>

module attributes {warp.target = "sm_80"} {
// CHECK-LABEL: func.func @large
// CHECK: %[[T:.*]] = warp.alloc : <16x256xf16
// CHECK-NOT: warp.load_shared
// CHECK: scf.for
// CHECK: %[[Q:.*]] = warp.load_shared %[[T]]
// CHECK-NEXT: warp.mma %[[Q]]
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: warp.dealloc %[[T]]
func.func @large(%zero: tensor<16x256xf32, #acc>, %none: tensor<16x64xf32, #score>, %n: i32) -> tensor<16x256xf32, #acc> attributes {tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %tile = warp.alloc : <16x256xf16, #s>
  %q = warp.load_shared %tile : <16x256xf16, #s> -> tensor<16x256xf16, #a>
  warp.dealloc %tile : <16x256xf16, #s>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero) -> tensor<16x256xf32, #acc> : i32 {
    %tk = warp.alloc : <256x64xf16, #sk>
    %k = warp.load_shared %tk : <256x64xf16, #sk> -> tensor<256x64xf16, #b>
    %x = warp.mma %q, %k, %none {shape = array<i32: 16, 8, 16>} : tensor<16x256xf16, #a> * tensor<256x64xf16, #b> -> tensor<16x64xf32, #score>
    %w = arith.truncf %x : tensor<16x64xf32, #score> to tensor<16x64xf16, #p>
    warp.dealloc %tk : <256x64xf16, #sk>
    %tv = warp.alloc : <64x256xf16, #sv>
    %v = warp.load_shared %tv : <64x256xf16, #sv> -> tensor<64x256xf16, #v>
    %y = warp.mma %w, %v, %o {shape = array<i32: 16, 8, 16>} : tensor<16x64xf16, #p> * tensor<64x256xf16, #v> -> tensor<16x256xf32, #acc>
    warp.dealloc %tv : <64x256xf16, #sv>
    scf.yield %y : tensor<16x256xf32, #acc>
  }
  return %r : tensor<16x256xf32, #acc>
}

// With three stages of 64 KiB each, shared memory has no room for the operand beside the rings.
// CHECK-LABEL: func.func @no_room
// CHECK: warp.load_shared
// CHECK-NEXT: warp.dealloc
// CHECK-NEXT: scf.for
func.func @no_room(%zero: tensor<16x256xf32, #acc>, %none: tensor<16x64xf32, #score>, %n: i32) -> tensor<16x256xf32, #acc> attributes {tile.schedule = #tile.schedule<warps = 1, stages = 3>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %tile = warp.alloc : <16x256xf16, #s>
  %q = warp.load_shared %tile : <16x256xf16, #s> -> tensor<16x256xf16, #a>
  warp.dealloc %tile : <16x256xf16, #s>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero) -> tensor<16x256xf32, #acc> : i32 {
    %tk = warp.alloc : <256x64xf16, #sk>
    %k = warp.load_shared %tk : <256x64xf16, #sk> -> tensor<256x64xf16, #b>
    %x = warp.mma %q, %k, %none {shape = array<i32: 16, 8, 16>} : tensor<16x256xf16, #a> * tensor<256x64xf16, #b> -> tensor<16x64xf32, #score>
    %w = arith.truncf %x : tensor<16x64xf32, #score> to tensor<16x64xf16, #p>
    warp.dealloc %tk : <256x64xf16, #sk>
    %tv = warp.alloc : <64x256xf16, #sv>
    %v = warp.load_shared %tv : <64x256xf16, #sv> -> tensor<64x256xf16, #v>
    %y = warp.mma %w, %v, %o {shape = array<i32: 16, 8, 16>} : tensor<16x64xf16, #p> * tensor<64x256xf16, #v> -> tensor<16x256xf32, #acc>
    warp.dealloc %tv : <64x256xf16, #sv>
    scf.yield %y : tensor<16x256xf32, #acc>
  }
  return %r : tensor<16x256xf32, #acc>
}

// What fits into registers stays in them.
// CHECK-LABEL: func.func @small
// CHECK: warp.load_shared
// CHECK-NEXT: warp.dealloc
// CHECK-NEXT: scf.for
// CHECK-NOT: warp.load_shared
func.func @small(%k: tensor<256x64xf16, #b>, %zero: tensor<16x64xf32, #score>, %n: i32) -> tensor<16x64xf32, #score> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %tile = warp.alloc : <16x256xf16, #s>
  %q = warp.load_shared %tile : <16x256xf16, #s> -> tensor<16x256xf16, #a>
  warp.dealloc %tile : <16x256xf16, #s>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zero) -> tensor<16x64xf32, #score> : i32 {
    %r2 = scf.for %j = %c0 to %n step %c1 iter_args(%u = %o) -> tensor<16x64xf32, #score> : i32 {
      %k2 = arith.addf %k, %k : tensor<256x64xf16, #b>
      %x = warp.mma %q, %k2, %u {shape = array<i32: 16, 8, 16>} : tensor<16x256xf16, #a> * tensor<256x64xf16, #b> -> tensor<16x64xf32, #score>
      scf.yield %x : tensor<16x64xf32, #score>
    }
    scf.yield %r2 : tensor<16x64xf32, #score>
  }
  return %r : tensor<16x64xf32, #score>
}
}

// -----

// An operand of multiply-adds takes 512 registers. Of the loop's ring of 64 KiB two stages must find room beside it.

#acc = #warp.layout<[16, 64], register = [[0, 1], [0, 2], [0, 4], [0, 8], [8, 0]], lane = [[1, 0], [2, 0], [4, 0], [0, 16], [0, 32]]>
#a = #warp.layout<[16, 256], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [8, 0]], lane = [[1, 0], [2, 0], [4, 0], [0, 0], [0, 0]]>
#b = #warp.layout<[256, 64], register = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0]], lane = [[0, 0], [0, 0], [0, 0], [0, 16], [0, 32]]>
#s = #warp.layout<[16, 256], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [1, 0], [2, 0], [4, 0], [8, 0]]>
#sk = #warp.layout<[256, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0]]>
!acc = tensor<16x64xf32, #acc>
!a = tensor<16x256xf32, #a>
!b = tensor<256x64xf32, #b>

module attributes {warp.target = "sm_90a"} {
// CHECK-LABEL: func.func @multiply_adds
// CHECK: %[[T:.*]] = warp.alloc : <16x256xf32
// CHECK-NOT: warp.load_shared
// CHECK: scf.for
// CHECK: %[[A:.*]] = warp.load_shared %[[T]]
// CHECK-NEXT: tile.dot %[[A]],
func.func @multiply_adds(%zero: !acc, %n: i32) -> !acc attributes {tile.schedule = #tile.schedule<warps = 1, stages = 4>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %tile = warp.alloc : <16x256xf32, #s>
  %a = warp.load_shared %tile : <16x256xf32, #s> -> !a
  warp.dealloc %tile : <16x256xf32, #s>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> !acc : i32 {
    %tb = warp.alloc : <256x64xf32, #sk>
    %b = warp.load_shared %tb : <256x64xf32, #sk> -> !b
    %d = tile.dot %a, %b, %sum {precision = #tile<precision ieee>} : !a * !b -> !acc
    warp.dealloc %tb : <256x64xf32, #sk>
    scf.yield %d : !acc
  }
  return %r : !acc
}
}
