// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --pass-pipeline='builtin.module(func.func(warp-defer-waits))' --split-input-file | FileCheck %s

#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>

// Two products that do not need one another are under way together; the first is waited for while the second goes on.
// CHECK-LABEL: func.func @beside
// CHECK-NEXT: %[[D:.*]] = warp.wgmma
// CHECK-NEXT: %[[E:.*]] = warp.wgmma
// CHECK-NEXT: %[[S:.*]] = warp.wgmma_wait %[[D]] {pending = 1 : i32}
// CHECK-NEXT: %[[X:.*]] = math.exp2 %[[S]]
// CHECK-NEXT: %[[T:.*]] = warp.wgmma_wait %[[E]] {pending = 0 : i32}
// CHECK-NEXT: arith.mulf %[[X]], %[[T]]
func.func @beside(%a: tensor<64x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>, %c: tensor<64x16xf32, #a>) -> tensor<64x16xf32, #a> {
  %d = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %x = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #a>
  %e = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %y = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x16xf32, #a>
  %p = math.exp2 %x : tensor<64x16xf32, #a>
  %r = arith.mulf %p, %y : tensor<64x16xf32, #a>
  return %r : tensor<64x16xf32, #a>
}

// -----

#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>

// Sums that go on from product to product are waited for once.
// CHECK-LABEL: func.func @onto_one_sum
// CHECK-NEXT: %[[D:.*]] = warp.wgmma
// CHECK-NEXT: %[[E:.*]] = warp.wgmma %{{.*}}, %{{.*}}, %[[D]]
// CHECK-NEXT: warp.wgmma_wait %[[E]] {pending = 0 : i32}
// CHECK-NEXT: return
func.func @onto_one_sum(%a: tensor<64x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>, %c: tensor<64x16xf32, #a>) -> tensor<64x16xf32, #a> {
  %d = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %x = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #a>
  %e = warp.wgmma %a, %s, %x {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %y = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x16xf32, #a>
  return %y : tensor<64x16xf32, #a>
}

// -----

#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>

// Behind a barrier other threads may write what the product reads; at the end of a loop's body there is one to come.
// CHECK-LABEL: func.func @left_alone
// CHECK: scf.for
// CHECK-NEXT: warp.wgmma
// CHECK-NEXT: %[[X:.*]] = warp.wgmma_wait %{{.*}} {pending = 0 : i32}
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.wgmma
// CHECK-NEXT: arith.addf %[[X]]
// CHECK-NEXT: warp.wgmma_wait %{{.*}} {pending = 0 : i32}
// CHECK-NEXT: scf.yield
func.func @left_alone(%a: tensor<64x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>, %c: tensor<64x16xf32, #a>, %n: i32) -> tensor<64x16xf32, #a> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %c) -> tensor<64x16xf32, #a> : i32 {
    %d = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
    %x = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #a>
    warp.barrier
    %e = warp.wgmma %a, %s, %t {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
    %y = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x16xf32, #a>
    %z = arith.addf %x, %x : tensor<64x16xf32, #a>
    scf.yield %y : tensor<64x16xf32, #a>
  }
  return %r : tensor<64x16xf32, #a>
}

// -----

#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>

// More products than an instruction can leave under way: some that are started later are waited for as well.
// CHECK-LABEL: func.func @more_than_a_wait_counts
// CHECK-COUNT-10: warp.wgmma %
// CHECK: warp.wgmma_wait %{{.*}} {pending = 7 : i32}
// CHECK: warp.wgmma_wait %{{.*}} {pending = 7 : i32}
// CHECK: warp.wgmma_wait %{{.*}} {pending = 7 : i32}
// CHECK: warp.wgmma_wait %{{.*}} {pending = 6 : i32}
func.func @more_than_a_wait_counts(%a: tensor<64x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>, %c: tensor<64x16xf32, #a>) -> tensor<64x16xf32, #a> {
  %d0 = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %x0 = warp.wgmma_wait %d0 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %d1 = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %x1 = warp.wgmma_wait %d1 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %d2 = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %x2 = warp.wgmma_wait %d2 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %d3 = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %x3 = warp.wgmma_wait %d3 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %d4 = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %x4 = warp.wgmma_wait %d4 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %d5 = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %x5 = warp.wgmma_wait %d5 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %d6 = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %x6 = warp.wgmma_wait %d6 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %d7 = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %x7 = warp.wgmma_wait %d7 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %d8 = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %x8 = warp.wgmma_wait %d8 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %d9 = warp.wgmma %a, %s, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %x9 = warp.wgmma_wait %d9 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %r1 = arith.addf %x0, %x1 : tensor<64x16xf32, #a>
  %r2 = arith.addf %r1, %x2 : tensor<64x16xf32, #a>
  %r3 = arith.addf %r2, %x3 : tensor<64x16xf32, #a>
  %r4 = arith.addf %r3, %x4 : tensor<64x16xf32, #a>
  %r5 = arith.addf %r4, %x5 : tensor<64x16xf32, #a>
  %r6 = arith.addf %r5, %x6 : tensor<64x16xf32, #a>
  %r7 = arith.addf %r6, %x7 : tensor<64x16xf32, #a>
  %r8 = arith.addf %r7, %x8 : tensor<64x16xf32, #a>
  %r9 = arith.addf %r8, %x9 : tensor<64x16xf32, #a>
  return %r9 : tensor<64x16xf32, #a>
}

// -----

#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#v = #warp.layout<[16], register = [[1], [8]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>
#w = #warp.layout<[1, 16], register = [[0, 1], [0, 8]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
#o = #warp.layout<[16], offset = [[1], [2], [4], [8]]>

// Of four products each is started when its operands are there, with the sums that it starts from; what one is computed
// from is waited for before.
// CHECK-LABEL: func.func @gradients
// CHECK-NEXT: arith.constant
// CHECK-NEXT: %[[S:.*]] = warp.wgmma %arg0, %arg1, %cst
// CHECK-NEXT: %[[DELTA:.*]] = warp.load_shared
// CHECK-NEXT: tile.expand_dims %[[DELTA]]
// CHECK-NEXT: %[[ROWS:.*]] = tile.broadcast
// CHECK-NEXT: %[[DP:.*]] = warp.wgmma %arg0, %arg1, %[[ROWS]]
// CHECK-NEXT: %[[SCORES:.*]] = warp.wgmma_wait %[[S]] {pending = 1 : i32}
// CHECK-NEXT: %[[P:.*]] = math.exp2 %[[SCORES]]
// CHECK-NEXT: %[[A:.*]] = arith.truncf %[[P]]
// CHECK-NEXT: %[[DV:.*]] = warp.wgmma %[[A]], %arg1, %arg3
// CHECK-NEXT: %[[D:.*]] = warp.wgmma_wait %[[DP]] {pending = 1 : i32}
// CHECK-NEXT: %[[DS:.*]] = arith.mulf %[[P]], %[[D]]
// CHECK-NEXT: %[[B:.*]] = arith.truncf %[[DS]]
// CHECK-NEXT: %[[DK:.*]] = warp.wgmma %[[B]], %arg1, %arg4
// CHECK-NEXT: warp.wgmma_wait %[[DV]] {pending = 1 : i32}
// CHECK-NEXT: warp.wgmma_wait %[[DK]] {pending = 0 : i32}
func.func @gradients(%a: tensor<64x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>, %d: !warp.shared<16xf32, #o>, %v: tensor<64x16xf32, #a>, %k: tensor<64x16xf32, #a>) -> (tensor<64x16xf32, #a>, tensor<64x16xf32, #a>) {
  %zero = arith.constant dense<0.0> : tensor<64x16xf32, #a>
  %0 = warp.wgmma %a, %s, %zero {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %scores = warp.wgmma_wait %0 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %p = math.exp2 %scores : tensor<64x16xf32, #a>
  %delta = warp.load_shared %d : !warp.shared<16xf32, #o> -> tensor<16xf32, #v>
  %row = tile.expand_dims %delta {axis = 0 : i32} : tensor<16xf32, #v> -> tensor<1x16xf32, #w>
  %rows = tile.broadcast %row : tensor<1x16xf32, #w> -> tensor<64x16xf32, #a>
  %1 = warp.wgmma %a, %s, %rows {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %dp = warp.wgmma_wait %1 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %ds = arith.mulf %p, %dp : tensor<64x16xf32, #a>
  %left = arith.truncf %p : tensor<64x16xf32, #a> to tensor<64x16xf16, #a>
  %2 = warp.wgmma %left, %s, %v {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %dv = warp.wgmma_wait %2 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %right = arith.truncf %ds : tensor<64x16xf32, #a> to tensor<64x16xf16, #a>
  %3 = warp.wgmma %right, %s, %k {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %dk = warp.wgmma_wait %3 {pending = 0 : i32} : tensor<64x16xf32, #a>
  return %dv, %dk : tensor<64x16xf32, #a>, tensor<64x16xf32, #a>
}

// -----

#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>

// Of three, one that starts from sums stays where it is.
// CHECK-LABEL: func.func @three
// CHECK: warp.wgmma %
// CHECK-NEXT: warp.wgmma_wait %{{.*}} {pending = 0 : i32}
// CHECK-NEXT: math.exp2
// CHECK-NEXT: warp.wgmma %
// CHECK-NEXT: warp.wgmma_wait %{{.*}} {pending = 0 : i32}
func.func @three(%a: tensor<64x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>, %sums: tensor<64x16xf32, #a>, %q: tensor<64x16xf32, #a>) -> tensor<64x16xf32, #a> {
  %zero = arith.constant dense<0.0> : tensor<64x16xf32, #a>
  %0 = warp.wgmma %a, %s, %zero {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %scores = warp.wgmma_wait %0 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %p = math.exp2 %scores : tensor<64x16xf32, #a>
  %1 = warp.wgmma %a, %s, %sums {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %dp = warp.wgmma_wait %1 {pending = 0 : i32} : tensor<64x16xf32, #a>
  %ds = arith.mulf %p, %dp : tensor<64x16xf32, #a>
  %right = arith.truncf %ds : tensor<64x16xf32, #a> to tensor<64x16xf16, #a>
  %2 = warp.wgmma %right, %s, %q {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<64x16xf32, #a>
  %dq = warp.wgmma_wait %2 {pending = 0 : i32} : tensor<64x16xf32, #a>
  return %dq : tensor<64x16xf32, #a>
}

// -----

#a = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>

// Of three whose sums tensor memory holds all at once, each is started when its operands are there.
// CHECK-LABEL: func.func @three_in_tensor_memory
// CHECK: %[[S:.*]] = warp.wgmma %
// CHECK-NEXT: %[[DP:.*]] = warp.wgmma %
// CHECK-NEXT: warp.wgmma_wait %[[S]] {pending = 1 : i32}
// CHECK-NEXT: math.exp2
// CHECK-NEXT: warp.wgmma_wait %[[DP]] {pending = 0 : i32}
module attributes {warp.target = "sm_100a"} {
  func.func @three_in_tensor_memory(%a: tensor<128x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>, %sums: tensor<128x16xf32, #a>, %q: tensor<128x16xf32, #a>) -> tensor<128x16xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %zero = arith.constant dense<0.0> : tensor<128x16xf32, #a>
    %0 = warp.wgmma %a, %s, %zero {shape = array<i32: 128, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
    %scores = warp.wgmma_wait %0 {pending = 0 : i32} : tensor<128x16xf32, #a>
    %p = math.exp2 %scores : tensor<128x16xf32, #a>
    %1 = warp.wgmma %a, %s, %sums {shape = array<i32: 128, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
    %dp = warp.wgmma_wait %1 {pending = 0 : i32} : tensor<128x16xf32, #a>
    %ds = arith.mulf %p, %dp : tensor<128x16xf32, #a>
    %right = arith.truncf %ds : tensor<128x16xf32, #a> to tensor<128x16xf16, #a>
    %2 = warp.wgmma %right, %s, %q {shape = array<i32: 128, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
    %dq = warp.wgmma_wait %2 {pending = 0 : i32} : tensor<128x16xf32, #a>
    return %dq : tensor<128x16xf32, #a>
  }
}
