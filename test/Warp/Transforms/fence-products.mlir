// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-fence-products | FileCheck %s
#acc = #warp.layout<[64, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#q = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#k = #warp.layout<[64, 128], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32], [0, 64]]>
#v = #warp.layout<[128, 128], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0], [0, 64]]>
#line = #warp.layout<[128], register = [[1], [8], [16], [32], [64]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>
#row = #warp.layout<[1, 128], register = [[0, 1], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#one = #warp.layout<[128], offset = [[1], [2], [4], [8], [16], [32], [64]]>
!sums = tensor<64x128xf32, #acc>
!factor = tensor<64x128xf16, #acc>
!q = !warp.shared<64x64xf16, #q>
!k = !warp.shared<64x128xf16, #k>
!v = !warp.shared<128x128xf16, #v>

module attributes {warp.target = "sm_90a"} {
  // Scores and what they are converted from fill a thread's registers: the conversion ends before the fence.
  // CHECK-LABEL: func.func @few_registers
  // CHECK: %[[P:.*]] = arith.truncf
  // CHECK: %[[O:.*]] = arith.mulf
  // CHECK: %[[F:.*]]:2 = warp.wgmma_fence %[[O]], %[[P]]
  // CHECK-NEXT: %[[D:.*]] = warp.wgmma %{{.*}} {fenced,
  // CHECK-NEXT: warp.wgmma %[[F]]#1, %{{.*}}, %[[F]]#0 {fenced,
  // CHECK-NEXT: warp.wgmma_wait %[[D]]
  func.func @few_registers(%q: !q, %k: !k, %v: !v, %w: !sums, %scale: !sums, %acc: !sums) -> (!sums, !sums) {
    %zero = arith.constant dense<0.0> : !sums
    %p = arith.truncf %w : !sums to !factor
    %o = arith.mulf %acc, %scale : !sums
    %d = warp.wgmma %q, %k, %zero {shape = array<i32: 64, 128, 16>} : !q * !k -> !sums
    %e = warp.wgmma %p, %v, %o {shape = array<i32: 64, 128, 16>} : !factor * !v -> !sums
    %s = warp.wgmma_wait %d {pending = 1 : i32} : !sums
    %t = warp.wgmma_wait %e {pending = 0 : i32} : !sums
    return %s, %t : !sums, !sums
  }

  // Where registers hold both, each product has its own fence: conversions may run beside the first.
  // CHECK-LABEL: func.func @many_registers
  // CHECK-NOT: fence
  // CHECK: return
  func.func @many_registers(%q: !q, %k: !warp.shared<64x64xf16, #q>, %v: !warp.shared<64x64xf16, #q>,
                            %w: tensor<64x64xf32, #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>>)
      -> tensor<64x64xf32, #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>> {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>>
    %p = arith.truncf %w : tensor<64x64xf32, #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>> to tensor<64x64xf16, #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>>
    %d = warp.wgmma %q, %k, %zero {shape = array<i32: 64, 64, 16>} : !q * !warp.shared<64x64xf16, #q> -> tensor<64x64xf32, #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>>
    %e = warp.wgmma %p, %v, %w {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>> * !warp.shared<64x64xf16, #q> -> tensor<64x64xf32, #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>>
    %t:2 = warp.wgmma_wait %d, %e {pending = 0 : i32} : tensor<64x64xf32, #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>>, tensor<64x64xf32, #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>>
    return %t#1 : tensor<64x64xf32, #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>>
  }

  // Sums to start from are read and written before the first product, each in registers of its own.
  // CHECK-LABEL: func.func @starts
  // CHECK: %[[X:.*]] = warp.load_shared
  // CHECK: %[[START:.*]] = tile.broadcast
  // CHECK-NEXT: %[[F:.*]]:2 = warp.wgmma_fence %[[START]], %[[START]]
  // CHECK-NEXT: warp.wgmma %{{.*}} {fenced,
  // CHECK-NEXT: warp.wgmma %{{.*}}, %{{.*}}, %[[F]]#0 {fenced,
  // CHECK-NEXT: warp.wgmma %{{.*}}, %{{.*}}, %[[F]]#1 {fenced,
  func.func @starts(%q: !q, %k: !k, %x: !warp.shared<128xf32, #one>) -> (!sums, !sums, !sums) {
    %zero = arith.constant dense<0.0> : !sums
    %d = warp.wgmma %q, %k, %zero {shape = array<i32: 64, 128, 16>} : !q * !k -> !sums
    %l = warp.load_shared %x : !warp.shared<128xf32, #one> -> tensor<128xf32, #line>
    %r = tile.expand_dims %l {axis = 0 : i32} : tensor<128xf32, #line> -> tensor<1x128xf32, #row>
    %start = tile.broadcast %r : tensor<1x128xf32, #row> -> !sums
    %e = warp.wgmma %q, %k, %start {shape = array<i32: 64, 128, 16>} : !q * !k -> !sums
    %f = warp.wgmma %q, %k, %start {shape = array<i32: 64, 128, 16>} : !q * !k -> !sums
    %t:3 = warp.wgmma_wait %d, %e, %f {pending = 0 : i32} : !sums, !sums, !sums
    return %t#0, %t#1, %t#2 : !sums, !sums, !sums
  }

  // Sums that a product goes on with need no fence; a wait, and what needs one, begins anew.
  // CHECK-LABEL: func.func @chains
  // CHECK: %[[F:.*]] = warp.wgmma_fence %{{.*}} : tensor
  // CHECK-NEXT: %[[D:.*]] = warp.wgmma %{{.*}}, %{{.*}}, %[[F]] {fenced,
  // CHECK-NEXT: %[[E:.*]] = warp.wgmma %{{.*}}, %{{.*}}, %[[D]] {fenced,
  // CHECK-NEXT: %[[T:.*]] = warp.wgmma_wait %[[E]]
  // CHECK-NEXT: %[[U:.*]] = arith.mulf %[[T]], %[[T]]
  // CHECK-NEXT: warp.wgmma %{{.*}}, %{{.*}}, %[[U]] {shape
  func.func @chains(%q: !q, %k: !k, %start: !sums) -> !sums {
    %d = warp.wgmma %q, %k, %start {shape = array<i32: 64, 128, 16>} : !q * !k -> !sums
    %e = warp.wgmma %q, %k, %d {shape = array<i32: 64, 128, 16>} : !q * !k -> !sums
    %t = warp.wgmma_wait %e {pending = 0 : i32} : !sums
    %u = arith.mulf %t, %t : !sums
    %f = warp.wgmma %q, %k, %u {shape = array<i32: 64, 128, 16>} : !q * !k -> !sums
    %w = warp.wgmma_wait %f {pending = 0 : i32} : !sums
    return %w : !sums
  }

  // Behind a wait for other threads' copies a load stays, and its product has a fence of its own.
  // CHECK-LABEL: func.func @behind_a_wait
  // CHECK: warp.wgmma %{{.*}} {shape
  // CHECK-NEXT: warp.mbarrier_wait
  // CHECK-NEXT: warp.load_shared
  // CHECK: warp.wgmma %{{.*}} {shape
  func.func @behind_a_wait(%q: !q, %k: !k, %x: !warp.shared<128xf32, #one>, %b: !warp.shared<1xi64, #warp.layout<[1], offset = []>>, %phase: i32) -> (!sums, !sums) {
    %zero = arith.constant dense<0.0> : !sums
    %d = warp.wgmma %q, %k, %zero {shape = array<i32: 64, 128, 16>} : !q * !k -> !sums
    warp.mbarrier_wait %b, %phase : !warp.shared<1xi64, #warp.layout<[1], offset = []>>
    %l = warp.load_shared %x : !warp.shared<128xf32, #one> -> tensor<128xf32, #line>
    %r = tile.expand_dims %l {axis = 0 : i32} : tensor<128xf32, #line> -> tensor<1x128xf32, #row>
    %start = tile.broadcast %r : tensor<1x128xf32, #row> -> !sums
    %e = warp.wgmma %q, %k, %start {shape = array<i32: 64, 128, 16>} : !q * !k -> !sums
    %t:2 = warp.wgmma_wait %d, %e {pending = 0 : i32} : !sums, !sums
    return %t#0, %t#1 : !sums, !sums
  }
}
